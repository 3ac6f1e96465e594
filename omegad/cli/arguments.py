"""What can be asked on the command line: every verb with its options, and the module that does it.

Cheap to import, because `--help` and every verb pay for it.
"""

from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from argparse import _SubParsersAction as SubParsers
from typing import TYPE_CHECKING

from omegad import __version__

if TYPE_CHECKING:
    Verbs = SubParsers[ArgumentParser]

EXIT = """
exit status: 0 done, 1 the daemon said no, 2 wrong usage or a value that is not valid, 3 no daemon
"""

EXAMPLES = """\
examples:
  omegad store "We deploy with blue-green since May" --event-type decision --project shop
  git log -1 --format=%B | omegad store - --event-type task_completion
  omegad query "how do we deploy?" --project shop
  omegad memory edit mem-0123456789abcdef "We deploy with canaries since June"
  omegad timeline --days 3
  omegad log --follow
  omegad doctor

The daemon is started when a verb needs it. OMEGAD_HOME or --home says where its files are (~/.omegad).
"""


class WrongUsage(Exception):
    """The arguments are not what the verb takes."""


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    whole = ArgumentParser(
        prog="omegad",
        description="Long-term memory for coding agents: a service over an append-only log.",
        epilog=EXAMPLES + EXIT,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"omegad {__version__}")
    whole.set_defaults(home=None, socket=None, json=False, no_spawn=False, module="daemon", function="begin")
    _add_global(whole)
    verbs = whole.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    for add in (_add_service, _add_store, _add_query, _add_memories, _add_memory, _add_log, _add_views, _add_models, _add_doctor):
        add(verbs)
    return whole


def _add_global(target: ArgumentParser) -> None:
    """Add what is understood before and after the verb; without defaults, or the one place would undo the other."""
    options = target.add_argument_group("everywhere")
    options.add_argument("--home", metavar="DIR", default=SUPPRESS, help="the daemon's files (OMEGAD_HOME, else ~/.omegad)")
    options.add_argument("--socket", metavar="PATH", default=SUPPRESS, help="the daemon's socket (OMEGAD_SOCKET, else one that belongs to the home)")
    options.add_argument("--json", action="store_true", default=SUPPRESS, help="print the answer as JSON")
    options.add_argument("--no-spawn", action="store_true", default=SUPPRESS, help="do not start the daemon; exit with status 3 when none answers")


def _verb(verbs: "Verbs", name: str, does: str, *, by: str, examples: str = "") -> ArgumentParser:
    """Add a verb that the function *by* ("module.function") does."""
    epilog = "examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines()) if examples else None
    added = verbs.add_parser(name, help=does, description=f"{does}.", epilog=epilog, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False)
    module, _, function = by.partition(".")
    added.set_defaults(module=module, function=function)
    _add_global(added)
    return added


def _add_service(verbs: "Verbs") -> None:
    _verb(verbs, "serve", "Run the daemon in the foreground", by="daemon.serve", examples="omegad serve\nomegad --home /tmp/trial serve")
    start = "Run the daemon in the background, and wait until it answers"
    _verb(verbs, "start", start, by="daemon.start", examples="omegad start\nOMEGAD_MODEL=none omegad start")
    _verb(verbs, "stop", "Stop the daemon, and wait until it is gone", by="daemon.stop")
    status = "Show how the daemon is: log, views, model, and whatever is not as it should be"
    shown = _verb(verbs, "status", status, by="daemon.status", examples="omegad status --watch\nomegad status --no-spawn --json")
    shown.add_argument("--watch", action="store_true", help="go on showing it, every second, until interrupted")


def _add_store(verbs: "Verbs") -> None:
    examples = (
        'omegad store "Prefers tabs over spaces" --event-type user_preference\n'
        'omegad store "Retry on 429 with jitter" --event-type lesson_learned --tag http --tag retries --priority 4\n'
        "omegad store - --project shop < notes.txt"
    )
    store = _verb(verbs, "store", "Remember something", by="memories.store", examples=examples)
    store.add_argument("content", metavar="CONTENT", help="what to remember; - reads it from standard input")
    store.add_argument("--event-type", "--type", metavar="TYPE", help="memory (default), decision, lesson_learned, user_preference, error_pattern, …")
    _add_scope(store)
    store.add_argument("--tag", dest="tags", metavar="TAG", action="append", help="a tag; may be repeated")
    store.add_argument("--priority", metavar="N", type=int, help="how important it is, 1 to 5 (3)")
    store.add_argument("--metadata", metavar="JSON", help="a JSON object that is kept with it")
    store.add_argument("--referenced-date", metavar="TIME", help="when what it speaks of happened, like 2026-01-31 or 2026-01-31T09:30:00Z")
    store.add_argument("--ttl-seconds", metavar="N", type=int, help="after how long it is found no more")
    store.add_argument("--source", metavar="NAME", help="where it comes from")
    store.add_argument("--confidence", metavar="P", type=float, help="how sure it is, 0 to 1")
    store.add_argument("--supersedes", metavar="ID", action="append", help="a memory whose place it takes; may be repeated")
    store.add_argument("--request-id", metavar="ID", help="makes it safe to send again: the same id gives the first answer")
    store.add_argument("--ack", choices=("related", "durable"), help="how much to wait for: durable is answered as soon as it is on the disk")


def _add_scope(target: ArgumentParser) -> None:
    target.add_argument("--project", metavar="NAME", help="which project it belongs to")
    target.add_argument("--entity-id", metavar="ID", help="which person or thing it is about")
    target.add_argument("--session-id", metavar="ID", help="which session it is from")


def _add_filters(target: ArgumentParser) -> None:
    _add_scope(target)
    target.add_argument(
        "--event-type", "--type", dest="event_types", metavar="TYPE", action="append", help="of this type; of one of them when repeated"
    )
    target.add_argument("--tag", dest="tags", metavar="TAG", action="append", help="with this tag; with one of them when repeated")
    target.add_argument("--since", metavar="TIME", help="stored at or after this time, like 2026-01-31")
    target.add_argument("--until", metavar="TIME", help="stored at or before this time")


def _add_query(verbs: "Verbs") -> None:
    examples = (
        'omegad query "how do we deploy?"\n'
        'omegad query "connection reset by peer" --mode phrase --type error_pattern\n'
        'omegad query "retries" --since 2026-01-01 --limit 3 --explain'
    )
    query = _verb(verbs, "query", "Find memories by meaning and by words", by="memories.query", examples=examples)
    query.add_argument("text", metavar="TEXT", help="what to look for")
    query.add_argument(
        "--mode", choices=("hybrid", "semantic", "keyword", "phrase"), help="hybrid (default), meaning, any of the words, words in a row"
    )
    query.add_argument("--limit", metavar="N", type=int, help="how many at most, 1 to 100 (10)")
    query.add_argument("--widen", action="store_true", default=None, help="also answer with what the edges of the best lead to")
    query.add_argument("--explain", action="store_true", default=None, help="show what each score is made of")
    query.add_argument("--min-position", metavar="N", type=int, help="answer only from views that show the log up to here")
    _add_filters(query)


def _add_memories(verbs: "Verbs") -> None:
    get = _verb(verbs, "get", "Show one memory with everything known of it", by="memories.get")
    get.add_argument("memory_id", metavar="ID", help="the memory's id")
    listed = _verb(verbs, "list", "List memories, newest first", by="memories.list_all", examples="omegad list --project shop --limit 20")
    listed.add_argument("--limit", metavar="N", type=int, help="how many on a page, 1 to 1000 (50)")
    listed.add_argument("--cursor", metavar="CURSOR", help="where the page begins: what the page before ended with")
    _add_filters(listed)
    _add_delete(verbs)
    examples = "omegad timeline\nomegad timeline --days 30 --project shop --type decision"
    timeline = _verb(verbs, "timeline", "Show what was remembered lately, day by day", by="looking_back.timeline", examples=examples)
    timeline.add_argument("--days", metavar="N", type=int, help="how many days, that of --until or today being the last (7)")
    timeline.add_argument("--limit", metavar="N", type=int, help="how many memories at most, 1 to 1000 (200)")
    _add_filters(timeline)


def _add_delete(verbs: "Verbs") -> None:
    delete = _verb(verbs, "delete", "Hide a memory from every search and list; its history stays", by="lifecycle.delete")
    _add_id(delete)
    _add_reason(delete)


def _add_id(target: ArgumentParser) -> None:
    target.add_argument("memory_id", metavar="ID", help="the memory's id")


def _add_reason(target: ArgumentParser) -> None:
    target.add_argument("--reason", metavar="TEXT", help="why")


def _add_memory(verbs: "Verbs") -> None:
    does = "Change what is remembered, relate memories, and look back on their lives"
    memory = verbs.add_parser("memory", help=does, description=f"{does}.", allow_abbrev=False)
    _add_global(memory)
    actions = memory.add_subparsers(title="actions", metavar="ACTION", required=True)
    for add in (_add_changes, _add_judgements, _add_edges, _add_neighbours, _add_looking_back, _add_upkeep):
        add(actions)


def _add_changes(actions: "Verbs") -> None:
    examples = 'omegad memory edit mem-0123456789abcdef "Billing runs on PostgreSQL 17"\nomegad memory edit mem-0123456789abcdef - < notes.txt'
    edit = _verb(actions, "edit", "Replace what a memory says; its id and history stay", by="lifecycle.edit", examples=examples)
    _add_id(edit)
    edit.add_argument("content", metavar="CONTENT", help="what it says from now on; - reads it from standard input")
    _add_reason(edit)
    _add_delete(actions)
    restore = _verb(actions, "restore", "Bring back a memory that was deleted, superseded or expired", by="lifecycle.restore")
    _add_id(restore)
    _add_reason(restore)
    examples = 'omegad memory supersede mem-0123456789abcdef mem-fedcba9876543210 --reason "we moved"'
    supersede = _verb(actions, "supersede", "Let another memory take the place of one", by="lifecycle.supersede", examples=examples)
    _add_id(supersede)
    supersede.add_argument("superseded_by", metavar="OTHER", help="the id of the memory that takes its place")
    _add_reason(supersede)


def _add_judgements(actions: "Verbs") -> None:
    examples = "omegad memory rate mem-0123456789abcdef helpful"
    rate = _verb(actions, "rate", "Say how useful a memory was", by="lifecycle.rate", examples=examples)
    _add_id(rate)
    rate.add_argument("rating", choices=("helpful", "unhelpful", "outdated"), help="helpful adds 1 to its score, unhelpful takes 1, outdated 2")
    _add_reason(rate)
    promote = _verb(actions, "promote", "End a memory's probation", by="lifecycle.promote")
    _add_id(promote)
    _add_reason(promote)


def _add_edges(actions: "Verbs") -> None:
    examples = "omegad memory link mem-0123456789abcdef mem-fedcba9876543210 --edge-type evolves --weight 0.8"
    link = _verb(actions, "link", "Draw an edge from a memory to another; again, to set its weight", by="graph.link", examples=examples)
    unlink = _verb(actions, "unlink", "Take away the edges from a memory to another", by="graph.unlink")
    for target in (link, unlink):
        _add_id(target)
        target.add_argument("target_id", metavar="OTHER", help="the id of the memory that the edge leads to")
    link.add_argument("--edge-type", metavar="TYPE", help="related (default), evolves, evolved_from, supersedes, superseded_by, contradicts")
    link.add_argument("--weight", metavar="W", type=float, help="how strong it is, 0 to 1 (1)")
    unlink.add_argument("--edge-type", metavar="TYPE", help="of this type alone; of every type when left out")


def _add_neighbours(actions: "Verbs") -> None:
    similar = _verb(actions, "similar", "Find the memories that are most like one", by="graph.similar")
    _add_id(similar)
    similar.add_argument("--limit", metavar="N", type=int, help="how many at most, 1 to 100 (10)")
    _add_filters(similar)
    examples = (
        "omegad memory traverse mem-0123456789abcdef --max-hops 3 --min-weight 0.6\nomegad memory traverse mem-0123456789abcdef --edge-type evolves"
    )
    traverse = _verb(actions, "traverse", "Follow the edges of a memory, hop by hop", by="graph.traverse", examples=examples)
    _add_id(traverse)
    traverse.add_argument("--max-hops", metavar="N", type=int, help="how far, 1 to 5 (2)")
    traverse.add_argument("--min-weight", metavar="W", type=float, help="along edges of at least this weight (0)")
    traverse.add_argument("--edge-type", dest="edge_types", metavar="TYPE", action="append", help="along edges of this type; of these when repeated")
    traverse.add_argument("--direction", choices=("both", "out", "in"), help="which way edges are followed (both)")
    traverse.add_argument("--limit", metavar="N", type=int, help="how many memories at most, 1 to 500 (500)")


def _add_looking_back(actions: "Verbs") -> None:
    history = _verb(actions, "history", "Show a memory's life, event by event", by="looking_back.history")
    _add_id(history)
    history.add_argument("--limit", metavar="N", type=int, help="how many events on a page, 1 to 1000 (200)")
    lessons = _verb(
        actions, "lessons", "Show what was learned, the best proved first", by="looking_back.lessons", examples="omegad memory lessons --project shop"
    )
    lessons.add_argument("--limit", metavar="N", type=int, help="how many at most, 1 to 100 (10)")
    _add_filters(lessons)
    examples = "omegad memory receipts --memory-id mem-0123456789abcdef\nomegad memory receipts --session-id s-1 --limit 20"
    receipts = _verb(actions, "receipts", "Show which memories were found by which queries", by="looking_back.receipts", examples=examples)
    receipts.add_argument("--session-id", metavar="ID", help="for this session")
    receipts.add_argument("--memory-id", metavar="ID", help="of this memory")
    receipts.add_argument("--query-id", metavar="ID", help="of this query")
    receipts.add_argument("--limit", metavar="N", type=int, help="how many on a page, 1 to 1000 (100)")
    for target in (history, receipts):
        target.add_argument("--cursor", metavar="CURSOR", help="where the page begins: what the page before ended with")


def _add_upkeep(actions: "Verbs") -> None:
    examples = "omegad memory compact --dry-run\nomegad memory compact --project shop --type session_summary --min-cluster 4"
    compact = _verb(actions, "compact", "Let a summary stand for each cluster of like memories", by="upkeep.compact", examples=examples)
    compact.add_argument("--project", metavar="NAME", help="of this project alone")
    types = "of this type (advisor_insight and session_summary); of these when repeated"
    compact.add_argument("--event-type", "--type", dest="event_types", metavar="TYPE", action="append", help=types)
    compact.add_argument("--threshold", metavar="SHARE", type=float, help="how many words any two have in common, 0.4 to 1 (0.6)")
    compact.add_argument("--min-cluster", metavar="N", type=int, help="how many make a cluster, 2 to 16 (3)")
    compact.add_argument("--limit", metavar="N", type=int, help="how many clusters at most, 1 to 50 (50)")
    does = "Record what has expired, promote what has proved itself, compact what accumulates; delete nothing"
    consolidate = _verb(actions, "consolidate", does, by="upkeep.consolidate", examples="omegad memory consolidate --dry-run")
    for target in (compact, consolidate):
        target.add_argument("--dry-run", action="store_true", help="only say what would be done")


def _add_log(verbs: "Verbs") -> None:
    examples = "omegad log\nomegad log --after 0 --limit 5\nomegad log --follow --json"
    log = _verb(verbs, "log", "Show what has happened: the latest events of the log, or those after a position", by="log.show", examples=examples)
    log.add_argument("--after", metavar="POSITION", type=int, help="begin after this position")
    log.add_argument("--limit", metavar="N", type=int, help="how many events (20)")
    log.add_argument("--follow", action="store_true", help="go on with those to come, until interrupted")


def _add_views(verbs: "Verbs") -> None:
    rebuild = _verb(
        verbs, "rebuild", "Build the views again from the log, beside the ones in use", by="views.rebuild", examples="omegad rebuild edges"
    )
    rebuild.add_argument("view", metavar="VIEW", nargs="?", help="one view; all of them when left out")
    _verb(verbs, "verify", "Prove that the log is as it was written and that the views equal it", by="views.verify")


def _add_models(verbs: "Verbs") -> None:
    model = verbs.add_parser(
        "model", help="Install and list the models that search by meaning", description="Install and list models.", allow_abbrev=False
    )
    _add_global(model)
    actions = model.add_subparsers(title="actions", metavar="ACTION", required=True)
    examples = "omegad model install\nomegad model install bge-small-en-v1.5 --from ~/Downloads/bge-small-en-v1.5"
    install = _verb(actions, "install", "Install a model; what is whole already is left alone", by="model.install", examples=examples)
    install.add_argument("name", metavar="NAME", nargs="?", default="all-MiniLM-L6-v2", help="which one (%(default)s)")
    install.add_argument("--from", dest="folder", metavar="FOLDER", help="use the published files in this folder instead of downloading them")
    install.add_argument("--force", action="store_true", help="install it even if it is there")
    _verb(actions, "list", "List the models, and which are installed", by="model.list_all")


def _add_doctor(verbs: "Verbs") -> None:
    doctor = _verb(verbs, "doctor", "Try every part for real, and say what to do about those that fail", by="doctor.diagnose")
    doctor.add_argument("--full", action="store_true", help="verify the whole log and every view, however long that takes")
