"""The verbs: which method each asks, and what is printed of the answer; and those that ask none.

What a verb of a method takes, and how it is explained, comes from the method. One that is not here gets a verb from its name, `tool.record`
becoming `omegad tool record`, and its answer is printed field by field.
"""

from omegad.edge.cli.clock_verbs import CLOCK
from omegad.edge.cli.erase_verb import ERASE
from omegad.edge.cli.transfer_verbs import TRANSFER
from omegad.edge.cli.verb import Option, Verb

WATCH = Option("watch", "go on showing it, every second, until interrupted", "flag")

GROUPS = {
    "clock": "See whether the log and the clock agree, and say that the clock is right again",
    "claim": "Claim files and branches for a session, so that others keep off them, and let go of them",
    "context": "Put together what an agent should have before it",
    "identity": "Say who the agent is, and for whom it works, in files that every context begins with",
    "intent": "Say what a session is about to do, and see what others are",
    "message": "Leave messages for agents, and list them",
    "system": "Ask the service about itself",
    "skill": "Note what was learned about skills",
    "task": "Put down, take and settle the tasks that agents share",
    "tool": "Record what agents do with their tools",
    "tools": "List and call the tools that agents are given",
    "session": "Brief an agent as at the beginning of its session, and show which are open",
    "profile": "Show and set what is known of the person",
    "reaction": "List what reactions failed on, and have it tried again",
    "reminder": "Set, list and dismiss reminders",
    "memory": "Change what is remembered, relate memories, and look back on their lives",
    "thesis": "State theses, weigh evidence for and against them, and see how predictions came out",
    "service": "Have the operating system run the daemon",
    "model": "Install and list the models that search by meaning",
}

DRY_RUN = Option("dry-run", "show what would be written or taken away, and do nothing", "flag")
DAEMON = (
    Verb("serve", "daemon.serve", about="Run the daemon in the foreground", examples=("omegad serve", "omegad --home /tmp/trial serve")),
    Verb(
        "start",
        "daemon.start",
        about="Run the daemon in the background, and wait until it answers",
        examples=("omegad start", "OMEGAD_MODEL=none omegad start"),
    ),
    Verb("stop", "daemon.stop", about="Stop the daemon, and wait until it is gone"),
    Verb(
        "status",
        "daemon.status",
        "system.status",
        about="Show how the daemon is: log, views, model, and whatever is not as it should be",
        options=(WATCH,),
        examples=("omegad status --watch", "omegad status --no-spawn --json"),
    ),
)

MCP = (
    Verb(
        "mcp",
        "mcp.bridge",
        about="Be the MCP server that an agent's host starts: standard input and output, piped to the gateway",
        examples=("omegad mcp",),
    ),
    Verb(
        "gateway",
        "mcp.gateway",
        about="Run the gateway that serves MCP to all sessions; `omegad mcp` starts it when it is needed",
        options=(
            Option("http", "serve MCP over HTTP, too, at http://127.0.0.1:N/mcp, and do not end when idle", "integer"),
            Option("token", "print the token that HTTP asks for, as in Authorization: Bearer TOKEN, and end", "flag"),
        ),
        examples=("omegad gateway --http 8377", "omegad gateway --token"),
    ),
)

MEMORIES = (
    Verb(
        "store",
        "memories.store",
        "memory.store",
        examples=(
            'omegad store "Prefers tabs over spaces" --event-type user_preference',
            'omegad store "Retry on 429 with jitter" --event-type lesson_learned --tag http --tag retries --priority 4',
            "omegad store - --project shop < notes.txt",
        ),
    ),
    Verb(
        "query",
        "memories.query",
        "memory.query",
        examples=(
            'omegad query "how do we deploy?"',
            'omegad query "connection reset by peer" --mode phrase --type error_pattern',
            'omegad query "retries" --since 2026-01-01 --limit 3 --explain',
        ),
    ),
    Verb("get", "memories.get", "memory.get"),
    Verb("list", "memories.list_all", "memory.list", examples=("omegad list --project shop --limit 20",)),
    Verb("delete", "sentences.say", "memory.delete"),
    Verb(
        "timeline",
        "looking_back.timeline",
        "memory.timeline",
        examples=("omegad timeline", "omegad timeline --days 30 --project shop --type decision"),
    ),
    Verb(
        "sql",
        "looking_back.sql",
        "audit.sql",
        examples=(
            'omegad sql "SELECT kind, status, count(*) FROM audit_log GROUP BY 1, 2"',
            "omegad sql \"SELECT created_at, name, summary FROM audit_log WHERE status = 'error' ORDER BY id DESC\" --limit 5",
        ),
    ),
)

MEMORY = (
    Verb(
        "memory edit",
        "sentences.say",
        "memory.edit",
        examples=(
            'omegad memory edit mem-0123456789abcdef "Billing runs on PostgreSQL 17"',
            "omegad memory edit mem-0123456789abcdef - < notes.txt",
        ),
    ),
    Verb("memory delete", "sentences.say", "memory.delete"),
    ERASE,
    Verb("memory restore", "sentences.say", "memory.restore"),
    Verb(
        "memory supersede",
        "sentences.say",
        "memory.supersede",
        examples=('omegad memory supersede mem-0123456789abcdef mem-fedcba9876543210 --reason "we moved"',),
    ),
    Verb("memory rate", "sentences.say", "memory.rate", examples=("omegad memory rate mem-0123456789abcdef helpful",)),
    Verb("memory promote", "sentences.say", "memory.promote"),
    Verb(
        "memory link",
        "sentences.say",
        "memory.link",
        examples=("omegad memory link mem-0123456789abcdef mem-fedcba9876543210 --edge-type evolves --weight 0.8",),
    ),
    Verb("memory unlink", "sentences.say", "memory.unlink"),
    Verb("memory similar", "graph.similar", "memory.similar"),
    Verb(
        "memory traverse",
        "graph.traverse",
        "memory.traverse",
        examples=(
            "omegad memory traverse mem-0123456789abcdef --max-hops 3 --min-weight 0.6",
            "omegad memory traverse mem-0123456789abcdef --edge-type evolves",
        ),
    ),
    Verb("memory history", "looking_back.history", "memory.history"),
    Verb("memory lessons", "looking_back.lessons", "memory.lessons", examples=("omegad memory lessons --project shop",)),
    Verb(
        "memory receipts",
        "looking_back.receipts",
        "receipts.list",
        examples=("omegad memory receipts --memory-id mem-0123456789abcdef", "omegad memory receipts --session-id s-1 --limit 20"),
    ),
    Verb(
        "memory compact",
        "upkeep.compact",
        "memory.compact",
        examples=("omegad memory compact --dry-run", "omegad memory compact --project shop --type session_summary --min-cluster 4"),
    ),
    Verb("memory consolidate", "upkeep.consolidate", "memory.consolidate", examples=("omegad memory consolidate --dry-run",)),
    Verb("reminder set", "sentences.say", "reminder.set", examples=('omegad reminder set "Rotate the keys" 2026-12-01 --project shop',)),
    Verb("reminder list", "looking_back.reminders", "reminder.list"),
    Verb(
        "profile update",
        "sentences.say",
        "profile.update",
        examples=("""omegad profile update '{"editor": "helix", "answers": "short", "shell": null}'""",),
    ),
    Verb(
        "memory junk",
        "upkeep.junk",
        "memory.junk",
        options=(Option("drop", "delete what is listed, which `omegad memory restore` brings back", "flag"),),
        examples=("omegad memory junk --days 30", "omegad memory junk --project shop --drop"),
    ),
    Verb("memory prune", "upkeep.prune", "memory.prune", given=()),
    Verb("memory upsert", "memories.store", "memory.upsert", given=("content",)),
)

IDENTITY = (
    Verb("identity init", "identity.init", about="Make the folder of these files, a git repository in the home, and record what they say"),
    Verb("identity commit", "identity.commit", about="Commit what has changed in these files, and record it"),
    Verb("identity show", "identity.show", "identity.get"),
    Verb("context assemble", "sentences.say", "context.assemble", examples=('omegad context assemble --project shop --query "the export"',)),
)

THESES = (
    Verb("thesis list", "theses.list_all", "thesis.list", examples=("omegad thesis list --project shop --standing disputed",)),
    Verb("thesis get", "theses.get", "thesis.get"),
    Verb(
        "thesis state",
        "sentences.say",
        "thesis.state",
        examples=(
            'omegad thesis state "Postgres full text is enough for our search" --project shop --domain architecture --prior 0.7 --due 2027-03-31',
        ),
    ),
    Verb(
        "thesis evidence",
        "sentences.say",
        "thesis.evidence",
        given=("thesis_id", "memory_id", "side"),
        examples=('omegad thesis evidence th-0123456789abcdef mem-fedcba9876543210 against --why "p99 of 900 ms at 2 million rows"',),
    ),
    Verb("thesis retract", "sentences.say", "thesis.retract"),
    Verb("thesis revise", "sentences.say", "thesis.revise"),
    Verb("thesis predict", "sentences.say", "thesis.predict"),
    Verb(
        "thesis resolve",
        "sentences.say",
        "thesis.resolve",
        given=("thesis_id", "outcome", "source"),
        examples=('omegad thesis resolve th-0123456789abcdef no "load test of 2027-01-12"',),
    ),
    Verb("thesis calibration", "theses.calibration", "thesis.calibration", examples=("omegad thesis calibration --of answers",)),
)

LINT = (
    Verb("lint", "theses.lint", "lint.report", examples=("omegad lint", "omegad lint --project shop --limit 20")),
    Verb(
        "dismiss",
        "sentences.say",
        "lint.dismiss",
        given=("rule", "ids"),
        examples=("omegad dismiss orphan mem-0123456789abcdef",),
    ),
)

COORDINATION = (
    Verb("who", "coordination.who", "session.who", options=(WATCH,), examples=("omegad who --watch", "omegad who --project shop --json")),
    Verb("tasks", "coordination.tasks", "task.list", options=(WATCH,), examples=("omegad tasks", "omegad tasks --status failed --project shop")),
    Verb("task create", "sentences.say", "task.create", examples=('omegad task create "Move billing to PostgreSQL 17" --project shop --priority 4',)),
    Verb("task next", "coordination.take", "task.next"),
    Verb("task complete", "sentences.say", "task.complete", examples=("omegad task complete task-0f2c7f4e9a0b --result 'runs on 17'",)),
    Verb("task reopen", "sentences.say", "task.reopen", examples=('omegad task reopen task-0f2c7f4e9a0b "its agent is gone"',)),
    Verb("task depend", "sentences.say", "task.depend", examples=("omegad task depend task-0f2c7f4e9a0b task-4d1e8c6d5a4b",)),
    Verb("message send", "sentences.say", "message.send", examples=('omegad message send "Stop at the migration" --to-project shop',)),
    Verb("message list", "coordination.messages", "message.list"),
)

OPERATING = (
    Verb(
        "claims",
        "claims.held",
        "claim.list",
        options=(Option("watch", "go on showing them, every two seconds, until interrupted", "flag"),),
    ),
    Verb("diff", "looking_back.diff", "log.diff", given=(), examples=("omegad diff --from 2026-01-31", "omegad diff --from 1200 --to 1300")),
    Verb(
        "log",
        "log.show",
        about="Show what has happened: the latest events of the log, or those after a position",
        options=(
            Option("after", "begin after this position", "integer"),
            Option("limit", "how many events (20)", "integer"),
            Option("follow", "go on with those to come, until interrupted", "flag"),
        ),
        examples=("omegad log", "omegad log --after 0 --limit 5", "omegad log --follow --json"),
    ),
    Verb(
        "rebuild",
        "views.rebuild",
        about="Build the views again from the log, beside the ones in use",
        options=(Option("view", "one view; all of them when left out", is_given=True),),
        examples=("omegad rebuild edges",),
    ),
    Verb(
        "salvage",
        "salvage.run",
        about="Save what the views hold of a log that was lost, and store it again",
        options=(
            Option("file", "the file of views to write memories of; the home's own when left out", is_given=True),
            Option("accept-log", "rename the home's views, so that the next start goes on with the log as it is", "flag"),
            Option("restore", "store what was written before; what was stored already is left alone"),
        ),
        examples=("omegad salvage > salvaged.jsonl", "omegad salvage --accept-log", "omegad salvage --restore salvaged.jsonl"),
    ),
    Verb("verify", "views.verify", about="Prove that the log is as it was written and that the views equal it"),
    Verb(
        "model install",
        "model.install",
        about="Install a model; what is whole already is left alone",
        options=(
            Option("name", "which one", is_given=True, default="all-MiniLM-L6-v2"),
            Option("from", "use the published files in this folder instead of downloading them", into="folder"),
            Option("force", "install it even if it is there", "flag"),
        ),
        examples=("omegad model install", "omegad model install bge-small-en-v1.5 --from ~/Downloads/bge-small-en-v1.5"),
    ),
    Verb(
        "hook",
        "hook.run",
        about="Pass on what an agent's host tells at a hook, a JSON object on standard input, and print the answer; never fails",
        options=(Option("event", "the host's name of the event; the object's own when left out", is_given=True, default=""),),
        examples=("omegad hook SessionStart < payload.json",),
    ),
    Verb("model list", "model.list_all", about="List the models, and which are installed"),
    Verb(
        "setup",
        "setup.run",
        about="Register omegad with coding agents: hooks, tools and instructions; shows the change before it writes",
        options=(
            Option(
                "agents",
                "claude-code, codex, cursor, gemini, vscode, copilot, devin, zed, opencode; those found when left out. Or: plugin DIR. "
                "Or: git-hook, which guards the pushes of the repository in this folder",
                is_given=True,
                is_many=True,
            ),
            Option("yes", "write without asking", "flag"),
            Option("diff", "show every line, also of files that are not there yet", "flag"),
            Option("remove", "take out again what setup wrote", "flag"),
            Option("check", "say whether what is written is as it should be, and write nothing", "flag"),
            Option("project", "use the files of the project in this folder, where an agent has some", "flag"),
        ),
        examples=(
            "omegad setup",
            "omegad setup claude-code codex --yes",
            "omegad setup --remove",
            "omegad setup plugin ./omegad-plugin",
            "omegad setup git-hook",
        ),
    ),
    Verb("service install", "units.install", about="Have systemd or launchd run the daemon; shows what it writes", options=(DRY_RUN,)),
    Verb("service uninstall", "units.uninstall", about="End the service and take its files away; the memories stay", options=(DRY_RUN,)),
    Verb("service status", "units.status", about="Say whether the service is installed as it should be, and active"),
    Verb(
        "doctor",
        "doctor.diagnose",
        about="Try every part for real, and say what to do about those that fail",
        options=(Option("full", "verify the whole log and every view, however long that takes", "flag"),),
    ),
)

ALL = (*DAEMON, *MCP, *MEMORIES, *MEMORY, *IDENTITY, *COORDINATION, *OPERATING, *CLOCK, *TRANSFER, *THESES, *LINT)

WITHOUT_VERB = frozenset(
    {"hook.dispatch", "identity.record", "log.read", "log.follow", "log.verify", "views.rebuild", "views.verify", "system.hello", "system.shutdown"}
)
"""Methods that the verbs above ask in their own ways."""
