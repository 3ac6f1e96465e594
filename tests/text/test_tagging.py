"""Which tags a text gets by what it says."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.runtime.errors import BadConfiguration
from omegad.text.ingestion.tagging import LOOKED_AT_CHARACTERS, TAG_CHARACTERS_MAX, TAGS_MAX, load, tags_of
from tests.builders import at_most

RULES = load()

TAGGED = [
    ("Use Python and pytest, and lint with ruff.", ("python", "pytest", "ruff")),
    ("pytest runs before PYTHON is mentioned", ("python", "pytest")),
    ("The cache is PostgreSQL 16 behind pgbouncer on k8s", ("postgresql", "kubernetes")),
    ("run `docker compose up` and npm ci", ("docker", "npm")),
    ("fixed omegad/log/appending.py", ("python", "omegad/log/appending.py")),
    ("see main.rs, and main.rs again", ("rust", "main.rs")),
    ("written in Go, see go.mod", ("go", "go.mod")),
    ("the golang service", ("go",)),
    ("a .go file", ("go",)),
    ("cargo test fails in Rust", ("rust", "cargo")),
    ("Node.js 22 and C++20 and C#", ("c++", "c#", "node")),
    ("Cargo.toml:12 pins it.", ("rust", "Cargo.toml")),
    ("the config is in ~/.config/tool/settings", ("~/.config/tool/settings",)),
    ("see README.md.", ("README.md",)),
    ("src/a.ts src/b.ts src/c.ts src/d.ts", ("typescript", "src/a.ts", "src/b.ts", "src/c.ts")),
    ("(tests/log/test_append.py::test_many)", ("python", "tests/log/test_append.py")),
    ("SELECT in SQL, migrations/0001_init.sql", ("sql", "migrations/0001_init.sql")),
]

AMBIGUOUS = [
    "let us go on, and go home",
    "rust on the hull; a swift answer; express your view in spring; make it just so; a node of the tree",
    "plan c, or r, or b",
    "in go-live week",
    "the gopher went; digit; legit; pythonic; dockerize; rediscover",
    "and/or, TCP/IP, e.g. this, 3.11, i.e. that, 24/7",
    "https://example.org/a/b.py and git@host:owner/repo.py",
    "self.assertEqual and numbers like 1.5",
    "",
]


@pytest.mark.parametrize(("content", "tags"), TAGGED)
def test_a_text_is_tagged_by_what_it_names(content: str, tags: tuple[str, ...]) -> None:
    assert tags_of(content, None, RULES) == tags


@pytest.mark.parametrize("content", AMBIGUOUS)
def test_common_words_and_addresses_give_no_tag(content: str) -> None:
    assert tags_of(content, None, RULES) == ()


@pytest.mark.parametrize(
    ("project", "tags"),
    [
        ("omegad", ("omegad",)),
        ("/home/ann/src/omegad/", ("omegad",)),
        ("C:\\src\\omegad", ("omegad",)),
        ("git@example.org:ann/omegad.git", ("omegad",)),
        ("", ()),
        (" / ", ()),
        (None, ()),
        ("x" * 65, ()),
    ],
)
def test_the_projects_name_is_a_tag(project: str | None, tags: tuple[str, ...]) -> None:
    assert tags_of("plain words", project, RULES) == tags


def test_the_project_and_the_paths_keep_their_places_among_many_tags() -> None:
    content = "python rust.rs ruby php perl lua scala kotlin java docker git a/b.md c/d.md e/f.md"
    tags = tags_of(content, "shop", RULES)
    assert tags == ("python", "rust", "ruby", "php", "rust.rs", "a/b.md", "c/d.md", "shop")


def test_a_path_too_long_for_a_tag_still_tells_its_language() -> None:
    assert tags_of(f"src/{'x' * 80}/main.py", None, RULES) == ("python",)


def test_a_long_text_is_looked_at_in_part() -> None:
    assert tags_of("x " * (LOOKED_AT_CHARACTERS // 2 - 4) + "python", None, RULES) == ("python",)
    assert tags_of("x " * (LOOKED_AT_CHARACTERS // 2) + "python", None, RULES) == ()


@pytest.mark.parametrize("unit", ["a", "a/", "a.", "/", ".", "~", "-", "go ", "İ", "python ", "a/b.py "])
def test_no_content_takes_long(unit: str) -> None:
    with at_most(2):
        tags_of(unit * (256 * 1024 // len(unit)), None, RULES)


WORDS = st.sampled_from(
    [*(content for content, _ in TAGGED), *AMBIGUOUS, "a/b/c.py", "İ", "Rust", " ", "\n", "/", "."]
)


@given(st.lists(WORDS | st.text(max_size=5), max_size=12).map(" ".join), st.none() | st.text(max_size=80))
def test_tags_are_few_short_distinct_and_always_the_same(content: str, project: str | None) -> None:
    tags = tags_of(content, project, RULES)
    assert len(tags) <= TAGS_MAX
    assert len(set(tags)) == len(tags)
    assert all(0 < len(tag) <= TAG_CHARACTERS_MAX for tag in tags)
    assert tags == tags_of(content, project, load())


def test_a_users_file_adds_tags_and_wins(tmp_path: Path) -> None:
    path = tmp_path / "tags.toml"
    path.write_text(
        'path_extensions = ["pkl2"]\n[[tag]]\nname = "payments"\nkind = "tool"\nwords ='
        ' ["Ledger"]\nextensions = ["led"]\nfiles = ["LEDGER.in"]\n[[tag]]\nname = "sync"\nkind ='
        ' "tool"\nwords = ["ledger sync"]\n[[tag]]\nname = "snake"\nkind = "language"\nwords = ["python"]\n'
    )
    rules = load([path])
    assert tags_of("the ledger in x.led, y.pkl2 and ledger.in, in Python", None, rules) == (
        "snake",
        "payments",
        "x.led",
        "y.pkl2",
        "ledger.in",
    )
    assert tags_of("run ledger sync", None, rules) == ("sync",)
    assert tags_of("main.py", None, rules) == ("python", "main.py")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tag = 1", "tag"),
        ("tag = [", "Invalid"),
        ('[[tag]]\nname = "x"\nkind = "tool"\nword = ["y"]\n', "word"),
        ('[[tag]]\nname = "x"\nkind = "hobby"\n', "hobby"),
        ('[[tag]]\nname = "x y"\nkind = "tool"\n', "name"),
        ('[[tag]]\nname = "x"\nkind = "tool"\nwords = [""]\n', "words"),
        ('[[tag]]\nname = "x"\nkind = "tool"\nextensions = [".py"]\n', "extensions"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "tags.toml"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=problem) as refused:
        load([path])
    assert str(path) in str(refused.value)
