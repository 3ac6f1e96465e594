"""Takes the secrets out of a text, pass after pass, until none is found."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b

from omegad.runtime.kept import Kept, bytes_of
from omegad.text.redaction import cards, columns, commands, entropy, manifests, spoken, values
from omegad.text.redaction.issuers import CHARACTERS_MIN, ISSUED, kind_of
from omegad.text.redaction.rules import RULES, Rule
from omegad.text.redaction.values import Span

REMEMBERED_BYTES = 1_000_000
REMEMBERED_CLEAN = 256
ENTRY_BYTES = 300  # of a text that is remembered, beside what it says
REMEMBERED_NAMES = 1_024
PASSES_MAX = 8
PART_CHARACTERS = 32 * 1024
DIGEST_CHARACTERS = 8

_NEEDLES = tuple(dict.fromkeys(needle for rule in RULES for needle in rule.needles))
_ALIKE = (("\u00a0", " "), ("\u202f", " "), ("\u3000", " "), ("\uff1a", ":"), ("\uff1d", "="))
_UNSEEN_SIGNS = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_UNSEEN = re.compile(f"(?<=[ -~])[{_UNSEEN_SIGNS}]+(?=[ -~])")
_DIGIT = re.compile(r"[0-9]")
_SPACE = re.compile(r"\s")
_PRIVATE_KEY = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}[\s\S]*?(?:-{4,5} ?END [A-Z0-9"
    r" ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|\Z)"
)
# What a private key begins with in base64, by its standard: a number that says that it is one, and whose
# (PKCS #1 and #8, SEC 1, OpenSSH).
_KEY_BEGINNING = re.compile(r"MII|LS0tLS1CRUdJTiB|MHcCAQEE|AgEBB|AgEAMB|MC4CAQAw|b3BlbnNzaC1")
_KEY_BODY = re.compile(
    r"(?:MII[A-J][\w+/][AQgw]IBA(?:DANBgkqhkiG9w0|DCCA|AK[BC])|MII[\w+/]{3,12}BgkqhkiG9w0BBQ|MHcCAQEEI"
    r"|MIGkAgEBBD|MIHcAgEBBEI"
    r"|MI(?:GH|G2|Hu)AgEAMB[AM]GByqGSM49|MC4CAQAwBQYDK2V[\w+/]BCIE|b3BlbnNzaC1rZXktdjE"
    # The same with its first line, once more in base64.
    r"|LS0tLS1CRUdJTiB(?:QUklWQVRF|SU0EgUFJJVkFU|FQyBQUklWQVRF|PUEVOU1NIIFBS|FTkNSWVBURUQgUF|EU0EgUFJJVkFU))"
    r"(?:[A-Za-z0-9+/_-]{1,200}={0,2}(?:(?:\\[nr]|[\s\"',>#]|[ \t]\+(?=\s)){1,24}(?=[A-Za-z0-9+/_-]{16}))?)+"
)


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:kind]`, and the kinds that were found."""
    return _REDACTED[text] if len(text) <= PART_CHARACTERS else _redact_long(text)


def _redact_long(text: str) -> tuple[str, tuple[str, ...]]:
    """Do as `redact`. Of long texts that are clean a digest is remembered alone, since they would take the
    room of all others: what is cleaned beside the event loop is not searched again at the append.
    """
    digest = _digest(text)
    if digest in _clean:
        return text, ()
    clean, found = _redact(text)
    if len(_clean) >= REMEMBERED_CLEAN:
        _clean.clear()
    _clean.add(_digest(clean) if found else digest)
    return clean, found


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


_clean: set[bytes] = set()


def key_names(digest: Callable[[bytes], bytes]) -> None:
    """Have names that are nothing but a token told apart by *digest*, as the home's key makes it, from now on
    in this process.

    Until then none is told from another of its kind.
    """
    _keyed[:] = [digest]
    redact_name.cache_clear()


_keyed: list[Callable[[bytes], bytes]] = []


@lru_cache(maxsize=REMEMBERED_NAMES)
def redact_name(name: str) -> str:
    """Return the name of a project, session or other thing without the credentials in it.

    The same name always gives the same, so that what was stored by it is found by it; a name that merely
    looks random is one. A name that is nothing but a token keeps some digits of a digest of it, made with the
    home's key, so that two of them stay two.
    """
    clean, found = _redact(name, is_name=True)
    if found and clean == f"[REDACTED:{found[-1]}]":
        digests = [digest(name.encode()).hex()[-DIGEST_CHARACTERS:] for digest in _keyed]
        return f"[REDACTED:{'-'.join((found[-1], *digests))}]"
    return clean


def _redact(text: str, *, is_name: bool = False) -> tuple[str, tuple[str, ...]]:
    found: dict[str, None] = {}
    passes = 0
    if not text.isascii() and any(sign in text for sign in _UNSEEN_SIGNS):
        # What no reader sees could part a secret from its name, or in two.
        seen = _UNSEEN.sub("", text)
        if seen != text and _redact_once(seen, is_name=is_name)[1]:
            text = seen
    while (passed := _redact_once(text, is_name=is_name))[1]:
        # Once more: a secret may only show when the one that it was glued to is gone. Where every pass
        # uncovers another, somebody made the text to be searched for ever; it ends at the first mark.
        passes += 1
        text = (
            passed[0]
            if passes <= PASSES_MAX
            else f"{passed[0].partition('[REDACTED:')[0]}[REDACTED:{passed[1][0]}]"
        )
        found |= dict.fromkeys(passed[1])
    return text, tuple(found)


# The same text is searched when a command is prepared and again at the append, soon after.
_REDACTED = Kept(
    _redact, REMEMBERED_BYTES, lambda text, done: bytes_of(text) + bytes_of(done[0]) + ENTRY_BYTES
)


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that end between words, so that there is never a string for each of them."""
    start = 0
    while start + PART_CHARACTERS < len(text):
        found = _SPACE.search(text, start + PART_CHARACTERS)
        end = found.start() if found else len(text)
        yield text[start:end]
        start = end
    yield text[start:]


def _redact_once(text: str, *, is_name: bool) -> tuple[str, list[str]]:
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        found.append(kind_of(match) if match.re is ISSUED else "private_key")
        return f"[REDACTED:{found[-1]}]"

    if "-BEGIN " in text or "- BEGIN " in text:
        text = _PRIVATE_KEY.sub(mark, text)
    words = _long_words(text)
    long_words = " ".join(words)
    if words and ISSUED.search(long_words):
        text = ISSUED.sub(mark, text)
    if words and _KEY_BEGINNING.search(long_words):
        text = _KEY_BODY.sub(mark, text)
    folded = _folded(text)
    here = {needle for needle in _NEEDLES if needle in folded}
    kept = manifests.kept(text, folded) if "secret" in here and not is_name else []
    if not is_name and (spans := [*columns.passwords(text, folded, here), *kept]):
        text = _without(text, sorted(spans), "assigned_secret", found)
        folded = _folded(text)
    if here:
        for rule in RULES:
            if not here.isdisjoint(rule.needles) and (spans := _spans(rule, text, folded)):
                text = _without(text, spans, rule.kind, found)
                folded = _folded(text)
    if (" -" in text or (not is_name and "-" in text)) and (spans := commands.passwords(text)):
        text = _without(text, spans, "command_password", found)
    return text if is_name else _without_told(text, folded, words, found, has_pass="pass" in here), found


def _without_told(text: str, folded: str, words: list[str], found: list[str], *, has_pass: bool) -> str:
    """Return *text* without what only texts have, and names have not: what is told, and what looks random."""
    if spoken.may_tell(folded) and (spans := spoken.passwords(text, _folded(text))):
        text = _without(text, spans, "assigned_secret", found)
    if (has_pass or " pin" in folded) and (spans := spoken.told_together(text, _folded(text))):
        text = _without(text, spans, "assigned_secret", found)
    if spans := cards.numbers(text):
        text = _without(text, spans, "payment_card", found)
    if entropy.may_be_random(words):
        text = _without(
            text,
            [span for match in entropy.RANDOM.finditer(text) if (span := entropy.random_token(text, match))],
            "high_entropy",
            found,
        )
    return text


def _long_words(text: str) -> list[str]:
    """Return the words of a text that are as long as a token, and of more than small letters."""
    return [
        word
        for part in (_parts(text) if len(text) > PART_CHARACTERS else (text,))
        for word in part.split()
        if len(word) >= CHARACTERS_MIN and (not word.islower() or _DIGIT.search(word))
    ]


def _folded(text: str) -> str:
    """Return *text* in lower case, sign for sign, with the spaces, colons and signs of equality of ASCII."""
    folded = text.replace("İ", "I").lower()  # the one letter that is two in lower case
    if not folded.isascii():
        for sign, plain in _ALIKE:
            if sign in folded:
                folded = folded.replace(sign, plain)
    return folded


def _spans(rule: Rule, text: str, folded: str) -> list[Span]:
    places = sorted(at for needle in rule.needles for at in values.places(folded, needle))
    spans: list[Span] = []
    for at in places:
        # What begins within a secret is a part of it, whatever it looks like.
        if (
            (not spans or at >= spans[-1][1])
            and (match := rule.pattern.match(folded, at))
            and (span := rule.judge(text, match))
            and (not spans or span[0] >= spans[-1][1])
        ):
            spans.append(span)
    return spans


def _without(text: str, spans: list[Span], kind: str, found: list[str]) -> str:
    """Return *text* with *kind* for what is in *spans*, and add it to *found*."""
    if not spans:
        return text
    found.append(kind)
    merged = list[Span]()
    for span in sorted(spans):
        if merged and span[0] < merged[-1][1]:  # a password of a table, in what SQL inserts
            merged[-1] = (merged[-1][0], max(span[1], merged[-1][1]))
        else:
            merged.append(span)
    return values.without(text, merged, f"[REDACTED:{kind}]")
