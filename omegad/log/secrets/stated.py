"""Secrets that are given away by what stands before them. Text and needles are compared in lower case."""

from omegad.log.secrets import told
from omegad.log.secrets.assigned import ASSIGNS, assigned
from omegad.log.secrets.rule import stated

STATED = (
    stated("url_password", "://", r"(?<=[a-z0-9])://[^\s:/@\[\]]{0,100}:(?P<secret>[^\s/@]{1,200})@", told.written_out),
    stated("url_token", "://", r"(?<=[a-z0-9])://(?P<secret>[\w.~+=-]{20,200})@", told.user_token),
    stated("bearer_token", "bearer", r"(?<![a-z0-9])bearer\s+(?P<secret>(?=\S{0,200}[0-9])[0-9a-z._~+/=-]{16,})"),
    stated(
        "basic_auth",
        "authorization",
        r"authorization[\"'`]?[=:]?\s{0,3}[\"'`]?basic\s+(?P<secret>[0-9a-z+/]{6,}={0,2})",
        told.encoded_credentials,
    ),
    stated(
        "authorization",
        "authorization",
        r"authorization[\"'`]?[ \t]{0,3}[=:,][ \t]{0,3}[\"'`]?(?:(?:token|api-?key|key|apitoken)[ \t]+(?:token=)?[\"']?)?"
        r"(?P<secret>(?=[^\s\"'`]{0,200}[0-9])[0-9a-z._~+/-]{16,}={0,2})(?![\w(])",
        told.unworded,
    ),
    stated(
        "cookie",
        "cookie",
        r"cookie[\"'`]?[ \t]{0,3}:[ \t]{0,3}[\"'`]?(?P<secret>(?:[\w.-]{1,64}=[^\s;\"'`]{0,400};[ ]?){0,20}"
        r"[\w.-]{1,64}=(?=[^\s;\"'`]{0,400}[0-9])[^\s;\"'`]{16,}(?:;[ ]?[\w.-]{1,64}=[^\s;\"'`]*)*)",
    ),
    stated("netrc_password", "machine", r"machine[ \t]+\S{1,200}\s+login\s+\S{1,100}\s+password\s+(?P<secret>\S+)", told.written_out),
    stated(
        "pgpass_password",
        ":*:|:54|:6432:",
        r":(?:\*|54[0-9]{2}|6432):[\w*-]{1,64}:[\w*.@-]{1,64}:(?P<secret>(?:[^\s:\\\"'`]|\\.){3,128})(?![^\s\"'`])",
        told.last_of_pgpass,
    ),
    stated("docker_auth", "auth", r"(?<![a-z0-9])auth\\?[\"']:[ \t]{0,3}\\?[\"'](?P<secret>[0-9a-z+/]{6,}={0,2})\\?[\"']", told.encoded_credentials),
    stated("docker_auth", "_auth", r"_auth[ \t]?=[ \t]?[\"']?(?P<secret>[0-9a-z+/]{6,}={0,2})", told.encoded_credentials),
    stated(
        "sql_password",
        "identified |create |alter ",
        r"(?:identified (?:with \S{1,40} )?by|(?:create|alter) (?:user|role|login)\b[^\n;']{0,120}?(?:'[^'\n]{0,64}'[^\n;']{0,80}?)?\bpassword)"
        r"[ \t]{0,3}=?[ \t]{0,3}'(?P<secret>[^'\n]{1,128})'",
        told.written_out,
    ),
    stated("assigned_secret", "pass|pw|secret|token|key", ASSIGNS, assigned),
    stated(
        "assigned_secret",
        "password>|secret>|key>|token>",
        r"(?P<of>password|secret|key|token)>(?P<secret>[^<\s]{3,200})</",
        told.element,
    ),
    stated("option_secret", "--|-storepass|-keypass", told.OPTION, told.option),
    stated("option_secret", "mysql|mariadb|sshpass|docker login|redis-cli|curl|-passin|-passout|requirepass", told.OPTION_OF, told.option_of),
    stated("stated_password", "pass|pw|secret|token|key", told.TOLD, told.told),
)
