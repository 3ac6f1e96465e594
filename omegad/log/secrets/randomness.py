"""Tells tokens that were drawn at random from those that were written, counted, hashed or named."""

import math
import re
from collections import Counter

from omegad.log.secrets.rule import Rule, Span

CHARACTERS_MIN = 24
ENTROPY_MIN = 0.85  # of log2(length), the most that so many characters can have
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
    # Content ids and peers of IPFS, addresses of Bitcoin and Solana, and KSUIDs of these decades. Of the tokens that are drawn from all
    # letters and digits, one in twenty at most has one of these lengths, beginnings and alphabets.
    rf"|(?:Qm{_BASE58}{{44}}|12D3KooW{_BASE58}{{44}}|[13]{_BASE58}{{25,34}}|{_BASE58}{{43,44}}|[0-3][0-9A-Za-z]{{26}})\Z"
    # Documents of Google Drive, and resources of CloudFormation.
    r"|1[\w-]{32}(?:[\w-]{11})?\Z|[A-Za-z][0-9A-Za-z-]*-[0-9A-Za-z]+[0-9A-F]{8}-[0-9A-Z]{12,14}\Z"
)
_JOINED_WORD = re.compile(r"(?:^|[-_/+])(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})(?=[-_/+]|$)")
_LABEL = re.compile(
    r"(?:(?:sha-?[0-9]{1,3}|md5|h1|integrity|digest|checksum|hash|etag|fingerprint|thumbprint|nonce|commit|revision|base64|cursor|address|wallet"
    r"|(?:\b|[_-])(?:[ckux]?id|[ug]uid|ids))(?:[ _-]?[0-9])?"
    r"[\"'`]?[ \t]{0,2}[:=,]?(?: is)?[ \t]{0,2}(?:w/)?[\"'`]?|(?:ksuid|address|wallet|uid|cid) (?:is |of )?[\"'`]?)\Z"
)
_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9]+")
_LOWER_CASE_RUN = re.compile(r"[a-z]{3,}")
_RUN = re.compile(rf"[0-9A-Za-z+/_-]{{{CHARACTERS_MIN}}}")


def may_hold_random(word: str) -> bool:
    """Say whether a word without spaces can hold a token that `RANDOM` finds."""
    return _is_mixed(word) and _RUN.search(word) is not None


def _is_mixed(word: str) -> bool:
    return len(word) >= CHARACTERS_MIN and word.lower() != word and word.upper() != word and _DIGIT.search(word) is not None


def is_random(token: str) -> bool:
    """Say whether a token looks drawn at random.

    Measured: of random tokens of 24 letters and digits 86 in 100 are found, of 40 and more 87 to 100 (with the two other characters of
    base64 82, and 86 to 92); the least at 43 and 44 characters, where addresses look alike. In 330 million characters of source code
    and documentation, about 40 identifiers are mistaken for one.
    """
    token = token.rstrip("=")
    if not _is_mixed(token) or _PUBLIC.match(token) or _JOINED_WORD.search(token) or len(_DIGITS.findall(token)) < DIGIT_GROUPS_MIN:
        return False
    # A fixed 4.5 bits, as is usual for base64, is more than most random tokens of under 32 characters have; 99 in 100 have 0.84 of log2.
    if _entropy(token) < min(ENTROPY_ENOUGH, ENTROPY_MIN * math.log2(len(token))):
        return False
    return sum(map(len, _LOWER_CASE_RUN.findall(token))) <= LOWER_CASE_SHARE_MAX * len(token)


def _judge(text: str, match: re.Match[str]) -> Span | None:
    """Take out what looks random and is no part of an address, and which no label says to be public."""
    token = match["secret"]
    if not token or not is_random(token):
        return None
    first, last = match.span("secret")
    before = text[max(0, first - LOOK_BACK) : first]
    is_public = "://" in f"{before}{token}".split()[-1] or _LABEL.search(before[-LABEL_CHARACTERS:].lower())
    return None if is_public else (first, last)


def _entropy(token: str) -> float:
    """Return Shannon's entropy of a token's characters, in bits per character."""
    size = len(token)
    return -sum(count / size * math.log2(count / size) for count in Counter(token).values())


# A token on its own: no part of a path, of a dotted name, of a call. The body of a certificate is found so as to be passed over.
RANDOM = Rule(
    "high_entropy",
    ("",),
    re.compile(
        r"-----BEGIN [0-9A-Z ]{1,40}-----[\s0-9A-Za-z+/=\\]*+"
        rf"|(?:(?<![\w+/.~@%$&#\\-])(?<!::)|(?<=\\[nrt]))(?P<secret>[0-9A-Za-z+_-][0-9A-Za-z+/_-]{{{CHARACTERS_MIN - 1},}}+={{0,2}})"
        r"(?![\w/=@%(\[]|[.:]\w|::)"
    ),
    _judge,
)
