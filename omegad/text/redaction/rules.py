"""The rules for secrets that their place gives away: what stands around them, and the words by which a text
is searched for that.
"""

import re
from collections.abc import Callable

import msgspec

from omegad.text.redaction import assignments, entropy, spoken, values
from omegad.text.redaction.values import Span

Judge = Callable[[str, re.Match[str]], Span | None]
"""Takes the text and a match in it; returns where the secret is, None where there is none."""


class Rule(msgspec.Struct, frozen=True):
    """Secrets that the place gives away: a pattern in lower case that begins with one of the needles."""

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: Judge


_QUOTE = rf"(?P<quote>{values.QUOTE})"
_WORD = r"(?P<word>(?![\s\"'`;,)]))"
# With backslashes, but where JSON has a line's end or a quote behind them.
_WHOLE_WORD, _PIPED_WORD = (
    re.compile(rf"(?:[^\s\"'`;,){sign}\\]|\\{{1,32}}+(?![nrt\"'`{sign}\\])){{3,200}}") for sign in ("", "|")
)
_LAST_LINE_END = re.compile(r"\\{1,15}n\Z")
_ACCOUNT = re.compile(
    r"\b(?:(?:create|alter|drop)(?: or replace)? (?:user|role|login|group|database link)|grant|set"
    r" password)\b",
    re.IGNORECASE,
)
_GAP = re.compile(r"\s|\\[nrt]")
QUOTED_MIN = 3
_STATEMENT = 200  # characters of a statement before its password
# Commands that read a password, or another secret.
_READERS = (
    r"(?:docker|podman|buildah|helm|skopeo|oras|crane|apptainer|singularity) (?:registry )?login|chpasswd"
    r"|passwd|gh (?:auth|secret)|openssl (?:passwd|enc)|sudo -s|cryptsetup|gpg|argon2|pass(?:age)?\b"
    r"|secrethub|kinit|mkpasswd|htpasswd|smbpasswd|vncpasswd|wpa_passphrase|su\b|kubeseal"
    r"|(?:npx )?wrangler|fly(?:ctl)? (?:auth|secrets)|vercel env|cargo login|twine|glab auth|ecryptfs"
    r"|gcloud secrets|kubectl create secret"
)
_WINDOWS_USER = re.compile(r" /(?:u|user)[: ]|cmdkey|xfreerdp|net use|runas", re.IGNORECASE)
_IMPACKET = re.compile(
    r"(?:get(?:adusers|adcomputers|npusers|userspns|tgt|st|pac|arch|lapspassword)|get-gpppassword"
    r"|find-?delegation|addcomputer|rbcd|secretsdump|reg"
    r"|(?:ps|wmi|smb|at|dcom)exec|smb(?:client|passwd)|lookupsid|samrdump|rpc(?:dump|map)|services"
    r"|raisechild|goldenpac|mssqlclient|ntlmrelayx"
    r"|(?:owner|dacl)edit|net(?:view)?|changepasswd|describeticket|machine_role|tstool|wmi(?:persist|query)"
    r"|keylistattack|rdp_check|dpapi|exchanger)\Z",
    re.IGNORECASE,
)
_NETRC = re.compile(
    r"(?:\bdefault\s{1,60}login\s{1,60}\S{1,100}"
    r"|machine[ \t]{1,60}\S{1,200}(?:\s{1,60}login\s{1,60}\S{1,100})?)"
    r"(?:\s{1,60}account\s{1,60}\S{1,100})?\s{1,60}\Z"
)


def _is_of_netrc(text: str, first: int, last: int) -> bool:
    """Say whether what stands between two places is what a file of netrc has before a password."""
    before = text[first:last].lower()
    return ("machine" in before or "default" in before) and _NETRC.search(before) is not None


# What routers, NetworkManager and Windows have right before a password: what ends the text before it, and
# what begins at the last of a word there. To search for all of it takes several times as long.
_NETWORK_ENDS = re.compile(r"(?:\benable |\breset-admin-)\Z", re.IGNORECASE)
_NETWORK = (
    ("nmcli ", re.compile(r"\bnmcli (?:\S{1,60} ){1,8}(?:connect|ssid) \S{1,60} ")),
    ("setx ", re.compile(r"\bsetx (?:/m )?\w{0,40}")),
    (
        "username ",
        re.compile(r"(?<![^\s`])username (?!and\b|or\b)\w\S{0,60}(?: privilege [0-9]{1,2})? "),
    ),
)
_LINE_BEFORE = re.compile(r"(?:\A|[\n\r`])[ \t]{0,8}\Z")


def _is_of_network(text: str, first: int, last: int) -> bool:
    """Say whether what stands between two places is what leads to a password of a network."""
    if _NETWORK_ENDS.search(text, max(first, last - 16), last):
        return True
    before = text[first:last].lower()
    for word, pattern in _NETWORK:
        at = before.rfind(word)
        if at >= 0 and pattern.fullmatch(before, at):
            return word != "username " or _LINE_BEFORE.search(text, first, first + at) is not None
    return False


def _rule(
    kind: str,
    needles: str,
    pattern: str,
    is_secret: Callable[[str], bool] = bool,
    *,
    beside: Callable[[str, int, int], object] | None = None,
    behind: re.Pattern[str] | None = None,
) -> Rule:
    """Return a rule for the group `secret`, for the word where the group `word` is, or for what the group
    `quote` opens, whichever there is, if it is no stand-in.

    Of what needs a sign *beside* it, that is asked with the place where a statement before the match may
    begin, and where the match does; what is *behind* it begins with its last quote.
    """

    def judge(text: str, match: re.Match[str]) -> Span | None:
        span, at = _given(text, match, _PIPED_WORD if behind else _WHOLE_WORD), match.start()
        value = text[slice(*span)]
        if behind is not None and (found := _LAST_LINE_END.search(value)):
            value = value[: found.start()]
            span = span[0], span[0] + len(value)
        if not value or not is_secret(value) or values.is_stand_in(value):
            return None
        if behind is not None and not behind.match(text, span[1]):
            return None
        # To look back takes longer than to judge the value.
        is_beside = beside is None or beside(text, max(0, at - _STATEMENT), at)
        return span if is_beside else None

    return Rule(kind, tuple(needles.split("|")), re.compile(pattern), judge)


def _given(text: str, match: re.Match[str], word: re.Pattern[str]) -> Span:
    """Return where the value is that a rule's pattern has found; an empty place where no quote ends it,
    or too soon.
    """
    groups = match.groupdict()
    if groups.get("secret") is not None:
        return match.span("secret")
    if not groups.get("quote"):
        found = word.match(text, match.start("word"))
        return found.span() if found else (0, 0)
    first = match.end()
    closed = values.CLOSED[groups["quote"]].match(text, first)
    value = values.before_json_end(closed[0]) if closed else ""
    return first, first + len(value) if len(value) >= QUOTED_MIN else first


def _is_given(value: str) -> bool:
    is_plain = value[0] not in "%:?@" or (value[0] == "@" and values.is_mixed(value[1:]))
    return is_plain and not values.is_word(value)


def _is_handed_on(value: str) -> bool:
    """Say whether a command that reads a password is given one: no text of several words or lines."""
    return value[0] not in "$-<\\" and not _GAP.search(value) and not values.is_word(value)


def _are_drawn(value: str) -> bool:
    """Say whether words are drawn from a wallet's list, and no sentence nor a test's phrase."""
    words = value.lower().split()
    return len({*words}) > len(words) - 3 and _SENTENCE.isdisjoint(words)


_SENTENCE = frozenset(
    {"the", "and", "for", "are", "not", "must", "should", "from", "into", "with", "has", "have", "was", "our"}
)

RULES = (
    _rule(
        "webhook",
        "hooks.slack.com|api/webhooks/",
        r"(?:hooks\.slack\.com/[a-z]{8,9}|api/webhooks/[0-9]{15,20})/(?P<secret>[\w/-]{32,})",
    ),
    _rule("url_password", "sig=", r"sig=(?P<secret>(?=[\w%+/-]{0,200}[0-9])[\w%+/-]{30,}={0,2})"),
    _rule("url_password", "://", r"(?<=[a-z0-9])://(?P<secret>[^\s:/@\"'`<>]{8,200}):x-oauth-basic@"),
    _rule(
        "url_password",
        "://",
        r"(?<=[a-z0-9])://[^\s:/@\[\]\"'`\\<>]{0,100}:"
        # Up to the last `@` before what ends a host's name.
        r"(?P<secret>(?:(?<=[\w/]:)@(?=[^\s/@\"'`<>:,]{3,64}@[\w\[])|(?!:?@))[^\s/@\"`<>]{1,200}"
        r"(?:@[^\s/@\"'`<>?#\\\[\]]{0,64}(?=@)){0,8})@",
    ),
    _rule(
        "url_password",  # a token alone; half of what a digest has is a public key in some addresses
        "://",
        r"(?<=[a-z0-9])://(?P<secret>[\w.~+=-]{20,200})@",
        lambda value: entropy.is_random(value) or re.fullmatch(r"[0-9a-fA-F]{36,}", value) is not None,
    ),
    _rule(
        "url_password",
        "://",
        r"(?<=[a-z0-9])://api\.softlayer\.com/soap/v3(?:\.1)?/(?P<secret>[0-9a-z]{64})(?![0-9a-z])",
    ),
    _rule(
        "authorization",
        "bearer",
        r"(?<![a-z0-9])bearer[ \t]{1,60}(?P<secret>(?=\S{0,200}[0-9])[0-9a-z._~+/=-]{16,})",
    ),
    _rule(
        "authorization",
        "auth",
        r"(?<![a-z0-9])auth(?:orization)?\\{0,15}[\"'`]?[ \t]{0,3}[=:]?[ \t]{0,3}\\{0,15}[\"'`]?"
        r"(?:basic[ \t]{1,60})?"
        r"(?P<secret>[0-9a-z+/]{6,}={0,2})",
        lambda value: ":" in entropy.decoded(value),  # a user and a password
    ),
    _rule(
        "authorization",
        "auth",
        r"authorization[\"'`]?[ \t]{0,3}[=:,][ \t]{0,3}[\"'`]?(?:(?:token|api-?key|key"
        r"|apitoken)[ \t]{1,60}(?:token=)?[\"']?)?"
        r"(?P<secret>(?=[^\s\"'`]{0,200}[0-9])[0-9a-z._~+/-]{16,2000}+={0,2})(?![\w(])",
        lambda value: not (values.has_word(value) or values.begins_with_word(value)),
    ),
    _rule(  # of netrc
        "password_file",
        "pass",
        rf"password\s{{1,60}}(?:{_QUOTE}|(?P<secret>[^\s\"'`\\]+))",
        beside=_is_of_netrc,
    ),
    _rule(
        "password_file",  # of PostgreSQL: host, port, database, user
        ":*:|:54|:6432:",
        r"(?<=[\w*-]):(?:\*|54[0-9]{2}|6432):(?:\*|[a-z_][\w-]{0,63}):(?:\*"
        r"|[a-z_][\w.@-]{0,63}):(?P<secret>(?:[^\s:\\\"'`]|\\[:\\]){3,128}+)(?![^\s\"'`\\])",
    ),
    _rule(
        "webhook",
        "webhook.office.com/webhookb2/",
        r"webhook\.office\.com/webhookb2/(?P<secret>[\w@-]{30,120}/incomingwebhook/[\w/-]{32,120})",
    ),
    _rule(
        "webhook",
        "hooks.zapier.com/hooks/catch/",
        r"hooks\.zapier\.com/hooks/catch/(?P<secret>[0-9]{4,12}/[0-9a-z]{5,16})",
    ),
    _rule(
        "private_key",  # of PuTTY
        "private-lines:",
        r"private-lines:"
        r" [0-9]{1,4}(?:\\[nr]|\s){1,4}(?P<secret>(?:[0-9a-z+/]{1,76}={0,2}(?:\\[nr]|\s){1,4})+)",
    ),
    _rule(  # by which a server knows who has logged in
        "authorization",
        "cookie",
        # Whether there is a value at all is found at once.
        r"cookie\\{0,15}[\"']?: {0,2}\\{0,15}[\"']?(?=[^\r\n\"'\\=]{0,460}=)[^\r\n\"'\\]{0,400}?(?<![\w.-])"
        r"[\w.-]{0,24}(?:sess|sid|auth|jwt)[\w.-]{0,24}="
        r"(?P<secret>(?=[^\s;]{0,100}[0-9])[\w%.+/~=-]{16,2000})",
    ),
    _rule(  # of a wallet
        "assigned_secret",
        "seed|mnemonic",
        r"(?:mnemonic|seed[ _-]?(?:words|phrase))\\{0,15}[\"'`]?(?: is)? {0,2}[:=]? {0,2}\\{0,15}[\"'`]?\n?"
        r"(?P<secret>[a-z]{3,8}(?: [a-z]{3,8}){11,23}+)(?![\w ])",
        _are_drawn,
    ),
    _rule(
        "database_password",
        "identified ",
        r"identified (?:with [\"'`]?[\w.-]{1,40}[\"'`]? )?by (?:password )?(?:values"
        rf" )?(?:{_QUOTE}|(?![+(])(?P<secret>[^\s\"'`;,)({{\\]{{3,200}}))",
        beside=_ACCOUNT.search,
    ),
    _rule(  # of Terraform
        "assigned_secret",
        "variable ",
        r"variable \\{0,15}\"[\w-]{0,48}(?:passw|passphrase|secret|token|key)[\w-]{0,24}\\{0,15}\" \{"
        rf"[^{{}}]{{0,400}}?\bdefault\s{{0,12}}=\s{{0,4}}{_QUOTE}",
        lambda value: not values.is_word(value),
    ),
    _rule(  # of clients for HTTP: a user and a password
        "authorization",
        "auth",
        r"auth(?:=|entication|orization)?\(\s{0,40}\\{0,15}[\"'][^\"'\r\n]{1,64}[\"'],\s{0,40}"
        rf"(?:some\()?{_QUOTE}",
        lambda value: not (values.is_word(value) or values.is_prose(value) or " " in value),
        behind=re.compile(r"\\{0,15}[\"']\)?,?\s{0,40}\)"),
    ),
    _rule(  # a user and a password side by side
        "assigned_secret",
        "login:|login is |cred",
        r"(?:login|cred(?:ential)?s?)\b(?: (?:is|are)\b)?[\"'`*]{0,3}(?:(?<= is)|(?<= are)|:)"
        r"[\"'`*]{0,3}\s{1,4}[\"'`*]{0,3}"
        r"(?:[\w+-]{2,40}|[\w.+-]{2,40}@[\w.-]{1,60})"
        r"[\"'`]?(?: / |/|:| : )[\"'`]?(?P<secret>[^\s\"'`/:,;)<>\\]{5,64})"
        r"(?=[\"'`,;)*]{0,3}(?:\s|\Z|\\n))",
        lambda value: (
            values.looks_chosen(value) is not None
            and values.has_digit_and_letter(value) is not None
            and not values.has_word(value)
            and not values.is_prose(value)
        ),
    ),
    _rule(
        "assigned_secret",
        "securestring",
        rf"(?<=convertto-)securestring (?:-string )?{_QUOTE}",
        lambda value: not value.startswith("$"),
    ),
    _rule(  # of Oracle
        "command_password",
        "sqlplus|oracle:",
        r"(?:sqlplus(?: -\w{1,9}){0,4} |oracle:(?:thin|oci):)[\"']?[\w$#.]{1,40}/"
        r"(?P<secret>[^\s@\"'`/;|]{3,100})(?=@|[\"']?(?:\s|\Z))",
    ),
    _rule(  # of Vault and Redis
        "command_password",
        "vault |auth ",
        r"(?:vault (?:(?:kv (?:put|patch)|write secret/\S{0,100}) (?:-\S{1,60} ){0,4})(?:[^\s=]{1,100} )?"
        r"(?:[\w.-]{1,60}=(?:\[redacted:\S{1,40}|[@-]\S{0,60}) ){0,16}[\w.-]{1,60}="
        rf"|(?<=redis-cli )auth (?:default )?)(?:{_QUOTE}|(?P<secret>[^\s\"'`\\]{{3,200}}))",
        lambda value: value[0] not in "@-$",
    ),
    _rule(  # what is handed on to a command that reads a password
        "command_password",
        "echo |printf ",
        r"(?:echo|printf)(?: -[a-z]{1,3}){0,2}(?: \\{0,15}[\"']?%s(?:\\{1,15}n)?\\{0,15}[\"']?)? "
        rf"(?:{_QUOTE}(?:[\w.-]{{1,40}}:)?|(?:[\w.-]{{1,40}}:)?{_WORD})",
        _is_handed_on,
        behind=re.compile(
            rf"(?:\\{{1,15}}n)?\\{{0,31}}+[\"']?\s{{0,3}}\|\s{{0,3}}(?:\\\s{{1,20}})?"
            rf"(?:sudo (?!-s))?(?:{_READERS})",
            re.IGNORECASE,
        ),
    ),
    _rule(
        "command_password",
        " /p",
        r" /p(?:w|ass(?:word)?)?[: ]\\{0,15}[\"']?(?P<secret>[^\s\"'`]{3,200})",
        beside=lambda text, first, last: _WINDOWS_USER.search(text, first, last + 1),
    ),
    _rule(  # of Impacket's commands
        "command_password",
        ".py ",
        r"\.py (?:[^\s@]{1,60}"
        r" ){0,8}?[\"']?[\w.-]{0,60}/?[\w.$-]{1,60}:(?P<secret>[^\s@:/\"']{3,200})@[\w.-]{1,200}",
    ),
    _rule(  # the same, where the target is the domain
        "command_password",
        ".py ",
        r"\.py (?:[^\s@]{1,60}"
        r" ){0,8}?[\"']?[\w.-]{1,60}/[\w.$-]{1,60}:(?P<secret>[^\s@:/\"'`]{3,200})(?=[\"'\s`]|\Z)",
        beside=_IMPACKET.search,
    ),
    _rule(  # of routers' configurations, NetworkManager and wpa_supplicant
        "command_password",
        "pass|secret",
        r"(?:secret|password|passphrase) (?:[057] )?[\"']?(?P<secret>[^\s\"'`\\]{4,200})",
        lambda value: not values.is_word(value),
        beside=_is_of_network,
    ),
    _rule(
        "command_password",
        "pass",
        r"(?<=ht)passwd -[a-z]{0,6}b[a-z]{0,6}(?: [^\s|;&\"'`]{1,200}){1,3}?"
        r" [\"']?(?P<secret>[^\s|;&\"'`\\{}]{3,200})[\"']?(?=\s{0,40}(?:\Z|[\n\r|;&\"'`\\#]))",
        _is_given,
    ),
    _rule(
        "command_password",
        "rabbitmqctl |vault |configure set|config set|net user ",
        r"(?:rabbitmqctl (?:\S{1,40} )?(?:add_user|change_password) \S{1,60}|vault (?:login|auth|operator"
        r" unseal)|net user [\w.-]{1,40}"
        r"|configure set (?:\S{1,60}\.)?aws_(?:secret_access_key|session_token)|config set (?:-\S{1,20}"
        r" )?\S{0,120}(?:token|password|secre"
        r"t|_auth|apikey|api-key))"
        r"[ \t]{1,4}[\"']?(?P<secret>[^\s\"'`\\;|&/-][^\s\"'`\\;|&]{3,200})",
        _is_given,
    ),
    _rule("database_password", "pass", rf"(?<![\w.-])password(?:\( ?| ){_QUOTE}", beside=_ACCOUNT.search),
    _rule(
        "database_password",
        "pass|auth",
        rf"(?:(?<=require)pass|(?<=master)auth) (?:{_QUOTE}|{_WORD})",
        _is_given,
    ),
    Rule(
        "assigned_secret",
        ("pass", "pw", "secret", "token", "key"),
        re.compile(assignments.NAMED),
        assignments.named,
    ),
    Rule("assigned_secret", ("pass",), spoken.WITH_PASS, spoken.told),
    Rule("assigned_secret", ("pass",), spoken.WORD, spoken.handed),
)
