"""What notes of several sentences deny of older ones: tables of pairs as they are stored in practice, and the guards around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.commands.changes import SENTENCES_MAX, read
from omegad.commands.contradiction import STRENGTH_MIN, contradiction
from omegad.commands.measures import Quantity, quantities, versions
from omegad.commands.prose import prose, without_aside

SIMILARITY = 0.6

DENIED = [  # the newer first
    (
        "We no longer use Mailgun. Receipts go out through Postmark since bounces were handled better there.",
        "Receipts are sent with Mailgun. The API key is in the vault under mail/prod, templates live in the repository.",
    ),
    (
        "Retired the Solr cluster last week, Typesense took its place. Facets are computed while indexing.",
        "Catalogue search runs on Solr 9, three shards. Reindexing takes about an hour and is started by hand.",
    ),
    (
        "Thumbnails have been moved to libvips. ImageMagick needed a gigabyte for the large scans.",
        "Thumbnails are made with ImageMagick in the upload worker. Originals stay untouched in the bucket.",
    ),
    (
        "Grafana replaces Kibana for the log dashboards. Loki keeps logs for a month.",
        "Log dashboards: Kibana on the ops host. Ask Noor for an account.",
    ),
    (
        "Migrated the newsletter from Sendy to Listmonk. Subscribers were imported as CSV.",
        "The newsletter is sent with Sendy. Bounces are collected by SES.",
    ),
    (
        "Password resets are valid for 20 minutes. Support asked for it, phones are slow to show the mail.",
        "Password resets are valid for 60 minutes. The token is stored hashed.",
    ),
    (
        "The upload limit was raised to 250 MB, scans of plans are large. The proxy's body size follows it.",
        "Uploads are limited to 100 MB by the proxy. Larger ones get a 413.",
    ),
    (
        "Snapshot retention was shortened to 14 days; nobody restored anything older.",
        "Snapshots are kept for 30 days. They live in another region.",
    ),
    (
        "Upgraded the warehouse to ClickHouse 24 over the weekend. Projections work with lightweight deletes now.",
        "The warehouse runs on ClickHouse 23, two shards with a replica each. Schema changes go through Marta.",
    ),
    (
        "We build with Gradle 8 now. The configuration cache saves half a minute.",
        "The Android app is built with Gradle 7. Wrapper is committed.",
    ),
    (
        "Feature flags are served by Unleash, LaunchDarkly was dropped. The bill had doubled.",
        "Feature flags come from LaunchDarkly. Keys are per environment, defaults are in flags.ts.",
    ),
    (
        "Heartbeats are sent every 20 seconds instead of every 5, the broker was flooded.",
        "Gateways send heartbeats every 5 seconds. Three missing ones raise an alarm.",
    ),
    (
        "Code formatting: we use Biome rather than Prettier. One config file for lint and format.",
        "Code formatting runs with Prettier on commit. Line width 100.",
    ),
    (
        "Vagrant is gone, the dev environment is a Nix flake. Onboarding takes ten minutes.",
        "The dev environment uses Vagrant with VirtualBox. Boxes are built monthly.",
    ),
    (
        "Session timeout lowered to 15 minutes after the audit. Refresh keeps working in the background.",
        "Session timeout: 45 minutes. Set in auth/session.toml.",
    ),
    (
        "Invoice numbering has been moved to Postgres sequences. Gaps are allowed by the auditor.",
        "Invoice numbering uses a Redis counter. It is reset in January.",
    ),
    (
        "Stopped using Terragrunt. Plain modules are enough with workspaces.",
        "Infrastructure is applied with Terragrunt through the pipeline. State is in S3.",
    ),
    (
        "Releases are tagged with rebase merges, history stays linear. Branches are deleted.",
        "Releases are tagged with squash merges.",
    ),
    (
        "Nightly exports: switched from Fivetran to Airbyte. Connectors are pinned.",
        "Nightly exports run on Fivetran. It fills the raw schema.",
    ),
    (
        "The crawler waits 4 seconds between pages. Two sites had blocked us.",
        "The crawler waits 2 seconds between pages. robots.txt is read once a day.",
    ),
    (
        "`legacy_auth_header` has been removed. Clients send a bearer token.",
        "Clients of the first version send `legacy_auth_header`. It carries the key in plain text.",
    ),
    (
        "Image builds have moved to Buildah. Rootless runners were the reason.",
        "Image builds: Kaniko in the cluster, cache in the registry.",
    ),
    (
        "Mobile crash reports go to Bugsnag now. Crashlytics has been switched off, its SDK slowed the start.",
        "Mobile crash reports: Crashlytics with symbol upload in the pipeline.",
    ),
    (
        "Replaced Nagios with Checkmk on all hosts. Old alerts were not carried over.",
        "Monitoring of the hosts is done through Nagios. Alerts go to the pager.",
    ),
    (
        "The archive job starts every 6 hours rather than 24. Disks filled up otherwise.",
        "The archive job starts every 24 hours. It compresses with zstd.",
    ),
    (
        "From now on reviews need two approvals. One was waved through too often.",
        "Reviews need one approval. Owners are in CODEOWNERS.",
    ),
    (
        "Maps are rendered by MapLibre, Mapbox has been replaced because of its licence.",
        "Maps are rendered with Mapbox. Tiles are cached for a week.",
    ),
    (
        "Bumped the runtime to Deno 2. Imports from npm resolve natively.",
        "The edge functions run on Deno 1.40. Permissions are listed in deno.json.",
    ),
    (
        "Contracts are signed through Skribble; DocuSign is no longer used. Templates were rebuilt.",
        "Contracts are signed through DocuSign. The webhook stores the PDF.",
    ),
    (
        "Moved off Heroku in spring. The hobby apps are on Fly.",
        "The hobby apps run on Heroku. Deploys are git pushes.",
    ),
    (
        "Connection pool extended to 40 connections. Reports starved the requests.",
        "The connection pool holds 10 connections. It is shared by both schemas.",
    ),
    (
        "Editorial drafts are kept for 180 days. Legal asked for more time.",
        "Editorial drafts are kept for 90 days. A job removes them at night.",
    ),
]

KEPT = [
    (
        "The report service moved from Oracle to Postgres. Views were rewritten.",
        "The ledger is stored in Oracle. Backups are taken by the provider.",
    ),
    (
        "We tried Solr for the catalogue search. It was slower on prefixes.",
        "Catalogue search runs on Typesense. Facets are computed while indexing.",
    ),
    (
        "We considered moving from Mailgun to Postmark. Nothing is decided.",
        "Receipts are sent with Mailgun. Templates live in the repository.",
    ),
    (
        "Should we replace Kibana with Grafana? It would save a licence.",
        "Log dashboards: Kibana on the ops host.",
    ),
    (
        "Plans to migrate the newsletter from Sendy to Listmonk. Sasha writes a proposal.",
        "The newsletter is sent with Sendy. Bounces are collected by SES.",
    ),
    (
        "Password resets are valid for 20 minutes. The token is stored hashed.",
        "Invitations are valid for 60 minutes. The token is stored hashed.",
    ),
    (
        "The crawler waits 4 seconds between pages. Two sites had blocked us.",
        "The mail sender waits 2 seconds between batches. The provider throttles otherwise.",
    ),
    (
        "The import took 12 minutes on Monday. Indexes were cold.",
        "The import took 9 minutes last month. Indexes were warm.",
    ),
    (
        "Uploads are limited to 100 MB by the proxy. Larger ones get a 413.",
        "Uploads are stored for 30 days. Then a job moves them to the archive.",
    ),
    (
        "ClickHouse is fast at counting. We use projections for the funnel.",
        "The warehouse runs on ClickHouse 23. Schema changes go through Marta.",
    ),
    (
        "Added a Redis cache to the price endpoint. Entries live for a minute.",
        "The cart lives in Redis. Keys expire after a week.",
    ),
    (
        "Dropped the unused column discount_code from orders. The migration is 0142.",
        "Orders are written to Postgres by the checkout. Totals are in cents.",
    ),
    (
        "The iOS app uses Swift 6. Concurrency checks are strict.",
        "The Android app uses Kotlin 2. Coroutines are scoped to view models.",
    ),
    (
        "Vagrant is fine for the training machines. Boxes are built monthly.",
        "The dev environment uses Nix. Vagrant was too slow.",
    ),
    (
        "Removed the retry around the payment call. It charged twice.",
        "The mail call is retried three times. Failures land in the dead letter queue.",
    ),
    (
        "If Heroku raises its prices again we leave. Fly would be the choice.",
        "The hobby apps run on Heroku. Deploys are git pushes.",
    ),
    (
        "Terragrunt keeps the backends short. Modules are versioned by tag.",
        "Infrastructure is applied with Terragrunt. State is in S3.",
    ),
    (
        "Alerts of the search go to Lena. She is in from nine to five.",
        "Alerts of the billing go to Omar. He is in on weekdays.",
    ),
    (
        "The staging pool holds 10 connections. The production pool holds 40 connections.",
        "The staging pool holds 10 connections. Reports use it too.",
    ),
    (
        "The first attempt waits 2 seconds. Later ones double.",
        "The second attempt waits 4 seconds. Later ones double.",
    ),
    (
        "The minimum delay is 5 seconds. Jitter is added.",
        "The maximum delay is 60 seconds. Jitter is added.",
    ),
    (
        "Gateways send heartbeats every 5 seconds. Three missing ones raise an alarm.",
        "Gateways send logs every 30 seconds. They are batched.",
    ),
    (
        "Fixed a crash of the exporter on empty tables. It came with release 4.2.",
        "Fixed a crash of the importer on empty tables. It came with release 4.1.",
    ),
    (
        "Maps are rendered by MapLibre. Tiles are cached for a week.",
        "We never use Mapbox for the maps. Its licence forbids caching.",
    ),
    (
        "Moved the meeting to Thursday. Everybody agreed.",
        "The meeting with the auditors is about retention. Bring the list of tables.",
    ),
    (
        "The licence of Mapbox changed. Read it before the renewal.",
        "Maps are rendered with Mapbox. Tiles are cached for a week.",
    ),
    (
        "Sasha moved to Lisbon. She works in the afternoons.",
        "Sasha owns the exporter. Ask her before a release.",
    ),
    (
        "No worries, Ana! See you on Friday.",
        "Hey Ana! Long time no see. How was the trip?",
    ),
    (
        "No problem, it worked in the end. The certificate was stale.",
        "It worked in the end. The certificate was stale.",
    ),
    (
        "Here is the diff:\n```\n- url = mailgun\n+ url = postmark\nWe no longer use Mailgun\n```\nIt is only a sketch.",
        "Receipts are sent with Mailgun. Templates live in the repository.",
    ),
    (
        "Search uses Typesense rather than Solr. Facets are computed while indexing.",
        "Search was rebuilt. It is served with Typesense instead of with Solr, and prefixes match.",
    ),
    (
        "`legacy_auth_header` has been removed. Clients send a bearer token.",
        "The parameter `legacy_auth_header` is gone. Its tests went with it.",
    ),
    (
        "user: deployed",
        "user: looks good",
    ),
    (
        "---\ntitle: Caching\nnav_title: Caching pages\n---\nHow pages are cached.",
        "---\ntitle: Routing\nnav_title: Defining routes\n---\nHow routes are defined.",
    ),
    (
        "The Nix flake pins Python 3.13 for the notebooks. Kernels are rebuilt weekly.",
        "The lambda uses Python 3.11. Layers are built in the pipeline.",
    ),
    (
        "Kibana needs an account. Ask Noor for it.",
        "Log dashboards: Kibana on the ops host.",
    ),
]

OUTRIGHT = [
    ("We no longer use Mailgun.", "Receipts are sent with Mailgun."),
    ("Vagrant is gone. The dev environment is a Nix flake.", "The dev environment uses Vagrant. Boxes are small."),
    (
        "Mobile crash reports go to Bugsnag. Crashlytics has been switched off.",
        "Mobile crash reports: Crashlytics with symbol upload in the pipeline.",
    ),
    ("Log dashboards are in Grafana. Kibana has been decommissioned.", "Log dashboards: Kibana on the ops host."),
]

PIECES = st.lists(st.sampled_from([*(text for pair in (*DENIED, *KEPT) for text in pair)]), min_size=1, max_size=3).map("\n".join)


@pytest.mark.parametrize(("new", "old"), DENIED)
def test_a_sentence_among_others_denies_one_of_the_older_note(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is not None
    assert STRENGTH_MIN <= found.strength <= 1


@pytest.mark.parametrize(("new", "old"), KEPT)
def test_notes_of_other_things_of_plans_and_of_the_past_deny_nothing(new: str, old: str) -> None:
    assert contradiction(new, old, 0.8) is None


@pytest.mark.parametrize(("new", "old"), OUTRIGHT)
def test_a_thing_that_is_gone_altogether_is_denied_explicitly_where_the_older_note_is_about_it(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is not None
    assert found.is_explicit
    far = contradiction(new, old, 0.1)
    assert far is None or not far.is_explicit or far.strength < found.strength


def test_what_is_gone_from_elsewhere_or_is_a_small_part_of_the_older_note_is_not_denied_explicitly() -> None:
    for new, old in (
        ("The landing page is plain HTML. Alpine has been dropped.", "The admin uses Alpine."),
        (
            "Alpine has been dropped.",
            "The admin uses Alpine. Forms post to the same page, errors come back as fragments, and tables sort on the server.",
        ),
        ("The admin uses Stimulus instead of Alpine.", "Widgets of the admin and of the shop are all driven with Alpine."),
    ):
        found = contradiction(new, old, SIMILARITY)
        assert found is None or not found.is_explicit


@pytest.mark.parametrize(("new", "old"), [*DENIED, *KEPT])
def test_no_note_denies_itself_or_a_note_that_says_it_too(new: str, old: str) -> None:
    assert contradiction(new, new, 1.0) is None
    assert contradiction(old, f"{old}\n{new}", 1.0) is None


@pytest.mark.parametrize(("new", "old"), DENIED)
def test_far_notes_deny_less_or_nothing(new: str, old: str) -> None:
    near, far = contradiction(new, old, 0.9), contradiction(new, old, -1.0)
    assert near is not None
    assert far is None or far.strength < near.strength


def test_without_a_similarity_the_words_that_notes_share_tell_how_near_they_are() -> None:
    new = "Catalogue search has been moved to Typesense."
    assert contradiction(new, "Catalogue search runs on Solr.", None) is not None
    assert contradiction(new, "The shop window of the bakery runs on Solr.", None) is None


def test_only_the_first_sentences_of_a_note_are_read() -> None:
    filling = "".join(f"Step {chr(97 + number) * 3} is done by hand. " for number in range(SENTENCES_MAX))
    new, old = "Crashlytics has been switched off.", "Crash reports: Crashlytics with symbol upload."
    assert contradiction(f"{new} {filling}", old, SIMILARITY) is not None
    assert contradiction(filling + new, old, SIMILARITY) is None
    assert len(read(filling + new)) == SENTENCES_MAX


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wait 30 s", [("30", "second", "")]),
        ("wait 30s", [("30", "second", "")]),
        ("wait thirty seconds", [("30", "second", "")]),
        ("every 30 minutes rather than 15", [("30", "minute", "15")]),
        ("every 20 seconds instead of every 5, as before", [("20", "second", "5")]),
        ("250 MB for 2 hours", [("250", "mb", ""), ("2", "hour", "")]),
        ("release 4.1 of the shop", []),
    ],
)
def test_quantities_are_numbers_with_a_unit(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert list(quantities(text)) == [Quantity(*one) for one in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The warehouse runs on ClickHouse 23", [("clickhouse", "23")]),
        ("Moved to PostgreSQL 16.2 in May", [("postgresql", "16.2")]),
        ("Minimum iOS version is 15.1", [("ios", "15.1")]),
        ("Fixed in Django 4.1", []),
        ("We moved to Paris 20 days later", []),
        ("Job 18 runs on runner-4", []),
    ],
)
def test_versions_are_those_that_are_used_or_needed(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(versions(text)) == expected


def test_prose_is_without_code_front_matter_and_roles() -> None:
    assert prose("Run it.\n```\nport = 80\n```\nThen wait.").split() == ["Run", "it.", "Then", "wait."]
    assert prose("---\ntitle: A\n---\nText").strip() == "Text"
    assert prose("User: it works\nAssistant: good").splitlines() == ["it works", "good"]
    assert prose("  - a list item (nested)\nOwner: Tom") == "  - a list item (nested)\nOwner: Tom"
    assert prose("So:\n    for x in y: z(x)\ndef run(self):").strip() == "So:"
    assert without_aside("Maria: No worries, John.") == "Maria: John."
    assert without_aside("No cache is used") == "No cache is used"


@given(PIECES, PIECES)
def test_any_notes_can_be_compared(new: str, old: str) -> None:
    found = contradiction(new, old, SIMILARITY)
    assert found is None or (STRENGTH_MIN <= found.strength <= 1 and found.reason)
    assert contradiction(new, new, SIMILARITY) is None


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert len(read(text)) <= SENTENCES_MAX
