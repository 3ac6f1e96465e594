"""The verbs that take a log, or memories, out of a home and put them in."""

from omegad.requests.verb import Option, Verb

TRANSFER = (
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
