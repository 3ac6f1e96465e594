"""Tells tokens that were drawn at random from those that were written, counted, hashed or named."""

import binascii
import math
import re
from collections import Counter

CHARACTERS_MIN = 24
ENTROPY_MIN = 0.85  # of log2(length), the most that so many characters can have; 99 in 100 random ones have 0.84
ENTROPY_ENOUGH = 4.9  # bits per character; base64 has no more than 6
LOWER_CASE_SHARE_MAX = 0.4  # in runs of three and more, as words have them
DIGIT_GROUPS_MIN = 2  # an identifier seldom has more than one number
LOOK_BACK = 256
LABEL_CHARACTERS = 40

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PUBLIC = re.compile(
    r"sha[0-9]{1,3}-|AAAA[BCE][23]|_Z|_R|0x|[xyz]pub|[0-9A-Fa-f]+\Z"
    # What begins a picture, a font, a document or an archive in base64.
    r"|iVBORw0|/9j/|R0lGOD|UklGR|PHN2Zy|d09G|JVBERi|UEsDB|H4sI"
    # Content ids and peers of IPFS, addresses of Bitcoin and Solana, KSUIDs, documents of Google Drive, resources of CloudFormation.
    rf"|(?:Qm{_BASE58}{{44}}|12D3KooW{_BASE58}{{44}}|[13]{_BASE58}{{25,34}}|{_BASE58}{{43,44}}|[0-3][0-9A-Za-z]{{26}})\Z"
    r"|1[\w-]{32}(?:[\w-]{11})?\Z|[A-Za-z][0-9A-Za-z-]*-[0-9A-Za-z]+[0-9A-F]{8}-[0-9A-Z]{12,14}\Z"
)
_WORD_PART = re.compile(r"(?:^|[-_/+])(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})(?=[-_/+]|$)")
_LABEL = re.compile(
    r"(?:(?:sha-?[0-9]{1,3}|md5|h1|integrity|digest|checksum|hash|etag|fingerprint|thumbprint|nonce|opaque|commit|revision|base64|cursor"
    r"|address|wallet|(?:\b|[_-])(?:[ckux]?id|[ug]uid|ids))(?:[ _-]?[0-9])?[\"'`]?[ \t]{0,2}[:=,]?(?: is)?[ \t]{0,2}(?:w/)?[\"'`]?"
    r"|(?:ksuid|address|wallet|uid|cid) (?:is |of )?[\"'`]?)\Z"
)
_DIGITS = re.compile(r"[0-9]+")
_LOWER_CASE_RUN = re.compile(r"[a-z]{3,}")

# A token on its own: no part of a path, of a dotted name, of a call. The body of a certificate is found so as to be passed over.
RANDOM = re.compile(
    r"-----BEGIN [0-9A-Z ]{1,40}-----[\s0-9A-Za-z+/=\\]*+"
    rf"|(?:(?<![\w+/.~@%$&#\\-])(?<!::)|(?<=\\[nrt]))(?P<secret>[0-9A-Za-z+_-][0-9A-Za-z+/_-]{{{CHARACTERS_MIN - 1},}}+={{0,2}})"
    r"(?![\w/=@%(\[]|[.:]\w|::)"
)


def is_mixed(word: str) -> bool:
    """Say whether *word* is long enough for a random token, and has all of small letters, capitals and digits."""
    return len(word) >= CHARACTERS_MIN and word.lower() != word and word.upper() != word and _DIGITS.search(word) is not None


def may_be_random(words: list[str]) -> bool:
    """Say whether a token that looks random is in one of the words of a text, whatever stands around them."""
    mixed = " ".join(filter(is_mixed, words))
    return bool(mixed) and any(match["secret"] and is_random(match["secret"]) for match in RANDOM.finditer(mixed))


def is_random(token: str) -> bool:
    """Say whether a token looks drawn at random, and does not encode a text."""
    core = token.rstrip("=")
    if not is_mixed(core) or _PUBLIC.match(core) or _WORD_PART.search(core) or len(_DIGITS.findall(core)) < DIGIT_GROUPS_MIN:
        return False
    bits = -sum(count / len(core) * math.log2(count / len(core)) for count in Counter(core).values())
    if bits < min(ENTROPY_ENOUGH, ENTROPY_MIN * math.log2(len(core))):
        return False
    return sum(map(len, _LOWER_CASE_RUN.findall(core))) <= LOWER_CASE_SHARE_MAX * len(core) and not decoded(core)


def decoded(token: str) -> str:
    """Return the printable text that the whole groups of *token* encode in base64, empty if they encode none."""
    core = token.rstrip("=")
    try:
        text = binascii.a2b_base64(core[: len(core) // 4 * 4], strict_mode=True).decode("ascii")
    except ValueError:
        return ""
    return text if text.isprintable() else ""


def random_token(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where a match of `RANDOM` has a token that looks random, is no part of an address, and has no label that says it is public."""
    first, last = match.span("secret")
    if first < 0 or not is_random(match["secret"]):
        return None
    before = text[max(0, first - LOOK_BACK) : first]
    is_public = "://" in f"{before}{match['secret']}".split()[-1] or _LABEL.search(before[-LABEL_CHARACTERS:].lower())
    return None if is_public else (first, last)
