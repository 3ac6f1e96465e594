"""Pairs of notes of several sentences, the newer first: what is denied, what is kept, and what is denied outright."""

DENIED = [
    ("Python 3.13 is the oldest we still run. Lambdas were moved first.", "Minimum Python version is 3.11."),
    ("Snowflake bill: we signed for reserved credits. It is a yearly contract.", "We pay Snowflake by the query, not by reserved credits."),
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
        "Laptops are saved with kopia; duplicity has been retired. Restores are quicker.",
        "Documents are backed up with duplicity each night. Keys are in the safe.",
    ),
    (
        "Quickwit replaces Kibana. Nobody misses it.",
        "Kibana with filebeat on the ops host. Ask Noor for an account.",
    ),
    (
        "Editorial drafts are kept for 180 days. Legal asked for more time.",
        "Editorial drafts are kept for 90 days. A job removes them at night.",
    ),
]

KEPT = [
    ("Snowflake credits are reserved by the finance team.", "Dashboards load slowly, not because of reserved credits but because of the joins."),
    ("Python 3.14 is the newest we have tried. It works.", "Minimum Python version is 3.11."),
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
        "Image builds have moved to Buildah. Rootless runners were the reason.",
        "Image builds: Buildah in the cluster, cache in the registry.",
    ),
    (
        "Image search has moved to Qdrant. Vectors are of 512 dimensions.",
        "Image builds: Kaniko in the cluster, cache in the registry.",
    ),
    (
        "Retention of the billing export was raised to 90 days. The auditors asked.",
        "Drafts in the export folder are kept for 30 days. A job removes them.",
    ),
    (
        "The import window is 12 minutes. Alerts fire beyond.",
        "The import window took 9 minutes. Indexes were warm.",
    ),
    (
        "We might upgrade the warehouse to ClickHouse 24. Projections would help.",
        "The warehouse runs on ClickHouse 23. Schema changes go through Marta.",
    ),
    (
        "The crawler waits 4 seconds between pages. Two sites had blocked us.",
        "We considered that the crawler waits 2 seconds between pages. Two sites block at that pace.",
    ),
    (
        "The crawler waits 4 seconds between pages. Pages are kept.",
        "The crawler waits 2 seconds between pages. Later on: it was doubled.\nThe crawler waits 4 seconds between pages.",
    ),
    (
        "Crashlytics has been switched off, I think. Reports still come in.",
        "Mobile crash reports: Crashlytics with symbol upload in the pipeline.",
    ),
    (
        "Crashlytics has been switched off? Reports still come in.",
        "Mobile crash reports: Crashlytics with symbol upload in the pipeline.",
    ),
    (
        "Crashlytics has been switched off. Reports come in elsewhere.",
        "A talk about crash reports compared Sentry, Crashlytics and Bugsnag.",
    ),
    (
        "Ana: No problem, Tom!",
        "Ana: Hey Tom!",
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
