"""What the verbs about the clock take, apart from what carries them out, which is only imported for them."""

from omegad.edge.cli.verb import Option, Verb

CLOCK = (
    Verb("clock show", "clock.show", "clock.show"),
    Verb(
        "clock mend",
        "clock.mend",
        "clock.mend",
        options=(Option("yes", "mend without asking", "flag"),),
        examples=("omegad clock mend --dry-run", 'omegad clock mend --yes --reason "the battery of the clock was empty"'),
    ),
)
