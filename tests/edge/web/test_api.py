"""The routes for programs: what the socket answers, over HTTP."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from omegad.catalog.methods import SERVED
from omegad.edge.web import openapi
from omegad.edge.web.asking import FOLLOWERS_MAX
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.web.conftest import Site, serving

UPSERT = {
    "content": "Releases are cut on Tuesdays",
    "source": "wiki",
    "confidence": 0.9,
    "timestamp": "2026-01-31",
}
UNENDING = {"log.follow", "system.shutdown"}


@pytest.fixture(scope="module")
def document(site: Site) -> Any:
    return site.ask("GET", "/openapi.json").json()


def test_a_memory_is_put_found_shown_and_taken_away(site: Site) -> None:
    put = site.ask("POST", "/memory/upsert", json=UPSERT | {"project": "lives"}).json()
    memory_id = put["memory_id"]
    assert site.ask("GET", f"/memory/{memory_id}").json()["content"] == UPSERT["content"]
    listed = site.ask("GET", "/memory?project=lives&limit=5").json()
    assert [one["memory_id"] for one in listed["memories"]] == [memory_id]
    found = site.ask("GET", "/memory", params={"text": "when are releases cut?", "project": "lives"}).json()
    assert [one["memory_id"] for one in found["results"]] == [memory_id]
    changed = UPSERT | {"memory_id": memory_id, "content": "Releases are cut on Fridays"}
    assert site.ask("POST", "/memory/upsert", json=changed).status_code == 200
    assert site.ask("GET", f"/memory/{memory_id}").json()["content"] == "Releases are cut on Fridays"
    assert (
        site.ask("GET", f"/memory/{memory_id}?as_of={put['position']}").json()["content"] == UPSERT["content"]
    )
    assert site.ask("DELETE", f"/memory/{memory_id}?reason=moved").status_code == 200
    assert site.ask("GET", "/memory?project=lives").json()["memories"] == []
    assert site.ask("GET", f"/memory/{memory_id}").json()["status"] == "deleted"
    assert site.refusal("GET", "/memory/mem-none") == (404, "not_found")


def test_lists_flags_and_numbers_are_read_of_a_query_as_the_method_has_them(site: Site) -> None:
    for number, tag in enumerate(("red", "blue", "green")):
        site.call("memory.store", content=f"The {tag} lamp is number {number}", tags=[tag], project="lamps")
    asked = "/memory?text=lamp&mode=keyword&explain=true&limit=2&project=lamps&tags=red&tags=blue"
    found = site.ask("GET", asked).json()["results"]
    assert {tag for one in found for tag in one["tags"]} == {"red", "blue"}
    assert all("explanation" in one for one in found)
    for query in ("limit=many", "limit=0", "explain=perhaps", "colour=red", "limit=1&limit=2", "limit="):
        assert site.refusal("GET", f"/memory?text=lamp&{query}") == (400, "invalid"), query


def test_every_method_is_there_and_refuses_as_the_socket_does(site: Site) -> None:
    """Each is asked for what it has no parameter for, which is all it says then."""
    with site.home.client() as client:
        for name in SERVED:
            if name == "log.follow":
                continue
            answer = site.ask("POST", f"/rpc/{name}", json={"heron": 1})
            assert answer.status_code == 400, name
            with pytest.raises(OmegadError) as refused:
                client.call(name, heron=1)
            error = answer.json()["error"]
            assert (error["code"], error["message"]) == (refused.value.code, str(refused.value))
            assert error["data"] == {
                "kind": refused.value.kind,
                "tag": refused.value.tag,
                "hint": refused.value.hint,
            }
    assert site.refusal("POST", "/rpc/log.follow", json={"heron": 1}) == (400, "invalid")


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/rpc/heron.count", {}, 404),
        ("/rpc/rpc.cancel", {"json": {"id": 1}}, 404),
        ("/rpc/memory.get", {"content": b"{"}, 400),
        ("/rpc/memory.get", {"content": b"[]"}, 400),
        ("/rpc/memory.get", {"content": b'"\xff"'}, 400),
        ("/rpc/memory.get", {"content": b'{"memory_id": "\\ud800"}'}, 400),
        ("/rpc/memory.get", {"content": b"[" * 100_000}, 400),
        ("/rpc/memory.get", {"content": b'{"a": ' * 900 + b"1" + b"}" * 900}, 400),
        ("/rpc/memory.get", {"content": b"{}"}, 400),
        ("/rpc/memory.get", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 415),
        ("/rpc/memory.get", {"data": {"memory_id": "mem-1"}}, 415),
        ("/rpc/memory.delete", {"json": {"memory_id": "mem-none"}}, 404),
        ("/rpc/memory.list", {"json": {"min_position": 10**9}}, 400),
        ("/rpc/log.verify", {"json": {"progress_token": "p"}}, 400),
        ("/rpc/log.follow", {"json": {"after": 10**9}}, 400),
        ("/rpc/log.follow", {"json": {"self": 1}}, 400),
        ("/rpc/system.ping", {"headers": {"omegad-client": "x" * 300}}, 400),
        ("/rpc/system.ping", {"headers": {"omegad-client": "two words"}}, 400),
        ("/rpc/memory.store", {"json": {"content": "x"}, "headers": {"idempotency-key": '""'}}, 400),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_status(
    site: Site, path: str, more: dict[str, Any], status: int
) -> None:
    assert site.refusal("POST", path, **more)[0] == status


def test_a_path_is_asked_by_the_verbs_that_it_has(site: Site) -> None:
    for path, verbs in (
        ("/memory", {"GET", "HEAD"}),
        ("/memory/mem-1", {"GET", "HEAD", "DELETE"}),
        ("/memory/upsert", {"POST"}),
        ("/rpc/system.ping", {"POST"}),
    ):
        answer = site.ask("PATCH", path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == verbs
    assert site.ask("GET", "/memory/upsert").status_code == 405
    assert site.ask("HEAD", "/memory").content == b""


def test_the_same_request_under_the_same_key_is_done_once(site: Site) -> None:
    def store(content: str, key: str = "k-1", client: str | None = None) -> httpx2.Response:
        headers = {"idempotency-key": key, "omegad-client": client}
        return site.ask("POST", "/rpc/memory.store", headers, json={"content": content, "project": "keys"})

    first = store("The key is under the mat")
    assert first.json()["outcome"] == "stored"
    assert store("The key is under the mat").json() == first.json()
    assert (
        store("The key is under the mat", '"k-1"').json() == first.json()
    )  # as the draft of the header has it
    assert store("The key is in the door").status_code == 409
    assert store("The key is in the door", client="somebody-else").json()["outcome"] == "stored"
    both = {"request_id": "k-2", "content": "x"}
    assert site.refusal("POST", "/rpc/memory.store", headers={"idempotency-key": "k-1"}, json=both)[0] == 400
    assert (
        site.ask("DELETE", f"/memory/{first.json()['memory_id']}", {"idempotency-key": "k-3"}).status_code
        == 200
    )
    again = site.ask("DELETE", f"/memory/{first.json()['memory_id']}", {"idempotency-key": "k-3"})
    assert again.status_code == 200


def test_who_asks_is_in_the_log_by_the_name_that_it_gives(site: Site) -> None:
    head = site.home.call("system.status")["log"]["head"]
    site.ask("POST", "/rpc/memory.store", {"omegad-client": "notes"}, json={"content": "Named: a heron"})
    site.call("memory.store", content="Unnamed: a crane")
    site.call("system.hello", client="a-third")  # which is of a connection, and many have this one
    site.call("memory.store", content="Unnamed: a stork")
    events = site.home.call("log.read", after=head, limit=100)["events"]
    assert [one["client"] for one in events if one["tag"].startswith("memory.stored")] == [
        "notes",
        "omegad-web",
        "omegad-web",
    ]


def follow(site: Site, client: httpx2.Client, after: int) -> AbstractContextManager[httpx2.Response]:
    return client.stream("POST", f"http://{site.at}/rpc/log.follow", json={"after": after})


def test_the_log_is_followed_as_lines_until_its_reader_leaves(site: Site) -> None:
    assert site.call("system.ping")["ok"]  # so that its own connection is among those before
    status = site.home.call("system.status")
    head, before = status["log"]["head"], int(status["connections"])

    def connections() -> int:
        return int(site.home.call("system.status")["connections"]) - before

    with httpx2.Client(headers=site.own, timeout=PATIENCE_S) as client:
        with follow(site, client, head) as answer:
            assert answer.headers["content-type"] == "application/jsonl"
            site.call("memory.store", content="Followed: an ibis")
            event = json.loads(next(answer.iter_lines()))
        assert (event["position"], event["tag"].partition("@")[0]) == (head + 1, "memory.stored")
        with ExitStack() as stack:
            for _ in range(FOLLOWERS_MAX):
                stack.enter_context(follow(site, client, head))
            until(lambda: connections() >= FOLLOWERS_MAX)
            assert site.refusal("POST", "/rpc/log.follow") == (429, "overloaded")
            assert site.refusal("GET", "/data/events") == (429, "overloaded")
    until(lambda: connections() <= 0)


def test_it_ends_though_somebody_follows_the_log(homes: Callable[..., Home]) -> None:
    home = homes().start()
    with httpx2.Client(timeout=PATIENCE_S) as client:
        with serving(home, "api") as site:
            client.headers.update(site.own)
            answer = follow(site, client, 0).__enter__()
        assert answer.status_code == 200


def test_the_document_has_every_route_and_what_each_takes_and_answers(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    assert {path for path in document["paths"] if path.startswith("/rpc/")} == {
        f"/rpc/{name}" for name in SERVED
    }
    assert {
        (verb, path)
        for path, verbs in document["paths"].items()
        for verb in verbs
        if not path.startswith("/rpc/")
    } == {
        ("get", "/memory"),
        ("get", "/memory/{memory_id}"),
        ("post", "/memory/upsert"),
        ("delete", "/memory/{memory_id}"),
    }
    referred = set(re.findall(r'"#/components/(\w+/[^"]+)"', json.dumps(document)))
    components = document["components"]
    assert referred <= {f"{kind}/{name}" for kind in components for name in components[kind]}
    operations = [one for verbs in document["paths"].values() for one in verbs.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        assert one["summary"]
        assert set(one["responses"]) == {"200", *(str(status.value) for status in openapi.REFUSED)}


def _value(schema: dict[str, Any], document: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return what makes values of a schema."""
    match schema:
        case {"$ref": reference}:
            return _value(document["components"]["schemas"][reference.rpartition("/")[2]], document)
        case {"anyOf": kinds}:
            return st.one_of([_value(one, document) for one in kinds])
        case {"enum": values}:
            return st.sampled_from(values)
        case {"type": "object", "properties": properties}:
            made = {name: _value(of, document) for name, of in properties.items()}
            required = {name: made.pop(name) for name in schema["required"]}
            return st.fixed_dictionaries(required, optional=made)
        case {"type": "array"}:
            least = schema.get("minItems", 0)
            return st.lists(_value(schema["items"], document), min_size=least, max_size=least + 2)
        case _:
            return _plain(schema)


def _plain(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    within = (schema.get("minimum"), schema.get("maximum"))
    least = schema.get("minLength", 0)
    kinds: dict[str | None, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "integer": st.integers(*within),
        "number": st.floats(*within, allow_nan=False, allow_infinity=False),
        "string": st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=least + 20),
    }
    return kinds.get(schema.get("type"), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2))


@given(data=st.data())
@settings(
    max_examples=200,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
def test_nothing_that_the_document_allows_makes_an_error_of_ours(
    site: Site, document: Any, data: st.DataObject
) -> None:
    """Any method, with parameters of its schema, answers with a status that the document names, and with
    JSON; none is an error of the service.
    """
    name = data.draw(st.sampled_from([one for one in SERVED if one not in UNENDING]))
    operation = document["paths"][f"/rpc/{name}"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    params = data.draw(_value(schema, document))
    answer = site.ask(
        "POST",
        f"/rpc/{name}",
        {"content-type": "application/json"},
        content=msgspec.json.encode(params),
    )
    assert str(answer.status_code) in operation["responses"]
    assert answer.status_code < 500, (name, params, answer.text)
    assert isinstance(answer.json(), dict)
