"""Which texts are secrets, and which only look a little like some."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.log.secrets import redact

# Put together from parts, so that no scanner of repositories takes them for real.
EXAMPLES = {
    "private_key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2,
    "gitlab_token": "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
    "slack_token": "xoxb-" + "123456789012-abcdefghij",
    "anthropic_key": "sk-ant-" + "api03-a1B2c3D4e5F6g7H8i9J0_-",
    "openai_key": "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0a1B2",
    "stripe_key": "sk_live_" + "a1B2c3D4e5F6g7H8",
    "google_api_key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "huggingface_token": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "npm_token": "npm_" + "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8",
    "pypi_token": "pypi-" + "AgEIcHlwaS5vcmc" * 5,
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
}

ASSIGNED = [
    ("url_password", "postgres://app:{}@db.internal:5432/shop", "hunter2"),
    ("url_password", "https://user:{}@example.org/", "s3cr3t!x"),
    ("bearer_token", "Authorization: Bearer {}", "abcdef0123456789abcdef"),
    ("bearer_token", "curl -H 'authorization: bearer {}'", "0123456789abcdefABCDEF=="),
    ("assigned_secret", "password={}", "correct7horse"),
    ("assigned_secret", 'PASSWORD = "{}"', "c0rrect-horse"),
    ("assigned_secret", '{{"db_password": "{}"}}', "tr0ub4dor&3x"),
    ("assigned_secret", "export MY_API_KEY='{}'", "9f86d081884c7d65"),
    ("assigned_secret", "client-secret: {}", "Zx9_ab12cd34"),
    ("assigned_secret", "aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("assigned_secret", "auth_token:{}", "abcd1234efgh"),
]

INNOCENT = [
    "password = get_password()",
    "password = os.environ['DB_PASSWORD']",
    "the password is checked in auth.py",
    "api_key: str | None = None",
    "api_key = settings.api_key",
    "secret = secrets.token_hex(16)",
    "Never commit a password; use the keyring.",
    "def reset_password(user_id: int) -> None:",
    "the bearer of bad news",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "see https://example.org:8443/a@b",
    "git@github.com:owner/repo.git",
    "ssh://git@example.org/repo",
    "a task-sk-based scheduler and disk-encryption-at-rest-of-files",
    "sk-learn is imported as sklearn",
    "commit 24799f6b1d1e3a4c5b6d7e8f90a1b2c3d4e5f607",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "mem-0123456789abcdef",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    'eyJ is how a base64 of {" begins',
    "hf_hub_download(repo_id)",
    "npm_config_registry=https://registry.npmjs.org",
    "ghp_ is the prefix of a token",
    "AKIA is the prefix of an access key",
    "the keyword argument passwd=None",
    'if (password == "") { return; }',
    "token_count = 12345678",
    "password: ********",
    "private_key = load_private_key(path)",
    'secret_name: "database-credentials"',
]


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_secret_is_found_and_named(rule: str) -> None:
    clean, found = redact(f"before {EXAMPLES[rule]} after")
    assert clean == f"before [REDACTED:{rule}] after"
    assert found == (rule,)


@pytest.mark.parametrize(("rule", "text", "secret"), ASSIGNED)
def test_only_the_value_of_an_assigned_secret_is_taken_out(rule: str, text: str, secret: str) -> None:
    clean, found = redact(text.format(secret))
    assert clean == text.format(f"[REDACTED:{rule}]")
    assert found == (rule,)


@pytest.mark.parametrize("text", INNOCENT)
def test_ordinary_prose_and_code_is_left_alone(text: str) -> None:
    assert redact(text) == (text, ())


def test_a_private_key_without_an_end_is_taken_out_to_the_end_of_the_text() -> None:
    assert redact("x -----BEGIN PRIVATE KEY-----\nMIIB\n\nmore") == ("x [REDACTED:private_key]", ("private_key",))


def test_every_secret_of_a_text_is_taken_out() -> None:
    text = "\n".join([*EXAMPLES.values(), *(text.format(secret) for _, text, secret in ASSIGNED)])
    clean, found = redact(text)
    assert not [one for one in (*EXAMPLES.values(), *(secret for _, _, secret in ASSIGNED)) if one in clean]
    assert set(found) == {*EXAMPLES, *(rule for rule, _, _ in ASSIGNED)}


PIECES = [*EXAMPLES.values(), *(text.format(secret) for _, text, secret in ASSIGNED), *INNOCENT, " ", "\n", "=", ":", '"', "'", "://", "@", ",", "x9"]


@example(EXAMPLES["npm_token"] + EXAMPLES["aws_access_key"])
@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_a_text_that_was_searched_once_is_left_alone_the_next_time(text: str) -> None:
    clean, _ = redact(text)
    assert redact(clean) == (clean, ())
