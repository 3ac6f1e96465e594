"""Passwords that are given to commands: by the options that their manuals name, and in the places where a few commands take one without."""

import re
from enum import Enum

from omegad.text.redaction import values

LOOK_BACK = 600  # characters of a command before its option
CONTINUED_LINES = 8
HEAD_WORDS = 10
VALUE_MIN = 3
PORT_DIGITS = 5


class Form(Enum):
    """How a value follows its option."""

    NEXT = "-x VALUE and --long=VALUE"
    ATTACHED = "-xVALUE"
    BOTH = "-x VALUE and -xVALUE"
    USER = "-x USER:VALUE"
    PERCENT = "-x USER%VALUE"
    COMMA = "-x USER,VALUE"
    SOURCE = "-x pass:VALUE"
    GUESSED = "-u USER … -p VALUE"


# The commands (with a word that has to come along), the options, how the value follows, and the manual that says so.
TABLE = (
    (
        "mysql mysqladmin mysqldump mysqlimport mysqlshow mysqlcheck mysqlbinlog mysqlpump mysqlslap mysqlsh",
        "p",
        Form.ATTACHED,
        "mysql(1)",
    ),
    (
        "mariadb mariadb-admin mariadb-dump mariadb-import mariadb-show mariadb-check mariadb-binlog mariadb-slap",
        "p",
        Form.ATTACHED,
        "mariadb(1)",
    ),
    ("curl", "u U -user -proxy-user", Form.USER, "curl(1)"),
    ("curl", "-pass -proxy-pass -tlspassword -proxy-tlspassword -oauth2-bearer", Form.NEXT, "curl(1)"),
    ("sshpass", "p", Form.BOTH, "sshpass(1)"),
    (
        "docker+login podman+login buildah+login skopeo+login nerdctl+login helm+login oras+login crane+login gcrane+login regctl+login oc+login",
        "p -password",
        Form.NEXT,
        "docker-login(1), podman-login(1), skopeo-login(1), helm registry login, crane auth login, oc login",
    ),
    ("skopeo podman buildah", "-creds -src-creds -dest-creds", Form.USER, "skopeo-copy(1), podman-pull(1)"),
    ("skopeo", "-registry-token -src-registry-token -dest-registry-token", Form.NEXT, "skopeo-inspect(1)"),
    ("redis-cli valkey-cli keydb-cli redis-benchmark valkey-benchmark", "a -pass", Form.NEXT, "redis-cli(1)"),
    ("az+login az ibmcloud+login bx+login cf+login", "p -password", Form.NEXT, "az login, ibmcloud login, cf login"),
    ("7z 7za 7zr 7zz p7zip rar unrar", "p hp", Form.ATTACHED, "7z(1), rar(1)"),
    ("lsar unar mupdf mutool stegsnow steghide airdecap-ng", "p", Form.NEXT, "unar(1), mupdf(1), stegsnow(1), steghide(1), airdecap-ng(1)"),
    ("zip unzip zipcloak zipnote", "P", Form.BOTH, "zip(1), unzip(1)"),
    ("smbclient rpcclient smbget smbcacls smbcquotas smbtree net winexe wmic pth-winexe", "U -user", Form.PERCENT, "smbclient(1), net(8)"),
    (
        "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapexop ldapcompare ldapmodrdn ldapvc kadmin",
        "w -bindPassword",
        Form.BOTH,
        "ldapsearch(1), kadmin(1)",
    ),
    ("ldapdomaindump", "p", Form.BOTH, "ldapdomaindump"),
    ("ldappasswd", "s a", Form.BOTH, "ldappasswd(1)"),
    ("plink pscp psftp putty kitty", "pw", Form.NEXT, "plink(1)"),
    ("ipmitool ipmievd ipmiutil", "P", Form.BOTH, "ipmitool(1)"),
    (
        "snmpget snmpgetnext snmpwalk snmpset snmpbulkget snmpbulkwalk snmptrap snmptable snmpstatus snmptest snmpdf snmpusm",
        "A X",
        Form.BOTH,
        "snmpcmd(1)",
    ),
    ("mosquitto_pub mosquitto_sub mosquitto_rr", "P -pw", Form.NEXT, "mosquitto_pub(1)"),
    ("mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles", "p", Form.BOTH, "mongosh, mongodump"),
    ("rdesktop", "p", Form.NEXT, "rdesktop(1)"),
    ("sqlcmd bcp osql isql tsql fisql bsqldb bsqlodbc freebcp defncopy datacopy", "P", Form.BOTH, "sqlcmd, bcp, tsql(1), freebcp(1)"),
    ("psexec paexec psexec64 evil-winrm xfreerdp hydra medusa ncrack nxc netexec crackmapexec cme", "p", Form.NEXT, "PsExec, hydra(1), medusa(1)"),
    (
        "keytool jarsigner",
        "storepass keypass srcstorepass deststorepass srckeypass destkeypass new",
        Form.NEXT,
        "keytool(1), jarsigner(1)",
    ),
    ("openssl", "passin passout pass password", Form.SOURCE, "openssl-passphrase-options(1)"),
    ("openssl", "k", Form.NEXT, "openssl-enc(1)"),
    ("pdfinfo pdftotext pdfimages pdftocairo pdftohtml pdftoppm pdftops pdfdetach pdfsig pdffonts pdfseparate", "opw upw", Form.NEXT, "pdfinfo(1)"),
    ("pdfdetach pdfsig certutil pk12util", "kpw w W K", Form.NEXT, "pk12util(1)"),
    ("ss-local ss-server ss-redir ss-tunnel ss-manager sslocal ssserver ssurl", "k", Form.NEXT, "ss-local(1)"),
    ("http https xh httpie http-prompt", "a -auth", Form.USER, "HTTPie"),
    ("ab", "A P", Form.USER, "ab(1)"),
    ("etcdctl transmission-remote", "-user n -auth", Form.USER, "etcdctl, transmission-remote(1)"),
    ("transmission-daemon", "v -password", Form.NEXT, "transmission-daemon(1)"),
    ("nping", "-echo-client -echo-server -ec -es", Form.NEXT, "nping(1)"),
    ("lftp", "u", Form.COMMA, "lftp(1)"),
    ("ncftp ncftpget ncftpput yt-dlp youtube-dl cqlsh cypher-shell instaloader twine openfortivpn olevba", "p", Form.NEXT, "their --help"),
    ("influx cockroach nats consul", "password token", Form.NEXT, "influx, consul"),
    ("x11vnc", "passwd viewpasswd", Form.NEXT, "x11vnc(1)"),
    ("swaks", "ap -auth-password", Form.NEXT, "swaks(1)"),
    ("gpg gpg2", "-passphrase", Form.NEXT, "gpg(1)"),
    ("ssh-keygen", "N P", Form.NEXT, "ssh-keygen(1)"),
    ("glab+auth doctl uv+publish komac+token", "t -token -access-token", Form.NEXT, "glab auth login, doctl, uv publish"),
    ("useradd usermod", "p -password", Form.NEXT, "useradd(8)"),
    ("dsconfigad sysadminctl", "password adminPassword newPassword", Form.NEXT, "sysadminctl"),
    ("dotnet+nuget nuget+push", "k", Form.NEXT, "dotnet nuget push"),
    ("airflow atuin fab eopkg groupadd groupmod", "p", Form.NEXT, "groupadd(8), the completions of fish and Fig"),
    ("bws doppler flyctl fly", "t", Form.NEXT, "the completions of Fig"),
    ("iwctl p4", "P", Form.NEXT, "the completions of fish"),
    ("animate compare composite convert display identify magick mogrify montage stream", "authenticate", Form.NEXT, "the completions of fish"),
    ("dotnet+nuget", "p sk", Form.NEXT, "the completions of fish"),
    (
        "pkcs11-tool pkcs15-tool pkcs15-init pkcs15-crypt softhsm2-util yubico-piv-tool p11tool",
        "-pin -so-pin -new-pin pin",
        Form.NEXT,
        "pkcs11-tool(1), softhsm2-util(1)",
    ),
    ("pkcs11-tool pkcs15-tool ffsend fs_cli security smbtar", "p", Form.NEXT, "pkcs11-tool(1), smbtar(1), tldr pages"),
    ("cryptcat sic choco", "k -api-key", Form.NEXT, "tldr pages"),
    ("croc", "c -code", Form.NEXT, "tldr pages"),
    ("twurl", "s", Form.NEXT, "tldr pages"),
    ("smbpasswd", "w", Form.NEXT, "smbpasswd(8)"),
    ("zpaq", "k", Form.ATTACHED, "tldr pages"),
    ("gotty", "c -credential", Form.USER, "tldr pages"),
    ("lwp-request get post head", "C", Form.USER, "lwp-request(1)"),
    ("miniserve", "a", Form.USER, "tldr pages"),
    ("rsync sqlmap ncat", "-auth-cred -proxy-auth", Form.USER, "ncat(1)"),
)
# Options that take a user and a password whatever the command.
_ANYWHERE: dict[str, Form] = dict.fromkeys(("-auth", "auth", "-basic-auth", "basic-auth", "-creds", "-credentials", "-proxy-auth"), Form.USER)
# With a user's option before it in the same command, these are followed by a password, unless it looks like a port, a path or a host.
_WITH_USER = frozenset({"p", "P", "-password", "-pass"})


def _rows() -> dict[str, list[tuple[frozenset[str], Form]]]:
    rows: dict[str, list[tuple[frozenset[str], Form]]] = {name: [] for name in (*_ANYWHERE, *_WITH_USER)}
    for commands, options, form, _ in TABLE:
        for option in options.split(" "):
            rows.setdefault(option, []).extend((frozenset(command.split("+")), form) for command in commands.split(" "))
    return rows


ROWS = _rows()
_LONG, _SHORT = (sorted((name for name in ROWS if (len(name) > 1) == is_long), key=len, reverse=True) for is_long in (True, False))
# It begins with its one character that every option has, so that only these places are looked at.
OPTION = re.compile(
    rf"-(?<=[\s\"'(\[,]-)(?:(?P<long>{'|'.join(map(re.escape, _LONG))})(?![\w-])"
    rf"|(?P<cluster>[a-zA-Z]{{1,6}}u(?=[ \t]))|(?P<short>[{''.join(_SHORT)}]))"
)
VALUE = re.compile(
    r"(?P<gap>[ \t]{1,8}(?:\\\r?\n[ \t]{0,40})?|[ \t]?=[ \t]?|\\?[\"'],[ \t]{0,4}\\?[\"'])?(?:pass:(?=(?P<source>)))?"
    r"(?:(?P<quote>\\?[\"'])(?P<closed>(?:[^\"'\\\r\n]|\\(?![\"'])|(?!(?P=quote))\\?[\"']){0,300})(?P=quote)(?::(?P<rest>[^\s:]{1,200}))?"
    r"|(?P<bare>(?:[^\s\"'`\\]|\\(?![nrt\"'])){1,300}))"
)
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<closed>[^\"'\r\n]{1,200})(?P=quote)")
_WORD = re.compile(r"[^\s\"'`,;|&()\[\]{}<>=]+")
_SEPARATORS = ("\n", ";", "|", "&", "`", "(", "\\n")
_USER = re.compile(r"(?:[ \t\"'](?:-[A-Za-z]{0,3}[uUl]|--?(?:user|username|login|user-name|email)|-usr)(?:[ \t=]|[\"'],)|[ \t]-u\w)")
_NO_USER = frozenset(
    {"sudo", "su", "runuser", "doas", "chpst", "setpriv", "git", "sort", "diff", "patch", "ps", "date", "mkdir", "ssh", "scp", "nc", "mvn", "mvnw"}
)
_PLACE = re.compile(r"[0-9]{1,5}(?:[:/,-].*)?|(?:[0-9]{1,3}\.){3}[0-9]{1,3}.*|[~.]{0,2}/.*|[\w.-]+:[0-9]{1,5}(?:[:/].*)?|[\w.-]+/[\w./-]*|\W.*")
_STAND_IN = frozenset({"test", "pwd", "yyy", "xxx", "mypassword", "userpass", "user", "username", "prompt", "stdin", "ask", "passwd"})

Span = tuple[int, int]


def passwords(text: str) -> list[Span]:
    """Return where values stand that are given to a command as a password."""
    spans: list[Span] = []
    head: tuple[int, frozenset[str]] = (-1, frozenset())
    for match in OPTION.finditer(text):
        if spans and match.start() < spans[-1][1]:
            continue
        start = _command_start(text, match.start())
        if start != head[0]:
            head = start, _head(text, start)
        option = match["long"] or match["short"] or "u"
        form = _form(option, head[1]) or (None if match["cluster"] else _guessed(option, head[1], text[start : match.start() + 1]))
        span = _value(text, match.end(), form, is_short=match["short"] is not None) if form else None
        if span and (form is not Form.GUESSED or not _PLACE.fullmatch(text, *span)):
            spans.append(span)
    return spans


def _command_start(text: str, at: int) -> int:
    first, start = max(0, at - LOOK_BACK), at
    for _ in range(CONTINUED_LINES):
        start = max(text.rfind(sign, first, start) for sign in _SEPARATORS)
        if start <= first or text[start] != "\n" or text[start - 1 : start] not in {"\\", "^"}:
            break
    return max(first, start)


def _head(text: str, start: int) -> frozenset[str]:
    """Return a command's first words: its name, without a folder, and what says which of its commands is meant."""
    found = []
    for match in _WORD.finditer(text, start, start + LOOK_BACK):
        name = match[0].replace("\\", "/").rpartition("/")[2].lower()
        found.append(name.removesuffix(".exe"))
        if len(found) == HEAD_WORDS:
            break
    return frozenset(found)


def _form(option: str, head: frozenset[str]) -> Form | None:
    return next((form for command, form in ROWS[option] if command <= head), None)


def _guessed(option: str, head: frozenset[str], before: str) -> Form | None:
    """Return how a value follows an option of a command that is in no row."""
    if option in _WITH_USER:
        is_asked = any(name.startswith(("mysql", "mariadb")) for name in head)  # where a password stands at its option, or not at all
        return Form.GUESSED if head.isdisjoint(_NO_USER) and not is_asked and _USER.search(before) else None
    return _ANYWHERE.get(option)


def _value(text: str, at: int, form: Form, *, is_short: bool) -> Span | None:
    match = VALUE.match(text, at)
    if match is None or not _follows(match, form, is_short=is_short):
        return None
    group = "closed" if match["closed"] is not None else "bare"
    value, first = match[group], match.start(group)
    if group == "bare" and form is Form.USER and value.endswith(":") and (glued := _QUOTED.match(text, match.end())):
        return glued.span("closed") if _is_secret(glued["closed"]) else None
    if group == "bare":
        value = value.rstrip("\\;,)|]}")
    elif match["rest"] is not None and form is Form.USER:  # "user":"password", as a shell glues them
        value, first = match["rest"].strip("\"'"), match.start("rest") + len(match["rest"]) - len(match["rest"].lstrip("\"'"))
        return (first, first + len(value)) if _is_secret(value) else None
    sign = {Form.USER: ":", Form.PERCENT: "%", Form.COMMA: ","}.get(form)
    if sign:
        user, found, secret = value.partition(sign)
        if not found or (form is Form.USER and not user and not secret):
            return None
        if not secret and form is Form.USER:  # a token in the place of a user
            return (first, first + len(user)) if values.looks_chosen(user) and _is_secret(user) else None
        first, value = first + len(user) + 1, secret
        quote = value[:1] if value[:1] in {'"', "'"} else ""
        first, value = first + len(quote), value.strip("\"'")
    return (first, first + len(value)) if _is_secret(value) else None


def _follows(match: re.Match[str], form: Form, *, is_short: bool) -> bool:
    gap = match["gap"]
    if form is Form.SOURCE:
        return bool(gap) and match["source"] is not None
    if not is_short:
        return bool(gap)
    if form in {Form.NEXT, Form.GUESSED}:
        return bool(gap) and "=" not in gap
    return not gap if form is Form.ATTACHED else True


def _is_secret(value: str) -> bool:
    return (
        len(value) >= VALUE_MIN
        and value[0] not in "-$<>{%*"
        and not values.is_word(value)
        and value.lower() not in _STAND_IN
        and not values.is_stand_in(value)
    )
