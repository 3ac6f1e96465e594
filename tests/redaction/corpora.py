"""Texts with secrets that others wrote for their own scanners and manuals, read from their repositories as
these are laid out.

Where they write a placeholder, a value is put in that is drawn from the placeholder's own place, the same in
every run.
"""

import ast
import operator
import random
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

PASSWORDS = (
    "hunter2",
    "swordfish",
    "Winter2024!",
    "c0rrect-horse",
    "q7Zt3Lx9Vb2N",
    "letmein99",
    "Tr0ub4dor&3",
    "m0nk3y_King",
    "s3cr3t",
    "dragonfly",
)
TOKENS = (
    "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF",
    "3f9a1c2e-77aa-4bbf-9c11-0a2b3c4d5e6f",
)


class Sample(msgspec.Struct, frozen=True):
    """A text; whether its author says that a secret is in it, and which, where that is known; `kind` is
    the author's rule or command.
    """

    kind: str
    text: str
    is_secret: bool
    secret: str = ""

    @property
    def is_held_aside(self) -> bool:
        """Say whether the sample is of the half that nobody looks at while the rules are written."""
        return sha256(self.kind.encode()).digest()[0] % 2 == 1


# The rules of gitleaks in Go: each builds lists of true and of false positives and gives them to a check.

_GO = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?P<raw>`[^`]*`)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_][\w.]*)|(?P<sign>:=|\.\.\.|\S)',
    re.DOTALL,
)
_RULE = re.compile(r'RuleID:\s*"([^"]+)"')
_ALPHABETS = {
    "Numeric": "[0-9]",
    "Hex": "[a-f0-9]",
    "AlphaNumeric": "[a-z0-9]",
    "AlphaNumericExtendedShort": "[a-z0-9_-]",
}
_ALPHABETS |= {"AlphaNumericExtended": r"[a-z0-9=_\-]", "AlphaNumericExtendedLong": r"[a-z0-9\/=_\+\-]"}
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# How a secret may be assigned: as in settings, and in the languages that the scanner's authors try.
_ASSIGNMENTS = """
{i}Token="{s}"|{i}Token = "{s}"|{i}Token={s}|{i}Token = {s}|{{~    "{i}_token": "{s}"~}}|{{"config.ini": "{I}_TOKEN={s}\\nBACKUP_ENABLED=true"}}
<{i}Token>~    {s}~</{i}Token>|{i}_token: {s}|{i}_token: '{s}'|{i}_token: "{s}"|string {i}Token = "{s}";|var {i}Token string = "{s}"|{i}Token := "{s}"
{i}Token := `{s}`|String {i}Token = "{s}";|var {i}Token = "{s}"|${i}Token .= "{s}"|{i}Token = '{s}'|System.setProperty("{I}_TOKEN", "{s}")
  "{i}Token" => "{s}"|{i}_TOKEN = "{s}"|{i}_TOKEN := "{s}"|{i}_TOKEN ::= "{s}"|{i}_TOKEN :::= "{s}"|{i}_TOKEN ?= "{s}"
"""
_FORMS = [
    form.replace("~", "\n") for line in _ASSIGNMENTS.strip("\n").split("\n") for form in line.split("|")
]


class _Unread(Exception):
    """What a file says is beyond this reader."""


class _Text(str):
    """A text that knows which secret was put into it."""

    __slots__ = ("secret",)
    secret: str

    @classmethod
    def of(cls, text: str, secret: str) -> "_Text":
        made = cls(text)
        made.secret = secret
        return made


class _Go:
    """Evaluates the few expressions by which the rules' samples are written."""

    def __init__(self, source: str, draw: random.Random) -> None:
        found = (match for match in _GO.finditer(source) if match.lastgroup)
        self._tokens = [(str(match.lastgroup), match[0], match.start()) for match in found]
        self._at = 0
        self._draw = draw
        self._known: dict[str, Any] = {}
        self.unread = 0

    def lists(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield where each list of positives ends that is given to a check, its name, and its texts."""
        while self._at < len(self._tokens):
            _, word, place = self._tokens[self._at]
            self._at += 1
            if word in {"utils.Validate", "utils.ValidateWithPaths"}:
                for name in ("tps", "fps"):
                    yield place, name, list(_flat(self._known.pop(name, [])))
            elif (
                re.fullmatch(r"[A-Za-z_]\w*", word)
                and self._next() in {":=", "="}
                and word not in {"r", "if", "for"}
            ):
                self._at += 1
                self._assign(word)

    def _assign(self, name: str) -> None:
        start = self._at
        try:
            self._known[name] = self._expression()
        except (_Unread, IndexError, KeyError, TypeError, StopIteration):
            self.unread += name in {"tps", "fps"}
            self._at = start

    def _next(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise _Unread(sign)
        self._at += 1

    def _expression(self) -> Any:
        value = self._term()
        while self._next() == "+":
            self._at += 1
            right = self._term()
            secret = getattr(value, "secret", "") or getattr(right, "secret", "")
            value = _Text.of(value + right, secret) if secret else value + right
        if self._next() == "...":
            self._at += 1
        return value

    def _term(self) -> Any:
        kind, word, _ = self._tokens[self._at]
        self._at += 1
        if kind == "raw":
            return word[1:-1]
        if kind == "text":
            return str(ast.literal_eval(word))
        if word in {"[", "map"}:
            self._at = next(at for at in range(self._at, len(self._tokens)) if self._tokens[at][1] == "{")
            return self._items("{", "}")
        if kind != "word":
            raise _Unread(word)
        return self._call(word, self._items("(", ")")) if self._next() == "(" else self._known[word]

    def _items(self, opening: str, closing: str) -> list[Any]:
        self._take(opening)
        items: list[Any] = []
        while self._next() != closing:
            value = self._expression()
            if self._next() == ":":  # a path, and what stands in it
                self._at += 1
                value = self._expression()
            items.append(value)
            if self._next() == ",":
                self._at += 1
        self._take(closing)
        return items

    def _call(self, name: str, given: list[Any]) -> Any:  # noqa: PLR0911  one for each function
        bare = name.removeprefix("utils.").removeprefix("secrets.")
        match bare:
            case "append":
                return list(_flat(given))
            case "NewSecret" | "newPlausibleSecret":
                secret = drawn(given[0], self._draw)
                return _Text.of(secret, secret)
            case "GenerateSampleSecret":
                return _Text.of(f'{given[0]}_api_token = "{given[1]}"', given[1])
            case "GenerateSampleSecrets":
                return [
                    _Text.of(form.format(i=given[0], I=given[0].upper(), s=given[1]), given[1])
                    for form in _FORMS
                ]
            case "fmt.Sprintf":
                return given[0].replace("%s", "{}").format(*given[1:])
            case "Hex8_4_4_4_12":
                return _UUID
            case _ if bare in _ALPHABETS:
                return f"{_ALPHABETS[bare]}{{{given[0]}}}"
            case _:
                raise _Unread(name)


def drawn(pattern: str, draw: random.Random) -> str:
    """Return a text that a regular expression matches, of the repeats that it allows at most ten more than
    it asks for.
    """
    parser = __import__("re")._parser
    return "".join(
        _drawn(parser.parse(pattern.replace("(?i:", "(?:").replace("[[:alnum:]]", "[0-9A-Za-z]")), draw)
    )


def _drawn(parsed: Any, draw: random.Random) -> Iterator[str]:
    for op, value in parsed:
        match str(op):
            case "LITERAL":
                yield chr(value)
            case "IN":
                yield draw.choice(sorted(set(chain.from_iterable(map(_characters, value)))))
            case "MAX_REPEAT" | "MIN_REPEAT":
                for _ in range(draw.randint(value[0], min(int(value[1]), value[0] + 10))):
                    yield from _drawn(value[2], draw)
            case "SUBPATTERN":
                yield from _drawn(value[-1], draw)
            case "BRANCH":
                yield from _drawn(draw.choice(value[1]), draw)
            case "AT":
                pass
            case _:
                raise _Unread(str(op))


def _characters(part: tuple[Any, Any]) -> str:
    match str(part[0]), part[1]:
        case "LITERAL", code:
            return chr(code)
        case "RANGE", (first, last):
            return "".join(map(chr, range(first, last + 1)))
        case "CATEGORY", category:
            return {"CATEGORY_DIGIT": "0123456789", "CATEGORY_WORD": "abcXYZ019_"}[str(category)]
        case _:
            raise _Unread(str(part))


def _flat(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    else:
        for one in given:
            yield from _flat(one)


def gitleaks(folder: Path) -> Iterator[Sample]:
    """Yield the positives, true and false, of the rules of a checkout of gitleaks."""
    for path in sorted((folder / "cmd/generate/config/rules").glob("*.go")):
        source = path.read_text()
        rules = [(match.start(), match[1]) for match in _RULE.finditer(source)]
        go = _Go(source, random.Random(path.name))  # noqa: S311  the same values each time
        for place, name, texts in go.lists():
            rule = max((rule for rule in rules if rule[0] < place), default=(0, path.stem))[1]
            for text in dict.fromkeys(texts):
                if text.strip():
                    yield Sample(rule, text, name == "tps", getattr(text, "secret", ""))
        if go.unread:
            yield Sample(f"{path.stem}: {go.unread} lists not read", "", is_secret=False)


# The tests of detect-secrets in Python: parameters of tests, and lists named as cases.

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
}


def detect_secrets(folder: Path) -> Iterator[Sample]:
    """Yield the lines that the plugins of a checkout of detect-secrets are tested with."""
    for path in sorted((folder / "tests/plugins").glob("*_test.py")):
        kind, known = path.stem.removesuffix("_test"), dict[str, Any]()
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    known[name] = _value(value, known)
                    if name.endswith("TEST_CASES") and isinstance(known[name], list):
                        yield from (
                            Sample(kind, text, secret is not None, secret or "")
                            for text, secret in known[name]
                        )
                case ast.Call(
                    func=ast.Attribute(attr="parametrize"),
                    args=[ast.Constant(value=str(names)), ast.List() | ast.Tuple() as cases],
                ):
                    if re.match(r"(?:payload|line|file_content)\b", names):
                        yield from _cases(kind, [_value(case, known) for case in cases.elts])
                case _:
                    pass


def _cases(kind: str, cases: list[Any]) -> Iterator[Sample]:
    for case in cases:
        match case:
            case str(text) | (str(text),):
                yield Sample(kind, text, is_secret=True)
            case (str(text), bool(is_secret)) | (str(text), bool(is_secret), *_):
                yield Sample(kind, text, is_secret)
            case _:
                pass


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:  # noqa: PLR0911  one for each kind of expression
    """Return what an expression of constants says; None for any other."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return known.get(name)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [_value(one, known) for one in elements]
            return values if isinstance(node, ast.List) else tuple(values)
        case ast.JoinedStr(values=parts):
            return "".join(
                str(_value(part.value if isinstance(part, ast.FormattedValue) else part, known))
                for part in parts
            )
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            values = [_value(left, known), _value(right, known)]
            return None if None in values else _OPERATORS[type(op)](*values)
        case ast.Subscript(value=value, slice=ast.Slice() as part):
            text = _value(value, known)
            ends = (None if end is None else _value(end, known) for end in (part.lower, part.upper))
            return text[slice(*ends)] if isinstance(text, str) else None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.Call(func=ast.Attribute(value=text, attr="format"), args=args, keywords=keywords):
            form = _value(text, known)
            given = {str(one.arg): _value(one.value, known) for one in keywords}
            return (
                form.format(*(_value(one, known) for one in args), **given) if isinstance(form, str) else None
            )
        case ast.Call(func=ast.Attribute(attr="dedent"), args=[text]):
            found = _value(text, known)
            return textwrap.dedent(found) if isinstance(found, str) else None
        case _:
            return None


# Commands of tldr pages, with a placeholder in braces where a person puts a value.

_PLACE = re.compile(r"\{\{(.*?)\}\}")
_VALUE = re.compile(
    r"(?:the |your[ _-]|my[ _-])?(?:[a-z]+["
    r" _-]){0,3}?(?P<password>(?:db|user)?pass(?:word|phrase|code|wd)?|pin)[ _-]?[0-9]?"
    r"|(?:the |your[ _-]|my[ _-])?(?:[a-z]+["
    r" _-]){0,2}?(?P<token>token|api[_-]?key|(?:client|api|consumer|app|shared)[_ -]secret|secret_(?"
    r":value|key)|api_key_string|token_string)"
)
_WITHIN = re.compile(
    r"(?<![\w/.-])(?P<user>[\w.-]*(?:user|name|login|admin)[\w.-]*[:%])(?P<password>pass(?:word|wd|phrase)?)\b"
)
_NO_VALUE = re.compile(r"encrypted|hash|one_time|old.password_file|type|public|share_token|_id\b")


def tldr(folder: Path) -> Iterator[Sample]:
    """Yield the commands of a checkout of tldr pages in which a password or token is given."""
    for path in sorted((folder / "pages").glob("*/*.md")):
        for line in path.read_text().splitlines():
            if line.startswith("`") and "{{" in line:
                yield from _filled(path.stem, line.strip("`"))


def _filled(kind: str, command: str) -> Iterator[Sample]:
    places = list(_PLACE.finditer(command))
    for at, place in enumerate(places):
        match = _VALUE.fullmatch(place[1].lower())
        if match and not _NO_VALUE.search(place[1].lower()):
            secret = _choice(TOKENS if match["token"] else PASSWORDS, f"{command}{at}")
        elif match := _WITHIN.search(place[1]):
            secret = _choice(PASSWORDS, f"{command}{at}")
        else:
            continue
        value = _WITHIN.sub(rf"\g<user>{secret}", place[1]) if match.re is _WITHIN else secret
        text = f"{command[: place.start()]}{value}{command[place.end() :]}"
        for option in (1, 2):
            yield Sample(
                kind, _PLACE.sub(partial(_plain, option=option), text), is_secret=True, secret=secret
            )


def _plain(place: re.Match[str], *, option: int) -> str:
    """Return what a person would put for a placeholder: one of two spellings of an option, else its words
    as one.
    """
    spellings = re.fullmatch(r"\[([^|\]]*)\|([^|\]]*)\]", place[1])
    return spellings[option] if spellings else place[1].replace(" ", "_")


# Manual pages as text, one file a command: their options that take a password, and lines that call the
# command.

_OPTION = re.compile(
    r"(?P<option>--?[A-Za-z0-9][\w-]*)(?P<sign>\[?=|"
    r" |(?<=\s-[A-Za-z])\[?)[<\[]?(?P<value>(?:[a-z]{2,10}[_-])?(?P<word>pass(?:word|wd|phra"
    r"se|code)?|pw|secret|token|PASS(?:WORD|WD|PHRASE)?|SECRET|TOKEN))[>\]]?(?=[\s,]|$)"
)


def manuals(folder: Path) -> Iterator[Sample]:
    """Yield a command for each option of a manual's text (`NAME.1.txt`) whose value is a password, and the
    lines in which one is given.
    """
    for path in sorted(folder.glob("*.[18].txt")):
        kind, seen = path.name.split(".")[0], set[str]()
        for line in path.read_text(errors="replace").splitlines():
            bare = line.strip()
            if line[:1].isspace() and bare.startswith("-"):
                bare = f" {bare}"
                texts = [
                    f"{kind} {match['option']}{match['sign'].strip('[')}@@ "
                    for match in _OPTION.finditer(bare.split("  ")[0])
                ]
            elif (
                bare.removeprefix("$ ").removeprefix("# ").startswith(f"{kind} ")
                and "-" in bare
                and len(bare) < 200
            ):
                texts = [_WITHIN.sub(r"\g<user>@@", bare)] if _WITHIN.search(bare) else []
            else:
                texts = []
            for text in texts:
                if "@@" in text and text not in seen:
                    seen.add(text)
                    secret = _choice(PASSWORDS, text)
                    yield Sample(kind, text.replace("@@", secret).strip(), is_secret=True, secret=secret)


def _choice(values: tuple[str, ...], key: str) -> str:
    return values[sha256(key.encode()).digest()[0] % len(values)]
