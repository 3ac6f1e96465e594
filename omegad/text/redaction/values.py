"""What can stand where a secret's value would: the value, or a stand-in, a piece of code, a word about it."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

Span = tuple[int, int]

PHRASE_WORDS_MIN = 4
JOINED_WORD_MIN = 3
WORDS_SHARE_MAX = 0.3

# Words with which a sentence goes on, types and checks of fields, and short names.
_WORDS_TEXT = """
a an the this that my your our their its is are was were be being has have do does can will would should may
must to of in on at by for from with without via per as if when where until unless and or but not only also
it you they i who what how use uses get set sets read try check rotate reset change sent flag option options
argument parameter requires needs takes means expects accepts enter confirm forgot current please new old
instead cannot can't don't isn't prompt field file entry value name type length policy manager hash format
header bearer basic digest oauth jwt vault env keyring keychain plaintext plain text optional missing valid
invalid incorrect wrong unknown sensitive private public secure available visible long short different again
here there now later always below above external internal incomplete default generate login auth
authentication authorization 1password auth0 oauth2 2fa k8s lost found kept held given known characters
bytes days str string int integer bool boolean char varchar number any object void float double uuid date
array list map secretstr ids count val arg args input config settings return
"""
# `changeme` is one: whoever kept it has no secret.
_PLACEHOLDERS_TEXT = """
password passwords passwd passphrase passcode pass pwd pw secret secrets token tokens key keys apikey
credential credentials user username none null nil true false undefined yes no off n/a na empty todo tbd
example placeholder dummy hidden masked removed omitted unset self changeme changethis changeit id_rsa
id_dsa id_ecdsa id_ed25519
"""
_PLACEHOLDERS = frozenset(_PLACEHOLDERS_TEXT.split())
_WORDS = _PLACEHOLDERS.union(_WORDS_TEXT.split())
_STAND_IN = re.compile(
    r"\[?redacted.*|[\[<].*|\$(?:[({].*|\w+)|\{[\w.:!{-]*(?:\}.*)?|.*(?:\.\.\.|…).*|%\w+%"
    r"|(?:%(?![0-9a-f]{2}\w{3})\(?\w*\)?[sdr]?[:@/]?)+|/\^.*|[`#].*"
    r"|[x*.:·•…_?-]+|your[ _-]?.+|(?:please[ _-]?)?change[ _-]?(?:me|this|it)\W*|.*[ _-]here|(?:id|src"
    r"|type)=.*"
    r"|(?:insert|enter|replace|put|add|use|set|any|some|the|new|old|my)[ _-](?:.*[ _-])?(?:password|passwd"
    r"|passphrase|token|secret|key)"
    r"|\{\{.*\}\}.*|\{[%#].*|[@%]\{.*|@[a-z_][a-z0-9_]*@|--?[a-z][a-z-]*"  # of templates, and options
    r"|[~.]{0,2}/[\w.-]+/.*|(?:https?|file|vault|op|ssm|arn|urn):.*"
    r"|[a-z][a-z0-9.]*/[a-z0-9]+(?:-[a-z0-9]+)+|\\[abfnrtv]\\x.*|[\w./-]+\.(?:pem|key|crt|p12|pfx|json|txt"
    r"|enc|ya?ml|py|js|ts|go|rs|sh|md|html)(?:#.*)?"
)
_PATTERN = re.compile(r"\\[sdwhb][*+{?]|\\\[|\[\[:|\(\?[:=!]|\.[+*]\?")  # what matches a secret
_FIELD = re.compile(
    r"(?:[a-z0-9]{1,40}[ _.-])*(?:db|user|my)?(?:password|passwd|passphrase|pwd?|pw|secret|token|key"
    r"|credentials?)[0-9]?"
    r"|[a-z]{1,40}(?:[A-Z][a-z]{1,40})*(?:Password|Secret|Token|Key)"
)
_CONSTANT = re.compile(rf"[a-z]+(?:_[a-z]+){{3,}}|{_FIELD.pattern}")
_PROSE = re.compile(
    r"[a-z-]{3,40}(?:ed|ing|able|ible)"
    r"|(?:sha|md|pbkdf|base|utf|aes|rsa|rs|hs|es|ed|bcrypt|argon|scrypt|rfc|oauth|hmac|kdf|http|step|day"
    r"|min|max|at-?least|field|part|line|page)-?[0-9].*"
    r"|[vq][0-9][0-9.]*|0x[0-9a-f]{1,8}"
    r"|[0-9]+(?:\.[0-9]+)?(?:[-%+].*|[a-z]{0,2}|ms|mins?|bytes?|chars?|bits?|days?|hours?)"
    r"|[0-9]+[-:/.][0-9:/.t-]+z?"
)
_CODE = re.compile(
    r"[\w.:$]+[(\[].*|[A-Za-z_]\w*(?:[+*/|&%]|\|\||&&|\+\+)[A-Za-z_]\w*|\^.*[\[(].*|[@:!&*|>][A-Za-z_]*"
    r"|(?:\[\]|[&*])\w+"
    r"|[&*@](?:[\w.]+(?:\[.*)?)?\{.*|[\w.]+->.*|!+[A-Za-z_]\w*|debug[0-9]:"
    r"|(?:\w+::)+\w*|[\w.:]+<.*|\w+\||[A-Za-z]+[!?;]+|[A-Z]+[0-9]{0,2}(?:_(?:[A-Z]+[0-9]{0,2}|[0-9]{1,2}))+"
    r"|(?![sbr]\.\w{24})[&*!@]{0,2}[A-Za-z_$][\w$]*[!?]?(?:(?:\?\.|\.|->|::)[A-Za-z_]\w*)+[.:!?]?"
)

_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+[0-9]?")

# Whether a value is of letters alone, but for what joins words; whether it has a sign that no name has; a
# letter and a digit or a sign, as people are made to put in passwords; a digit and a letter.
_WORD_PARTS = re.compile(
    r"(?:^|(?<=[-_/.+]))(?![A-Fa-f]+(?:[-_/.+]|$))(?:[A-Z]?[a-z]{2,}|[A-Z]{3,})(?=[-_/.+]|$)"
)
_MIXED = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?:[^0-9]*[0-9]|[^!#$%*~?@&]*[!#$%*~?@&][^\W_])")
_NUMBERED = re.compile(r"[A-Z]?[a-z]+[0-9]|[A-Z]+-?[0-9]+|[0-9.]+[a-zA-Z]{1,3}|[\w.+-]+@[\w-]+\.[\w.]+")
# A part of joined words that is none itself, as in Tr0ub4: no name with a number behind it or before it.
_PART_MIXED = re.compile(
    r"(?=.{5})[A-Za-z]+[0-9]+[A-Za-z][0-9A-Za-z]*|(?=.{5})[A-Z][0-9A-Za-z]*[a-z][0-9]{2,}"
)
is_letters = re.compile(r"[A-Za-z]+(?:[-_/.'][A-Za-z]+)*").fullmatch
has_sign = re.compile(r"[^0-9A-Za-z]*[0-9A-Za-z].*[!#$%^&*?@{}<>].").match
looks_chosen = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?:[^0-9]*[0-9]|[^!@#$%^&*+~?=|]*[!@#$%^&*+~?=|].)").match
has_digit_and_letter = re.compile(r"(?=[^0-9]*[0-9])[^A-Za-z]*[A-Za-z]").match

ESCAPES = (0, 1, 3, 7, 15)
"""How many backslashes stand before a quote in JSON within JSON, by how deep it is."""
QUOTE = r"(?:\\{15}|\\{7}|\\{3}|\\)?[\"'`]"


def _closed(quote: str, escapes: int) -> re.Pattern[str]:
    """Return a pattern for a value up to the quote that closes it, as often escaped as the one that opens it:
    one in the value is escaped once more, and so is each backslash.
    """
    if not escapes:
        # Of an even number of backslashes before a quote, JSON may have doubled an odd one: the value goes on
        # where a letter or digit does.
        doubled = "|(?<!')''(?!')|'\\\\{1,32}+''" if quote == "'" else ""  # of SQL and YAML, and of a shell
        return re.compile(
            rf"(?:[^{quote}\\\r\n]|\\{{1,64}}+(?!{quote})|\\(?:\\\\){{0,31}}+{quote}"
            rf"|(?:\\\\){{1,31}}+(?:{quote}(?=[0-9A-Za-z])|(?={quote})){doubled}){{0,500}}(?={quote})"
        )
    twice = 2 * escapes + 2
    return re.compile(
        rf"(?:[^{quote}\\\r\n]|\\{{1,64}}+(?![{quote}\\])|\\{{{twice}}}|\\{{{twice - 1}}}{quote}){{0,500}}+"
        rf"(?=\\{{{escapes}}}{quote})"
    )


CLOSED = {"\\" * escapes + quote: _closed(quote, escapes) for quote in "\"'`" for escapes in ESCAPES}
"""By the quote that opens a value, with its backslashes, the pattern for the value."""

NEAR_KEY = 96  # characters before a number
LIST_CHARACTERS = 1_000  # of a list in JSON before a number in it
# Of JSON, which takes a mark in quotes alone, as often escaped as those before it: a number behind a key, and
# one in a list, behind a quote that ends a text or behind nothing but numbers.
_BARE_NUMBER = re.compile(r"(\\{0,15}\")\s{0,40}:\s{0,40}-?[0-9]+\Z")
_IN_LIST, _LIST_ENDS = re.compile(r"[\[,]\s{0,80}\Z"), re.compile(r"(?:\s|\\[nr]){0,80}(?:[,\]]|\Z)")
_LISTED = re.compile(r"\[[\s0-9.,eE+\[\]-]{0,1000}\Z")
_TEXT_ENDED = re.compile(
    r"\s{0,80}(?:[,:][\s0-9.,:eE+{}\[\]a-z-]{0,1000}|[}\]][\s0-9.,:eE+{}\[\]-]{0,1000})\Z"
)
_JSON_END = re.compile(r"\"\s{0,8}(?:[}\]]{1,8}(?:[\s,]|\Z)|[,:]\s{0,8}[\[{\"0-9tfn])")


def places(text: str, word: str) -> Iterator[int]:
    """Yield where a word stands, which takes a tenth of the time of a pattern that begins with it."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def without(text: str, spans: Sequence[Span], mark: str) -> str:
    """Return *text* with *mark* for what is in *spans*, but for the backslashes of a quote behind it."""
    spans = [(first, _before_escape(text, first, last)) for first, last in spans]
    ends = [0, *(last for _, last in spans)]
    kept = [
        text[end:first] for end, first in zip(ends, [*(first for first, _ in spans), len(text)], strict=True)
    ]
    marks = (
        f"{quote}{mark}{quote}"
        if text[first] in "0123456789" and (quote := _quote(text, first, last))
        else mark
        for first, last in spans
    )
    return "".join(chain.from_iterable(zip_longest(kept, marks, fillvalue="")))


def _quote(text: str, first: int, last: int) -> str:
    """Return the quote that a mark needs for a number in JSON, empty where it stands in none."""
    if not text[first:last].isdecimal():
        return ""
    before = text[max(0, first - LIST_CHARACTERS) : first]
    if found := _BARE_NUMBER.search(f"{before[-NEAR_KEY:]}0"):
        return found[1]
    if not (_IN_LIST.search(before[-NEAR_KEY:]) and _LIST_ENDS.match(text, last)):
        return ""
    at = before.rfind('"')
    if at < 0:
        return '"' if _LISTED.search(before) else ""
    quote = before[len(before[:at].rstrip("\\")) : at + 1]
    return quote if _TEXT_ENDED.match(before, at + 1) else ""


def before_json_end(value: str) -> str:
    """Return a quoted value up to where a text of JSON ends in it, so that the quote that closes it is
    none of its own.
    """
    at = value.find('"')
    if at < 0 or value[at - 1 : at] == "\\" or not _JSON_END.match(value, at):
        return value
    return value[:at]


def _before_escape(text: str, first: int, last: int) -> int:
    """Return where what is in a span ends, before the backslashes of what is escaped behind it.

    Of those before a quote, as many are its own as JSON within JSON needs: 1, 3, 7 and so on; those before
    them are the secret's.
    """
    if text[last - 1 : last] != "\\" or text[last : last + 1] not in {'"', "'", "\\"}:
        return last
    begin, end = last, last
    while begin > first and text[begin - 1] == "\\":
        begin -= 1
    while text[end : end + 1] == "\\":
        end += 1
    if text[end : end + 1] not in {'"', "'"}:
        return max(begin, first + 1)
    deep = end - begin + 1
    return max(end - (deep & -deep) + 1, first + 1)


def is_stand_in(value: str) -> bool:
    """Say whether *value* only marks the place of one, or says where it is kept."""
    if not value or value.lower() in _PLACEHOLDERS:
        return True
    return (not value.isalnum() and _PATTERN.search(value) is not None) or _STAND_IN.fullmatch(
        value.lower()
    ) is not None


def is_word(value: str) -> bool:
    """Say whether *value* is a word of a sentence, a type or a field's name."""
    word = value.lower().strip(".,:;!?()'\"`")
    return (
        not word
        or word in _WORDS
        or _FIELD.fullmatch(value) is not None
        or (value.isupper() and _CONSTANT.fullmatch(word) is not None)
    )


def has_word(value: str) -> bool:
    """Say whether words, between hyphens and the like, are a part of *value* that is not by chance."""
    return sum(map(len, _WORD_PARTS.findall(value))) > WORDS_SHARE_MAX * len(value)


def is_mixed(value: str) -> bool:
    """Say whether *value* can be nothing but a password: letters mixed with digits or signs, no name of code
    and no word with a number.
    """
    return (
        _MIXED.match(value) is not None
        and " " not in value
        and not _NUMBERED.fullmatch(value)
        and not (
            has_word(value) or is_stand_in(value) or is_word(value) or is_prose(value) or is_code(value, "")
        )
    )


def begins_with_word(value: str) -> bool:
    """Say whether the first part of *value* is a word, as the name of a scheme has them."""
    return any(part.isalpha() for part in re.split(r"[-_]", value, maxsplit=3)[:2])


def is_joined(value: str) -> bool:
    """Say whether *value* is of words that hyphens join as passphrases are made: four of them, or fewer and
    a number, of which each digit counts as one, or one that is mixed with digits as no word is.
    """
    parts = value.rstrip("!?.").split("-")
    if len(parts) >= PHRASE_WORDS_MIN:
        parts[-1] = parts[-1].rstrip("0123456789") or parts[-1]
    mixed = [part for part in parts if _PART_MIXED.fullmatch(part) and not is_prose(part)]
    words = [part.lower() for part in parts if part.isalpha()]
    numbers = [part for part in parts if part.isdecimal()]
    return (
        len(words) + len(numbers) + len(mixed) == len(parts) > 1
        and (bool(mixed) or (len(words) > 1 and len(words) + sum(map(len, numbers)) >= PHRASE_WORDS_MIN))
        and all(len(word) >= JOINED_WORD_MIN for word in words)
        and _WORDS.isdisjoint(words)
        and not is_prose(value)
    )


def is_prose(value: str) -> bool:
    """Say whether *value* describes or measures a secret, as a word of a sentence."""
    return _PROSE.fullmatch(value.lower().strip(".,:;!?()'\"`")) is not None


def is_code(value: str, after: str) -> bool:
    """Say whether what is written without quotes, with *after* behind it, is an expression, a type or a
    constant's name.
    """
    return (
        (after[:1] in {"(", "["} and value.isidentifier())
        or (after[:1] in {",", ";", ")"} and _CAMEL.fullmatch(value) is not None)
        or _CODE.fullmatch(value) is not None
    )


def is_phrase(value: str) -> bool:
    """Say whether several words are a passphrase, and no label or message: four of them, or fewer with a
    digit or sign.
    """
    words = [word.lower().strip(".,:;!?") for word in value.split()]
    return _WORDS.isdisjoint(words) and (len(words) >= PHRASE_WORDS_MIN or looks_chosen(value) is not None)
