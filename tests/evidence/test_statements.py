"""What tells two texts apart that look alike: operators, order, names, questions, persons; and what does not: the marks that lay them out."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.likeness import differ_in_detail, restates, says_the_same
from omegad.evidence.markup import code, indents, is_numbered, plain
from omegad.evidence.statements import ROTATED_TERMS_MAX, has_order, statements, turned
from omegad.evidence.wording import details

PREFACE = "In the payments module this is how access is checked before a refund is issued to a customer:\n"

TOLD_APART = [
    ("a && b", "a || b"),
    ("a && b || c", "a || b && c"),
    ("if (user.admin) refund(order)", "if (!user.admin) refund(order)"),
    ("x := y", "x = y"),
    ("x = 1\ny = 2", "y = 2\nx = 1"),
    ("Pin it to ^1.2", "Pin it to ~1.2"),
    ("Use ^ ranges", "Use ~ ranges"),
    ("Guard is `a & b`", "Guard is `a | b`"),
    ("Regex is ^foo$", "Regex is ^foo"),
    ("f(a, b)", "f(b, a)"),
    ("a calls b", "b calls a"),
    ("Swap a, b", "Swap b"),
    ("Separator is ,", "Separator is ;"),
    ("End the line with ;", "End the line with :"),
    ("Use ! in the guard", "Use ? in the guard"),
    ("Use () not []", "Use [] not ()"),
    (f"{PREFACE}```\nif user.admin && order.paid:\n```", f"{PREFACE}```\nif user.admin || order.paid:\n```"),
    (f"{PREFACE}```\nif (user.admin) refund()\n```", f"{PREFACE}```\nif (!user.admin) refund()\n```"),
    (f"{PREFACE}```\nif x:\n    a()\n    b()\n```", f"{PREFACE}```\nif x:\n    a()\nb()\n```"),
    ("def f(x):\n    if x:\n        go()\n        stop()", "def f(x):\n    if x:\n        go()\n    stop()"),
    ("Stop the worker, then migrate the schema", "Migrate the schema, then stop the worker"),
    ("Lint then test", "Test then lint"),
    ("Build first. Then ship.", "Then ship. Build first."),
    ("1. build\n2. test", "1. test\n2. build"),
    ("Startup order: db, api, web", "Startup order: web, db, api"),
    ("Ranking: speed, safety, cost", "Ranking: cost, speed, safety"),
    ("Use the request library", "Use the requests library"),
    ("pip install attr", "pip install attrs"),
    ("Import log", "Import logs"),
    ("The S3 bucket is named backup", "The S3 bucket is named backups"),
    ("The table order has a trigger", "The table orders has a trigger"),
    ("Redirect http to https", "Redirect https to http"),
    ("The webhook uses http", "The webhook uses https"),
    ("Prefer error over errors", "Prefer errors over error"),
    ("Class Foo", "class foo"),
    ("The branch Main exists", "The branch main exists"),
    ("Is the build green?", "The build is green"),
    ("I own billing", "You own billing"),
    ("Call me before a deploy", "Call us before a deploy"),
    ("My key is rotated", "Your key is rotated"),
    ("Remove plan A", "Remove plan B"),
    ("Grade: A", "Grade: B"),
    ("A calls B over gRPC", "B calls A over gRPC"),
    ("Set flag I", "Set flag S"),
    ("[ ] deploy", "[x] deploy"),
    ("- [ ] deploy", "- [x] deploy"),
    ("Fix the login flow", "Fixed the login flow"),
    ("Wir benutzen Redis", "Wir benutzen kein Redis"),
    ("Usamos Redis", "No usamos Redis"),
    ("Usamos Redis", "Não usamos Redis"),
    ("Usiamo Redis", "Non usiamo Redis"),
    ("Wij gebruiken Redis", "Wij gebruiken geen Redis"),
    ("Utiliser le cache", "Ne pas utiliser le cache"),
    ("Использовать кэш", "никогда использовать кэш"),
]

ALIKE = [
    ("- Use 2 spaces for YAML", "Use 2 spaces for YAML"),
    ("* Use 2 spaces for YAML", "- Use 2 spaces for YAML"),
    ("1. Use 2 spaces for YAML", "Use 2 spaces for YAML"),
    ("## Use 2 spaces for YAML", "Use 2 spaces for YAML"),
    ("> Use 2 spaces for YAML", "Use 2 spaces for YAML"),
    ("**Note to self:** rotate keys", "Note to self: rotate keys"),
    ("Use *strict* mode", "Use strict mode"),
    ("\N{LEFT DOUBLE QUOTATION MARK}Quoted\N{RIGHT DOUBLE QUOTATION MARK} strings", '"Quoted" strings'),
    ("Use strict mode \N{EM DASH} always", "Use strict mode - always"),
    ("Use strict mode\N{HORIZONTAL ELLIPSIS}", "Use strict mode..."),
    ("See [docs](https://example.org/z)", "See docs (https://example.org/z)"),
    ("Use `make lint` before pushing", "Use make lint before pushing"),
    ("  Use ruff,   not flake8\n", "Use ruff, not flake8"),
    ("Retries are capped in production", "In production retries are capped"),
    ("On push tests run in CI", "Tests run in CI on push"),
    ("A deploy needs approval", "Deploys need approval"),
    ("- Alice reviews\n- Bob merges", "Bob merges. Alice reviews."),
    (f"{PREFACE}```\na && b  \n```\n", f"{PREFACE}```\na && b\n```"),
]

NOT_RESTATED = [  # the newer first
    ("Remove plan B from the pricing page", "Remove plan A from the pricing page"),
    ("Column B of the report is computed nightly", "Column A of the report is computed nightly"),
    ("Section V covers the install steps", "Section I covers the install steps"),
    ("Using the shared cache for builds in CI was rejected by the team", "Use the shared cache for builds in CI"),
    ("Use the shared cache for builds in CI was rejected by the team", "Use the shared cache for builds in CI"),
    ("Retry failed jobs three times in the worker must not happen", "Retry failed jobs three times in the worker"),
    ("The importer can read gzip files only in debug mode", "The importer can read gzip files"),
    ("The importer handles gzip files badly", "The importer handles gzip files"),
    ("Deploying after lunch with the release script is forbidden", "Deploying after lunch with the release script"),
    ("Is the cache of the gateway warm in the morning?", "The cache of the gateway is warm"),
    ("Wir benutzen kein Redis", "Wir benutzen Redis"),
    ("Мы никогда не используем Redis", "Мы используем Redis"),
    ("[x] deploy billing to production", "[ ] deploy billing"),
]


@pytest.mark.parametrize(("one", "other"), TOLD_APART)
def test_a_sign_an_order_or_a_name_tells_two_texts_apart(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_the_marks_that_lay_a_text_out_carry_nothing(one: str, other: str) -> None:
    assert not differ_in_detail(one, other)
    assert says_the_same(one, other)
    assert says_the_same(other, one)


@pytest.mark.parametrize(("new", "old"), NOT_RESTATED)
def test_what_turns_a_statement_or_names_another_thing_restates_nothing(new: str, old: str) -> None:
    assert not restates(new, old)


def test_an_exception_or_an_addition_after_a_clause_turns_nothing() -> None:
    assert restates("Deploys go through blue-green, never on Fridays", "Deploys go through blue-green")
    assert restates("The importer can read gzip files in debug mode", "The importer can read gzip files")


def test_details_are_written_as_they_stand() -> None:
    assert details("- **Run** `a && b` for plan A, then !x") == ["!x", "&&", "A"]
    assert details("A deploy. A calls I'm here - I.") == []
    assert details("Is it so ?") == []
    assert details("1. one\n* [ ] two") == ["\N{BALLOT BOX}"]


def test_markup() -> None:
    assert plain("# A\n- *b* **c d** [e](f)\n> g") == "A\nb c d e (f)\ng"
    assert plain("src/**/*.py and __init__") == "src/**/*.py and __init__"
    assert code("x\n```py\nif a:\n    b  \n```\ny\n```\nopen") == ("if a:\n    b", "open")
    assert indents("a\n  b\n    - c\n\td") == ("  ", "\t")
    assert is_numbered("1. a\n2. b")
    assert is_numbered("1. a 2. b")
    assert not is_numbered("1. a")


def test_a_phrase_is_turned_only_where_it_opens_with_a_preposition_and_nothing_tells_an_order() -> None:
    assert turned(("test", "run", "in", "ci")) == turned(("in", "ci", "test", "run"))
    assert turned(("lint", "test")) != turned(("test", "lint"))
    assert turned(("lint", "then", "test", "in", "ci")) == ("lint", "then", "test", "in", "ci")
    long = ("a",) * ROTATED_TERMS_MAX + ("in",)
    assert turned(long) == long
    assert has_order(statements("Stop it. Then go."))
    assert not has_order(statements("Stop it. Go."))


@pytest.mark.parametrize("piece", ["*a ", "**a ", "[a", "```\n", "- [ ] ", "1. ", "__a ", "  a\n", "a, ", "the library ", "> ", "! ", "\N{EM DASH} "])
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (16_000 // len(piece))
    started = time.perf_counter()
    says_the_same(text, f"{text}b")
    restates(f"{text}b", text)
    assert time.perf_counter() - started < 2.0


@given(st.text())
def test_any_text_has_statements_and_marks(text: str) -> None:
    for statement in statements(text):
        assert statement.terms
        assert sorted(turned(statement.terms)) == sorted(statement.terms)
        assert all(0 < place <= len(statement.terms) for place in statement.breaks)
        assert sum(map(len, statement.parts())) <= len(statement.terms)
    assert len(code(text)) >= 0
    assert says_the_same(text, text)
