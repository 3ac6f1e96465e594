"""When two texts say the same: a table of those that do and those that only look as if they did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.likeness import STATEMENTS_MAX, addition, differ_in_detail, jaccard, restates, says_the_same, words

SAME = [
    ("Deploys go through blue-green", "deploys go through Blue-green!"),
    ("The build needs Python 3.12.", "the build needs python 3.12"),
    ("Use `ruff check` before a commit", "Use 'ruff check' before a commit."),
    ("Don't mock the database", "Don\N{RIGHT SINGLE QUOTATION MARK}t mock the database"),
    ("We prefer tabs to spaces", "We prefer tabs to spaces here"),
    ("The answer is in src/app.py", "In src/app.py is the answer"),
    ("never again", "Never again"),
    ("设置超时为三十秒", "设置超时为三十秒"),
]

DIFFERENT = [
    ("the timeout is 30 seconds", "the timeout is 60 seconds"),
    ("the build needs Python 3.12", "the build needs Python 3.13"),
    ("needs 1.2.3", "needs 1.2.30"),
    ("the log is in /var/log/app", "the log is in /var/log/web"),
    ("edit src/app.py", "edit src/web.py"),
    ("see https://example.org/a", "see https://example.org/b"),
    ("call load_users first thing", "call load_items first thing"),
    ("UserStore is slow", "ItemStore is slow"),
    ("set DB_URL", "set DB_HOST"),
    ("run it with --fast", "run it with --slow"),
    ("run it with -v", "run it with -q"),
    ("app.config is read", "app.settings is read"),
    ("do deploy on Friday", "do not deploy on Friday"),
    ("do deploy on Friday", "never deploy on Friday"),
    ("it is cached", "it isn't cached"),
    ("caching is enabled", "caching is disabled"),
    ("the test passes", "the test fails"),
    ("indexes increase the speed", "indexes decrease the speed"),
    ("start before the database", "start after the database"),
    ("use the old endpoint", "use the new endpoint"),
    ("added the retry", "removed the retry"),
    ("the feature flag is on", "the feature flag is off"),
    ("always squash", "never squash"),
    ("设置超时为三十秒", "设置超时为六十秒"),
    ("Größe in Metern", "Grösse in Metern"),
    ("page someone when load > 80", "page someone when load < 80"),
    ("costs 5$", "costs 5%"),
    ("bug #12", "bug #13"),
    ("ask @anna", "ask @otto"),
    ("2026-01-31", "2026-02-01"),
]

EQUAL = [
    ("The cart service times out when redis is slow", "the cart service times out when Redis is slow."),
    ("The cart service times out when redis is slow", "The cart service time outs when Redis is slow"),
    ("The database of the cart is small", "The data base of the cart is small"),
    ("We always squash before merging", "Always squash before merging"),
    ("Please note that deploys go through blue-green", "Deploys go through blue green"),
    ("Remember: run the linter", "Run the linter"),
    ("The service retries failed requests", "The service retried the failed request"),
    ("We normalise colours in the theme", "We normalize colors in the theme"),
    ("The caches are warmed at startup", "The cache is warmed at startup"),
    ("In production retries are capped", "Retries are capped in production"),
    ("When redis is slow the cart service times out", "The cart service times out when redis is slow"),
    ("Alice reviews. Bob merges.", "Bob merges. Alice reviews."),
    ("- Alice reviews\n- Bob merges", "- Bob merges\n- Alice reviews"),
    ("Don't mock the database", "Do not mock the database"),
    ("We can't rebase shared branches", "We cannot rebase shared branches"),
    ("It's cached in the gateway", "It is cached in the gateway"),
    ("Reports are sent via the queue", "Reports are sent through the queue"),
    ("Кэш живёт в Redis", "Кэш живёт в Redis!"),
    ("设置超时为三十秒。", "设置超时为三十秒"),
    ("キャッシュは Redis にあります", "キャッシュは Redis にあります。"),
]

UNEQUAL = [
    ("See README for the setup", "See readme for the setup"),
    ("The cart service times out when redis is slow", "The search service times out when redis is slow"),
    ("The build fails when the proxy is slow", "The build fails when the mirror is slow"),
    ("We chose postgres for billing because of transactions", "We chose postgres for search because of transactions"),
    ("Alice reviews the billing code", "Bob reviews the billing code"),
    ("Alice reviews, Bob merges", "Bob reviews, Alice merges"),
    ("Prefer tabs over spaces", "Prefer spaces over tabs"),
    ("auth depends on billing", "billing depends on auth"),
    ("Copy the database from staging to production", "Copy the database from production to staging"),
    ("Deploy on weekdays", "Deploy on weekdays after review"),
    ("Deploy on weekdays", "Only deploy on weekdays"),
    ("Admins can merge", "Only admins can merge"),
    ("Reviewers must approve", "Reviewers may approve"),
    ("All tests pass in the branch", "Most tests pass in the branch"),
    ("We use redis", "We used redis"),
    ("The default was thirty", "The default is thirty"),
    ("We own the billing service", "They own the billing service"),
    ("Run it without the cache", "Run it with the cache"),
    ("Run the linter before the tests", "Run the linter after the tests"),
    ("The log is in the container", "The log is on top of the container"),
    ("Note the port of the cart", "Not the port of the cart"),
    ("The retry waits for one second", "The retry waits for ten second"),
    ("needs Python 3.12", "needs Python 3.13"),
    ("the log is in /var/log/app", "the log is in /var/log/web"),
    ("Le cache est actif", "Le cache est inactif"),
    ("Le cache est actif", "Le cache n'est pas actif"),
    ("Der Server ist schnell", "Der Server ist nicht schnell"),
    ("El servicio usa redis", "El servicio usa postgres"),
    ("Кэш живёт в Redis", "Кэш живёт в Postgres"),
    ("Кэш включён", "Кэш не включён"),
    ("设置超时为三十秒", "设置超时为六十秒"),
    ("캐시는 켜져 있다", "캐시는 꺼져 있다"),
    ("الذاكرة المؤقتة مفعلة", "الذاكرة المؤقتة معطلة"),
    ("कैश चालू है", "कैश बंद है"),
]

EVOLVED = [  # the newer, the older, what the newer adds
    ("The build needs Python 3.12 and uv 0.5", "The build needs Python 3.12", "and uv 0.5"),
    (
        "The cart service times out when redis is slow; raising the pool to 50 helped",
        "The cart service times out when redis is slow",
        "raising the pool to 50 helped",
    ),
    ("Deploys go through blue-green, never on Fridays", "Deploys go through blue-green", "never on Fridays"),
    ("Never deploy on Fridays because the on-call is thin", "Never deploy on Fridays.", "because the on-call is thin"),
    ("Commit offsets by hand. Auto-commit lost messages.\nIt took a day.", "Commit offsets by hand", "Auto-commit lost messages.\nIt took a day."),
    ("Auto-commit lost messages. Commit offsets by hand.", "Commit offsets by hand", "Auto-commit lost messages."),
    ("We run ruff and mypy before each commit", "We run ruff before each commit", "We run ruff and mypy before each commit"),
    ("The timeout is 30 seconds in production", "The timeout is 30 seconds", "The timeout is 30 seconds in production"),
    ("The retries of the cart are capped, and logged", "Retries of the cart are capped", "and logged"),
    ("The fetcher retries failed downloads twice", "The fetcher quietly retries failed downloads", "The fetcher retries failed downloads twice"),
    ("Кэш живёт в Redis, ключи истекают за час", "Кэш живёт в Redis", "ключи истекают за час"),
    ("缓存在 Redis 中。键一小时后过期。", "缓存在 Redis 中。", "键一小时后过期。"),
]

NOT_EVOLVED = [  # the newer first
    ("See readme for the setup and the tests", "See README for the setup"),
    ("The fetcher retries failed downloads twice", "The fetcher quietly quickly cheaply retries failed downloads"),
    ("The search service times out when redis is slow. Raising the pool helped.", "The cart service times out when redis is slow."),
    ("The timeout is 60 seconds in production", "The timeout is 30 seconds"),
    ("The timeout is short in production", "The timeout is 30 seconds"),
    ("Deploys don't go through blue-green since March", "Deploys go through blue-green"),
    ("Deploys no longer go through blue-green", "Deploys go through blue-green"),
    ("It was wrong: deploys go through blue-green", "Deploys go through blue-green"),
    ("Deploy on Fridays is not wise", "Deploy on Fridays"),
    ("Caching works never", "Caching works"),
    ("Caching is not enabled in production", "Caching is enabled"),
    ("We run black before each commit and push", "We run ruff before each commit"),
    ("billing depends on auth since the rewrite", "auth depends on billing"),
    ("Alice owns the cart and Bob owns the billing code", "Alice owns the billing code"),
    ("Alice owns the cart. Bob owns the billing code.", "Alice owns the billing code."),
    ("Deploys go through blue-green", "Deploys go through blue-green"),
    ("Deploys go through", "Deploys go through blue-green"),
    ("We just run the linter here", "Run linter"),
    ("We use redis instead of memcached", "We use memcached"),
    ("Use tabs in Makefiles only", ""),
    ("Кэш живёт в Postgres, ключи истекают за час", "Кэш живёт в Redis"),
    ("设置超时为六十秒。重试三次。", "设置超时为三十秒。"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_fillers_inflections_spelling_and_order_of_phrases_carry_nothing(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert says_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), [*UNEQUAL, *((one, other) for one, other in DIFFERENT if "ö" not in one)])
def test_no_word_that_carries_content_may_differ(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not says_the_same(other, one)


@pytest.mark.parametrize(("new", "old", "added"), EVOLVED)
def test_a_text_that_keeps_what_an_older_says_and_adds_to_it_restates_it(new: str, old: str, added: str) -> None:
    assert restates(new, old)
    assert not restates(old, new)
    assert addition(new, old) == added


@pytest.mark.parametrize(("new", "old"), NOT_EVOLVED)
def test_a_text_that_says_something_else_restates_nothing(new: str, old: str) -> None:
    assert not restates(new, old)


def test_what_cannot_be_told_apart_is_added_whole() -> None:
    code = "Run it so.\n```\n    make all\n```"
    assert addition(code, "Run it so.") == code
    assert addition("Run it so.", "Run it so.") == "Run it so."
    assert addition("Do not run it so. Ask.", "Run it so.") == "Do not run it so.\nAsk."
    many = "Run it. " * (STATEMENTS_MAX + 1)
    assert addition(many, "Run it.") == many
    assert not restates(f"{many} Now.", "Run it.")


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words_or_signs_differs_in_no_detail(one: str, other: str) -> None:
    assert not differ_in_detail(one, other)
    assert jaccard(one, other) > 0.5


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_number_name_or_no_makes_all_the_difference(one: str, other: str) -> None:
    assert differ_in_detail(one, other)
    assert differ_in_detail(other, one)


def test_jaccard_is_the_share_of_distinct_words() -> None:
    assert jaccard("a b c", "b c d") == 0.5
    assert jaccard("a a b", "B A") == 1.0
    assert jaccard("", "") == jaccard("a", "") == 0.0
    assert words("Don\N{RIGHT SINGLE QUOTATION MARK}t stop_it, ever!") == {"don't", "stop", "it", "ever"}


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_complete(one: str, other: str) -> None:
    assert differ_in_detail(one, other) == differ_in_detail(other, one)
    assert jaccard(one, other) == jaccard(other, one)
    assert 0.0 <= jaccard(one, other) <= 1.0
    assert not differ_in_detail(one, one)


@given(st.text(), st.text())
def test_any_texts_can_be_compared_and_nothing_restates_itself(one: str, other: str) -> None:
    assert says_the_same(one, other) == says_the_same(other, one)
    assert says_the_same(one, one)
    assert not restates(one, one)
    assert not (restates(one, other) and restates(other, one))
    assert addition(one, other) or not one


@given(st.lists(st.sampled_from(["Alice reviews", "bob merges", "never", "in CI", "retries fail", "port 80"]), min_size=1).map(". ".join))
def test_what_is_appended_says_what_is_added(old: str) -> None:
    assert addition(f"{old}. Zed pays.", old).endswith("Zed pays.")
    assert not says_the_same(f"{old}. Zed pays.", old)


@given(st.text(), st.integers())
def test_texts_with_different_numbers_always_differ(text: str, number: int) -> None:
    assert differ_in_detail(f"{text} {number} items", f"{text} {number + 1} items")
