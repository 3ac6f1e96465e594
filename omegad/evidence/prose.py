"""What of a text is prose: not its code, not the roles that speak in it, not the `no` of a greeting. Pure."""

import re

_FENCED = re.compile(r"```.*?(?:```|\Z)|^---\n(?:\w+:[^\n]*\n)+---$|^\s*:[a-z]+:.*?$", re.DOTALL | re.MULTILINE)
_CODE_LINE = re.compile(
    r"^(?:\s{2,}(?![-*\u2022]\s).*[=(){}\[\];<>].*|.*(?:[{;(\[]|=>|\):)\s*|\s*(?:>>>|\$|#|//|/\*|\*/|@|def|class|import|let|const|pub|fn)\s.*)$",
    re.MULTILINE,
)
_SPEAKER = re.compile(r"^\s*(?:user|assistant|human|agent|system|ai)\s*:\s+", re.IGNORECASE | re.MULTILINE)
_ASIDE = re.compile(
    r"^(?P<label>\s*\w{1,20}:\s+)?(?:(?:oh|hey|wow|yeah|yes|well|ok|okay),?\s+)*"
    r"(?:\w+,\s+)?(?:no\s+(?:worries|problem|doubts?|way|idea|wonder|pressure|rush)|long\s+time,?\s+no\s+(?:see|talk|chat))\b[,!.]?\s*",
    re.IGNORECASE,
)


def prose(text: str) -> str:
    """Return a text without its code and without the names of the roles that speak."""
    return _SPEAKER.sub("", _CODE_LINE.sub("", _FENCED.sub("\n", text)))


def without_aside(sentence: str) -> str:
    """Return a sentence without a `no` that denies nothing: of `no worries, it works`, `it works`."""
    return _ASIDE.sub(r"\g<label>", sentence)
