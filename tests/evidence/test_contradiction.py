"""What contradicts what: tables of pairs a coding agent remembers, and the guards around them."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.contradiction import CHARACTERS_MAX, STRENGTH_MIN, contradiction

EXPLICIT = [  # the newer first
    ("Use uv instead of pip", "We use pip to install dependencies"),
    ("We no longer use Redis for sessions", "We use Redis for sessions"),
    ("We don't use Redis for sessions any more", "We use Redis for sessions"),
    ("We switched from Jest to Vitest", "We use Jest for the frontend tests"),
    ("Moved from MySQL to Postgres in March", "Billing runs on MySQL"),
    ("Migrated the billing service from MySQL to PostgreSQL", "The billing service runs on MySQL"),
    ("Changed the default branch from master to main", "The default branch is master"),
    ("We replaced Flask with FastAPI", "The API is built with Flask"),
    ("Flask was replaced by FastAPI", "The API is built with Flask"),
    ("FastAPI replaces Flask", "The API is built with Flask"),
    ("Dropped Celery in favour of Dramatiq", "Background jobs run on Celery"),
    ("We dropped support for Python 3.9", "We support Python 3.9"),
    ("Deprecated the REST API in favor of GraphQL", "Clients use the REST API"),
    ("We abandoned Poetry", "Dependencies are managed with Poetry"),
    ("Renamed load_users to fetch_users", "The loader is called load_users"),
    ("timeout: 30 -> 60", "timeout: 30"),
    ("We now use uv", "We use pip"),
    ("We now use Redis for sessions", "We use Postgres for sessions"),
    ("Correction: the port is 9090", "The port is 8080"),
    ("Update: billing runs on PostgreSQL 17", "Billing runs on PostgreSQL 16"),
    ("Actually, the default branch is main", "The default branch is master"),
    ("Reverted to npm", "We switched from npm to pnpm"),
    ("We went back to tabs", "We use spaces for indentation"),
    ("This supersedes the decision to use MongoDB", "Events are stored in MongoDB; we decided to use MongoDB"),
    ("We use tabs again", "We switched from tabs to spaces"),
    ("Switched from Postgres back to MySQL", "We moved from MySQL to Postgres"),
    ("Stopped using Docker for local development", "We use Docker for local development"),
    ("The flake8 linter is replaced by ruff", "We lint with flake8"),
    ("Always squash before merging", "Never squash before merging"),
    ("Never mock the database", "Always mock the database"),
    ("Don't use default exports", "Use default exports"),
    ("Caching is now disabled in CI", "Caching is enabled in CI"),
    ("From now on, deploys are allowed on Fridays", "Deploys are not allowed on Fridays"),
    ("As of March, billing runs on PostgreSQL 17", "Billing runs on PostgreSQL 16"),
    ("Since v2.0 the client is asynchronous", "The client is synchronous"),
    ("Type hints are now required", "Type hints are optional"),
    ("We use Redis as the broker, not RabbitMQ", "We use RabbitMQ as the broker"),
    ("The flaky test is caused by the timezone, not by DNS", "The flaky test is caused by DNS"),
    ("The note that the port is 8080 is outdated: it is 9090", "The port is 8080"),
    ("Don't run migrations at startup", "Run migrations at startup"),
    ("We moved CI from Jenkins to GitHub Actions", "CI runs on Jenkins"),
    ("The team is no longer using Slack for incidents", "The team uses Slack for incidents"),
    ("API keys are rotated every 30 days now", "API keys are rotated every 90 days"),
    ("Rate limit is now 100 requests per minute", "Rate limit is 60 requests per minute"),
    ("We upgraded from Django 4.2 to 5.1", "The site runs on Django 4.2"),
    ("The on-call contact is Priya now", "The on-call contact is Tom"),
    ("Switch from REST to gRPC for internal calls", "Internal calls use REST"),
    ("We stopped supporting Windows", "We support Windows"),
    ("The deployment target is Kubernetes, not Nomad", "The deployment target is Nomad"),
    ("JWTs now expire after 5 minutes", "JWTs expire after 60 minutes"),
    ("Never use any in TypeScript", "Always use any in TypeScript"),
    ("Black was replaced with ruff format", "We format with black"),
    ("The orders table is not partitioned any more", "The orders table is partitioned"),
    ("Starting with release 3.0, plugins are disabled by default", "Plugins are enabled by default"),
    ("Correction: the bug is not in the parser", "The bug is in the parser"),
    ("We decided to go back to Webpack", "We use Vite for the build"),
]

IMPLICIT = [
    ("The feature flag is off", "The feature flag is on"),
    ("The cart test passes", "The cart test fails"),
    ("Retries are disabled", "Retries are enabled"),
    ("The API does not support pagination", "The API supports pagination"),
    ("We don't use feature flags", "We use feature flags"),
    ("The upload works on Windows", "The upload fails on Windows"),
    ("The port is 9090", "The port is 8080"),
    ("Billing runs on PostgreSQL 17", "Billing runs on PostgreSQL 16"),
    ("The default branch is main", "The default branch is master"),
    ("Tests run with unittest", "Tests run with pytest"),
    ("The build requires Python 3.12", "The build requires Python 3.11"),
    ("The request timeout is set to 60 seconds", "The request timeout is set to 30 seconds"),
    ("Logs are stored in /var/log/web", "Logs are stored in /var/log/app"),
    ("max_connections = 200", "max_connections = 100"),
    ("retention: 90d", "retention: 30d"),
    ("The staging cluster lives in eu-west-1", "The staging cluster lives in us-east-1"),
    ("The config file is named app.toml", "The config file is named app.yaml"),
    ("The maintainer is Bob", "The maintainer is Alice"),
    ("The API listens on 9000", "The API listens on 8000"),
    ("User prefers spaces over tabs", "User prefers tabs over spaces"),
    ("Alice prefers rebase over merge", "Alice prefers merge over rebase"),
    ("User prefers spaces for indentation", "User prefers tabs for indentation"),
    ("The user prefers detailed answers", "The user prefers concise answers"),
    ("User dislikes emoji in commit messages", "User likes emoji in commit messages"),
    ("User prefers light mode", "User prefers dark mode"),
    ("The session token expires after 15 minutes", "The session token expires after 30 minutes"),
    ("The gateway defaults to HTTP/2", "The gateway defaults to HTTP/1.1"),
    ("The scheduler is written in Rust", "The scheduler is written in Go"),
    ("The minimum Node version is 22", "The minimum Node version is 18"),
    ("Commit messages must not have a scope", "Commit messages must have a scope"),
    ("Don't force-push to shared branches", "It is fine to force-push to shared branches"),
    ("Feature branches are deleted after merge", "Feature branches are not deleted after merge"),
    ("Secrets are stored in Vault", "Secrets are stored in AWS SSM"),
    ("User wants short answers", "User wants long answers"),
    ("DEBUG=false", "DEBUG=true"),
    ("log_level: info", "log_level: debug"),
    ("pool_size is 20", "pool_size is 10"),
    ("The app uses SQLite", "The app uses Postgres"),
    ("Tests are run in parallel", "Tests are not run in parallel"),
    ("The webhook endpoint is /v2/hooks", "The webhook endpoint is /v1/hooks"),
]

COMPATIBLE = [
    ("Background uploads of large files are allowed in production", "Background uploads of large files are not allowed"),
    ("The allow list is read at startup", "The deny list is read at startup"),
    ("We switched from Jest to Vitest", "Use small pure functions unlike Jest"),
    ("We switched from Jest to Vitest", "Jest is not in use"),
    ("It's just not right", "You're right"),
    ("The search port is 9090", "The cart port is 8080"),
    ("Bob prefers spaces", "Alice prefers tabs"),
    ("The search service times out when redis is slow", "The cart service times out when redis is slow"),
    ("The port is 8080", "The port is 8080"),
    ("Do you use Redis for sessions?", "We don't use Redis for sessions"),
    ("We switched from Jest to Vitest in the web app", "Jest runs the tests of the api server"),
    ("Jest has a bug with ESM mocks", "We use Jest"),
    ("We switched from npm to pnpm in the web repo", "The api repo uses npm"),
    ("We migrated from MySQL to Postgres", "We migrated from MySQL to Postgres in May"),
    ("We use Postgres, we no longer use MySQL", "We moved from MySQL to Postgres"),
    ("Billing moved from MySQL to Postgres", "The search service runs on MySQL"),
    ("The port is 8080 in production", "The port is 8080 in staging"),
    ("The cart service is slow", "The cart service is flaky"),
    ("The cart service is written in Go", "The cart service is slow"),
    ("Billing uses Redis", "Billing uses Postgres"),
    ("CI runs on Linux, macOS and Windows", "CI runs on Windows"),
    ("The min pool size is 5", "The max pool size is 5"),
    ("The public API uses tokens", "The private API uses tokens"),
    ("Run the linter before the tests", "Run the formatter before the tests"),
    ("Use tabs in Makefiles", "Don't use tabs in Python"),
    ("Deploys are allowed on Fridays if on call agrees", "Deploys are not allowed on Fridays"),
    ("The build takes 5 minutes", "The build takes 7 minutes"),
    ("Fixed bug 12 in the parser", "Fixed bug 13 in the parser"),
    ("Sprint 6 velocity is 25", "Sprint 5 velocity is 20"),
    ("On Monday coverage was 80%", "On Friday coverage was 85%"),
    ("Added retry to the fetcher", "Added retry to the uploader"),
    ("The deploy of v1.2 failed", "The deploy of v1.3 succeeded"),
    ("The user lives in Berlin and likes tea", "The user likes coffee"),
    ("Requires Redis 7 and Python 3.12", "Requires Redis 7"),
    ("Never log secrets", "Always log request ids"),
    ("Never commit to main", "Always commit with a message"),
    ("Enable caching in production", "Disable caching in development"),
    ("The unit tests pass", "The integration tests fail"),
    ("The frontend runs on port 3000", "The backend runs on port 8000"),
    ("We use pytest for unit tests", "We use playwright for browser tests"),
    ("We now use Redis", "We use Postgres"),
    ("Python 3.12 is required for the worker", "Python 3.11 is required for the api"),
    ("The cache is in Redis", "The queue is in Redis"),
    ("Alice owns billing", "Bob owns search"),
    ("The token expires after 15 minutes", "The cookie expires after 30 minutes"),
    ("We moved the tests from tests/ to spec/", "The fixtures are in data/"),
    ("The API is stable", "The CLI is unstable"),
    ("Dropped the index on users.email", "The users table has an email column"),
    ("Removed the retry loop from fetch", "The retry loop hides errors"),
    ("Use async clients in handlers", "Use sync clients in scripts"),
    ("Prefer composition over inheritance", "Prefer tabs over spaces"),
    ("Prefer composition over inheritance", "Prefer composition"),
    ("The staging database is small", "The production database is large"),
    ("If the cache is off, requests are slow", "The cache is on"),
    ("How about using uv instead of pip?", "We use pip"),
    ("Line length is 150 in Python", "Line length is 100 in TypeScript"),
    ("We tried MongoDB", "We use Postgres"),
    ("Tests run with pytest", "Tests run with pytest and hypothesis"),
    ("The server listens on 8080", "The server listens on 8080 and 8443"),
    ("The cart is not slow", "The search is slow"),
    ("Use uv instead of pip in CI", "The user guide mentions pip"),
    ("Remember to run ruff before a commit", "Run ruff before a commit"),
    ("The deploy script is now in tools/", "Deploys need approval"),
    ("We don't know why the worker restarts", "The worker restarts at midnight"),
    ("Nothing in the log explains the crash", "The crash is in the parser"),
    ("设置超时为三十秒", "设置超时为六十秒"),
    ("Le cache est actif", "Le cache n'est pas actif"),
    ("Caching is enabled", "Caching is enabled in CI"),
    ("Rotate keys every 30 days", "Rotate logs every 7 days"),
    ("We use React for the dashboard", "We use Vue for the landing page"),
    ("The user likes short functions", "The user likes pure functions"),
    ("The worker needs 4 GB of memory", "The worker needs 2 CPUs"),
    ("No tests cover the importer", "Tests cover the exporter"),
    ("User prefers dark mode in the editor", "User prefers light mode in the slides"),
    ("The login page is slow on mobile", "The login page is broken on Safari"),
    ("We use Postgres for billing", "We use Redis for caching"),
    ("Alice is on call this week", "Bob is on call next week"),
    ("The release is on Tuesday", "The retro is on Thursday"),
    ("Version 2.1 fixed the leak", "Version 2.0 introduced the leak"),
    ("The parser is in src/parser.py", "The lexer is in src/lexer.py"),
    ("Set DEBUG=1 to see logs", "Set TRACE=1 to see spans"),
    ("KeyError in load_config when the file is empty", "KeyError in save_config when the file is empty"),
    ("pip install fails behind the proxy", "pip install works with --index-url"),
    ("The worker does not retry on 4xx", "The worker retries on 5xx"),
    ("Deploying from a laptop is not allowed", "Deploying from CI is allowed"),
    ("User prefers pytest fixtures over setUp", "User prefers pytest"),
    ("I moved the helper from app.py to lib.py", "app.py is the entry point"),
    ("Changed the color from red to blue in the header", "The footer is red"),
    ("Refactored auth to use dependency injection instead of globals", "Globals are defined in settings.py"),
    ("The migration takes 3 minutes", "The migration takes place on Sunday"),
    ("Use --no-cache when building images", "Use --cache-from when building images"),
    ("Tests pass on Linux", "Tests fail on Windows"),
    ("Batch size is 32 for training", "Batch size is 64 for inference"),
    ("main.py starts the server", "worker.py starts the consumer"),
    ("The team agreed to write ADRs", "The team agreed to hold weekly demos"),
    ("The answer is cached for 60 seconds", "The page is cached for 30 seconds"),
    ("Log in with the admin account", "Log out after use"),
    ("The first retry waits 1 second", "The second retry waits 2 seconds"),
    ("The old API is deprecated", "The new API is stable"),
    ("You can mock the clock, not the database", "Mock the clock in unit tests"),
    ("Moved on to the next ticket", "The next ticket is about search"),
    ("The user is in Berlin", "The user is tired"),
    ("Service A depends on service B", "Service A depends on service C"),
    ("The index is on users.email", "The index is on users.name"),
    ("The bug is in the lexer", "The bug is in the parser"),
    ("Check the logs before restarting", "Check the metrics before restarting"),
    ("We support Python 3.13", "We support Python 3.12"),
    ("The script needs jq", "The script needs curl"),
    ("Job 17 runs on runner-3", "Job 18 runs on runner-4"),
    ("Our frontend has no tests", "Our backend has tests"),
    ("The retry is not needed for reads", "The retry is needed for writes"),
    ("Now I'm working on the search", "I'm working on the cart"),
]

WORDS = [
    "we",
    "use",
    "redis",
    "now",
    "not",
    "never",
    "always",
    "is",
    "on",
    "off",
    "port",
    "8080",
    "9090",
    "from",
    "to",
    "instead",
    "of",
    "switched",
    ",",
    ".",
    "?",
    "no",
    "longer",
    "prefers",
    "over",
    "because",
]
PROSE = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)


@pytest.mark.parametrize("similarity", [None, 0.6, 0.9])
@pytest.mark.parametrize(("new", "old"), EXPLICIT)
def test_a_text_that_tells_of_a_change_contradicts_explicitly(new: str, old: str, similarity: float | None) -> None:
    found = contradiction(new, old, similarity)
    assert found is not None
    assert found.is_explicit
    assert STRENGTH_MIN <= found.strength <= 1
    assert found.reason


@pytest.mark.parametrize("similarity", [None, 0.6, 0.9])
@pytest.mark.parametrize(("new", "old"), IMPLICIT)
def test_a_text_that_says_otherwise_contradicts_without_a_word_of_change(new: str, old: str, similarity: float | None) -> None:
    found = contradiction(new, old, similarity)
    assert found is not None
    assert not found.is_explicit
    assert STRENGTH_MIN <= found.strength <= 1


@pytest.mark.parametrize(("new", "old"), COMPATIBLE)
def test_texts_that_can_both_hold_do_not_contradict_however_near(new: str, old: str) -> None:
    assert contradiction(new, old, 1.0) is None
    assert contradiction(old, new, 1.0) is None


@pytest.mark.parametrize(("new", "old"), [*EXPLICIT, *IMPLICIT, *COMPATIBLE])
def test_nothing_contradicts_itself(new: str, old: str) -> None:
    for text in (new, old):
        assert contradiction(text, text, 1.0) is None
        assert contradiction(f"{text.upper()}!", text, 1.0) is None


def test_a_change_and_back_contradicts_each_time() -> None:
    first, second, third = "We use tabs for indentation", "We moved from tabs to spaces", "We went back to tabs"
    for new, old in ((second, first), (third, second)):
        found = contradiction(new, old, 0.7)
        assert found is not None
        assert found.is_explicit
    assert contradiction(third, first, 0.7) is None


def test_a_text_that_tells_of_the_same_change_agrees() -> None:
    assert contradiction("Postgres replaced MySQL", "We moved from MySQL to Postgres", 0.9) is None
    assert contradiction("We use uv instead of pip", "We use uv, no longer pip", 0.9) is None


def test_what_an_older_text_says_too_contradicts_nothing_in_it() -> None:
    assert contradiction("The cart port is 9090. See the wiki.", "The cart port is 8080. Correction: the cart port is 9090", 0.9) is None


def test_a_reason_is_no_change() -> None:
    assert contradiction("We use uv because it is no longer slow", "uv is slow on Windows", 0.8) is None
    assert contradiction("Pin ruff since it changed from 0.5 to 0.6", "The port is 0.5", 0.8) is None


def test_what_was_no_more_at_the_time_is_not_contradicted() -> None:
    assert contradiction("We switched from Jest to Vitest", "We used to use Jest", 0.9) is None
    assert contradiction("We switched from Jest to Vitest", "Never use Jest", 0.9) is None


@pytest.mark.parametrize("new", ["The port is 9090?", "Is the port 9090?", 'He asked: "is it no longer 8080?"', "\N{FULLWIDTH QUESTION MARK}"])
def test_a_question_contradicts_nothing(new: str) -> None:
    assert contradiction(new, "The port is 8080", 1.0) is None
    assert contradiction("The port is 8080", new, 1.0) is None


def test_the_statement_among_others_is_found_but_does_not_replace_them_all() -> None:
    old = "The parser is written by hand. Errors carry positions. Tokens are interned. We lint with flake8."
    found = contradiction("We switched from flake8 to ruff", old, 0.7)
    assert found is not None
    assert not found.is_explicit
    assert "flake8" in found.reason
    assert "ruff" in found.reason
    alone = contradiction("It was a good week. We switched from flake8 to ruff. Nobody complained.", "We lint with flake8.", 0.7)
    assert alone is not None
    assert alone.is_explicit


def test_nearness_scales_the_strength_and_what_is_weak_is_none() -> None:
    new, old = "Caching of the product pages is disabled here", "Caching of product pages is enabled"
    strengths = [found.strength if (found := contradiction(new, old, similarity)) else 0 for similarity in (0.0, 0.5, 1.0, 7.0)]
    assert strengths[0] < strengths[1] < strengths[2] == strengths[3] <= 1
    weak = ("Retries of uploads to the bucket are disabled", "Retries of uploads are enabled")
    assert contradiction(*weak, -1.0) is None
    assert contradiction(*weak, 1.0) is not None


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    filling = "x" * (CHARACTERS_MAX - 20)
    assert contradiction(f"{filling}. We no longer use Redis for sessions", "We use Redis for sessions", 0.9) is None
    assert contradiction(f"We no longer use Redis for sessions. {filling}", "We use Redis for sessions", 0.9) is not None


@given(st.text(), st.text(), st.none() | st.floats(-1, 1))
def test_any_texts_can_be_compared(new: str, old: str, similarity: float | None) -> None:
    found = contradiction(new, old, similarity)
    assert found is None or STRENGTH_MIN <= found.strength <= 1
    assert contradiction(new, new, similarity) is None


@given(PROSE, PROSE)
def test_any_prose_can_be_compared_and_never_contradicts_itself(new: str, old: str) -> None:
    found = contradiction(new, old, 0.8)
    assert found is None or (STRENGTH_MIN <= found.strength <= 1 and found.reason)
    assert contradiction(new, new, 0.8) is None


@given(st.integers(1, 65_535), st.integers(1, 65_535), st.text(string.ascii_lowercase, min_size=5, max_size=9))
def test_a_port_has_one_number_and_every_service_its_own(one: int, other: int, prefix: str) -> None:
    found = contradiction(f"The cart port is {one}", f"The cart port is {other}", 0.8)
    assert (found is not None) == (one != other)
    assert contradiction(f"The {prefix}q port is {one}", f"The {prefix}k port is {other}", 0.8) is None


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Authentication uses SAML now", "Authentication uses OAuth2"),
        ("Payments now use Adyen", "Payments use Stripe"),
    ],
)
def test_a_part_that_uses_another_thing_now_may_use_the_old_one_no_more(new: str, old: str) -> None:
    found = contradiction(new, old, 0.6)
    assert found
    assert not found.is_explicit


@pytest.mark.parametrize("new", ["Authentication uses SAML", "Authentication also uses SAML now", "We use SAML now", "Billing uses SAML now"])
def test_what_is_not_said_to_be_new_or_of_the_same_part_is_no_contradiction(new: str) -> None:
    assert contradiction(new, "Authentication uses OAuth2", 0.6) is None
