"""Finds secrets in text: by the shapes that their issuers publish, by what stands before them, and by looking random.

A rule is a name and a pattern; where the pattern has a group `secret`, only that is taken out. A replacement never matches a rule,
so text that was searched once is left alone the next time. What engineers search for later (commits, digests, ids, paths, names)
has to survive: where the two cannot be told apart, the text stays.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

REMEMBERED_CHARACTERS = 8 * 1024
REMEMBERED_TEXTS = 256
PASSES_MAX = 8

ISSUED_CHARACTERS_MIN = 15  # no issuer's shape is shorter, none contains a space, and all have digits or capitals
RANDOM_CHARACTERS_MIN = 24
ENTROPY_MIN = 0.85  # of log2(length), the most that so many characters can have
ENTROPY_ENOUGH = 4.9  # bits per character; base64 has no more than 6
LOWER_CASE_SHARE_MAX = 0.4  # in runs of three and more, as words have them
DIGIT_GROUPS_MIN = 2  # an identifier seldom has more than one number
LOOK_BACK = 256


class Rule(msgspec.Struct, frozen=True):
    """One kind of secret. Its pattern is tried only where one of the needles is in the text."""

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_folded: bool = False
    """Needles and pattern are compared with the text in lower case."""


def _stated(name: str, needles: str, pattern: str) -> Rule:
    return Rule(name, tuple(needles.split("|")), re.compile(pattern), is_folded=True)


def _issued(name: str, needles: str, pattern: str) -> Rule:
    # A line break written as \n, as in JSON, glues its letter to what follows. A shape runs on to the end of its word, so that of
    # many glued together none is left for another pass.
    return Rule(name, tuple(needles.split("|")), re.compile(rf"(?:\b|(?<=\\[nrt]))(?:{pattern})"))


def _any_of(needles: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of *needles*. Their first letters part them, so that few are tried anywhere."""
    groups: dict[str, list[str]] = {}
    for needle in sorted(needles):
        groups.setdefault(needle[0], []).append(re.escape(needle[1:]))
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in groups.items()))


PRIVATE_KEY = _stated(
    "private_key",
    "private key",
    r"-----begin [a-z ]{0,40}private key(?: block)?-----[\s\S]*?(?:-----end [a-z ]{0,40}private key(?: block)?-----|\Z)",
)

ISSUED = (
    # Shapes that are theirs alone, in the letters' own case.
    _issued("aws_access_key", "AKIA|ASIA|ABIA|ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    _issued("aws_bedrock_key", "ABSK", r"ABSK[0-9A-Za-z+/]{100,}={0,2}"),
    _issued("github_token", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_\w{36,}"),
    _issued("github_token", "github_pat_", r"github_pat_\w{22,}"),
    _issued("gitlab_token", "glpat-|gldt-|glrt-|glptt-|glcbt-|glft-", r"gl(?:pat|dt|rt|ptt|cbt|ft)-[\w-]{20,}"),
    _issued("slack_token", "xox|xapp-", r"(?:xox[abeoprs]|xapp)-[\w-]{10,}"),
    _issued("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/services/(?P<secret>T\w{6,}/B\w{6,}/\w{16,})"),
    _issued("anthropic_key", "sk-ant-", r"sk-ant-[\w-]{20,}"),
    _issued("openai_key", "sk-", r"sk-(?=[\w-]{0,80}[0-9])(?=[\w-]{0,80}(?:[A-Z]|[0-9a-f]{32}))[\w-]{20,}"),
    _issued("stripe_key", "k_live_|k_test_|whsec_", r"(?:[rs]k_(?:live|test)|whsec)_\w{16,}"),
    _issued("google_api_key", "AIza", r"AIza[\w-]{35,}"),
    _issued("google_oauth", "ya29.|GOCSPX-", r"(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{28,})"),
    _issued("huggingface_token", "hf_", r"hf_[0-9A-Za-z]{30}\w*"),
    _issued("npm_token", "npm_", r"npm_[0-9A-Za-z]{36}\w*"),
    _issued("pypi_token", "pypi-", r"pypi-[\w-]{50,}"),
    _issued("rubygems_key", "rubygems_", r"rubygems_[0-9a-f]{48}\w*"),
    _issued("docker_token", "dckr_pat_|dckr_oat_", r"dckr_[po]at_[\w-]{27,}"),
    _issued("sendgrid_key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,}"),
    _issued("twilio_key", "SK", r"SK[0-9a-f]{32}\b"),
    _issued("twilio_auth", "AC", r"AC[0-9a-f]{32}:(?P<secret>[0-9a-f]{32}\b)"),
    _issued("telegram_token", ":AA", r"(?:bot)?[0-9]{8,10}:AA[\w-]{33,}"),
    _issued("discord_webhook", "api/webhooks/", r"api/webhooks/[0-9]{15,20}/(?P<secret>[\w-]{60,})"),
    _issued("digitalocean_token", "_v1_", r"do[oprt]_v1_[0-9a-f]{64}\w*"),
    _issued("shopify_token", "shpat_|shpca_|shppa_|shpss_", r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}\w*"),
    _issued("mailgun_key", "key-", r"key-[0-9a-f]{32}\b"),
    _issued("azure_signature", "sig=", r"sig=(?P<secret>(?=[\w%+/-]{0,200}[0-9])[\w%+/-]{30,}={0,2})"),
    _issued("databricks_token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?\b"),
    _issued("vault_token", "hvs.|hvb.|hvr.", r"hv[sbr]\.[\w-]{24,}"),
    _issued("terraform_token", ".atlasv1.", r"[0-9A-Za-z]{14}\.atlasv1\.[\w-]{60,}"),
    _issued("pulumi_token", "pul-", r"pul-[0-9a-f]{40}\b"),
    _issued("linear_key", "lin_", r"lin_(?:api|oauth)_[0-9A-Za-z]{32}\w*"),
    _issued("notion_token", "ntn_|secret_", r"(?:ntn_[0-9A-Za-z]{40}\w*|secret_[0-9A-Za-z]{43}\b)"),
    _issued("supabase_key", "sbp_|sb_secret_", r"(?:sbp_[0-9a-f]{40}\w*|sb_secret_[\w-]{20,})"),
    _issued("vercel_token", "vcp_|vci_|vca_|vcr_|vck_", r"vc[piark]_[0-9A-Za-z]{24}\w*"),
    _issued("netlify_token", "nfp_", r"nfp_[0-9A-Za-z]{36}\w*"),
    _issued("cloudflare_token", "cfk_|cfut_|cfat_|v1.0-", r"(?:cf(?:k|ut|at)_[0-9A-Za-z]{40}\w*|v1\.0-[0-9a-f]{24}-[0-9a-f]{146}\w*)"),
    _issued("postman_key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    _issued("grafana_token", "glc_|glsa_", r"(?:glc_[0-9A-Za-z+/]{32,}={0,2}|glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}\b)"),
    _issued("newrelic_key", "NRAK-", r"NRAK-[0-9A-Z]{27}\b"),
    _issued("sentry_token", "sntrys_|sntryu_", r"sntry[su]_[\w+/=-]{40,}"),
    _issued("fly_token", "fo1_|fm1|fm2_", r"(?:fo1_[\w-]{40,}|fm(?:1[ar]?|2)_[0-9A-Za-z+/]{60,}={0,2})"),
    _issued("tailscale_key", "tskey-", r"tskey-[a-z]{3,12}-\w{8,}(?:-\w{8,})?"),
    _issued("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{32,}"),
    _issued("doppler_token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[0-9A-Za-z]{40}\w*"),
    _issued("replicate_token", "r8_", r"r8_[0-9A-Za-z]{37}\w*"),
    _issued("groq_key", "gsk_", r"gsk_[0-9A-Za-z]{40}\w*"),
    _issued("xai_key", "xai-", r"xai-[0-9A-Za-z]{40}\w*"),
    _issued("perplexity_key", "pplx-", r"pplx-[0-9A-Za-z]{40}\w*"),
    _issued("nvidia_key", "nvapi-", r"nvapi-[\w-]{60,}"),
    _issued("atlassian_token", "ATATT3", r"ATATT3[\w=-]{50,}"),
    _issued("figma_token", "figd_", r"figd_[\w-]{36,}"),
    _issued("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _issued("jwt", "eyJ", r"eyJ[\w-]{8,400}\.eyJ[\w-]{8,4000}\.[\w-]{8,}"),
)


_NO_VALUE = r"(?!\[redacted:|[$<{*%]|[~.]{0,2}/[\w.-]+/|https?://)"
_WORD = r"[^\s\"'`,;()]"
# Without quotes, what is called, indexed or reached through dots is code and no value.
_QUOTE = rf"(?:\\?[\"'`]|(?![\w.]+[(\[]|[a-z_]\w*(?:\.[a-z_]\w*)+[.:]?(?!{_WORD})))"
_VALUE = rf"{_QUOTE}{_NO_VALUE}(?P<secret>(?={_WORD}{{0,200}}[0-9])(?:[^\s\"'`,;()\\]|\\(?![\"'`])){{8,}}+)"
_MIXED_VALUE = rf"{_QUOTE}{_NO_VALUE}(?P<secret>(?=[\w.~+/=-]{{0,200}}[0-9])(?=[\w.~+/=-]{{0,200}}[a-z])[\w.~+/=-]{{16,}}+)"
_OPTION_VALUE = rf"[\"'`]?{_NO_VALUE}(?!-|id=)(?P<secret>(?={_WORD}{{0,200}}[0-9])(?={_WORD}{{0,200}}[a-z]){_WORD}{{6,}}+)"
_ASSIGNS = r"(?:\\?[\"'`])?[ \t]{0,3}(?:=>|:=|={1,3}|:)[ \t]{0,3}"
_KEY = r"(?:api|app|access|account|private|secret|signing|encryption|master|shared)[_-]?(?:access[_-]?)?key"
_NAME = rf"(?:password|passwd|passphrase|passcode|secret|_pass|_pwd|;pwd|auth[_-]?token|access[_-]?token|bot[_-]?token|{_KEY})"
_NAMES = "passw|passphrase|passcode|secret|_pass|pwd|token|_key|-key|apikey|accesskey|accountkey"
# What may follow "the password is" without being one: how it is kept, and how long it has to be.
_KEPT_SOMEHOW = r"(?!(?:sha|md|pbkdf|base|utf|aes|bcrypt|argon|scrypt|rfc|oauth|hmac|v)-?[0-9]|[0-9]+-?(?:char|letter|digit|byte|bit|day))"

STATED = (
    # What stands before them gives them away. Text and needles are compared in lower case.
    _stated("url_password", "://", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\[\]]{0,100}:(?P<secret>(?!\[redacted:|[$<{])[^\s/@]{1,200})@"),
    _stated("bearer_token", "bearer", r"\bbearer\s+(?P<secret>(?=\S{0,200}[0-9])[0-9a-z._~+/=-]{16,})"),
    _stated("basic_auth", "authorization", r"authorization[\"'`]?[=:]?\s{0,3}[\"'`]?basic\s+(?P<secret>[0-9a-z+/]{6,}={0,2})"),
    _stated(
        "cookie",
        "cookie",
        r"cookie[\"'`]?[ \t]{0,3}:[ \t]{0,3}[\"'`]?(?P<secret>(?:[\w.-]{1,64}=[^\s;\"'`]{0,400};[ ]?){0,20}"
        r"[\w.-]{1,64}=(?=[^\s;\"'`]{0,400}[0-9])[^\s;\"'`]{16,}(?:;[ ]?[\w.-]{1,64}=[^\s;\"'`]*)*)",
    ),
    _stated("netrc_password", "passw", r"\bmachine[ \t]+\S{1,200}\s+login\s+\S{1,100}\s+password\s+(?P<secret>(?!\[redacted:)\S+)"),
    _stated("assigned_secret", _NAMES, _NAME + _ASSIGNS + _VALUE),
    _stated("assigned_secret", "token", "token" + _ASSIGNS + _MIXED_VALUE),
    _stated(
        "assigned_secret", _NAMES, r"<[\w:-]{0,40}(?:password|secret|key|token)>(?P<secret>(?=[^<\s]{0,200}[0-9])(?!\[redacted:|\$)[^<\s]{8,200})</"
    ),
    _stated(
        "option_secret",
        "--",
        r"--(?:[\w-]{0,20}-)?(?:password|passwd|passphrase|pass|secret|token|(?:api|access|secret)-key)[ \t]+" + _OPTION_VALUE,
    ),
    _stated(
        "option_secret",
        " -p| -a",
        r"(?:mysql(?:dump|admin)?|mariadb|sshpass|docker login|redis-cli)\b[^\n|;&]{0,100}?[ \t]-[pa][ \t]?" + _OPTION_VALUE,
    ),
    _stated("option_secret", "curl", r"\bcurl\b[^\n|;&]{0,100}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$<]{1,64}:" + _OPTION_VALUE),
    _stated(
        "stated_password",
        "passw|passphrase|passcode",
        r"(?:password|passwd|passphrase|passcode)(?: for(?: [\w.@-]{1,40}){1,4}?)? (?:is|was)(?: now)?:? [\"'`]?"
        + _KEPT_SOMEHOW
        + r"(?P<secret>(?=\S{0,64}[0-9])(?=[\w!@#$%^&*+~?-]{0,64}[a-z])[\w!@#$%^&*+~?-]{6,64})(?![\w-])",
    ),
)

DISCORD_TOKEN = _issued("discord_token", ".", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}")

# A token on its own: no part of a path, of a dotted name, of a call. The body of a certificate is found so as to be passed over.
RANDOM = Rule(
    "high_entropy",
    ("",),
    re.compile(
        r"-----BEGIN [0-9A-Z ]{1,40}-----[\s0-9A-Za-z+/=\\]*+"
        rf"|(?:(?<![\w+/.~@%$&#\\-])(?<!::)|(?<=\\[nrt]))(?P<secret>[0-9A-Za-z+_-][0-9A-Za-z+/_-]{{{RANDOM_CHARACTERS_MIN - 1},}}+={{0,2}})"
        r"(?![\w/=@%(\[]|[.:]\w|::)"
    ),
)
_PUBLIC = re.compile(r"(?:sha[0-9]{1,3}-|AAAA[BCE][23]|_Z|_R|0x)|[0-9A-Fa-f]+\Z")
_JOINED_WORD = re.compile(r"(?:^|[-_/+])(?:[A-Z]?[a-z]{2,}|[A-Z]{2,})(?=[-_/+]|$)")
_LABEL = re.compile(
    r"(?:sha-?[0-9]{1,3}|md5|h1|integrity|digest|checksum|hash|etag|fingerprint|thumbprint|nonce|commit|revision|base64)"
    r"[\"'`]?[ \t]{0,2}[:=,]?[ \t]{0,2}(?:w/)?[\"'`]?\Z"
)
_RUN = re.compile(rf"[0-9A-Za-z+/_-]{{{RANDOM_CHARACTERS_MIN}}}")
_DIGIT = re.compile(r"[0-9]")
_DIGIT_OR_CAPITAL = re.compile(r"[0-9A-Z]")
_DIGITS = re.compile(r"[0-9]+")
_LOWER_CASE_RUN = re.compile(r"[a-z]{3,}")
_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_ISSUED_NEEDLE = _any_of({needle for rule in ISSUED for needle in rule.needles})
_STATED_NEEDLES = tuple({needle for rule in (PRIVATE_KEY, *STATED) for needle in rule.needles})


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* with each secret replaced by `[REDACTED:rule]`, and the names of the rules that found one."""
    return _redact_remembered(text) if len(text) <= REMEMBERED_CHARACTERS else _redact(text)


def _redact(text: str) -> tuple[str, tuple[str, ...]]:
    found: dict[str, None] = {}
    passes = 0
    while names := (passed := _redact_once(text))[1]:
        # Once more: a secret may only show when the one that it was glued to is gone.
        passes += 1
        text = passed[0] if passes <= PASSES_MAX else _cut(text, *passed)
        found |= dict.fromkeys(names)
    return text, tuple(found)


# The same text is searched when a command is prepared and again at the append, soon after.
_redact_remembered = lru_cache(maxsize=REMEMBERED_TEXTS)(_redact)


def _cut(text: str, clean: str, names: list[str]) -> str:
    """Return *text* up to the first secret found in it: where every pass uncovers another, somebody made it to be searched for ever."""
    same = next((at for at, (before, after) in enumerate(zip(text, clean, strict=False)) if before != after), 0)
    return f"{text[:same]}[REDACTED:{names[0]}]"


def _redact_once(text: str) -> tuple[str, list[str]]:
    folded = _folded(text)
    found: list[str] = []
    # Most texts hold no needle at all; a substring is found many times faster than a pattern fails.
    is_stated = any(map(folded.__contains__, _STATED_NEEDLES))
    words = [word for word in text.split() if len(word) >= ISSUED_CHARACTERS_MIN and _DIGIT_OR_CAPITAL.search(word)]
    if is_stated:
        text = _apply((PRIVATE_KEY,), text, folded, found)
    if words:
        joined = " ".join(words)
        if _ISSUED_NEEDLE.search(joined):
            text = _apply(ISSUED, text, joined, found)
    if is_stated:
        text = _apply(STATED, text, folded, found)
    if any(_RUN.search(word) for word in words if _may_be_random(word)):
        text = _apply((DISCORD_TOKEN, RANDOM), text, text, found)
    return text, found


def _folded(text: str) -> str:
    """Return *text* in lower case, character for character."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.translate(_LOWER_CASE)


def _apply(rules: Iterable[Rule], text: str, place: str, found: list[str]) -> str:
    """Return *text* without what *rules* find whose needles are in *place*, and add their names to *found*."""
    folded = ""
    for rule in rules:
        if not any(map(place.__contains__, rule.needles)):
            continue
        if rule.is_folded:
            folded = folded or _folded(text)
        if spans := _spans(rule, folded if rule.is_folded else text):
            text, folded = _without(text, spans, f"[REDACTED:{rule.name}]"), ""
            found.append(rule.name)
    return text


def _without(text: str, spans: list[tuple[int, int]], mark: str) -> str:
    pieces, end = [], 0
    for first, last in spans:
        pieces += [text[end:first], mark]
        end = last
    return "".join((*pieces, text[end:]))


def _spans(rule: Rule, text: str) -> list[tuple[int, int]]:
    if rule is RANDOM:
        return [match.span("secret") for match in rule.pattern.finditer(text) if match["secret"] and _is_random(match)]
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    return [match.span(group) for match in rule.pattern.finditer(text)]


def _may_be_random(word: str) -> bool:
    return len(word) >= RANDOM_CHARACTERS_MIN and word.lower() != word and word.upper() != word and _DIGIT.search(word) is not None


def _is_random(match: re.Match[str]) -> bool:
    """Say whether a token was drawn at random, rather than written, counted, hashed or named.

    Measured: of random tokens of 24 letters and digits 84 in 100 are found, of 40 and more 94 to 100 (with the two other characters
    of base64 80 and 90); and in 330 million characters of source code and documentation, about 40 identifiers are mistaken for one.
    """
    token = match["secret"].rstrip("=")
    if not _may_be_random(token) or _PUBLIC.match(token) or _JOINED_WORD.search(token) or len(_DIGITS.findall(token)) < DIGIT_GROUPS_MIN:
        return False
    # A fixed 4.5 bits, as is usual for base64, is more than most random tokens of under 32 characters have; 99 in 100 have 0.84 of log2.
    if _entropy(token) < min(ENTROPY_ENOUGH, ENTROPY_MIN * math.log2(len(token))):
        return False
    if sum(map(len, _LOWER_CASE_RUN.findall(token))) > LOWER_CASE_SHARE_MAX * len(token):
        return False
    before = match.string[max(0, match.start("secret") - LOOK_BACK) : match.start("secret")]
    return "://" not in f"{before}{token}".split()[-1] and not _LABEL.search(before[-32:].lower())


def _entropy(token: str) -> float:
    """Return Shannon's entropy of a token's characters, in bits per character."""
    size = len(token)
    return -sum(count / size * math.log2(count / size) for count in Counter(token).values())
