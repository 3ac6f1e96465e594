"""Takes secrets out of text: by the shapes their issuers publish, by the names and places they are given to,
and by looking random.

Each is replaced by `[REDACTED:kind]`. A kind is an issuer's (`github_token`, `aws_access_key`, … in
`issuers`), `private_key`, `assigned_secret` (given to a secret's name: `password=…`, `--token …`, "the
password is …", "mot de passe : …", a PIN), `url_password` (or a signature), `authorization` (a header, or a
configuration of one), `webhook`, `password_file`, `payment_card`, or `high_entropy`. What engineers search
for later (commits, digests, ids, paths, names) has to survive: where the two cannot be told apart, the text
stays.
"""

from omegad.text.redaction.secrets import key_names, redact, redact_name

__all__ = ["key_names", "redact", "redact_name"]
