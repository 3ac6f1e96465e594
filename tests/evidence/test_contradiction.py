"""When a text takes back what another one says."""

import pytest

from omegad.text.evidence.contradiction import OPPOSITE, REVERTED, contradiction

TITLE = "Cache the rendered pages for an hour"
TRAILERS = "Files: a.py, b.py\nCo-authored-by: A B <a@b.example>\nSigned-off-by: C D <c@d.example>\nFixes: #7"


@pytest.mark.parametrize(
    "revert", [f'Revert "{TITLE}"', f'revert: "{TITLE} (#12)" (#15)', f"fix: Revert '{TITLE}'", f'Reverts "{TITLE} (#12)"\n\nToo slow.']
)
@pytest.mark.parametrize("old", [TITLE, f"{TITLE} (#12)\n\nIt saves a second.\n{TRAILERS}"])
def test_a_revert_takes_back_what_has_its_title(revert: str, old: str) -> None:
    assert contradiction(revert, old) == REVERTED
    assert contradiction(old, revert) is None


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Always run the linter before a commit", "Never run the linter before a commit"),
        ("The build cache is disabled in staging (#2)", f"The build cache is enabled in staging (#1)\n{TRAILERS}"),
        ("Don't deploy the shop on Fridays. It wakes people.", "Deploy the shop on Fridays"),
        ("docs: remove the old tutorial", "docs: add the old tutorial"),
    ],
)
def test_a_first_sentence_that_differs_in_its_sense_alone_says_the_opposite(new: str, old: str) -> None:
    assert contradiction(new, old) == contradiction(old, new) == OPPOSITE


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (TITLE, TITLE),
        (f'Revert "{TITLE} on Mondays"', TITLE),
        (f'Revert "Revert "{TITLE}""', TITLE),
        (f'They wanted to revert "{TITLE}"', TITLE),
        ('Revert "Fix CI"', "Fix CI"),
        ("Billing switched from PostgreSQL 16 to CockroachDB", "Billing runs on PostgreSQL 16"),
        ("the port of the api is 9090", "the port of the api is 8080"),
        ("use it", "do not use it"),
        ("Shall we never run the linter here?", "Always run the linter here"),
        ("Never do this in a test:\n- sleep", "Always do this in a test:\n- wait"),
        ("```\nnever run the linter\n```", "```\nalways run the linter\n```"),
        (f"Speed up the pages\n{TRAILERS}", f"Make room for pages\n{TRAILERS.replace('a.py', 'c.py')}"),
        (f"Speed up the pages\n{TRAILERS}\nNever: slow", f"Make room for pages\n{TRAILERS}\nAlways: slow"),
        ("", ""),
    ],
)
def test_nothing_else_is_taken_back(new: str, old: str) -> None:
    assert contradiction(new, old) is None
    assert contradiction(old, new) is None
