"""What can stand where a secret's value would: the value, or a stand-in, a piece of code, a word about it."""

import re

# Stand-ins that documentation and examples write. `changeme` is one: whoever kept it has no secret.
_PLACEHOLDER = re.compile(
    r"\[?redacted.*|\[[a-z _-]*\]|<[^<>]*>?|\$(?:[({].*|\w+)|\{\{.*|\{[\w.:!-]*(?:\}.*)?|.*(?:\.\.\.|…)|%\w+%"
    r"|(?:%\(?\w*\)?[sdr]?[:@/]?)+|/\^.*|`.*|#.*"
    r"|[x*.:·•…_?-]{2,}|[*?_-]|x+|your[ _-]?.+|(?:insert|enter|replace|put|add|use|set|any|some|the|new|old|my)[ _-](?:.*[ _-])?"
    r"(?:password|passwd|passphrase|token|secret|key|here)|.*[ _-]here|(?:please[ _-]?)?change[ _-]?(?:me|this|it)\W*"
    r"|passw(?:or)?d|pass|pwd?|passphrase|secret|token|(?:api)?[ _-]?key|credentials?"
    r"|none|null|nil|true|false|undefined|yes|no|on|off|n/a|na|empty|todo|tbd|example|placeholder|dummy|hidden|masked|removed|omitted|unset"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|[~.]{0,2}/[\w.-]+/.*|(?:https?|file|vault|op|ssm|arn):.*"
    r"|[\w./-]+\.(?:pem|key|crt|p12|pfx|json|txt|enc|ya?ml|py|js|ts|go|rs|sh)"
)

# Names of types in the languages that write them after a colon, and of what a field is checked by.
_TYPE = re.compile(
    r"(?:str|string|text|bytes?|int|integer|bool|boolean|char|varchar|number|any|object|unknown|never|void|float|double|uuid|date|array|list|map"
    r"|password|secretstr|optional|id)[!?;]*|[&*]\w+|\[\]\w+|(?:\w+::)+\w*|[\w.:]+<.*|.*\|",
    re.IGNORECASE,
)
_TYPE_NAME = re.compile(r"(?:[A-Z][a-z]+){2,}")
_CALL = re.compile(r"[\w.:$]+[(\[]")
_NAMES = re.compile(r"[&*!@]{0,2}[A-Za-z_$][\w$]*[!?]?(?:(?:\?\.|\.|->|::)[A-Za-z_]\w*)+[.:!?]?")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:[+*/|&%]|\|\||&&|\+\+)[A-Za-z_]\w*|\^.*[\[(].*")
_PARAMETER = re.compile(r"[@:!&*|>][A-Za-z_]*")
_CONSTANT = re.compile(r"[A-Z]+[0-9]{0,2}(?:_(?:[A-Z]+[0-9]{0,2}|[0-9]{1,2}))+")
_RANDOM_PART = re.compile(r"(?=[A-Za-z_]*[0-9]+[A-Za-z_]+[0-9])\w{16}")
_VAULT_TOKEN = re.compile(r"[sbr]\.[A-Za-z0-9]{24,}")
_FIELD = re.compile(
    r"(?:[a-z0-9]+[ _.-])*(?:(?:db|user|my)?pass(?:word|wd|phrase)?|pwd?|pw|secret|token|key|credentials?)[0-9]?"
    r"|(?:[a-z]+(?=[A-Z]))(?:[A-Z][a-z]+)*(?:Password|Secret|Token|Key)"
    r"|(?:pass|pw|pwd|tok|key|val|value|arg|args|input|config|settings?|options?|user|username|x|s|p|v|k)"
)

_WORDS = re.compile(r"[a-z]+(?:[-_/.'][a-z]+)*")
_PROSE = re.compile(
    r"(?:a|an|the|this|that|my|your|our|their|its|his|her|is|are|was|were|be|been|being|has|have|had|do|does|did|can|could|will|would|shall|should"
    r"|may|might|must|to|of|in|on|at|by|for|from|with|without|via|per|as|if|when|where|while|until|unless|and|or|but|not|only|also|then|than|so"
    r"|it|we|you|they|he|she|i|who|what|which|how|why|see|ask|use|uses|get|gets|set|sets|keep|store|pass|read|try|check"
    r"|add|rotate|reset|change|save|send"
    r"|flags?|options?|arguments?|parameters?|params?|requires?|needs?|takes?|means|expects|accepts|specifies|overrides"
    r"|instead|itself|cannot|can't|don't|won't|isn't|doesn't|prompt|field|file|entry|value|name|type|length|policy|manager|hash|format|header|bearer|basic|digest|oauth"
    r"|jwt|saml|ldap|vault|env|keyring|keychain|plaintext|plain|text|optional|mandatory|missing|valid|invalid|incorrect|wrong|bad|good|weak|strong|ok"
    r"|okay|unknown|sensitive|private|public|secure|insecure|available|unavailable|visible|long|short|too|old|new|same|different|again|here|there|now"
    r"|later|never|always|still|already|below|above|everywhere|inherit|external|internal|default|generate|login|auth|authentication|authorization"
    r"|1password|bitwarden|lastpass|keepass|auth0|oauth2|2fa|mfa|totp|otp|sso|k8s|ec2|s3|sops"
    r"|lost|found|kept|sent|held|given|taken|known|shown|hidden|written|stolen|broken|forgotten|bytes|chars|characters|digits|letters|days|hours)"
)
_INFLECTED = re.compile(r"[a-z-]{3,}(?:ed|ing|able|ible)")
_MEASURED = re.compile(
    r"(?:sha|md|pbkdf|base|utf|aes|rsa|rs|hs|es|ed|bcrypt|argon|scrypt|rfc|oauth|hmac|kdf|http|v|q|step|day|min|max|at-?least|field|part|line|page)-?"
    r"[0-9].*|[0-9]+(?:\.[0-9]+)?(?:[-%+].*|[a-z]{0,2}|ms|min|mins|bytes?|chars?|bits?|days?|hours?)|[0-9]+[-:/.][0-9:/.t-]+z?"
)
_JOINED_WORD = re.compile(r"(?:^|[-_/.+])(?![A-Fa-f]+(?:[-_/.+]|$))(?:[A-Z]?[a-z]{2,}|[A-Z]{3,})(?=[-_/.+]|$)")
_SIGN = re.compile(r"[!@#$%^&*+~?=|]")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[a-z]", re.IGNORECASE)
_FUNCTION_WORD = re.compile(
    r"\b(?:a|an|the|is|are|was|be|must|should|can|may|will|your|you|my|our|to|of|for|in|on|at|by|with|from|and|or|not|no|new|enter|confirm|forgot"
    r"|current|please|min(?:imum)?|max(?:imum)?|characters?|chars|digits?|letters?|bytes?|days?"
    r"|password|passwords|passphrase|secret|token|key|invalid|required)\b"
)


def is_placeholder(value: str) -> bool:
    """Say whether *value* only marks the place of one, or says where it is kept."""
    return not value or _PLACEHOLDER.fullmatch(value.lower()) is not None


def is_code(value: str, after: str) -> bool:
    """Say whether what is written without quotes, with *after* behind it, is an expression, a type or a constant's name."""
    if _CALL.match(value) or (after[:1] in {"(", "["} and value.isidentifier()):
        return True
    if _NAMES.fullmatch(value):
        return not (_VAULT_TOKEN.fullmatch(value) or any(map(_RANDOM_PART.match, value.split("."))))
    return any(pattern.fullmatch(value) for pattern in (_EXPRESSION, _PARAMETER, _CONSTANT, _TYPE))


def is_field(value: str) -> bool:
    """Say whether *value* is the name of a field or variable that holds a secret."""
    return _FIELD.fullmatch(value) is not None


def is_type_name(value: str) -> bool:
    """Say whether *value* is written as types are: of several words, each with a capital."""
    return _TYPE_NAME.fullmatch(value) is not None


def is_words(value: str) -> bool:
    """Say whether *value* is of letters alone, but for what joins words."""
    return _WORDS.fullmatch(value.lower()) is not None


def has_joined_word(value: str) -> bool:
    """Say whether a part of *value*, between hyphens and the like, is of letters alone: what is drawn or computed seldom has one."""
    return _JOINED_WORD.search(value) is not None


def is_prose(value: str) -> bool:
    """Say whether *value* is a word with which a sentence about a secret goes on, or measures or describes one."""
    value = value.lower().strip(".,:;!?()'\"`")
    return not value or any(pattern.fullmatch(value) for pattern in (_PROSE, _INFLECTED, _MEASURED))


def is_phrase(value: str, words_min: int = 4) -> bool:
    """Say whether several words are a passphrase, and no label or message: *words_min* of them, or fewer with a digit or sign."""
    return not _FUNCTION_WORD.search(value.lower()) and (len(value.split()) >= words_min or looks_chosen(value))


def looks_chosen(value: str) -> bool:
    """Say whether *value* has what people are made to put in passwords: a letter with a digit or a sign."""
    return _LETTER.search(value) is not None and (_DIGIT.search(value) is not None or _SIGN.search(value[:-1]) is not None)


def has_digit_and_letter(value: str) -> bool:
    """Say whether *value* has both."""
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None
