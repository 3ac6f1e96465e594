"""Which texts are secrets, and which only look a little like some."""

import random
from string import ascii_letters, digits

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.log.secrets import redact, redaction
from tests.builders import at_most

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


# Random characters, put together from short pieces.
RANDOM = "q7" + "Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd5Jf0Gs" + "Ua"
HEX_32 = "0f1e2d3c4b5a6978" * 2
HEX_40 = HEX_32 + "8796a5b4"
HEX_64 = HEX_32 * 2
WORDS_43 = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6kL9nP2r"

ISSUED = [
    ("aws_bedrock_key", "ABSK" + WORDS_43 * 3),
    ("github_token", "github_" + "pat_" + "11ABCDEFG0" + WORDS_43),
    ("gitlab_token", "glrt-" + "a1B2c3D4e5F6g7H8i9J0"),
    ("slack_token", "xapp-" + "1-A0B1C2D3E4F-1234567890-0a1b2c3d"),
    ("openai_key", "sk-or-v1-" + HEX_64),
    ("stripe_key", "whsec_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
    ("google_oauth", "ya29." + "a0AfB_byC1dEfGhIjKlMnOp"),
    ("google_oauth", "GOCSPX-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"),
    ("rubygems_key", "rubygems_" + "0f1e2d3c4b5a" * 4),
    ("docker_token", "dckr_" + "pat_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N"),
    ("sendgrid_key", "SG." + "a1B2c3D4e5F6g7H8i9J0k1" + "." + WORDS_43),
    ("twilio_key", "SK" + HEX_32),
    ("telegram_token", "123456789:" + "AA" + "Hd5Jf0GsUaq7Zt3Lx9Vb2Nk8Wm4Rp6Yc1"),
    ("telegram_token", "bot123456789:" + "AA" + "Hd5Jf0GsUaq7Zt3Lx9Vb2Nk8Wm4Rp6Yc1"),
    ("discord_token", "MTk4NjIyNDgzNDcxOTI1MjQ4" + "." + "Cl2FMQ" + "." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    ("digitalocean_token", "dop_v1_" + HEX_64),
    ("shopify_token", "shpat_" + HEX_32),
    ("mailgun_key", "key-" + HEX_32),
    ("databricks_token", "dapi" + HEX_32),
    ("vault_token", "hvs." + "CAESIJ" + "a1B2c3D4e5F6g7H8i9J0"),
    ("terraform_token", "a1B2c3D4e5F6g7" + ".atlasv1." + WORDS_43 + "a1B2c3D4e5F6g7H8i9"),
    ("pulumi_token", "pul-" + HEX_40),
    ("linear_key", "lin_" + "api_" + "a1B2c3D4" * 5),
    ("notion_token", "ntn_" + "1234567890" + "a1B2c3D4" * 5),
    ("notion_token", "secret_" + WORDS_43),
    ("supabase_key", "sbp_" + HEX_40),
    ("vercel_token", "vcp_" + WORDS_43),
    ("netlify_token", "nfp_" + "a1B2c3D4e5F6" * 3),
    ("cloudflare_token", "cfut_" + "a1B2c3D4" * 5 + "0a1b2c3d"),
    ("postman_key", "PMAK-" + "0f1e2d3c4b5a69788796a5b4" + "-" + HEX_32 + "ab"),
    ("grafana_token", "glsa_" + "a1B2c3D4" * 4 + "_" + "0a1b2c3d"),
    ("grafana_token", "glc_" + "eyJvIjoiMTIzNDU2Nzg5MCIsIm4iOiJ0ZXN0In0="),
    ("newrelic_key", "NRAK-" + "A1B2C3D4E5F6G7H8I9J0K1L2M3N"),
    ("sentry_token", "sntryu_" + HEX_64),
    ("fly_token", "fo1_" + WORDS_43),
    ("tailscale_key", "tskey-auth-" + "kA1B2C3CNTRL" + "-" + "a1B2c3D4e5F6g7H8"),
    ("planetscale_token", "pscale_" + "tkn_" + WORDS_43),
    ("doppler_token", "dp.st.dev." + "a1B2c3D4" * 5),
    ("replicate_token", "r8_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s"),
    ("groq_key", "gsk_" + "a1B2c3D4e5F6g" * 4),
    ("xai_key", "xai-" + "a1B2c3D4" * 10),
    ("perplexity_key", "pplx-" + "a1B2c3D4" * 6),
    ("nvidia_key", "nvapi-" + WORDS_43 + "a1B2c3D4e5F6g7H8i9J0k"),
    ("atlassian_token", "ATATT3" + "xFfGF0" + WORDS_43 + "a1B2c3D4=0A1B2C3D"),
    ("figma_token", "figd_" + "a1B2c3D4" * 5),
    ("age_key", "AGE-SECRET-KEY-1" + "QPZRY9X8GF" * 5 + "2TVDW0S3"),
    ("high_entropy", RANDOM),
    ("high_entropy", "wJalr8UtnFEM1/K7MDENG+bPxRf3CYzEq9LmVa5T"),
    ("high_entropy", WORDS_43 + "="),
]

GIVEN_AWAY = [
    ("slack_webhook", "post to https://hooks.slack.com/services/{}", "T0A1B2C3D/B0A1B2C3D/a1B2c3D4e5F6g7H8i9J0k1L2"),
    ("discord_webhook", "https://discord.com/api/webhooks/123456789012345678/{}", WORDS_43 + "-a1B2c3D4e5F6g7H8i9J0"),
    ("twilio_auth", "curl https://api.twilio.com, user AC" + HEX_32 + ":{}", HEX_32[::-1]),
    ("azure_signature", "https://x.blob.core.windows.net/c?sv=2022-11-02&sig={}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V%3D"),
    ("assigned_secret", "AccountName=shop;AccountKey={}", "a1B2c3D4e5F6g7H8i9J0" * 4 + "k1L2m3=="),
    ("assigned_secret", "Endpoint=sb://x/;SharedAccessKey={}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V="),
    ("assigned_secret", "Server=db;User Id=sa;Pwd={};", "S0mething!Else"),
    ("assigned_secret", "DD_APP_KEY={}", HEX_40),
    ("assigned_secret", "SECRET_KEY = '{}'", "django-insecure-4x#k!t"),
    ("assigned_secret", "DB_PASS={}", "sw0rdfish9"),
    ("assigned_secret", '{{\\"password\\": \\"{}\\"}}', "c0rrect-horse"),
    ("assigned_secret", "'password' => '{}'", "c0rrect-horse"),
    ("assigned_secret", "<password>{}</password>", "c0rrect-horse"),
    ("assigned_secret", "the GITEA_TOKEN={}", HEX_40),
    ("assigned_secret", "passphrase: {}", "0pen-sesame"),
    ("assigned_secret", "password: `{}`", "0pen-sesame"),
    ("option_secret", "tool login --password {}", "hunter22"),
    ("option_secret", "tool --db-password '{}' --verbose", "hunter22"),
    ("option_secret", "mysql -u root -p'{}' shop", "hunter22"),
    ("option_secret", "mysqldump -p{} shop", "hunter22"),
    ("option_secret", "sshpass -p {} ssh host", "hunter22"),
    ("option_secret", "curl -u admin:{} https://example.org", "hunter22"),
    ("netrc_password", "machine example.org\n  login me\n  password {}", "hunter"),
    ("basic_auth", "Authorization: Basic {}", "dXNlcjpodW50ZXIyMg=="),
    ("basic_auth", '"authorization": "basic {}"', "dXNlcjpodW50ZXIyMg=="),
    ("cookie", "Cookie: {}", "theme=dark; sessionid=a1b2c3d4e5f6a7b8c9d0; lang=en"),
    ("cookie", "curl -H 'cookie: {}'", "sid=s%3Aa1b2c3d4e5f6a7b8c9d0"),
    ("stated_password", "The password is {}.", "hunter22"),
    ("stated_password", "the password for the staging database is `{}`, ask Ann", "hunter22"),
    ("url_password", "redis://:{}@cache:6379/0", "hunter22"),
]

SEARCHED_FOR = [
    # What engineers look for again: ids, digests, paths, names; and code that only speaks of secrets.
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "9f86d08",
    "refs/heads/feature/ABC-1234-AddOAuth2LoginFlow",
    "registry.example.org/team/app@sha256:" + HEX_64,
    "docker.io/library/python:3.11-slim-bookworm",
    "payments-api-7d4b9c6f5d-x2x9k",
    "ip-10-0-12-34.eu-west-1.compute.internal",
    '"integrity": "sha512-' + "q7Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd5Jf0GsUa" * 2 + 'AbCdEfGhIjKlMnOpQr=="',
    "integrity sha384-" + WORDS_43 + "a1B2c3D4e5F6g7H8i9J0k",
    "h1:" + WORDS_43 + "=",
    "numpy/core/_methods.py,sha256=" + WORDS_43 + ",8613",
    "SHA256:" + WORDS_43,
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" + WORDS_43 + " me@host",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ" + WORDS_43 * 3,
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\nMQswCQYDVQQGEwJJRTESMBAG\n-----END CERTIFICATE-----",
    f"-----BEGIN PUBLIC KEY-----\n{WORDS_43}\n{RANDOM}\n-----END PUBLIC KEY-----",
    "xmlSecGnuTLSTransformAes128CbcId",
    "xmlSecOpenSSLTransformGostR3411_94Id",
    "MsV1_0ChangeCachedPassword",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "org.springframework.beans.factory.config.PropertyPlaceholderConfigurer2Test",
    "AbstractSingletonProxyFactoryBeanWithOAuth2Support",
    "AbstractAnnotationConfigDispatcherServletInitializer",
    "ConcurrentModificationExceptionHandlerV2FactoryImpl",
    "HTTP2ServerUpgradeHandlerBuilderForIPv6Sockets",
    "Base64UrlSafeEncoderDecoderRoundTripTest2",
    "glCompressedTexSubImage2DARBExtension",
    "test_user_can_log_in_with_2fa_and_is_sent_home",
    "TestOAuth2Client_RefreshToken_WhenExpired_Returns401",
    "tests/log/test_secrets.py::test_a_secret_is_found_and_named[aws_access_key-0]",
    "MAX_RETRY_ATTEMPTS_BEFORE_CIRCUIT_BREAKER_OPENS_V2",
    "maxRetryAttemptsBeforeCircuitBreakerOpens2Times",
    "X-Amz-Content-Sha256-Header-Value-V4",
    "https://example.org/d/1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX3yZ4aB/edit",
    "https://example.org/watch?v=q7Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd",
    "https://github.com/owner/repo/commit/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b#diff-" + HEX_64,
    '  File "/usr/lib/python3.11/site-packages/OpenSSL/crypto.py", line 2143, in load_pkcs12',
    "at com.example.App$$EnhancerBySpringCGLIB$$7c3b2f1a.handleRequest(App.java:42)",
    "at Object.<anonymous> (/srv/app/node_modules/@scope/pkg2/dist/index.esm.js:1:20345)",
    "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
    "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
    "_RNvCs6DXkGYLi8lr_2cc5build3RunA2B",
    "/nix/store/0c9mrwq1zqk5mh3b7ypx6d0s4vq2wzf8-python3-3.11.7/bin/python3",
    "550e8400-e29b-41d4-a716-446655440000",
    "550E8400-E29B-41D4-A716-446655440000",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    'ETag: W/"5f3a-q7Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd5Jf"',
    'etag: "' + HEX_32 + '"',
    "0x" + "52908400098527886E0F7030069857D2E4169EE7",
    "toolu_01" + "A09q90qw90lq917835lq9Bc",
    "req_011CSHoEeqs5C35K2UUqR7Fy",
    "price_1MoBy5LkdIwHu7ixZhnattbh",
    "arn:aws:iam::123456789012:role/aws-service-role/AWSServiceRoleForECS2",
    "main.3f2a1b9c.chunk.js and vendors~main.8c7d6e5f.css",
    "Button_primary__x7Y2z and styles-module_container__1aB2c",
    "function e(t,n,r){return a1B2(t,n).then(r)}",
    "%7B%22page%22%3A1%2C%22filterBy%22%3A%22A2%22%7D",
    "C:\\Users\\Ann\\AppData\\Local\\Programs\\Python\\Python311\\python.exe",
    "/private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/pip-build-A1b2C3",
    "s3://bucket-name/year=2024/month=01/part-00000-a1B2c3D4.snappy.parquet",
    "com.apple.CoreSimulator.SimRuntime.iOS-17-2",
    "2024-01-15T10:30:00.123456+00:00 2024-W03-1T103000Z",
    "libtorch_cuda_linalg.so.2.1.0+cu121.manylinux2014_x86_64",
    "omegad-0.4.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "Foo::BarBaz2Qux::HandleIncomingRpc4Request3()",
    "password = config.db1.password",
    "password = decrypt_v2(blob)",
    "api_key = settings1['key']",
    "password: ${DB_PASSWORD_1}",
    "DB_PASSWORD=<your-password-123>",
    "private_key = /etc/ssl/private/server1.pem",
    "identity_key: ~/.ssh/id_ed25519",
    "PWD=/home/user1/project2",
    "the password is sha256-hashed with a salt",
    "the password is 12-characters or longer",
    "the password was rotated on 2024-01-15",
    "run with --password-file secrets1.txt",
    "docker build --secret id=npmrc1,src=.npmrc .",
    "mkdir -p build1/out2 && docker run -p 8080:80 nginx1",
    "max_tokens=4096, token_count: 20481234567890",
    "if token == tokenizer2.eos_token_id_of_model_v2:",
    "Bearer authentication-middleware-and-friends",
    "class sk-button-primary-large-2-outlined",
    "Cookie: theme=dark; lang=en",
    "a cookie: consent=accepted",
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


@pytest.mark.parametrize(("rule", "secret"), ISSUED)
@pytest.mark.parametrize(("before", "after"), [("before ", " after"), ('{"x": "', '"}'), ("export X=", "\n"), ("(", ")."), (r"line\n", r"\n")])
def test_a_published_shape_is_found_wherever_it_stands(rule: str, secret: str, before: str, after: str) -> None:
    clean, found = redact(f"{before}{secret}{after}")
    assert clean == f"{before}[REDACTED:{rule}]{after}"
    assert found == (rule,)


@pytest.mark.parametrize(("rule", "text", "secret"), GIVEN_AWAY)
def test_only_the_secret_that_its_surroundings_give_away_is_taken_out(rule: str, text: str, secret: str) -> None:
    clean, found = redact(text.format(secret))
    assert clean == text.format(f"[REDACTED:{rule}]")
    assert found == (rule,)


@pytest.mark.parametrize("text", SEARCHED_FOR)
def test_what_is_searched_for_later_survives(text: str) -> None:
    assert redact(text) == (text, ())
    assert redact(f"İstanbul: see `{text}`,\nthen go on") == (f"İstanbul: see `{text}`,\nthen go on", ())


@pytest.mark.parametrize("before", ["İİİİİİ ", "ǅ ẞ K ", "漢字 😀 "])
def test_letters_that_change_their_length_do_not_shift_what_is_taken_out(before: str) -> None:
    assert redact(f"{before}password=c0rrect-horse;") == (f"{before}password=[REDACTED:assigned_secret];", ("assigned_secret",))


def test_many_secrets_glued_together_take_nothing_of_the_rest_with_them() -> None:
    assert redact(EXAMPLES["npm_token"] * 20 + " kept")[0] == "[REDACTED:npm_token] kept"
    assert redact("password=" + "a1" * 300 + " kept")[0] == "password=[REDACTED:assigned_secret] kept"


def test_a_service_accounts_key_is_taken_out_of_its_json() -> None:
    key = r"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nAAAA\n-----END PRIVATE KEY-----\n"
    clean, found = redact(f'{{"private_key_id": "{HEX_40}", "private_key": "{key}", "client_email": "a@b.example"}}')
    assert clean == f'{{"private_key_id": "{HEX_40}", "private_key": "[REDACTED:private_key]\\n", "client_email": "a@b.example"}}'
    assert found == ("private_key",)


@given(st.text(ascii_letters + digits, min_size=24, max_size=88))
def test_a_token_without_all_of_small_and_capital_letters_and_digits_is_no_random_one(token: str) -> None:
    for text in (token.lower(), token.upper(), "".join(filter(str.isalpha, token))):
        assert "high_entropy" not in redact(text)[1]


def test_most_random_tokens_are_found() -> None:
    draw = random.Random(5)  # noqa: S311  the same tokens each time
    for length, share in ((24, 0.7), (32, 0.8), (43, 0.8), (64, 0.8), (88, 0.8)):
        tokens = ["".join(draw.choices(f"{ascii_letters}{digits}-_", k=length)) for _ in range(300)]
        assert sum(redact(token)[1] == ("high_entropy",) for token in tokens) > share * len(tokens), length


@pytest.mark.parametrize("text", [f"a {RANDOM} b {RANDOM}", f"{RANDOM}\n{RANDOM}", f"https://example.org/\n{RANDOM}"])
def test_every_random_token_of_a_text_is_found(text: str) -> None:
    assert RANDOM not in redact(text)[0]


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


PIECES = [
    *EXAMPLES.values(),
    *(secret for _, secret in ISSUED),
    *(text.format(secret) for _, text, secret in (*ASSIGNED, *GIVEN_AWAY)),
    *INNOCENT,
    *SEARCHED_FOR,
    "[REDACTED:x]",
    "--password ",
    "password is ",
    " ",
    "\n",
    "=",
    ":",
    '"',
    "'",
    "://",
    "@",
    ",",
    "x9",
]


@example(EXAMPLES["npm_token"] + EXAMPLES["aws_access_key"])
@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_a_text_that_was_searched_once_is_left_alone_the_next_time(text: str) -> None:
    clean, _ = redact(text)
    assert redact(clean) == (clean, ())


LONG = 256 * 1024
GLUED = EXAMPLES["npm_token"]


@pytest.mark.parametrize(
    "unit",
    [
        *("A", "=", ":", "password", "password is ", "password=", "token: a.b.c.", "x1.y2(", "sk-a1-", "SG.", "key-", "1234567890:AA", "--a-"),
        *(
            "curl -u a:",
            "mysql -p",
            "cookie: a=",
            "cookie: a=b; ",
            "machine a login ",
            "https://u:p@",
            "-----BEGIN A-----",
            "eyJaaaaaaaa.eyJaaaaaaaa",
        ),
        *("İpassword=a1b2c3d4e ", "--password ", "Ab3dEf6hIj9lMn2pQr5tUv8x ", "Ab3dEf6hIj9lMn2pQr5tUv8x/", "aB3", GLUED, f"{GLUED}{EXAMPLES['jwt']}"),
        "password=" + "a" * 199 + "1",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    text = (unit * (LONG // len(unit) + 1))[:LONG]
    with at_most(5):
        clean, _ = redact(text)
    assert redact(clean) == (clean, ())


def test_a_text_that_uncovers_secrets_for_ever_ends_at_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "PASSES_MAX", 0)
    text = f"kept, {EXAMPLES['npm_token']} not kept"
    assert redaction._redact(text) == ("kept, [REDACTED:npm_token]", ("npm_token",))
