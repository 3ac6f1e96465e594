"""What a Secret of Kubernetes keeps, as manifests, kubectl and the API write it."""

import json
import re

import pytest

from omegad.text.redaction import redact

# The secrets stand between ⟨ and ⟩.
KEPT = [
    "kind: Secret\napiVersion: v1\nstringData:\n  conn: ⟨walrus⟩\n  user: bob\n",
    "kind: Secret\napiVersion: v1\nstringData:\n  conn: |\n    ⟨host is walrus⟩\n  other: >-\n    ⟨frost⟩\n",
    (
        "kind: Secret\napiVersion: v1\nstringData:\n  conf: |\n    ⟨host is walrus\n\n      other frost⟩\n\n"
        '  a: ⟨correct horse battery⟩ # of staging\n  b: "⟨correct \\" horse⟩"\n  c: \'⟨two\n    lines⟩\'\n'
        "  username: bob\n  d: ⟨plain\n    going on⟩\n  e: !!binary ⟨d2FscnVz⟩\n---\n"
        "kind: ConfigMap\ndata:\n  a: |\n    plain\n    walrus\n"
    ),
    (
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    conn: ⟨d2FscnVz⟩\n  kind: Secret\n"
        "- apiVersion: v1\n  data:\n    conn: plain\n  kind: ConfigMap\nkind: List\n"
    ),
    "kind: ConfigMap\napiVersion: v1\ndata:\n  a: plain\n---\nkind: Secret\napiVersion: v1\ndata:\n  a: ⟨d2FscnVz⟩\n",
    (
        '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"db","ownerReferences":[{"apiVersion":"apps/v1",'
        '"kind":"Deployment","name":"x"}],"managedFields":[{"operation":"Update","apiVersion":"v1","fieldsV1":{}}]},'
        '"data":{"conn":"⟨d2FscnVz⟩","username":"Ym9i"}}'
    ),
    (
        '{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"},"data":'
        '{"conn":"⟨d2FscnVz⟩"}},{"metadata":{"name":"b"},"data":{"conn":"⟨ZnJvc3Q=⟩"}}]}'
    ),
    r'{"last-applied":"{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"stringData\":{\"conn\":\"⟨walrus⟩\"}}"}',
    """kubectl patch secret db -p '{"stringData":{"conn":"⟨walrus⟩"}}'""",
    r'oc -n shop patch secret/db -p "{\"stringData\":{\"conn\":\"⟨walrus⟩\"}}"',
]
CREATED = (
    "kubectl create secret generic db -n shop --from-literal=conn=⟨walrus⟩ --from-literal=username=ana7x"
)
QUOTED = "oc create secret generic db --from-literal=conn='⟨a walrus⟩' --from-literal 'key=⟨frost⟩'"
LOOK_ALIKES = [
    "kind: ConfigMap\napiVersion: v1\ndata:\n  conn: |\n    walrus\n",
    "kubectl create configmap shop --from-literal=conn=walrus",
    """kubectl patch configmap secret-names -p '{"data":{"conn":"walrus"}}'""",
    '{"kind":"SecretList","items":[]}\n{"kind":"ConfigMap","apiVersion":"v1","data":{"conn":"walrus"}}',
]


@pytest.mark.parametrize("text", KEPT)
def test_what_a_secret_keeps_is_taken_out_and_nothing_else(text: str) -> None:
    plain, clean = re.sub("[⟨⟩]", "", text), re.sub("(?s)⟨.*?⟩", "[REDACTED:assigned_secret]", text)
    assert redact(plain) == (clean, ("assigned_secret",))
    if plain.startswith("{"):
        assert json.loads(clean).keys() == json.loads(plain).keys()


@pytest.mark.parametrize("text", [CREATED, QUOTED])
def test_what_a_secret_is_created_with_is_taken_out(text: str) -> None:
    clean = re.sub("⟨.*?⟩", "[REDACTED:command_password]", text)
    assert redact(re.sub("[⟨⟩]", "", text)) == (clean, ("command_password",))


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == (text, ())
