"""Shapes of secrets that their issuers publish and nobody else uses.

Prefixes, lengths and alphabets are facts that the issuers document; all that the rules of gitleaks 8.30
(github.com/gitleaks/gitleaks, MIT) know by their shape alone are among them. A shape that may go on does so
to the end of its word, so that of many glued together none is left.
"""

import re
from itertools import groupby

CHARACTERS_MIN = 15
"""No shape is shorter, none contains a space, and all have digits or capitals."""

# The kind, how the secrets begin, and what follows.
SHAPES = (
    ("adobe_secret", "p8e-", r"[0-9A-Za-z]{32}\b"),
    ("age_key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}\b"),
    ("airtable_token", "pat", r"[0-9A-Za-z]{14}\.[0-9a-f]{64}\w*"),
    ("alibaba_access_key", "LTAI", r"(?=\w{0,19}[0-9])[0-9A-Za-z]{20}\b"),
    ("anthropic_key", "sk-ant-", r"[\w-]{20,}"),
    ("artifactory_key", "AKCp cmVmd", r"[0-9A-Za-z]{59}\w*"),
    ("asana_token", "0/ 1/ 2/", r"[0-9]{15,17}[/:][0-9a-f]{32}\b"),
    ("atlassian_token", "ATATT3 ATCTT3", r"[\w=-]{50,}"),
    ("atlassian_token", "ATBB ATTA", r"[0-9A-Za-z]{32}\w*"),
    (
        "authress_key",
        "sc_ ext_ scauth_ authress_",
        r"[0-9A-Za-z]{5,30}\.[0-9a-z]{4,6}\.acc[_-][0-9a-z-]{10,32}\.[\w+/=-]{30,}",
    ),
    ("aws_access_key", "AKIA ASIA ABIA ACCA A3T", r"[0-9A-Z]{16,17}\b"),
    ("aws_bedrock_key", "ABSK", r"[0-9A-Za-z+/]{100,}={0,2}"),
    ("aws_bedrock_key", "bedrock-api-key-YmVkcm9jay5", r"[\w+/=%&.-]{16,}"),
    ("azure_client_secret", "", r"(?<![~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~.-])"),
    ("bitbucket_token", "BBDC-", r"[0-9A-Za-z+/]{40,}={0,2}"),
    ("brevo_key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-\w{16,}"),
    ("buildkite_token", "bkua_", r"[0-9a-f]{40}\w*"),
    ("cargo_token", "cio", r"(?=[0-9A-Za-z]{0,31}[0-9])(?=[0-9A-Za-z]{0,31}[A-Z])[0-9A-Za-z]{32}\b"),
    ("circleci_token", "CCIPAT_ CCIPRJ_", r"[0-9A-Za-z]{16,40}_[0-9a-f]{40}\w*"),
    ("clickhouse_key", "4b1d", r"(?=[0-9A-Za-z]{0,37}[A-Z])[0-9A-Za-z]{38}\b"),
    ("clojars_token", "CLOJARS_", r"[0-9A-Za-z]{60}\w*"),
    ("cloudflare_token", "cfk_ cfut_ cfat_", r"[0-9A-Za-z]{40}\w*"),
    ("cloudflare_token", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}\w*"),
    ("contentful_token", "CFPAT-", r"[\w-]{43,}"),
    ("databricks_token", "dapi", r"[0-9a-f]{32}(?:-[0-9])?\b"),
    ("defined_networking_key", "dnkey-", r"[\w=-]{20,}"),
    ("deno_token", "ddp_ ddw_", r"[0-9A-Za-z]{36}\w*"),
    ("digitalocean_token", "doo_v1_ dop_v1_ dor_v1_ dot_v1_", r"[0-9a-f]{64}\w*"),
    ("discord_token", "M N O", r"[\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}"),  # as detect-secrets has it
    ("docker_token", "eyJhdXRocyI6", r"[\w+/]{16,}={0,2}"),  # a configuration's, in base64
    ("docker_token", "dckr_pat_ dckr_oat_", r"[\w-]{27,}"),
    ("doppler_token", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[0-9A-Za-z]{40}\w*"),
    ("dropbox_token", "sl.", r"(?:u\.)?(?=[\w-]{0,200}[0-9])(?=[\w-]{0,200}[A-Z])[\w-]{60,}"),
    ("duffel_token", "duffel_test_ duffel_live_", r"[\w=-]{43,}"),
    ("dynatrace_token", "dt0", r"[a-z][0-9]{2}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{64}\w*"),
    ("easypost_key", "EZAK EZTK", r"[0-9A-Za-z]{54}\b"),
    ("facebook_token", "EAAC EAAM", r"[0-9A-Za-z]{100,}"),
    ("facebook_token", "", r"[0-9]{15,16}[|%][\w-]{27,40}(?![\w-])"),
    ("figma_token", "figd_", r"[\w-]{36,}"),
    ("firebase_key", "AAAA", r"[\w-]{7}:APA91b[\w-]{100,}"),
    ("flutterwave_key", "FLWSECK_TEST- FLWPUBK_TEST- FLWSECK- FLWPUBK-", r"[0-9A-Za-z]{12,}(?:-X)?"),
    ("fly_token", "fo1_ fm1a_ fm1r_ fm2_", r"[\w+/-]{40,}={0,3}"),
    ("frameio_token", "fio-u-", r"[\w=-]{64,}"),
    ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\w{36,}"),
    ("github_token", "github_pat_", r"\w{22,}"),
    ("gitlab_session", "_gitlab_session=", r"[0-9a-z]{32}\b"),
    (
        "gitlab_token",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glffct- glsoat- gloas- glimt- glagent-",
        r"[\w-]{20,}(?:\.[0-9a-z]{2,9})*",
    ),
    ("gitlab_token", "GR1348941", r"[\w-]{20,}"),
    ("google_api_key", "AIza", r"[\w-]{35,}"),
    ("google_oauth", "ya29. GOCSPX-", r"[\w-]{20,}"),
    ("google_refresh_token", "1//0", r"[\w-]{40,}"),
    ("grafana_token", "glc_ eyJrIjoi", r"[0-9A-Za-z+/]{32,}={0,3}"),
    ("grafana_token", "glsa_", r"[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}\b"),
    ("groq_key", "gsk_", r"[0-9A-Za-z]{40}\w*"),
    ("harness_key", "pat. sat.", r"[\w-]{22}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{20}\b"),
    ("heroku_key", "HRKU-", r"[\w-]{36,}"),
    ("honeycomb_key", "hcaik_ hcxik_ hcaic_", r"[0-9A-Za-z]{32,}"),
    ("hubspot_token", "pat-na pat-eu pat-ap", r"[0-9]-[0-9a-f]{8}-[0-9a-f-]{27}\b"),
    ("huggingface_token", "hf_ api_org_", r"[0-9A-Za-z]{30}\w*"),
    ("infracost_token", "ico-", r"[0-9A-Za-z]{32}\b"),
    ("intercom_token", "dG9rO", r"[\w+/=-]{54,}"),
    ("intra42_secret", "s-s4t2ud- s-s4t2af-", r"[0-9A-Fa-f]{64}\b"),
    ("jwt", "eyJ", r"[\w-]{8,400}+\.eyJ[\w-]{8,4000}+(?:\.[\w-]{0,})?"),
    ("jwt", "ZXlK", r"(?=[0-9A-Za-z]{0,20}[0-9])[0-9A-Za-z/_+-]{60,}={0,2}"),
    ("langfuse_key", "sk-lf-", r"[0-9a-f]{8}-[0-9a-f-]{27}\b"),
    ("langsmith_key", "lsv2_", r"[a-z]{2}_[0-9a-f]{32}_\w{10,}"),
    ("linear_key", "lin_api_ lin_oauth_", r"[0-9A-Za-z]{32}\w*"),
    ("lob_key", "test_pub_ live_pub_ test_ live_", r"[0-9a-f]{31,35}\b"),
    ("mailchimp_key", "", r"[0-9a-f]{32}-us[0-9]{1,2}\b"),
    ("mailgun_key", "key-", r"[0-9a-f]{32}\b"),
    ("mapbox_token", "sk.eyJ", r"[\w-]{16,400}+\.[\w-]{20,}"),
    ("maxmind_key", "", r"[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk\b"),
    ("mongodb_secret", "mdb_sa_sk_", r"[\w-]{40,}"),
    ("netlify_token", "nfp_", r"[0-9A-Za-z]{36}\w*"),
    ("newrelic_key", "NRAK- NRII- NRJS-", r"[0-9A-Za-z-]{19,32}\b"),
    ("notion_token", "ntn_", r"[0-9A-Za-z]{40}\w*"),
    ("notion_token", "secret_", r"[0-9A-Za-z]{43}\b"),
    ("npm_token", "npm_", r"[0-9A-Za-z]{36}\w*"),
    ("nuget_key", "oy2", r"[0-9a-z]{43}\b"),
    ("nvidia_key", "nvapi-", r"[\w-]{60,}"),
    ("octopus_key", "API-", r"(?=[0-9A-Z]{0,25}[0-9])[0-9A-Z]{26}\b"),
    ("onepassword_token", "ops_eyJ", r"[\w+/=-]{100,}"),
    (
        "onepassword_token",
        "A3-",
        r"[0-9A-Z]{6}-(?:[0-9A-Z]{11}|[0-9A-Z]{6}-[0-9A-Z]{5})(?:-[0-9A-Z]{5}){3}\b",
    ),
    ("openai_key", "sk-", r"(?=[\w-]{0,80}[0-9])(?=[\w-]{0,80}(?:[A-Z]|[0-9a-f]{32}))[\w-]{20,}"),
    ("openshift_token", "sha256~", r"[\w-]{43,}"),
    ("paypal_token", "access_token$production$ access_token$sandbox$", r"[0-9a-z]{16}\$[0-9a-f]{32}\b"),
    ("perplexity_key", "pplx-", r"[0-9A-Za-z]{40}\w*"),
    ("pinecone_key", "pcsk_", r"[0-9A-Za-z]{5,8}_[0-9A-Za-z]{40,}"),
    ("plaid_token", "access-sandbox- access-development- access-production-", r"[0-9a-f]{8}-[0-9a-f-]{27}\b"),
    ("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{32,}"),
    ("posthog_key", "phx_", r"\w{32,}"),
    ("postman_key", "PMAK-", r"[0-9A-Fa-f]{24}-[0-9A-Fa-f]{34}\b"),
    ("prefect_token", "pnu_ pnb_", r"[0-9A-Za-z]{36}\w*"),
    ("pulumi_token", "pul-", r"[0-9a-f]{40}\b"),
    ("pypi_token", "pypi-", r"[\w-]{50,}"),
    ("razorpay_key", "rzp_live_ rzp_test_", r"[0-9A-Za-z]{14}\b"),
    ("readme_token", "rdme_", r"[0-9a-z]{70}\w*"),
    ("render_key", "rnd_", r"[0-9A-Za-z]{28,40}\b"),
    ("replicate_token", "r8_", r"[0-9A-Za-z]{37}\w*"),
    ("resend_key", "re_", r"(?=\w{0,30}[0-9])(?=\w{0,30}[A-Z])[0-9A-Za-z]{8}_[0-9A-Za-z]{24}\b"),
    ("rubygems_key", "rubygems_", r"[0-9a-f]{48}\w*"),
    ("scalingo_token", "tk-us-", r"[\w-]{48}(?![\w-])"),
    ("sendgrid_key", "SG.", r"[\w-]{16,32}\.[\w-]{16,}"),
    ("sendgrid_key", "SG.", r"[\w=.-]{66}(?![\w=.-])"),
    ("sentry_token", "sntrys_ sntryu_", r"[\w+/=-]{40,}"),
    ("settlemint_token", "sm_aat_ sm_pat_ sm_sat_", r"[0-9A-Za-z]{16}\b"),
    ("shippo_token", "shippo_live_ shippo_test_", r"[0-9A-Fa-f]{40}\w*"),
    ("shopify_token", "shpat_ shpca_ shppa_ shpss_", r"[0-9A-Fa-f]{32}\w*"),
    (
        "slack_token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xapp-",
        r"[\w-]{10,}",
    ),
    ("sonar_token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}\w*"),
    ("sourcegraph_token", "sgp_", r"(?:(?:[0-9A-Fa-f]{16}|local)_)?[0-9A-Fa-f]{40}\w*"),
    ("square_token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    ("square_token", "EAAA", r"[\w-]{60,4000}+(?![+/=])"),
    ("stripe_key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", r"\w{10,}"),
    ("supabase_key", "sbp_", r"[0-9a-f]{40}\w*"),
    ("supabase_key", "sb_secret_", r"[\w-]{20,}"),
    ("tailscale_key", "tskey-", r"[a-z]{3,12}-\w{8,40}(?:-\w{8,})?"),
    ("tavily_key", "tvly- tvly-dev- tvly-prod-", r"[0-9A-Za-z]{32}\w*"),
    ("telegram_token", "", r"(?:bot)?[0-9]{8,10}:A[\w-]{34,}"),
    ("terraform_token", "", r"[0-9A-Za-z]{14}\.atlasv1\.[\w=-]{60,}"),
    ("twilio_key", "SK", r"(?:[0-9A-Fa-f]{32}|[0-9a-z]{32})\b"),
    ("twilio_key", "AC", r"[0-9a-f]{32}:[0-9a-f]{32}\b"),
    ("typeform_token", "tfp_", r"[\w.=-]{59,}"),
    ("vault_token", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    ("vercel_token", "vcp_ vci_ vca_ vcr_ vck_", r"[0-9A-Za-z]{24}\w*"),
    ("xai_key", "xai-", r"[0-9A-Za-z]{40}\w*"),
)

# Longer beginnings first; parted by their first letter, so that few are tried anywhere.
_ROWS = sorted(
    ((start, kind, rest) for kind, starts, rest in SHAPES for start in starts.split(" ")), reverse=True
)
_BY_LETTER = (
    (letter, "|".join(f"{re.escape(start[1:])}{rest}()" for start, _, rest in rows))
    for letter, rows in groupby(_ROWS, lambda row: row[0][:1])
)
# A line break written as \n, as in JSON, glues its letter to what follows.
ISSUED = re.compile(
    rf"(?:\b|(?<=\\[nrt]))(?:{'|'.join(f'{re.escape(letter)}(?:{rests})' for letter, rests in _BY_LETTER)})"
)
_KINDS = [kind for _, kind, _ in _ROWS]


def kind_of(match: re.Match[str]) -> str:
    """Return the kind of secret that a match of `ISSUED` is."""
    return _KINDS[(match.lastindex or 1) - 1]
