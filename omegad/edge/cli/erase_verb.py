"""What `omegad memory erase` takes, apart from what carries it out, which is only imported for it."""

from omegad.edge.cli.verb import Option, Verb

ERASE = Verb(
    "memory erase",
    "erasing.erase",
    "memory.erase",
    options=(
        Option("memory_id", "the memory's id", is_given=True),
        Option(
            "text",
            "instead of a memory, erase a phrase wherever it stands: it is asked for and not shown, or read from standard input, so that no"
            " shell remembers it; in an agent's own shell the hooks would hear of it",
            "flag",
        ),
        Option("yes", "erase without asking", "flag"),
    ),
    examples=(
        "omegad memory erase mem-0123456789abcdef --dry-run",
        "omegad memory erase --text",
        "omegad memory erase --text --yes < phrase.txt",
    ),
)
