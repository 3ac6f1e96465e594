"""Tells tokens that were drawn at random from those that were written, counted, hashed or named."""

import binascii
import math
import re
from collections import Counter

CHARACTERS_MIN = 24
CHARACTERS_MAX = (
    1_000  # what is longer is a file in base64, and so a secret only where it begins as a key does
)
_PEM = "LS0tLS1CRUdJTi"
ENTROPY_MIN = (
    0.85  # of log2(length), the most that so many characters can have; 99 in 100 random ones have 0.84
)
ENTROPY_ENOUGH = 4.9  # bits per character; base64 has no more than 6
LOWER_CASE_SHARE_MAX = 0.4  # in runs of three and more, as words have them
DIGIT_GROUPS_MIN = 2  # an identifier seldom has more than one number
LOOK_BACK = 256
LABEL_CHARACTERS = 80
LINE_CHARACTERS = 256

_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_PUBLIC = re.compile(
    r"(?:sha[0-9]{1,3}|md5)(?:-|//?)|AAAA[BCEGI][23H]|_Z|_R|0x|[xyz]pub|[0-9A-Fa-f]+\Z"
    # What begins a picture, a font, a document or an archive in base64.
    r"|iVBORw0|LS0tLS1CRUdJTiBDRVJU|M[CF][\w+/]{2,10}(?:YDK2V[wu]AyEA|YHKoZIzj0CAQYI)|/9j/|R0lGOD|UklGR"
    r"|PHN2Zy|d09G|JVBERi|UEsDB|H4sI"
    # Content ids and peers of IPFS, addresses of Bitcoin and Solana, KSUIDs, documents of Google Drive,
    # resources of CloudFormation.
    rf"|(?:Qm{_BASE58}{{44}}|12D3KooW{_BASE58}{{44}}|[13]{_BASE58}{{25,34}}|{_BASE58}{{43,44}}"
    rf"|[0-3][0-9A-Za-z]{{26}})\Z"
    r"|1[\w-]{32}(?:[\w-]{11})?\Z|[A-Za-z][0-9A-Za-z-]*-[0-9A-Za-z]+[0-9A-F]{8}-[0-9A-Z]{12,14}\Z"
)
_WORD_PART = re.compile(r"(?:^|[-_/+])(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})(?=[-_/+]|$)")
_LABEL = re.compile(
    r"(?:(?:sha-?[0-9]{1,3}|md5|h1|integrity|digest|checksum|\"sum|hash|\{sha\}|\.sig=|hmac|etag"
    r"|fingerprint|thumbprint|nonce|salt|opaque|commit|revision|base64"
    r"|cursor|signature|sec-websocket-(?:accept|key)|(?:public|pinned)[_-]?(?:pub)?key|pinnedpubkey|pubkey"
    r"|(?<!set-)cookie_?jar"
    r"|address|wallet|(?:\b|[_-])(?:[ckux]?id|[ug]uid|ids))(?:[ _-]?[0-9])?\\?[\"'`]?[ \t]{0,2}[:=,]?>?(?:"
    r" is)?[ \t]{0,2}"
    r"(?:\\?[\"'`]?w/|sig[0-9]=:|//)?\\?[\"'`]?\\?[\"'`]?"
    r"|(?:ksuid|address|wallet|uid|cid) (?:is |of"
    r" )?[\"'`]?|w/\\?[\"']|[\"']\\?\"(?:[0-9a-f]{1,8}-)?|\|1\|(?:[\w+/=]{1,40}\|)?"
    r"|[^=&\s]{43}=;(?:sha256//)?)\Z"
)
# A line of what is wrapped as encoders wrap it.
_WRAPPED = re.compile(r"[ \t#>*/|\"'+-]{0,40}([0-9A-Za-z+/]{57,}={0,2})[\\nr\"',;+ \t\r]{0,12}")
_DIGITS = re.compile(r"[0-9]+")
_LOWER_CASE_RUN = re.compile(r"[a-z]{3,}")

# A token on its own: no part of a path, of a dotted name, of a call. The body of a certificate is found so as
# to be passed over.
RANDOM = re.compile(
    r"-----BEGIN [0-9A-Z ]{1,40}-----[\s0-9A-Za-z+/=\\]*+"
    r"|(?:(?<![\w+/.~@%$&#\\-])(?<!::)|(?<=\\[nrt]))(?P<secret>[0-9A-Za-z+_-]"
    rf"[0-9A-Za-z+/_-]{{{CHARACTERS_MIN - 1},}}+={{0,2}})"
    r"(?![\w/=@%(\[]|[.:]\w|::)"
)


def is_mixed(word: str) -> bool:
    """Say whether *word* is long enough for a random token, and has all of small letters, capitals and
    digits.
    """
    return (
        len(word) >= CHARACTERS_MIN
        and word.lower() != word
        and word.upper() != word
        and _DIGITS.search(word) is not None
    )


def may_be_random(words: list[str]) -> bool:
    """Say whether a token that looks random is in one of the words of a text, whatever stands around them."""
    mixed = " ".join(filter(is_mixed, words))
    return bool(mixed) and any(
        match["secret"] and is_random(match["secret"]) for match in RANDOM.finditer(mixed)
    )


def is_random(token: str) -> bool:
    """Say whether a token looks drawn at random, and does not encode a text."""
    core = token.rstrip("=")
    if (
        not is_mixed(core)
        or (len(core) > CHARACTERS_MAX and not core.startswith(_PEM))
        or _PUBLIC.match(core)
        or _WORD_PART.search(core)
        or len(_DIGITS.findall(core)) < DIGIT_GROUPS_MIN
    ):
        return False
    bits = -sum(count / len(core) * math.log2(count / len(core)) for count in Counter(core).values())
    if bits < min(ENTROPY_ENOUGH, ENTROPY_MIN * math.log2(len(core))):
        return False
    return sum(map(len, _LOWER_CASE_RUN.findall(core))) <= LOWER_CASE_SHARE_MAX * len(core) and not decoded(
        core
    )


def decoded(token: str) -> str:
    """Return the printable text that the whole groups of *token* encode in base64, empty if they encode
    none.
    """
    core = token.rstrip("=")
    try:
        text = binascii.a2b_base64(core[: len(core) // 4 * 4], strict_mode=True).decode("ascii")
    except ValueError:
        return ""
    return text if text.isprintable() else ""


def random_token(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where a match of `RANDOM` has a token that looks random, is no part of an address, and has no
    label that says it is public.
    """
    first, last = match.span("secret")
    if first < 0 or not is_random(match["secret"]):
        return None
    before = text[max(0, first - LOOK_BACK) : first]
    if _is_wrapped(text, first, last):
        return None
    is_public = "://" in f"{before}{match['secret']}".split()[-1] or _LABEL.search(
        before[-LABEL_CHARACTERS:].lower()
    )
    return None if is_public else (first, last)


def _is_wrapped(text: str, first: int, last: int) -> bool:
    """Say whether a token is a line of a file in base64: one of several, all as wide but the last."""
    start, end = (
        text.rfind("\n", max(0, first - LINE_CHARACTERS), first),
        text.find("\n", last, last + LINE_CHARACTERS),
    )
    before = (
        _WRAPPED.fullmatch(text[text.rfind("\n", max(0, start - LINE_CHARACTERS), start) + 1 : start])
        if start > 0
        else None
    )
    if before and len(before[1]) >= last - first:
        return True
    after = text[end + 1 : end + LINE_CHARACTERS].partition("\n")[0] if end >= 0 else ""
    line = _WRAPPED.fullmatch(after)
    return line is not None and len(line[1]) == last - first
