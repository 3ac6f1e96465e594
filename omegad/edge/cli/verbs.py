"""The verbs that ask no method, or several, and how all verbs are grouped and ordered.

A method declares its verb beside itself (`omegad.requests.verb`), and one that says nothing gets a verb from
its name.
"""

from omegad.edge.cli.sharing_verbs import SHARING
from omegad.requests.verb import Option, Verb

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
    "share": "Share the memories of chosen projects with a team, over a PostgreSQL database of yours",
    "share member": "Invite people to a team and end memberships, as an administrator of the database",
    "service": "Have the operating system run the daemon",
    "model": "Install and list the models that search by meaning",
}
MOST_USED = {
    "claim": "claim files",
    "clock": "clock mend",
    "memory": "memory edit",
    "message": "message send",
    "profile": "profile update",
    "reminder": "reminder set",
    "service": "service install",
    "session": "session briefing",
    "share": "share join",
    "task": "task create",
    "thesis": "thesis state",
    "tools": "tools call",
}
"""The verb of a group whose examples the group's own help shows; its first one where nothing is said."""

REFERENCE = (
    Option("name", "what their names begin with; all of them when left out", is_given=True),
    Option("markdown", "as a table of Markdown", "flag"),
)
DRY_RUN = Option("dry-run", "show what would be written or taken away, and do nothing", "flag")

OWN = (
    Verb(
        "serve",
        "daemon.serve",
        about="Run the daemon in the foreground",
        examples=("omegad serve", "omegad --home /tmp/trial serve"),
    ),
    Verb(
        "start",
        "daemon.start",
        is_first=True,
        about="Run the daemon in the background, and wait until it answers",
        examples=("omegad start", "OMEGAD_MODEL=none omegad start"),
    ),
    Verb("stop", "daemon.stop", is_first=True, about="Stop the daemon, and wait until it is gone"),
    Verb(
        "pause",
        "daemon.pause",
        about="Keep nothing of what agents' hosts tell, and tell their agents nothing",
        options=(
            Option(
                "for", "for so long, like 2h, 30m or 1d; until `omegad resume` when left out", into="span"
            ),
        ),
        examples=("omegad pause --for 2h", "omegad pause"),
    ),
    Verb("resume", "daemon.resume", about="End the pause"),
    Verb(
        "mcp",
        "mcp.bridge",
        about="Be the MCP server that an agent's host starts, on standard input and output",
        examples=("omegad mcp",),
    ),
    Verb(
        "web",
        "web.web",
        about=(
            "Serve over HTTP what `web` in config.toml names, to who shows the token: page, api (routes for"
            " programs), mcp"
        ),
        options=(
            Option(
                "port", "serve at http://127.0.0.1:N; web_port where left out, a free one for 0", "integer"
            ),
            Option(
                "token",
                "print the token that HTTP asks for, as in Authorization: Bearer TOKEN, and end",
                "flag",
            ),
        ),
        examples=("omegad web", "omegad web --port 8378", "omegad web --token"),
    ),
    Verb(
        "page",
        "web.page",
        is_first=True,
        about="Open a page in the browser that shows what is remembered; ends 30 minutes after the last look",
        options=(
            Option("write", "let the page change what is remembered", "flag"),
            Option("port", "serve at http://127.0.0.1:N; a free one where left out", "integer"),
            Option("no-browser", "print where it is, and open nothing", "flag"),
        ),
        examples=("omegad page", "omegad page --write --no-browser"),
    ),
    Verb(
        "consult",
        "consult.opinion",
        about="Ask another model of config.toml for a second opinion; secrets are taken out first",
        options=(
            Option("question", "what to ask; standard input when left out, or -", is_given=True),
            Option("context", "code or text that the question is about"),
            Option("model", "which of the models of config.toml; the default, or the one that fits best"),
            Option("store", "remember the answer, as a decision of source cross_model_consult", "flag"),
            Option("project", "the project that it is remembered for"),
            Option("dry-run", "show what would be sent to whom, and send nothing", "flag", into="dry_run"),
        ),
        examples=(
            'omegad consult "Is one writer thread enough for 10,000 appends a second?"',
            "git diff | omegad consult --model local --dry-run",
        ),
    ),
    Verb(
        "route",
        "consult.fitting",
        about="Say which of the models that can be consulted fits a task, and why; nothing is sent",
        options=(Option("task", "the task; standard input when left out", is_given=True),),
        examples=('omegad route "review the locking of this module"',),
    ),
    Verb(
        "methods",
        "reference.methods",
        about="List the methods that programs can call on the socket, and what each takes",
        options=REFERENCE,
        examples=("omegad methods memory", "omegad methods --markdown > methods.md"),
    ),
    Verb(
        "events",
        "reference.events",
        about="List the events that the log can hold, and what each says",
        options=REFERENCE,
        examples=("omegad events memory",),
    ),
    Verb(
        "identity init",
        "identity.init",
        about="Make the folder of these files, a git repository in the home, and record what they say",
    ),
    Verb("identity commit", "identity.commit", about="Commit what has changed in these files, and record it"),
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
        "log.rebuild",
        about="Build the views again from the log, beside the ones in use",
        options=(Option("view", "one view; all of them when left out", is_given=True),),
        examples=("omegad rebuild edges",),
    ),
    Verb(
        "replay",
        "replay.run",
        about="Ask the logged queries again with something otherwise, and say what would have been answered",
        options=(
            Option(
                "without",
                "without these memories, 10,000 at most: an id, several with commas between, or @FILE with"
                " one a line; may be repeated",
                is_many=True,
            ),
            Option("weights", "with the weights in this file"),
            Option("weights-out", "write the weights in force to this file, to be changed, and end"),
            Option("embedder", "with this model, which is installed; none is by words alone"),
            Option("since", "only what was asked from this time or position on"),
            Option("until", "only what was asked until this time or position"),
            Option("project", "only what was asked of this project"),
            Option("limit", "the latest N questions (1000)", "integer"),
            Option("limit-shown", "show N differences at most (20; all of them as JSON)", "integer"),
            Option("within", "leave out what is not asked within N seconds (600)", "integer"),
        ),
        examples=(
            "omegad replay --without mem-0123456789abcdef",
            "omegad replay --weights-out weights.json",
            "omegad replay --weights weights.json --since 2026-01-31",
            "omegad replay --embedder none --project shop --json",
        ),
    ),
    Verb(
        "salvage",
        "transfer.save",
        about="Save what the views hold of a log that was lost, and store it again",
        options=(
            Option(
                "file", "the file of views to write memories of; the home's own when left out", is_given=True
            ),
            Option(
                "accept-log",
                "rename the home's views, so that the next start goes on with the log as it is",
                "flag",
            ),
            Option("restore", "store what was written before; what was stored already is left alone"),
        ),
        examples=(
            "omegad salvage > salvaged.jsonl",
            "omegad salvage --accept-log",
            "omegad salvage --restore salvaged.jsonl",
        ),
    ),
    Verb(
        "verify",
        "log.verify",
        about="Prove that the log is as it was written and that the views equal it",
        examples=("omegad verify", "omegad verify --json | jq .ok"),
    ),
    Verb(
        "model install",
        "model.install",
        about="Install a model; what is whole already is left alone",
        options=(
            Option(
                "name", "which one; without a name one for English and one for all languages", is_given=True
            ),
            Option(
                "from", "use the published files in this folder instead of downloading them", into="folder"
            ),
            Option("force", "install it even if it is there", "flag"),
        ),
        examples=(
            "omegad model install",
            "omegad model install multilingual-e5-small",
            "omegad model install bge-small-en-v1.5 --from ~/Downloads/bge-small-en-v1.5",
        ),
    ),
    Verb(
        "hook",
        "hook.run",
        about=(
            "Pass on what an agent's host tells at a hook, a JSON object on standard input, and print the"
            " answer; never fails"
        ),
        options=(
            Option(
                "event",
                "the host's name of the event; the object's own when left out",
                is_given=True,
                default="",
            ),
        ),
        examples=("omegad hook SessionStart < payload.json",),
    ),
    Verb("model list", "model.list_all", about="List the models, and which are installed"),
    Verb(
        "setup",
        "setup.run",
        is_first=True,
        about=(
            "Register omegad with coding agents: hooks, tools and instructions; shows the change before it"
            " writes"
        ),
        options=(
            Option(
                "agents",
                "claude-code, codex, cursor, gemini, vscode, copilot, devin, zed, opencode; those found when"
                " left out. Or: plugin DIR. Or: git-hook, which guards the pushes of the repository in this"
                " folder",
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
    *SHARING,
    Verb(
        "service install",
        "units.install",
        about="Have systemd or launchd run the daemon; shows what it writes",
        options=(DRY_RUN,),
        examples=("omegad service install --dry-run", "omegad service install"),
    ),
    Verb(
        "service uninstall",
        "units.uninstall",
        about="End the service and take its files away; the memories stay",
        options=(DRY_RUN,),
        examples=("omegad service uninstall --dry-run", "omegad service uninstall"),
    ),
    Verb(
        "service status",
        "units.status",
        about="Say whether the service is installed as it should be, and active",
    ),
    Verb(
        "doctor",
        "doctor.diagnose",
        is_first=True,
        about="Try every part for real, and say what to do about those that fail",
        options=(
            Option("full", "verify the whole log and every view, however long that takes", "flag"),
            Option(
                "reach", "connect to the hosts of the models that can be consulted, and ask nothing", "flag"
            ),
        ),
        examples=("omegad doctor", "omegad doctor --full"),
    ),
    Verb(
        "backup",
        "transfer.backup",
        about="Copy the log to a file while it is in use, and verify the copy",
        options=(
            Option("file", "the file to make", is_given=True),
            Option(
                "keep",
                "let the file replace an older one, which becomes FILE.1 and so on, until there are N",
                "integer",
            ),
        ),
        examples=("omegad backup ~/omegad-backup.db", "omegad backup /mnt/nightly/log.db --keep 7"),
    ),
    Verb(
        "pack",
        "packing.pack",
        about="Give back to the disk what is free in the log's file; the daemon must be stopped",
        examples=("omegad stop && omegad pack",),
    ),
    Verb(
        "seal",
        "sealing.seal",
        about="Encrypt what the home keeps, by a key outside it; the daemon must be stopped",
        options=(
            Option("key-file", "the file to keep the key in, outside the home (~/.config/omegad/…)"),
            Option("keyring", "keep the key in the system's keyring instead", "flag"),
            Option("recover", "have the key again: it is asked for, or read from standard input", "flag"),
            Option("yes", "do not ask whether the recovery key is written down", "flag"),
        ),
        examples=("omegad stop && omegad seal", "omegad seal --keyring", "omegad seal --recover < key.txt"),
    ),
    Verb(
        "unseal",
        "sealing.unseal",
        about="Have a sealed home be plain again; the daemon must be stopped",
        options=(Option("yes", "do not ask first", "flag"),),
        examples=("omegad stop && omegad unseal",),
    ),
    Verb(
        "restore",
        "transfer.restore",
        about="Make a verified backup the log of a home that has none",
        options=(
            Option("file", "what `omegad backup` made", is_given=True),
            Option("replace", "put it in the place of the log that is there, which is renamed", "flag"),
        ),
        examples=(
            "omegad restore ~/omegad-backup.db",
            "omegad stop && omegad restore ~/omegad-backup.db --replace",
        ),
    ),
    Verb(
        "export",
        "transfer.export",
        about="Write the whole log as JSON Lines, from which `omegad import` makes the same log",
        options=(Option("file", "the file to make; - is standard output", is_given=True, default="-"),),
        examples=("omegad export memories.jsonl", "omegad export | gzip > memories.jsonl.gz"),
    ),
    Verb(
        "import",
        "importing.run",
        about=(
            "Take in an export, or the memories of omega-memory, mcp-memory-service, claude-mem, mem0, a"
            " knowledge graph, transcripts, CLAUDE.md"
        ),
        options=(
            Option("file", "the file, or the folder of transcripts", is_given=True),
            Option("from", "its format, where the content does not show it", into="format"),
            Option("dry-run", "say what would be stored, and store nothing", "flag"),
        ),
        examples=(
            "omegad import ~/.omega/omega.db --dry-run",
            "omegad --home /tmp/copy import memories.jsonl",
            "omegad import ~/.claude/projects",
            "omegad import AGENTS.md --from instructions",
        ),
    ),
)
