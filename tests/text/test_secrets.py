"""Which texts are secrets, and which only look a little like some."""

import importlib
import json
import random
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omegad.runtime.digests import DigestKey
from omegad.text.redaction import issuers, key_names, redact, redact_name, rules, secrets
from tests.builders import at_most

# Put together from parts, so that no scanner of repositories takes them for real.
HEX_32 = "0f1e2d3c4b5a6978" * 2
HEX_40 = HEX_32 + "8796a5b4"
HEX_64 = HEX_32 * 2
WORDS_43 = "aB3dE6gH9jK2mN5pQ8sT" + "1vW4yZ7bC0eF3hJ6kL9nP2r"
RANDOM = "q7" + "Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd5Jf0Gs" + "Ua"

# A bar parts a prefix from its body; letters in braces stand for hexadecimal digits, and for letters and
# digits.
SHAPES = """
adobe_secret p8e-|{h32}
age_key AGE-SECRET-KEY-1|QPZRY9X8GFQPZRY9X8GFQPZRY9X8GFQPZRY9X8GFQPZRY9X8GF2TVDW0S3
airtable_token pat|AbCdEfGhIjKlMn.{h64}
alibaba_access_key LTAI|5tAbCdEfGh1jKlMnOpQr
anthropic_key sk-ant-|api03-a1B2c3D4e5F6g7H8i9J0_-
artifactory_key AKCp|{w43}{w43}
asana_token 1/|1234567890123456:{h32}
atlassian_token ATATT3|xFfGF0{w43}a1B2c3D4=0A1B2C3D
atlassian_token ATBB|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF
authress_key sc_|a1b2c3d4e5.x1y2.acc_a1b2c3d4e5f6.{w43}
aws_access_key AKIA|IOSFODNN7EXAMPLE
aws_bedrock_key ABSK|{w43}{w43}{w43}
aws_bedrock_key bedrock-api-key-|YmVkcm9jay5hbWF6b25hd3MuY29tLz9BY3Rpb249
azure_client_secret abc8Q~|dEfGhIjKlMnOpQrStUvWxYz0123456789A
bitbucket_token BBDC-|{w43}a
brevo_key xkeysib-|{h64}-aB3dE6gH9jK2mN5p
buildkite_token bkua_|{h40}
cargo_token cio|a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6
circleci_token CCIPAT_|aB3dE6gH9jK2mN5pQ8sT1v_{h40}
clickhouse_key 4b1d|a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9
clojars_token CLOJARS_|{h40}a1b2c3d4e5f6g7h8i9j0
cloudflare_token cfut_|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D40a1b2c3d
contentful_token CFPAT-|{w43}
databricks_token dapi|{h32}
defined_networking_key dnkey-|a1B2c3D4e5F6g7H8i9J0k1L2m3-{w43}
deno_token ddp_|a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8
digitalocean_token dop_v1_|{h64}
discord_token MTk4NjIyNDgzNDcxOTI1MjQ4.|Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs
docker_token dckr_pat_|a1B2c3D4e5F6g7H8i9J0k1L2m3N
doppler_token dp.st.dev.|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4
dropbox_token sl.|{w43}{w43}{w43}
duffel_token duffel_live_|{w43}
dynatrace_token dt0c01.|ABCDEFGHIJ0123456789ABCD.ABCDEFGHIJ0123456789ABCDEFGHIJ0123456789ABCDEFGHIJ0123456789ABCD
easypost_key EZAK|{h40}a1B2c3D4e5F6g7
facebook_token EAAC|{w43}{w43}{w43}
facebook_token 1234567890123456|%a1B2c3D4e5F6g7H8i9J0k1L2m3N
figma_token figd_|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4
firebase_key AAAA|a1B2c3D:APA91b{w43}{w43}{w43}
flutterwave_key FLWSECK_TEST-|{h32}-X
fly_token fo1_|{w43}
frameio_token fio-u-|{w43}{w43}
github_token ghp_|a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i9J0
github_token github_pat_|11ABCDEFG0{w43}
gitlab_session _gitlab_session=|{h32}
gitlab_token glpat-|a1B2c3D4e5F6g7H8i9J0
google_api_key AIza|SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q
google_oauth GOCSPX-|a1B2c3D4e5F6g7H8i9J0k1L2m3N4
google_refresh_token 1//0|{w43}
grafana_token glsa_|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4_0a1b2c3d
grafana_token glc_|eyJvIjoiMTIzNDU2Nzg5MCIsIm4iOiJ0ZXN0In0=
groq_key gsk_|a1B2c3D4e5F6ga1B2c3D4e5F6ga1B2c3D4e5F6ga1B2c3D4e5F6g
harness_key pat.|a1B2c3D4e5F6g7H8i9J0k1.a1B2c3D4e5F6g7H8i9J0k1L2.a1B2c3D4e5F6g7H8i9J0
heroku_key HRKU-|12345678-1234-4abc-9def-1234567890ab
honeycomb_key hcaik_|{h32}{h32}
hubspot_token pat-na1-|12345678-1234-4abc-9def-1234567890ab
huggingface_token hf_|aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH
infracost_token ico-|{h32}
intercom_token dG9rO|{w43}{w43}
intra42_secret s-s4t2ud-|{h64}
jwt eyJ|hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N
jwt ZXlK|aGJHY2lPaUpJVXpJMU5pSXNJblI1Y0NJNklrcFhWQ0o5LmV5SnpkV0lpT2lJeE1qTTBOVFkzT0Rrd0lpd2libUZ0WlNJNklrcHZhRzRnUkc5bElpd2lhV0YwSWpveE5URTJ
langfuse_key sk-lf-|12345678-1234-4abc-9def-1234567890ab
langsmith_key lsv2_pt_|{h32}_0a1b2c3d4e
linear_key lin_api_|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4
lob_key live_|{h32}abc
mailchimp_key {h32}|-us12
mailgun_key key-|{h32}
mapbox_token sk.eyJ|1IjoiYm9iIiwiYSI6ImNrbGJ6In0.aB3dE6gH9jK2mN5pQ8sT1v
maxmind_key a1B2c3_|a1B2c3D4e5F6g7H8i9J0k1L2m3N4o_mmk
mongodb_secret mdb_sa_sk_|{w43}
netlify_token nfp_|a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6
newrelic_key NRAK-|A1B2C3D4E5F6G7H8I9J0K1L2M3N
notion_token ntn_|1234567890a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4
notion_token secret_|{w43}
npm_token npm_|a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8
nuget_key oy2|a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v
nvidia_key nvapi-|{w43}a1B2c3D4e5F6g7H8i9J0k
octopus_key API-|A1B2C3D4E5F6G7H8I9J0K1L2M3
onepassword_token ops_eyJ|{w43}{w43}{w43}
onepassword_token A3-|ABC123-DEF456-GH789-JK123-LM456-NP789
openai_key sk-proj-|a1B2c3D4e5F6g7H8i9J0a1B2
openai_key sk-or-v1-|{h64}
openshift_token sha256~|{w43}
paypal_token access_token$production$|a1b2c3d4e5f6g7h8${h32}
perplexity_key pplx-|a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4a1B2c3D4
pinecone_key pcsk_|3fGh2_{w43}aB3dE6gH9jK2mN5pQ8sT
plaid_token access-sandbox-|12345678-1234-4abc-9def-1234567890ab
planetscale_token pscale_tkn_|{w43}
posthog_key phx_|{w43}
postman_key PMAK-|0f1e2d3c4b5a69788796a5b4-{h32}ab
prefect_token pnu_|a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8
pulumi_token pul-|{h40}
pypi_token pypi-|AgEIcHlwaS5vcmcAgEIcHlwaS5vcmcAgEIcHlwaS5vcmcAgEIcHlwaS5vcmc
razorpay_key rzp_live_|a1B2c3D4e5F6g7
readme_token rdme_|{h32}a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9
render_key rnd_|a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6
replicate_token r8_|a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s
resend_key re_|aB3dE6gH_9jK2mN5pQ8sT1vW4yZ7bC0eF
rubygems_key rubygems_|0f1e2d3c4b5a0f1e2d3c4b5a0f1e2d3c4b5a0f1e2d3c4b5a
scalingo_token tk-us-|{w43}a1B2c
sendgrid_key SG.|a1B2c3D4e5F6g7H8i9J0k1.{w43}
sentry_token sntryu_|{h64}
settlemint_token sm_pat_|a1B2c3D4e5F6g7H8
shippo_token shippo_live_|{h40}
shopify_token shpat_|{h32}
slack_token xoxb-|123456789012-abcdefghij
sonar_token squ_|{h40}
sourcegraph_token sgp_|local_{h40}
square_token sq0atp-|aB3dE6gH9jK2mN5pQ8sT1v
stripe_key sk_live_|a1B2c3D4e5F6g7H8
supabase_key sbp_|{h40}
tailscale_key tskey-auth-|kA1B2C3CNTRL-a1B2c3D4e5F6g7H8
tavily_key tvly-dev-|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF
telegram_token 123456789:|AAHd5Jf0GsUaq7Zt3Lx9Vb2Nk8Wm4Rp6Yc1
terraform_token a1B2c3D4e5F6g7.atlasv1.|{w43}a1B2c3D4e5F6g7H8i9
twilio_key SK|{h32}
typeform_token tfp_|{w43}{w43}
vault_token hvs.|CAESIJa1B2c3D4e5F6g7H8i9J0
vercel_token vcp_|{w43}
xai_key xai-|{h40}
high_entropy wJalr8UtnFEM1/K7MDENG|+bPxRf3CYzEq9LmVa5T
"""
ISSUED = [
    tuple(line.replace("|", "").format(h32=HEX_32, h40=HEX_40, h64=HEX_64, w43=WORDS_43).split(" "))
    for line in SHAPES.strip().split("\n")
]
PRIVATE_KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAA\n-----END OPENSSH PRIVATE KEY-----"
)
EXAMPLES = {"private_key": PRIVATE_KEY} | {
    kind: secret
    for kind, secret in reversed(ISSUED)
    if kind in {"github_token", "aws_access_key", "openai_key", "jwt", "npm_token"}
}

# The secret is put where `@@` is.
GIVEN = [
    ("AWS Secret Access Key [None]: @@", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEX"),
    ("AWS Secret Access Key [****************TUVW]: @@", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEX"),
    ("setx DB_PASSWORD @@", "walrusfrost"),
    ("mysql://bob:@@@db:3306/shop", "wal@rus"),
    ("postgres://anna:@@@db.example.com/x", "p@ssw0rd9"),
    ("https://u:@@@git.example.com/r.git?to=a@b.example", "P@ssw0rd!"),
    ("postgres://anna:@@@db:5432/x", "p@ss@w0rd9"),
    ("postgres://anna:@@@db:5432, mail anna@example.com", "p@s:w,0@rd9"),
    ("Twilio's auth token @@", "0123456789abcdef" * 2),
    ("curl -H 'Cookie: theme=dark; sessionid=@@; a=b' https://shop.example", "0123456789abcdef" * 2),
    ("Set-Cookie: connect.sid=@@; Path=/", "s%3Ab1c2d3e4f5g6h7i8j9k0"),
    ("seed phrase: @@", "abandon zoo ability wreck about vivid above tunnel absent sugar absorb ripple"),
    ('MNEMONIC="@@"', "abandon zoo ability wreck about vivid above tunnel absent sugar absorb ripple"),
    ("http://api.softlayer.com/soap/v3.1/@@", "a1b2c3d4" * 8),
    ('softlayer_key: "@@"', "a1b2c3d4" * 8),
    ("ibm_cloud_iam_key = '@@'", WORDS_43 + "a"),
    ('db_password_prod = "@@"', "c0rrect-horse"),
    ('char secret[25] = "@@";', "c0rrect-horse"),
    ('password = @"@@";', "c0rrect-horse"),
    ("password = b'@@'", "c0rrect-horse"),
    ("username admin privilege 15 secret @@", "c0rrect-horse"),
    ("nmcli device wifi connect home1 password @@", "swordfish"),
    ("post to https://hooks.slack.com/services/@@", "T0A1B2C3D/B0A1B2C3D/a1B2c3D4e5F6g7H8i9J0k1L2"),
    ("https://discord.com/api/webhooks/123456789012345678/@@", WORDS_43 + "-a1B2c3D4e5F6g7H8i9J0"),
    (
        "https://x.blob.core.windows.net/c?sv=2022-11-02&sig=@@",
        "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V%3D",
    ),
    ("AccountName=shop;AccountKey=@@", "a1B2c3D4e5F6g7H8i9J0" * 4 + "k1L2m3=="),
    ('{\\"password\\": \\"@@\\"}', "c0rrect-horse"),
    ("'password' => '@@'", "c0rrect-horse"),
    ("Authorization: Basic @@", "dXNlcjpodW50ZXIyMg=="),
    ("curl -H 'authorization: bearer @@'", "0123456789abcdefABCDEF=="),
    ("DB_PASSWORD=@@", "swordfish"),
    ("PGPASSWORD=@@ psql -h db", "letmein"),
    ("JWT_SECRET=@@", "supersecretjwtkey"),
    ("STRIPE_WEBHOOK_SECRET=@@", "whsec_th" + "isisnotareal1"),
    ("export GITHUB_TOKEN=@@", HEX_40),
    ("NPM_TOKEN=@@", "3f9a1c2e" + "-77aa-4bbf-9c11-0a2b3c4d5e6f"),
    ("ENV ADMIN_PASSWORD @@", "walrus99"),
    ('$env:API_KEY = "@@"', "qwertyuiopas"),
    ("TWILIO_AUTH_TOKEN=@@", HEX_32),
    ('{"user": "bob", "password": "@@", "host": "db"}', "s3cret"),
    ('"apiKey": "@@"', "abcdefghijkl"),
    ('client_secret = "@@"', "thisisaclientsecret"),
    ("<password>@@</password>", "swordfish"),
    ('<add key="x" connectionString="Server=db;Database=a;User Id=sa;Password=@@;" />', "Winter"),
    ('dsn = "host=db user=app password=@@ dbname=shop"', "swordfish"),
    ("//registry.npmjs.org/:_authToken=@@", "3f9a1c2e" + "-77aa-4bbf-9c11-0a2b3c4d5e6f"),
    ("_auth=@@", "Ym9iOmh1" + "bnRlcjI="),
    ('"refresh_token": "@@"', "1//0gabc" + "defGHIJKL123456"),
    ('"connectionString": "mongodb://app:@@@db/shop"', "tiger"),
    ('const password = "@@";', "letmein"),
    ('private static final String API_KEY = "@@";', "zyxwvutsrqpo"),
    ("pwd: @@", "Abc123"),
    ("pw=@@", "hunter2"),
    ("the_password=@@", "p@ssword"),
    ("PRIVATE-TOKEN: @@", "abcdEFGH" + "1234ijkl5678"),
    ("curl -H 'X-API-Key: @@' https://api.example.com", "k1j2h3g4f5d6"),
    ("Proxy-Authorization: Basic @@", "Ym9iOmh1" + "bnRlcjI="),
    ("git clone https://oauth2:@@@gitlab.com/a/b.git", "swordfish"),
    ("https://api.example.com/v1/x?api_key=@@&page=2", "abcdef123456"),
    ("https://example.com/cb#access_token=@@&token_type=bearer", "abcDEF123456ghi"),
    ("--token @@", HEX_40),
    ("az login --service-principal -u x --client-secret @@ ", "swordfishes"),
    ("vault login --token=@@", "s.abcdefghijklmnopqrstuvwx"),
    ("psql postgresql://app:@@@localhost/db", "ap9x"),
    ("helm install x --set auth.password=@@", "swordfish"),
    ("alter user sa with password = '@@'", "Strongish"),
    ("the api key is @@", HEX_32),
    ("Secret key: @@", "AbCd1234" + "EfGh5678"),
    ("API Key: @@", HEX_32),
    ("Passwort: @@", "Geheim123!"),
    ('pass: "@@"', "hunter2"),
    ("password: @@", "123456"),
    ("db pw is @@", "Xk29!abz"),
    ("export FOO_API_TOKEN=@@", "aaaaBBBB1111"),
    ("FOO_TOKEN ::= '@@'", "a1B2c3D4e5F6"),
    ('var fooToken string = "@@"', "a1B2c3D4e5F6"),
    ("<fooToken>\n    @@\n</fooToken>", "a1B2c3D4e5F6"),
    ('System.setProperty("FOO_TOKEN", "@@")', "a1B2c3D4e5F6"),
    ("fooToken = @@", "mss-a1B2c3D4e5F6_qx9"),
    ('asanaToken="@@"', "21516599" + "86067158"),
    ('if (db_password !== "@@") {', "m0nk3y-King"),
]

# What commands are given, by the manuals of each; the secret is put where `@@` is.
COMMANDS = """
getuserspns.py corp.local/bob:@@ -request¦gettgt.py corp.local/bob:@@¦pkcs11-tool --login --pin @@ -O
cryptcat -k @@ -l¦gotty -c bob:@@ top
grafana cli admin reset-admin-password @@¦security create-keychain -p @@ x.keychain
convert -authenticate @@ a.pdf b.png¦wp config create --dbpass=@@
mysql -uroot -p@@ shop¦mysqldump --user root -p'@@' shop¦mariadb -h db -u app -p"@@" shop
curl -u bob:@@ https://example.com/x¦curl -su 'bob:@@' https://example.com
curl --user "bob:@@" -X POST https://example.com/x
curl -k https://example.com/x \\~  -H 'a: b' \\~  -u bob:@@¦curl --user bob:'@@' https://example.com
curl --proxy-user bob:@@ -x proxy https://example.com
sshpass -p @@ ssh bob@host¦sshpass -p'@@' ssh bob@host¦docker login -u bob -p @@ registry.example.com
podman login -u bob --password @@ r.example.com
redis-cli -h cache -a @@ ping¦redis-cli -p 6380 -a '@@' info
az login --service-principal -u app -p @@ --tenant t1¦7z a x.7z -p@@ src
zip -r -P @@ a.zip src¦unzip -P@@ a.zip¦smbclient //server/share -U bob%@@¦rpcclient -U 'dom/bob%@@' server
ldapsearch -x -D cn=admin -w @@ -b dc=x¦ldapwhoami -w '@@'¦plink -ssh bob@host -pw @@
ipmitool -I lanplus -U root -P @@ sel list
snmpwalk -v3 -u bob -A @@ host¦mosquitto_pub -t a -u bob -P @@ -m x¦mongosh -u bob -p @@ host/db
sqlcmd -S host -U sa -P @@ -Q q
psexec \\\\host -u bob -p @@ cmd¦keytool -list -keystore k.jks -storepass @@¦jarsigner -storepass @@ a.jar k
openssl rsa -in k.pem -passin pass:@@ -out o.pem
openssl pkcs12 -export -passout pass:@@ -in a¦openssl enc -aes-256-cbc -k @@ -in a
gpg --batch --passphrase @@ -d a.gpg
ssh-keygen -t ed25519 -N '@@' -f k
pdftotext -upw @@ a.pdf¦http -a bob:@@ GET example.com¦chisel client --auth bob:@@ host 80
lftp -u bob,@@ host¦xfreerdp /u:bob /p:@@ /v:host
net user bob @@ /add¦net use x: /user:bob /pass:@@¦newtool -u bob -p @@ --ls
secretsdump.py dom/bob:@@@10.0.0.1¦htpasswd -bc .htpasswd bob @@
rabbitmqctl add_user bob @@¦vault login @@¦aws configure set aws_secret_access_key @@
npm config set //r.example.com/:_authToken @@
echo "@@" | docker login -u bob --password-stdin r¦echo 'bob:@@' | sudo chpasswd
printf '@@' | gh auth login --with-token¦echo @@ | sudo -S ls
ALTER USER bob WITH PASSWORD '@@';¦CREATE USER 'bob'@'%' IDENTIFIED BY '@@';
ALTER USER bob IDENTIFIED WITH mysql_native_password BY '@@'
CREATE ROLE bob LOGIN PASSWORD '@@'¦ALTER USER scott IDENTIFIED BY @@;¦SET PASSWORD FOR bob = PASSWORD('@@');
GRANT ALL ON x.* TO bob IDENTIFIED BY '@@'
requirepass @@¦CONFIG SET requirepass @@¦masterauth "@@"¦["mysql", "-uroot", "-p@@"]
{"command": "mysql -p@@ shop"}¦["curl", "-u", "bob:@@"]
"""
GIVEN_TO_COMMANDS = [
    one.replace("~", "\n") for line in COMMANDS.strip().split("\n") for one in line.split("¦")
]

LOOK_ALIKES = [
    "mnemonic: test test test test test test test test test test test junk",
    "seed phrase: write down these twelve words from your wallet and keep them somewhere safe",
    "http://::@c@d:2",
    "Cookie: theme=dark; lang=en-us-utf8-2024-wide",
    # Texts that are base64, and words behind an option.
    "<!--renovate-debug:eyJjcmVhdGVkSW5WZXIiOiI0My4yODAuMCIsInVwZGF0ZWRJblZlciI6IjQzLjI4MC4wIn0=-->",
    "docs: fix grammatical error in --github-token docs",
    # Ids, digests, paths and names that engineers look for again; and code and prose that only speak of
    # secrets.
    "password = get_password()",
    "Never commit a password; use the keyring.",
    "git@github.com:owner/repo.git",
    "mem-0123456789abcdef",
    "ghp_ is the prefix of a token",
    "private_key = load_private_key(path)",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "refs/heads/feature/ABC-1234-AddOAuth2LoginFlow",
    "docker.io/library/python:3.11-slim-bookworm",
    "ip-10-0-12-34.eu-west-1.compute.internal",
    "integrity sha384-" + WORDS_43 + "a1B2c3D4e5F6g7H8i9J0k",
    "numpy/core/_methods.py,sha256=" + WORDS_43 + ",8613",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" + WORDS_43 + " me@host",
    (
        "-----BEGIN"
        " CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\nMQswCQYDVQQGEwJJRTESMBAG\n-----END"
        " CERTIFICATE-----"
    ),
    "MsV1_0ChangeCachedPassword",
    "HTTP2ServerUpgradeHandlerBuilderForIPv6Sockets",
    "glCompressedTexSubImage2DARBExtension",
    "TestOAuth2Client_RefreshToken_WhenExpired_Returns401",
    "MAX_RETRY_ATTEMPTS_BEFORE_CIRCUIT_BREAKER_OPENS_V2",
    "X-Amz-Content-Sha256-Header-Value-V4",
    "https://example.org/watch?v=q7Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd",
    '  File "/usr/lib/python3.11/site-packages/OpenSSL/crypto.py", line 2143, in load_pkcs12',
    "at Object.<anonymous> (/srv/app/node_modules/@scope/pkg2/dist/index.esm.js:1:20345)",
    "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
    "/nix/store/0c9mrwq1zqk5mh3b7ypx6d0s4vq2wzf8-python3-3.11.7/bin/python3",
    "550E8400-E29B-41D4-A716-446655440000",
    'ETag: W/"5f3a-q7Zt3Lx9Vb2Nk8Wm4Rp6Yc1Hd5Jf"',
    "0x" + "52908400098527886E0F7030069857D2E4169EE7",
    "req_011CSHoEeqs5C35K2UUqR7Fy",
    "arn:aws:iam::123456789012:role/aws-service-role/AWSServiceRoleForECS2",
    "Button_primary__x7Y2z and styles-module_container__1aB2c",
    "%7B%22page%22%3A1%2C%22filterBy%22%3A%22A2%22%7D",
    "/private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/pip-build-A1b2C3",
    "com.apple.CoreSimulator.SimRuntime.iOS-17-2",
    "libtorch_cuda_linalg.so.2.1.0+cu121.manylinux2014_x86_64",
    "Foo::BarBaz2Qux::HandleIncomingRpc4Request3()",
    "password = decrypt_v2(blob)",
    "password: ${DB_PASSWORD_1}",
    "private_key = /etc/ssl/private/server1.pem",
    "PWD=/home/user1/project2",
    "the password is 12-characters or longer",
    "run with --password-file secrets1.txt",
    "mkdir -p build1/out2 && docker run -p 8080:80 nginx1",
    "if token == tokenizer2.eos_token_id_of_model_v2:",
    "class sk-button-primary-large-2-outlined",
    "a cookie: consent=accepted",
    "CID QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKVqQ7",
    "the design doc is 1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms in Drive",
    "https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit#gid=0",
    "see docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms",
    "KSUID 0ujtsYcgvSTl8PAuAdqWYSMnLOv",
    "event 2QmBvT8xYzKp4NwLr6sHd9JcGf3 failed",
    "program TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
    "wallet 7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU got paid",
    "Ethereum 0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe",
    "the password is required",
    "password: <password>",
    'password = os.environ["X"]',
    "password: string;",
    "connect(password=pw, user=u)",
    "if token == 'identifier2':",
    "password: Joi.string().required()",
    "password: String!",
    "let token: Jwt = decode(x)?;",
    "password: !vault |",
    "password_file: secrets/db2.txt",
    "password is not set",
    "max_tokens: 4096",
    "Error: token expired at 2024-01-15T10:30:00Z",
    "api key rotation is due in Q3",
    "foreign_key = user_id2",
    'accesskey="s"',
    "github.com/pkg/errors v0.9.1 h1:FEBLx1zS214owpjy7qsBeixbURkuhQAwrK5UwLGTwt4=",
    "request id: jX7aQ2mN5pQ8sT1vW4yZ7bC0eF3h",
    "Qmb order",
    "projects/p/secrets/db-password/versions/3",
    "imagePullSecrets:\n- name: regcred2",
    "git config credential.helper 'cache --timeout=3600'",
    "mailto:bob@example.com",
    "10:42:13:INFO:started",
    "ValueError: password too short: 7",
    "password: Mot de passe",
    "Authorization: required",
    '"auth": "basicauth"',
    "token_type: bearer",
    "secret: rotate every 90 days",
    "pwd=$PWD",
    "token_url=https://x.example/oauth/token2",
    'eos_token = "<|endoftext|>"',
    "secret:\n  name: x2",
    "passwords were 8-63 chars",
    "sl.ui.components.Button",
    "CSS-module Button_root__aB3dE6gH9j",
    "the access token is refreshed 5 minutes before expiry",
    "Password: cfg.Password,",
    "private key: id_ed25519",
    "pw: 1280",
    '"tokens": 12345678',
    "use `--token` to set it",
    'expect(token).toBe("abc123def4567890")',
    "The secret key is in secrets/key2.enc",
    "password_reset_token_expiry=3600",
    "Password12 is a variable",
    "https://example.com/?next=/reset/token/abc",
    "password: 1280 rows were checked",
    # Templates, patterns, names of places, flags, escapes and variables in a secret's place.
    "password: \"{{ lookup('env', 'DB_PASSWORD1') }}\"",
    "password = @{type = 'str'}",
    "testToken := &azcore.AccessToken{}",
    "'PW' => 'Palau'",
    "clientSecret: urn:k8s:secret:my-secret1:clientSecret",
    'auth-tls-secret: "default/ca-secret1"',
    "POLICY_CREATE_SECRET = 0x00000020,",
    "cfg.Password = passwordFlag",
    "rclone --sftp-ask-password public1/ :sftp:www/",
    r"'Vault password: \s*?$'",
    r"password:\"\a\x82\xb5\x18\x033.0\"",
    "password = c->argv[++j]->ptr;",
    "| :secret1: | `:secret:` `:u55b6:` |",
    'HOME_URL="https://x.example"\\nSUPPORT_URL="mailto:dev@lists.example"',
    # Digests, signatures, public keys and answers to challenges.
    "Sec-WebSocket-Accept: " + WORDS_43[:27] + "=",
    "expect('ETag', 'W/\"" + WORDS_43[:27] + "\"')",
    "Signature: sig1=:" + WORDS_43 + "=:",
    'pinnedpubkey "sha256//' + WORDS_43 + '="',
    "|1|" + WORDS_43[:27] + "=|" + WORDS_43[5:32] + "= ecdsa-sha2-nistp256",
    "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5" + WORDS_43,
    "MCowBQYDK2VwAyEA" + WORDS_43 + "=",
    "pytest.py tests/unit:case1 passed",
    "username and password parameters1 are checked",
    "the username or password contains1 a colon",
    "\\CURLOPT_USERPWD => 'auth_ntlm'",
    # Options that are no passwords.
    "mkdir -p build/out && ssh -l bob -p 2222 host",
    "docker run -u 1000 -p 8080:80 nginx1",
    "sudo -u bob mkdir -p shop2",
    "git push -u origin feature2 -p",
    "mysql -u root -p shop2",
    "curl -u bob https://example.com/x1",
    'curl -u "$USER:$PASS" https://example.com/x1',
    "docker compose -p shop1 up",
    "mvn -U -P release1",
    "grep -P x1 -u y",
    "# servers identified by name1, or identified by +id1+",
    "echo done1 | tee log1",
    'user.authenticate_password("secret1")',
    'names = ["PW", "P1YT2", "X"]',
    "Authorization: AWS4-HMAC-SHA256 Credential=",
    "openssl rsa -passin env:VAR1",
]

# Secrets with a sign that is escaped, and such that begin with an `@`, stand between ⟨ and ⟩.
ESCAPED = r"""
ALTER USER bob IDENTIFIED BY '⟨Hun\'Ter7Xq9⟩'¦CREATE USER bob IDENTIFIED BY '⟨Hun\\Ter7Xq9⟩';
CREATE USER bob IDENTIFIED BY "⟨Hun\"Ter7Xq9⟩"¦CREATE USER bob IDENTIFIED BY '⟨Hun''Ter7Xq9⟩'
ALTER USER bob WITH PASSWORD '⟨Hun\'Ter7Xq9⟩';¦SET PASSWORD FOR bob = PASSWORD('⟨Hun\'Ter7Xq9⟩');
INSERT INTO users (email, password) VALUES ('a@x.example', '⟨Hun\'Ter7Xq9⟩');
requirepass "⟨Hun\"Ter7Xq9⟩"¦requirepass ⟨Hun\Ter7Xq9⟩¦requirepass "⟨Hun\\Ter7Xq9⟩"¦masterauth '⟨Hun"Ter7Xq9⟩'
CONFIG SET requirepass "⟨Hun\"Ter7Xq9⟩"¦redis-cli AUTH "⟨Hun\"Ter7Xq9⟩"¦vault kv put a/x b="⟨Hun\"Ter7Xq9⟩"
echo "⟨Hun\"Ter7Xq9⟩" | docker login -u bob --password-stdin r¦echo '⟨Hun\Ter7Xq9⟩' | docker login -u bob
echo "⟨Hun\$Ter7Xq9⟩" | docker login -u bob¦echo "⟨Hun'Ter7Xq9⟩" | docker login¦echo ⟨Hun\$Ter7Xq9⟩ | sudo -S ls
printf '%s' '⟨Hun"Ter7Xq9⟩' | gh auth login¦printf "⟨Hun\\Ter7Xq9⟩\n" | docker login¦echo -n "bob:⟨Hun\"Ter7Xq9⟩" | chpasswd
ConvertTo-SecureString '⟨Hun"Ter7Xq9⟩' -AsPlainText¦variable "db_password" { default = "⟨Hun\"Ter7Xq9⟩" }
requests.get(u, auth=("bob", "⟨Hun\"Ter7Xq9⟩"))¦password: '⟨Hun''Ter7Xq9⟩'¦password = '⟨Hun\'Ter7Xq9⟩'
machine a login b password "⟨Hun\"Ter7Xq9⟩"¦export PASSWORD='⟨Hun'\''Ter7Xq9⟩'
postgres://bob:⟨@HunTer7Xq9⟩@db.example.com:5432/x¦redis://:⟨@HunTer7Xq9⟩@cache:6379/0
https://bob:⟨%40HunTer7Xq9⟩@example.com/x¦requirepass ⟨@HunTer7Xq9⟩¦password: ⟨@hunter7⟩
"""

MARK = re.compile(r"\[REDACTED:[\w-]+\]")


def test_every_issuer_has_an_example() -> None:
    assert {kind for kind, _, _ in issuers.SHAPES} == {kind for kind, _ in ISSUED} - {"high_entropy"}


@pytest.mark.parametrize(("kind", "secret"), ISSUED)
def test_an_issuers_shape_is_found_wherever_it_stands(kind: str, secret: str) -> None:
    for before, after in [
        ("before ", " after"),
        ('{"x": "', '"}'),
        ("export X=", "\n"),
        ("(", ")."),
        (r"line\n", r"\n"),
    ]:
        assert redact(f"{before}{secret}{after}") == (f"{before}[REDACTED:{kind}]{after}", (kind,))


@pytest.mark.parametrize(("text", "secret"), GIVEN)
def test_a_secret_is_taken_out_and_nothing_around_it(text: str, secret: str) -> None:
    for whole in (text, f"# How to set it up\n\n{text}\n\nThen restart the service."):
        clean, found = redact(whole.replace("@@", secret))
        assert MARK.sub("@@", clean) == whole
        assert len(found) == 1


@pytest.mark.parametrize("secret", ["swordfish", "Tr0ub4dor+3", "q7Zt3Lx9Vb2N"])
@pytest.mark.parametrize("text", GIVEN_TO_COMMANDS)
def test_a_password_that_a_command_is_given_is_taken_out(text: str, secret: str) -> None:
    for whole in (text, f"$ {text}\n$ ls -p {text[:2]}", f"run `{text}` first"):
        clean, found = redact(whole.replace("@@", secret))
        assert secret not in clean
        assert MARK.sub("@@", clean) == whole
        assert len(found) == 1


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("text", [one for line in ESCAPED.strip().split("\n") for one in line.split("¦")])
def test_a_secret_ends_at_the_quote_that_closes_it_however_often_that_is_escaped(
    text: str, depth: int
) -> None:
    clean, whole = re.sub("[⟨⟩]", "", text), re.sub("⟨.*⟩", "@@", text)
    for _ in range(depth):
        clean = json.dumps({"command": clean, "n": 1})
    clean, found = redact(clean)
    for _ in range(depth):
        clean = json.loads(clean)["command"]
    assert MARK.sub("@@", clean) == whole
    assert len(found) == 1


def test_a_long_text_is_not_searched_again_once_it_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "".join(f"The {number}th note, with password=swordfish{number}.\n" for number in range(6_000))
    clean, found = redact(said)
    assert found == ("assigned_secret",)
    monkeypatch.setattr(secrets, "_redact_once", None)
    assert redact(clean) == (clean, ())


LONG = "b2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3"


@pytest.mark.parametrize(
    "beginning",
    [
        "MIIEvgIBADANBgkqhkiG9w0BAQEF",
        "MIIEpAIBAAKCAQEA",
        "MIIFLTBXBgkqhkiG9w0BBQ0w",
        "MHcCAQEEI",
        "MIGkAgEBBD",
        "MIGHAgEAMBMGByqGSM49AgEG",
        "MC4CAQAwBQYDK2VwBCIEI",
        "b3BlbnNzaC1rZXktdjEAAAAA",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\\n", '",\n    "', '" +\n  "'])
def test_a_private_key_is_found_without_the_line_that_says_so(beginning: str, end: str) -> None:
    body = end.join([f"{beginning}{LONG}"[:64], LONG, LONG, f"{LONG[:30]}=="])
    assert redact(f'key = "{body}"; more') == ('key = "[REDACTED:private_key]"; more', ("private_key",))


def test_the_private_lines_of_putty_are_taken_out() -> None:
    text = f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n{LONG}\n{LONG[:20]}==\nPrivate-MAC: 00\n"
    clean, found = redact(text)
    assert found == ("private_key",)
    assert LONG[:16] not in clean


@pytest.mark.parametrize(
    "unit",
    [
        "-p ",
        "' -p",
        "cookie: ",
        "://a:bcd@",
        " -u a:",
        "mysql -p",
        "curl -u ",
        '"-u","',
        "echo a|",
        "passwd -b a ",
        ".py a:b@",
        "MIIEpAIBAAKCAQEA",
        "net user ",
        "token,",
        "MII",
    ],
)
def test_a_hostile_text_is_searched_in_time(unit: str) -> None:
    with at_most(20.0):
        secrets._redact(unit * (128 * 1024 // len(unit)))


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    for whole in (text, f"İstanbul: see `{text}`,\nthen go on", f"# Notes\n\n{text}\n\nThe rest follows."):
        assert redact(whole) == (whole, ())


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("İİİİİİ ǅ 漢字 password=c0rrect-horse;", "İİİİİİ ǅ 漢字 password=[REDACTED:assigned_secret];"),
        (EXAMPLES["npm_token"] * 20 + " kept", "[REDACTED:npm_token] kept"),
        ("password=" + "a1" * 300 + " kept", "password=[REDACTED:assigned_secret] kept"),
        (
            f"{RANDOM}\nhttps://example.org/\n{RANDOM}",
            "[REDACTED:high_entropy]\nhttps://example.org/\n[REDACTED:high_entropy]",
        ),
        (
            f'{{"private_key": "{PRIVATE_KEY!r}", "a": 1}}',
            '{"private_key": "\'[REDACTED:private_key]\'", "a": 1}',
        ),
        ("x -----BEGIN PRIVATE KEY-----\nMIIB\n\nmore", "x [REDACTED:private_key]"),  # without an end
    ],
)
def test_what_stands_around_secrets_is_kept(text: str, clean: str) -> None:
    assert redact(text)[0] == clean


def test_most_random_tokens_are_found_and_none_of_fewer_kinds_of_characters() -> None:
    draw = random.Random(5)  # noqa: S311  the same tokens each time
    for length, share in ((24, 0.7), (32, 0.8), (43, 0.8), (64, 0.8), (88, 0.8)):
        tokens = ["".join(draw.choices(f"{ascii_letters}{digits}-_", k=length)) for _ in range(300)]
        assert sum(redact(token)[1] == ("high_entropy",) for token in tokens) > share * len(tokens), length
        for token in tokens:
            assert "high_entropy" not in {*redact(token.lower())[1], *redact(token.upper())[1]}


@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("margin", ["", "    ", "> ", "# "])
def test_a_file_in_base64_is_no_token_and_a_line_of_its_own_is_one(width: int, margin: str) -> None:
    data = b64encode(random.Random(7).randbytes(700)).decode()  # noqa: S311  the same each time
    lines = [data[at : at + width] for at in range(0, len(data), width)]
    assert redact("\n".join(f"{margin}{line}" for line in lines))[1] == ()
    assert any(redact(f"{margin}{line}\n{margin}and more")[1] == ("high_entropy",) for line in lines)


PIECES = [
    *(secret for _, secret in ISSUED),
    *(text.replace("@@", secret) for text, secret in GIVEN),
    *LOOK_ALIKES,
]
GLUE = ["[REDACTED:x]", "--password ", "password is ", " ", "\n", "=", ":", '"', "'", "://", "@", ",", "x9"]


@example(EXAMPLES["npm_token"] + EXAMPLES["aws_access_key"])
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*PIECES, *GLUE]) | st.text("abcxyz 0129_-./:=@#\"'{}[]()$%\n\\", max_size=20),
        max_size=6,
    ).map("".join)
)
def test_what_was_searched_once_is_left_alone_the_next_time(text: str) -> None:
    clean, found = redact(text)
    assert bool(found) == (clean != text)
    assert redact(clean) == (clean, ())


PARSER = importlib.import_module("re._parser")
NESTED = {PARSER.SUBPATTERN: -1, PARSER.ASSERT: 1, PARSER.ASSERT_NOT: 1}


def repeats(parsed: Any, *, is_last: bool = True) -> Iterator[tuple[int, bool]]:
    """Yield of each repeat in a parsed pattern how often it repeats at most, and whether nothing behind it
    can fail.
    """
    items = list(parsed)
    for at, (op, value) in enumerate(items):
        ends = is_last and all(
            (after is PARSER.SUBPATTERN and not rest[-1]) or (after is PARSER.MAX_REPEAT and rest[0] == 0)
            for after, rest in items[at + 1 :]
        )
        if op in {PARSER.MAX_REPEAT, PARSER.MIN_REPEAT, PARSER.POSSESSIVE_REPEAT}:
            yield int(value[1]), ends
            yield from repeats(value[2], is_last=ends and value[1] == 1)
        for part in value[1] if op is PARSER.BRANCH else [value[NESTED[op]]] if op in NESTED else []:
            yield from repeats(part, is_last=ends and op in {PARSER.BRANCH, PARSER.SUBPATTERN})


@pytest.mark.parametrize(
    "pattern",
    [issuers.ISSUED, *(rule.pattern for rule in rules.RULES)],
    ids=lambda pattern: pattern.pattern[:20],
)
def test_a_pattern_costs_a_bounded_number_of_steps_wherever_it_fails(pattern: re.Pattern[str]) -> None:
    """What repeats without a bound ends its pattern: what it has read is part of a secret, which is not
    read again.
    """
    found = list(repeats(PARSER.parse(pattern.pattern)))
    assert found
    assert all(times <= 4000 or ends for times, ends in found)


@pytest.mark.parametrize(
    "unit",
    [
        "A",
        "=",
        '"',
        "password",
        "password is ",
        "password='",
        "token: a.b.c.",
        "eyJaaaaaaaa.",
        "://a:b",
        "sk-a1-",
        "bearer" + " " * 50,
        "-----BEGIN PRIVATE KEY-----",
        EXAMPLES["npm_token"],
    ],
)
def test_the_judges_are_asked_no_oftener_than_needles_stand_in_a_text(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def count(_text: str, match: re.Match[str]) -> None:
        asked.append(match.end() - match.start())

    counted = [rules.Rule(rule.kind, rule.needles, rule.pattern, count) for rule in rules.RULES]
    monkeypatch.setattr(secrets, "RULES", counted)
    text = unit * (64 * 1024 // len(unit))
    secrets._redact(text)
    assert len(asked) <= sum(text.count(needle) for rule in counted for needle in rule.needles)
    assert sum(asked) <= 64 * len(text)


def test_a_text_that_uncovers_secrets_for_ever_ends_at_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secrets, "PASSES_MAX", 0)
    assert secrets._redact(f"kept, {EXAMPLES['npm_token']} not kept") == (
        "kept, [REDACTED:npm_token]",
        ("npm_token",),
    )


TOKEN = EXAMPLES["github_token"]


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        (f"https://bob:{TOKEN}@github.com/o/r.git", "https://bob:[REDACTED:github_token]@github.com/o/r.git"),
        ("https://bob:swordfish@example.com/r.git", "https://bob:[REDACTED:url_password]@example.com/r.git"),
        (f"https://{HEX_40}@github.com/o/r.git", "https://[REDACTED:url_password]@github.com/o/r.git"),
        (f"run-{TOKEN}", "run-[REDACTED:github_token]"),
        *(
            (name, name)
            for name in (
                "/home/bob/src/shop",
                "git@github.com:o/r.git",
                WORDS_43,
                "token-bucket: 3",
                "C:\\src\\a1",
            )
        ),
    ],
)
def test_a_name_keeps_everything_but_the_credentials_in_it(name: str, clean: str) -> None:
    assert redact_name(name) == clean
    assert redact_name(clean) == clean


def test_two_tokens_that_serve_as_names_stay_two_and_no_guess_can_be_held_against_them() -> None:
    key_names(DigestKey(b"k" * 32).of)
    assert sha256(TOKEN.encode()).hexdigest()[:8] not in redact_name(TOKEN)
    first, second = redact_name(TOKEN), redact_name(TOKEN.replace("a1", "b1"))
    assert first != second
    assert TOKEN[:12] not in f"{first} {second}"
    assert redact_name(first) == first
    assert redact(first) == (first, ())


def test_a_secret_is_found_wherever_a_long_text_is_parted() -> None:
    token = "ghp_" + WORDS_43[:36]
    size = secrets.PART_CHARACTERS
    for before in (0, 1, len(token) // 2, len(token), len(token) + 1):
        text = f"{('ab ' * size)[: size - before]} {token} {'b c ' * size}"
        assert token not in redact(text)[0]


def test_a_number_in_json_within_json_is_marked_in_quotes_that_are_escaped_as_often() -> None:
    text = json.dumps({"x": json.dumps({"a": json.dumps({"card": 4111111111111111})})})
    inner = json.loads(json.loads(redact(text)[0])["x"])["a"]
    assert json.loads(inner) == {"card": "[REDACTED:payment_card]"}


@pytest.mark.parametrize("said", ['export PASSWORD="@@"', 'mysql --password="@@"', '{"password": "@@"}'])
@given(between=st.text('az9@!\\"', max_size=6), depth=st.integers(1, 3))
@example(between="! ab", depth=3)
@example(between="\\", depth=1)
def test_json_within_json_stays_json_and_holds_no_secret(said: str, between: str, depth: int) -> None:
    text = said.replace("@@", json.dumps(f"Hun{between}7Xq")[1:-1])
    for _ in range(depth):
        text = json.dumps({"t": text})
    clean = redact(text)[0]
    assert "Hun" not in clean
    assert "7Xq" not in clean
    for _ in range(depth):
        clean = json.loads(clean)["t"]
    assert not said.startswith("{") or json.loads(clean).keys() == {"password"}
    assert clean.endswith(said.partition("@@")[2])


def test_of_a_quote_behind_backslashes_a_mark_leaves_what_the_quote_needs() -> None:
    inner = json.dumps({"password": "\\"})
    assert json.loads(redact(inner)[0]).keys() == {"password"}
    assert json.loads(json.loads(redact(json.dumps(inner))[0])).keys() == {"password"}


def test_a_command_is_known_however_deep_in_json_it_stands() -> None:
    text = 'curl -u "bob:Hun9xXq" x'
    for _ in range(3):
        text = json.dumps({"t": text, "n": 1})
        assert "Hun9xXq" not in redact(text)[0]
