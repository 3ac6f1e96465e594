"""How a text stands to another one: for it, against it by a rule that has a name, or unclear."""

# ruff: noqa: RUF001  letters of other languages that look like others

from itertools import permutations

import pytest

from omegad.text.evidence.stance import Kind, Stance, contradiction, stance

TITLE = "Cache the rendered pages for an hour"
TRAILERS = "Files: a.py, b.py\nCo-authored-by: A B <a@b.example>\nSigned-off-by: C D <c@d.example>\nFixes: #7"

GIVEN_UP = [
    (
        "We gave up RabbitMQ: message queues run on NATS JetStream since October.",
        "Message queues of the ferry run on RabbitMQ with quorum queues.",
    ),
    (
        "cart.py: cabins are held in PostgreSQL now, Redis is gone.",
        "cart.py holds the cabins in Redis for ten minutes.",
    ),
    ("We moved from Jira to Linear.", "We use Jira for tickets."),
    ("Confluence has been retired", "The wiki is Confluence"),
    ("We dropped support for Python 3.8 since its end of life", "We support Python 3.8"),
    (
        "Nous n'utilisons plus Sentry pour les erreurs : GlitchTip l'a remplacé, l'abonnement était trop cher.",
        "Nous utilisons Sentry pour suivre les erreurs en production.",
    ),
    ("Unleash remplace LaunchDarkly.", "Les fonctionnalités sont activées par LaunchDarkly."),
    ("Wir sind von Jira auf Linear umgestiegen.", "Tickets werden in Jira verwaltet."),
    ("Unleash hat LaunchDarkly abgelöst.", "Feature-Flags kommen aus LaunchDarkly."),
    ("Rollup reemplazó a Webpack para el frontend", "Usamos Webpack para el frontend"),
    ("Ya no usamos MongoDB, los pedidos están en PostgreSQL.", "Guardamos los pedidos en MongoDB."),
    ("Em vez de RabbitMQ usamos NATS nas filas.", "As filas usam RabbitMQ."),
    ("I log non finiscono più in Splunk ma in Loki.", "I log finiscono in Splunk."),
    ("We zijn overgestapt van Jira naar Linear.", "Tickets staan in Jira."),
    (
        "RabbitMQ для очередей больше не используем, перешли на NATS.",
        "Для очередей сообщений используем RabbitMQ.",
    ),
    ("Artık RabbitMQ kullanmıyoruz, NATS'a geçtik.", "Mesaj kuyrukları için RabbitMQ kullanıyoruz."),
    ("Bitrise'dan Xcode Cloud'a geçtik.", "iOS uygulaması Bitrise ile derleniyor."),
    ("لم نعد نستخدم سلاك، انتقلنا إلى ماترمست.", "نستخدم سلاك للتواصل بين أعضاء الفريق."),
    ("हम स्लैक से मैटरमोस्ट पर चले गए।", "टीम चैट के लिए स्लैक है।"),
    ("我们不再使用 Jira，已经换成 Linear。", "我们用 Jira 管理任务。"),
    (
        "Elasticsearch はもう使っていません。OpenSearch に移行しました。",
        "検索には Elasticsearch を使っています。",
    ),
    ("RabbitMQ에서 NATS로 전환했습니다.", "메시지 큐는 RabbitMQ입니다."),
    ("Rollup hat Webpack abgelöst.", "Wir bauen mit Webpack."),
    ("Im Shop hat Prometheus Graphite ersetzt.", "Das Monitoring des Shops läuft über Graphite."),
    ("Webpack wurde durch Rollup ersetzt.", "Das Frontend wird mit Webpack gebaut."),
    ("Rollup löst Webpack ab.", "Wir bauen mit Webpack."),
    ("O Rollup substituiu o Webpack.", "Usamos Webpack no frontend."),
    ("Migramos do Heroku para a Fly.", "Fazemos deploy no Heroku."),
    ("Nous utilisons Rollup au lieu d'Eslint.", "Nous utilisons Eslint."),
    ("Jira a été remplacé par Linear.", "Les tickets sont dans Jira."),
    ("Desde marzo usamos Linear en vez de Jira.", "Usamos Jira."),
    ("Webpack'in yerini Rollup aldı.", "Webpack kullanıyoruz."),
    ("حل Rollup محل Webpack.", "نستخدم Webpack."),
    ("The token isn't kept in AsyncStorage any more but in the Keychain.", "The token is in AsyncStorage."),
    ("The team no longer uses Sentry for errors.", "We use Sentry for errors."),
    ("Since May the team has stopped using Jira.", "We use Jira."),
    ("Our API doesn’t use GraphQL any longer.", "Our API is written with GraphQL."),
    (
        "After three weeks of complaints from support we no longer run the thumbnailer on Lambda.",
        "We run the thumbnailer on AWS Lambda.",
    ),
    (
        "Nach dem Ausfall vom Dienstag lesen wir die Konfiguration nicht mehr aus Consul.",
        "Die Konfiguration liegt in Consul und wird beim Start gelesen.",
    ),
    ("Après discussion on est passés de Black à Ruff.", "On formate le code Python avec Black."),
    ("Airflow was retired this sprint.", "Nightly ETL is orchestrated by Airflow."),
    ("Migramos de Kubernetes a Cloud Run este fin de semana.", "Desplegamos en Kubernetes."),
    ("Arka plan işleri için Celery'yi bıraktık.", "Arka plan işleri Celery ile çalışıyor."),
    ("لم نعد نستخدم Trello للمهام.", "نستخدم Trello للمهام."),
    ("हमने Splunk को Loki से बदल दिया।", "लॉग Splunk में जाते हैं।"),
    ("이제 Trello를 쓰지 않습니다.", "작업은 Trello로 관리합니다."),
    ("We gave up RabbitMQ because nobody could run it at night.", "Queues run on RabbitMQ."),
    ("User said we moved from Jira to Linear.", "We use Jira for tickets."),
    (
        "We no longer use Heroku review apps: each pull request gets a machine on Fly.io, seeded before merge",
        "We deploy the storefront with Heroku review apps: each pull request gets its own app, seeded",
    ),
    (
        "Dropped Redux Toolkit in favour of Zustand stores, one per step",
        "The checkout lives in Redux Toolkit slices, so that a reload does not lose the cart",
    ),
    ("We no longer send Sentry emails.", "Sentry emails go to the on-call phone."),
]
NOT_GIVEN_UP = [
    ("The plan is that we no longer use Sentry.", "We use Sentry."),
    ("Plan: move from Jira to Linear.", "We use Jira."),
    ("The search service is no longer on Heroku.", "The billing service runs on Heroku."),
    ("We don't add any more shards to Elasticsearch.", "Elasticsearch has six shards."),
    ("We do not add any more shards to Elasticsearch.", "Elasticsearch has six shards."),
    ("After the audit of the shop customers no longer use Stripe.", "We use Stripe."),
    ("Since Heroku was dropped we no longer pay for it.", "We pay for Fly."),
    ("Nach dem Umbau nutzt der Kunde Consul nicht mehr.", "Wir nutzen Consul."),
    ("We never dropped Kafka.", "We use Kafka."),
    ("We never stopped using Splunk for logs.", "Logs go to Splunk."),
    ("Webpack was never replaced by Rollup.", "We build with Webpack."),
    ("Wir haben Webpack nicht abgeschafft.", "Wir bauen mit Webpack."),
    ("Nous n'avons pas abandonné Kafka.", "Nous utilisons Kafka."),
    ("No abandonamos Realm.", "Usamos Realm."),
    ("Мы не отказались от Kafka.", "Мы используем Kafka."),
    ("我们没有放弃 Kafka。", "我们使用 Kafka。"),
    ("Gulp を廃止したことはありません。", "ビルドは Gulp で行います。"),
    ("The docs said we dropped Kafka; that is wrong.", "We use Kafka."),
    ("Juan afirma que ya no usamos Kafka.", "Usamos Kafka."),
    ("Es stimmt nicht, dass wir Kafka nicht mehr nutzen.", "Wir nutzen Kafka."),
    ("The customer no longer uses Kafka for events.", "We use Kafka for events."),
    ("The other team no longer uses Kafka for events.", "We use Kafka for events."),
    ("Une autre équipe n'utilise plus Jenkins pour les builds.", "Nous utilisons Jenkins pour les builds."),
    ("A competitor dropped Splunk for logs.", "Logs go to Splunk."),
    ("El cliente ya no usa Firebase.", "Usamos Firebase."),
    ("お客様は Kafka をもう使っていません。", "Kafka を使っています。"),
    ("We will move from Jira to Linear next year.", "We use Jira for tickets."),
    ("Nächstes Jahr werden wir Mocha durch Vitest ersetzen.", "Wir testen mit Mocha."),
    ("Si dejamos de usar Heroku, habrá que pagar más.", "Desplegamos en Heroku."),
    ("In 2019 we dropped Splunk, since 2021 Splunk is back.", "Logs go to Splunk."),
    ("Payments in Brazil go through PagSeguro instead of Adyen", "Payments go through Adyen"),
    (
        "Die Rechnungen der Tochterfirma liegen nicht mehr in SAP, sondern in DATEV",
        "Die Rechnungen liegen in SAP",
    ),
    ("Uploads of customers are no longer stored in S3", "Uploads are stored in S3"),
    ("We no longer export test orders to SAP", "Orders are exported to SAP"),
    ("We no longer use Webpack to bundle the admin frontend", "Webpack bundles the frontend"),
    ("We moved from Splunk to Loki, then we moved back from Loki to Splunk.", "Logs go to Splunk."),
]
LOOKING_ALIKE = [
    ("We dropped the unused index on the Postgres ledger database", "Postgres is the ledger database"),
    ("We no longer send Sentry emails for frontend errors", "Sentry collects frontend errors"),
    ("We no longer use Grafana annotations for the latency boards", "Grafana shows the latency boards"),
    ("We dropped Celery's result backend for the nightly invoices", "Celery runs the nightly invoices"),
    ("Vitest instead of Jest for tests", "Use Vitest rather than Jest"),
    ("Nginx reemplazó a Apache como proxy inverso", "Usamos Nginx como proxy inverso"),
    ("We moved from RabbitMQ to NATS for the queues.", "We use NATS for the queues."),
    ("We moved the sessions from Redis to Postgres.", "We use Redis to cache pages."),
    ("search.py: Redis is gone.", "cart.py holds the cabins in Redis."),
    ("The queues run on NATS instead of RabbitMQ.", "Queues: NATS, RabbitMQ is not good enough."),
    ("Use NATS instead of RabbitMQ.", "We compared NATS with RabbitMQ."),
    ("We would move from Jira to Linear.", "We use Jira for tickets."),
    ("Nous n'utilisons plus que Sentry.", "Nous utilisons Sentry."),
    ("Sentry rechnet nicht mehr nach Ereignissen ab.", "Sentry meldet Fehler des Shops."),
    ("Für Metriken nutzen wir Kafka nicht mehr.", "Kafka trägt das Audit-Log."),
    ("¿Ya no usamos Jira?", "Usamos Jira."),
    ("De sessies zijn verhuisd van Redis naar Postgres.", "Redis bewaart de cache van pagina's."),
    ("Перешли с RabbitMQ на NATS.", "Для очередей используем NATS."),
    ("RabbitMQ'dan NATS'a geçtik.", "Kuyruklar için NATS kullanıyoruz."),
    ("会话从 Redis 迁移到 Postgres。", "Redis 缓存页面。"),
]
IN_FEW_WORDS = [
    "{0} over {1}",
    "Use {0} instead of {1}",
    "Prefer {0} to {1}",
    "{0}, not {1}",
    "{0} rather than {1}",
    "Rather than {1} we use {0}",
    "We prefer {0} over {1}",
    "Don't use {1}, use {0}",
]
PREFERRED = [
    "Use pnpm, not npm, for front-end repositories.",
    "pnpm is preferred to npm in front-end projects.",
    "In front-end repositories always use pnpm instead of npm.",
    "Use pnpm over npm for front-end repositories.",
    "Use pnpm rather than npm in front-end repositories.",
    "pnpm is preferred over npm for front-end repositories.",
    "We prefer to use pnpm over npm in front-end projects.",
]


@pytest.mark.parametrize(
    "revert",
    [
        f'Revert "{TITLE}"',
        f'revert: "{TITLE} (#12)" (#15)',
        f"fix: Revert '{TITLE}'",
        f"pages: revert {TITLE}",
        f'Reverts "{TITLE} (#12)"\n\nToo slow.',
    ],
)
@pytest.mark.parametrize(
    "old", [TITLE, f"{TITLE} (#12)\n\nIt saves a second.\n{TRAILERS}", f"perf(pages): {TITLE}"]
)
def test_a_revert_takes_back_what_has_its_title(revert: str, old: str) -> None:
    assert contradiction(revert, old) == "reverted"
    assert contradiction(old, revert) is None


@pytest.mark.parametrize(
    ("kind", "new", "old"),
    [
        ("denied", "Always run the linter before a commit", "Never run the linter before a commit"),
        ("denied", "Don't deploy the shop on Fridays. It wakes people.", "Deploy the shop on Fridays"),
        ("denied", "The cache is no longer in Redis", "The cache is in Redis"),
        ("denied", "The other team no longer uses Slack", "The other team uses Slack"),
        ("denied", "The exporter fails to write the footer", "The exporter writes the footer"),
        ("denied", "Anybody may push to main", "Nobody may push to main"),
        ("denied", "Nobody maintains the parser", "Maria maintains the parser"),
        ("denied", "No one uses the old API", "The billing service uses the old API"),
        ("denied", "Two men sign the release", "There is no man to sign the release"),
        ("denied", "Tokens never expire", "Tokens expire after one day"),
        ("denied", "There is no limit of uploads", "The limit of uploads is high"),
        (
            "denied",
            "The file is not being dropped into the bucket",
            "The file is being dropped into the bucket",
        ),
        ("opposite", "Turn off caching in staging", "Turn on caching in staging"),
        ("opposite", "The replica is far from the primary", "The replica is near the primary"),
        ("another value", "The timeout of the proxy is 30 minutes", "The timeout of the proxy is 30 seconds"),
        ("another value", "Uploads are limited to 10 GB", "Uploads are limited to 10 MB"),
        ("opposite", "The flag is off in staging", "The flag is on in staging"),
        (
            "opposite",
            "The cache is disabled in staging (#2)",
            f"The cache is enabled in staging (#1)\n{TRAILERS}",
        ),
        ("opposite", "docs: remove the old tutorial", "docs: add the old tutorial"),
        (
            "opposite",
            "Two workers are sufficient for the queue",
            "Two workers are insufficient for the queue",
        ),
        ("another value", "the port of the api is 9090", "the port of the api is 8080"),
        (
            "another value",
            "The nightly export needs a single worker",
            "The nightly export needs three workers",
        ),
        ("another value", "We retry 6 times before giving up", "We retry 5 times before giving up"),
        ("another value", "The maximum upload size is 25 MB", "The maximum upload size is 10 MB"),
        ("another value", "The stand-up is at 10:15 now", "The stand-up is at 9:30"),
        ("another value", "The backup runs at 2:00pm", "The backup runs at 2:00am"),
        ("another value", "Retries are capped at 6", "Retries are capped at five"),
        ("another value", "Sessions expire after 20 minutes", "Sessions expire after fifteen minutes"),
        ("another value", "The pool holds twenty-five connections", "The pool holds twenty connections"),
        ("another value", "The cache holds 500 entries", "The cache holds two hundred entries"),
        ("places changed", "The user prefers spaces to tabs", "The user prefers tabs to spaces"),
        (
            "named as not",
            "The web client is written in Elm, not Svelte",
            "The web client is written in Svelte",
        ),
        ("named as not", "We moved the search index from Solr to Typesense", "Solr is our search index"),
        (
            "another value",
            "refunds.py retries the bank 2 times only.",
            "refunds.py retries the bank 4 times.",
        ),
        ("reverted", f'Revert "{TITLE}": too slow since March.', TITLE),
        *[("given up", new, old) for new, old in GIVEN_UP],
    ],
)
def test_a_text_is_against_another_by_a_rule_that_has_a_name(kind: Kind, new: str, old: str) -> None:
    assert stance(new, old) == Stance("against", kind)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (f'Revert "{TITLE} on Mondays"', TITLE),
        (f'Revert "Revert "{TITLE}""', TITLE),
        (f'They wanted to revert "{TITLE}"', TITLE),
        ('Revert "Fix CI"', "Fix CI"),
        (f'Revert "{TITLE}" on Mondays', TITLE),
        ("use it", "do not use it"),
        ("Shall we never run the linter here?", "Always run the linter here"),
        ("Never do this in a test:\n- sleep", "Always do this in a test:\n- wait"),
        ("```\nnever run the linter\n```", "```\nalways run the linter\n```"),
        (f"Speed up the pages\n{TRAILERS}", f"Make room for pages\n{TRAILERS.replace('a.py', 'c.py')}"),
        (f"Speed up the pages\n{TRAILERS}\nNever: slow", f"Make room for pages\n{TRAILERS}\nAlways: slow"),
        ("The parser of the importer rejects tabs", "The parser of the exporter accepts tabs"),
        ("Guests are not allowed to delete files", "Owners may delete files"),
        ("Sprint 13 ends on Friday", "Sprint 12 ends on Friday"),
        ("Requests stay below 200 ms", "Requests stay below 300 ms"),
        ("The build needs Node 22 or newer", "The build needs Node 20 or newer"),
        ("Batches have 5 rows at most", "Batches have 9 rows at most"),
        ("The maintenance window is 02:00-03:00", "The maintenance window is 2:00-3:00"),
        ("Dropped connections are retried by HAProxy", "HAProxy handles all connections"),
        ("Requests take up to 5 seconds", "Requests take up to 9 seconds"),
        ("Dropped two flaky Selenium tests", "Browser tests run on Selenium"),
        ("Our vendor dropped Selenium", "Browser tests run on Selenium"),
        (
            "We dropped support for Python 3.9 following its end of support",
            "Our library is tested with Python 3.12",
        ),
        ("`batch_size` avoids the timeout", "`fetch_size` avoids the timeout"),
        ("The boy jumps onto the chair", "The boy jumps off the chair"),
        ("The search was fast", "The search is fast"),
        ("The gateway is called by the billing service", "The gateway calls the billing service"),
        ("All jobs of the shop need a token", "All jobs need a token"),
        ("Half of the index fits in memory", "The index fits in memory"),
        ("Only warnings or errors are kept", "Only errors are kept"),
        ("The old parser is slower than the new one", "The new one is faster than the old parser"),
        ("The parser was not rewritten by Ana", "Ana did not rewrite the parser"),
        ("Run the tests before you commit", "Never commit without running the tests"),
        ("Some endpoints need no token", "Some endpoints need a token"),
        ("A region is us-east-2", "A region is eu-west-1"),
        ("Never run migrations during the deploy", "Always run migrations before the deploy"),
        ("Maybe the search is fast enough", "The search is fast enough"),
        ("We may or may not ship the parser", "We ship the parser"),
        ("The timeout of the proxy is 30 secs", "The timeout of the proxy is 30 seconds"),
        ("Internal endpoints need a token", "Public endpoints need a token"),
        ("Nobody but Maria maintains the parser", "Maria maintains the parser"),
        ("Nobody uses the old API", "The new client is built upon the old API"),
        ("Use Redis to cache the pages", "The pages are in a cache"),
        ("Ana and Ben wrote the parser", "Ben wrote the parser"),
        ("The index is made of words and vectors in memory", "The index is made of words in memory"),
        ("The race is 26 miles and 385 yards long", "The race is 26 miles"),
        ("x" * 100_000, "x" * 100_000),
        ("", ""),
    ],
)
def test_in_doubt_it_is_unclear(new: str, old: str) -> None:
    assert stance(new, old) == Stance("unclear")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The build needs Python 3.12", "The build of the shop needs Python 3.12 and Node"),
        ("Tests run in two minutes", "Tests run in two minutes, see tests/run.sh"),
        ("All jobs need a token", "All jobs need a token, since the audit"),
        ("Never log a request's body", "Seen again. Never log a request's body in the shop."),
        ("We chose uv and the build is fast", "The build is fast"),
        ("The parser was rewritten, and it is fast", "The parser was rewritten"),
        ("Backups run at 02:00", "Backups run at 2:00:00"),
        (TITLE, TITLE),
    ],
)
def test_what_holds_all_of_another_in_its_order_is_for_it(one: str, other: str) -> None:
    assert stance(one, other) == stance(other, one) == Stance("for", "restated")


@pytest.mark.parametrize(("new", "old"), LOOKING_ALIKE)
def test_what_gives_up_something_else_takes_nothing_back(new: str, old: str) -> None:
    assert contradiction(new, old) is None


def test_what_prefers_one_thing_to_another_agrees_however_it_is_worded() -> None:
    assert [pair for pair in permutations(PREFERRED, 2) if contradiction(*pair)] == []
    assert contradiction("pnpm is preferred to npm", "npm is preferred to pnpm")


@pytest.mark.parametrize(("new", "old"), NOT_GIVEN_UP)
def test_what_is_denied_planned_reported_or_of_others_is_not_given_up(new: str, old: str) -> None:
    assert stance(new, old) == Stance("unclear")


@pytest.mark.parametrize(("one", "other"), [*permutations(IN_FEW_WORDS, 2)])
def test_a_preference_in_few_words_agrees_with_itself_and_not_with_its_opposite(one: str, other: str) -> None:
    new = one.format("fish", "bash")
    assert stance(new, other.format("fish", "bash")).side != "against"
    assert stance(new, other.format("bash", "fish")).side != "for"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("لم نعد نستخدم Trello للمهام.", "نستخدم Trello للمهام."),
        ("Desde marzo usamos Linear en vez de Jira.", "Usamos Jira."),
        ("Der Importer ist keineswegs schnell.", "Der Importer ist schnell."),
        ("L'import est rapide, sauf en production.", "L'import est rapide."),
        ("Quizás el importador es rápido.", "El importador es rápido."),
        ("Импорт работает быстро только на тестах.", "Импорт работает быстро."),
        ("O importador não é rápido.", "O importador é rápido."),
        ("The importer used to be fast.", "The importer is fast."),
    ],
)
def test_nothing_speaks_for_what_it_turns_or_limits_in_any_language(new: str, old: str) -> None:
    assert stance(new, old).side != "for"
    assert stance(old, new).side != "for"
