"""Statements that give one thing one value: which predicates take only one, and which values exclude each other."""

import re
from collections.abc import Sequence

from omegad.evidence.wording import NEGATORS, OPPOSITES, stem, stems

VALUE_TERMS_MAX = 3
"""Longer ones are descriptions, of which several can hold."""

Values = tuple[Sequence[str], Sequence[str]]
"""What two statements differ in, each in its terms."""

_SINGLE = """runs on|runs with|runs under|is run with|is run on|is set to|set to|defaults to|default to|lives in|lives at|lives under
is located in|is named
is called|is stored in|is kept in|is written in|is deployed to|deploys to|deploy to|is hosted on|is hosted in|listens on|binds to|is owned by
is built with|is managed by|is limited to|is capped at|points to|expires after|is due|is due on|resolves to|starts at|starts on|logs to
is pinned to|pinned to|is tagged|is backed by|is formatted with|is linted with|is licensed under|is scheduled for|times out after|is kept for
is at|is in|is on|is under|runs at|run at|happens at|fires at|opens at|closes at"""
_ATTRIBUTES = """port version branch name owner timeout limit default database language framework url path endpoint region runner deadline budget
password user host hostname address size interval threshold license maintainer lead reviewer linter formatter manager registry bucket table
schema directory folder file queue broker cache editor shell timezone encoding format model level mode strategy policy style convention
indentation width length count maximum minimum ttl retention cadence frequency schedule window tag prefix suffix key id channel contact
backend frontend stack orm driver engine protocol provider platform target environment role color theme font locale currency unit room"""
_MANY = stems("support want like prefer has expect")
_OPEN = "uses|use|requires|require|needs|need|prefers|prefer|wants|likes|expects|supports|has|is|targets|chose|picked"
_RIVALS = """postgres postgresql mysql sqlite mariadb mongodb oracle cockroachdb|npm yarn pnpm bun|pytest unittest nose|jest vitest mocha jasmine
tabs spaces|main master trunk|redis memcached valkey|rest graphql grpc|squash rebase merge|black ruff yapf autopep8|pip uv poetry pipenv conda pdm
jenkins circleci travis gitlab github|docker podman|aws gcp azure|webpack vite rollup esbuild parcel|react vue svelte angular|flask django fastapi
utc local|json yaml toml xml|mypy pyright|kafka rabbitmq nats sqs|nginx caddy traefik apache|vim neovim emacs vscode|light dark|eslint biome
terraform pulumi|celery rq dramatiq|bash zsh fish|snake_case camelcase kebab-case|python go rust java ruby kotlin|linux windows macos
flake8 ruff pylint|maven gradle|playwright cypress selenium|unittest pytest|jwt session|cookies tokens|monorepo polyrepo|ubuntu debian alpine
elasticsearch opensearch meilisearch|prisma drizzle typeorm|openai anthropic|sentry rollbar|slack discord teams|cmake make bazel meson ninja"""


def _phrases(text: str) -> str:
    listed = [" ".join(stem(word) for word in phrase.split()) for phrase in re.split(r"[|\n]", text)]
    return "|".join(re.escape(phrase) for phrase in sorted(set(listed), key=lambda phrase: (-len(phrase), phrase)))


_SINGLE_SLOT = re.compile(rf"^(?P<subject>.*?)\b(?:{_phrases(_SINGLE)})(?P<kind>(?: \S+){{0,2}})$")
_OPEN_SLOT = re.compile(rf"^(?P<subject>.*?)\b(?P<verb>{_phrases(_OPEN)})(?P<kind>(?: \S+){{0,2}})$")
_CHANNELS = """go through|go to|sent through|sent to|sent with|sent via|sent by|delivered through|delivered to|stored in|stored as|stored on|kept in
saved in|managed in|managed with|managed by|written in|write in|rewritten in|live in|cut every|cut on|formatted as|formatted with|reported to
tracked in|logged to|logged as|hosted on|hosted by|published to|deploy with|deploy through|deployed with|deployed through|linted with
hashed with|signed with|signed through|built with|built by|rendered with|rendered by|charged through|billed through|shipped to|served from
served by|handled by|processed by|processed in|done in|done with|run every|happen every|rotated every|rotated on|held on|scheduled by"""
_CHANNEL = frozenset((stem(verb), stem(way)) for verb, way in (phrase.split() for phrase in re.split(r"[|\n]", _CHANNELS)))
_ATTRIBUTE = stems(_ATTRIBUTES)
_GROUPS = tuple(stems(group) for group in re.split(r"[|\n]", _RIVALS))
_OF_A_KIND = frozenset[str]().union(*_GROUPS)
_JOINING = stems("in on at for from to with by of and or if when unless until as via per than but not , & about like")
CHANNEL_REACH = 3
"""How many terms before the way the verb may stand that takes one: `write docs in X`."""
_NUMBER = re.compile(r"[~<>=^v$]*\d[\d.,:]*\S{0,6}")


def are_rivals(one: str, other: str) -> bool:
    """Say whether two terms exclude each other: opposites, or two of a kind of which a project takes one."""
    return (one, other) in OPPOSITES or are_of_a_kind(one, other)


def has_rivals(term: str) -> bool:
    """Say whether a term is one of a kind of which a project takes one."""
    return term in _OF_A_KIND


def are_of_a_kind(one: str, other: str) -> bool:
    """Say whether two terms are two of a kind of which a project takes one."""
    return one != other and one in _OF_A_KIND and any(one in group and other in group for group in _GROUPS)


def differing(one: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
    """Return the terms two statements begin with, what differs in the one and in the other, and what they end with."""
    shorter = min(len(one), len(other))
    start = next((index for index in range(shorter) if one[index] != other[index]), shorter)
    end = next((index for index in range(shorter - start) if one[-1 - index] != other[-1 - index]), shorter - start)
    return one[:start], one[start : len(one) - end], other[start : len(other) - end], one[len(one) - end :]


def has_one_value(start: Sequence[str], values: Values, end: Sequence[str], *, is_marked: bool) -> bool:
    """Say whether two statements that begin and end alike give one slot two values, of which only one can hold.

    `is_marked` says that the newer one tells of a change; then a word of use with the same complement is enough.
    """
    if not all(_is_value(value) for value in values):
        return False
    text = " ".join(start)
    if (slot := _SINGLE_SLOT.match(text)) and _is_plain(slot):
        return _are_rival(values) or (bool(slot["subject"]) and _excludes_others(text, values))
    slot = _OPEN_SLOT.match(text)
    return slot is not None and _is_plain(slot) and _takes_one(slot, values, end, is_marked=is_marked)


def is_one_channel(start: Sequence[str], values: Values) -> bool:
    """Say whether two statements that begin alike end with two ways of which a subject takes one at a time: `go through X`, `write in X`."""
    if not all(_is_value(value) for value in values):
        return False
    return any((verb, start[-1]) in _CHANNEL for verb in start[-CHANNEL_REACH - 1 : -1])


def is_predicate(start: Sequence[str], values: Values) -> bool:
    """Say whether two statements that begin alike say of a subject what it is."""
    return len(start) > 1 and start[-1] == "is" and all(_is_value(value) for value in values)


def _takes_one(slot: re.Match[str], values: Values, end: Sequence[str], *, is_marked: bool) -> bool:
    """Say whether a predicate that can take many values takes only one of these."""
    subject, verb, kind = slot["subject"].split(), slot["verb"], slot["kind"].split()
    if _are_rival(values):
        return is_marked or verb != "is" or bool(subject or kind or end)
    if verb == "is":
        return bool(subject) and (_is_numeric(values) or any(_is_attribute(term) for term in (*subject[-1:], *kind[-1:])))
    if _is_numeric(values) and verb not in _MANY:
        return bool(kind or end)
    return is_marked and bool(_JOINING & set(end[:1]))


def _are_rival(values: Values) -> bool:
    return any(are_rivals(one, other) for one, other in zip(*values, strict=False))


def _is_attribute(term: str) -> bool:
    return term in _ATTRIBUTE or "_" in term


def _excludes_others(start: str, values: Values) -> bool:
    """Say whether a predicate lets no other value stand beside these: `is in` and its like do so only for attributes, paths and numbers."""
    if not re.search(r"\bis (?:in|on|at|under)(?: \S+)*$", start):
        return True
    words = start.split()
    before = words[max(0, words.index("is") - 1)]
    return _is_attribute(before) or all("/" in " ".join(value) or "_" in " ".join(value) for value in values) or _is_numeric(values)


def _is_plain(slot: re.Match[str]) -> bool:
    return not _JOINING.intersection(slot["kind"].split())


def _is_value(value: Sequence[str]) -> bool:
    return 0 < len(value) <= VALUE_TERMS_MAX and not (_JOINING | NEGATORS).intersection(value)


def _is_numeric(values: Values) -> bool:
    return all(_NUMBER.fullmatch(value[0]) for value in values)
