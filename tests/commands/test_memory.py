"""Decisions on memories: pure, of the command, what was prepared, and the guards."""

import unicodedata
from typing import Any, cast

import msgspec
import pytest

from omegad.commands import memory
from omegad.commands.memory import DeleteMemory, Neighbour, Outdated, PreparedStore, StoreMemory
from omegad.commands.memory_types import JACCARD, TTL_SECONDS, MemoryTypes
from omegad.errors import Invalid, NotFound, Refused
from omegad.events.fact import Fact
from omegad.events.memory import MemoryDeleted, MemoryEmbedded, MemoryRelated, MemoryRepeated, MemoryStored, MemorySuperseded
from omegad.log.decision import Decision
from omegad.log.guards import Guards, MemoryGuard
from omegad.log.sanitise import CONTENT_BYTES_MAX, METADATA_BYTES_MAX
from omegad.rpc import methods
from tests.builders import START_US

TYPES = MemoryTypes({"recipe": 0.6})


class FakeGuards:
    """Guards that know what they are told."""

    def __init__(self, *known: MemoryGuard, embedded: tuple[str, ...] = ()) -> None:
        self._known = {guard.memory_id: guard for guard in known}
        self._embedded = embedded

    def memory(self, memory_id: str) -> MemoryGuard | None:
        return self._known.get(memory_id)

    def holder(self, content_key: str) -> MemoryGuard | None:
        return next((guard for guard in self._known.values() if guard.content_key == content_key and guard.state == "active"), None)

    def is_embedded(self, memory_id: str, _embedder_id: str) -> bool:
        return memory_id in self._embedded


def guard(memory_id: str, *, key: str = "", at: int = 1, state: str = "active", pending: bool = False) -> MemoryGuard:
    return MemoryGuard(memory_id, key, at, at, state, pending)


def near(memory_id: str, content: str, similarity: float | None = 0.9, **changes: Any) -> Neighbour:
    fields: dict[str, Any] = {"event_type": "memory", "entity_id": None} | changes
    return Neighbour(memory_id=memory_id, content=content, similarity=similarity, **fields)


def prepared(content: str, *neighbours: Neighbour, **changes: Any) -> PreparedStore:
    fields: dict[str, Any] = {"memory_id": "mem-new", "redacted": (), "read_position": 10, "embedder_id": "paper-1", "text_hashes": ("hash",)}
    return PreparedStore(content=content, neighbours=neighbours, **fields | changes)


def store(command: StoreMemory, ready: PreparedStore, *known: MemoryGuard) -> Decision:
    guards = cast("Guards", FakeGuards(*known, *(guard(n.memory_id) for n in ready.neighbours if n.memory_id not in {k.memory_id for k in known})))
    return memory.store(command, ready, TYPES.jaccard(command.event_type), guards, START_US)


def facts(decision: Decision) -> list[Fact]:
    return [new.event for new in decision.events]


def answer(decision: Decision) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(decision.answer)))


def test_a_new_memory_is_stored_with_its_vectors_and_its_relations() -> None:
    command = StoreMemory(content="c", session_id="s", project="p", tags=("b", "a", "b"), metadata={"k": 1}, referenced_date="2026-01-01")
    decision = store(command, prepared("c", near("mem-1", "other words", 0.7), redacted=("jwt",)))
    first, second = facts(decision)
    assert isinstance(first, MemoryStored)
    assert (first.memory_id, first.content, first.tags, first.metadata, first.referenced_at) == ("mem-new", "c", ("b", "a"), {"k": 1}, START_US)
    assert first.content_key == memory.content_key(command, "c")
    assert [(edge.memory_id, edge.similarity) for edge in first.related] == [("mem-1", 0.7)]
    assert second == MemoryEmbedded(memory_id="mem-new", embedder_id="paper-1", text_hashes=("hash",))
    assert [(new.session_id, new.project, new.follows) for new in decision.events] == [("s", "p", False), ("s", "p", True)]
    found = answer(decision)
    assert (found["memory_id"], found["outcome"], found["position"], found["redacted"], found["degraded"]) == ("mem-new", "stored", 0, ["jwt"], None)
    assert found["related"] == [{"memory_id": "mem-1", "similarity": 0.7, "edge_type": "related"}]


def test_without_a_model_a_memory_is_stored_as_pending() -> None:
    decision = store(StoreMemory(content="c"), prepared("c", embedder_id=None, text_hashes=(), pending=True, degraded="embedding"))
    (only,) = facts(decision)
    assert isinstance(only, MemoryStored)
    assert only.pending
    assert answer(decision)["degraded"] == "embedding"


def test_relations_are_the_three_nearest_from_045_on() -> None:
    cosines = {"a": 0.5, "b": 0.449999, "c": 0.9, "d": 0.45, "e": 0.7, "f": 0.7, "g": None}
    decision = store(StoreMemory(content="c"), prepared("c", *(near(name, f"words of {name}", cosine) for name, cosine in cosines.items())))
    assert [(edge["memory_id"], edge["similarity"]) for edge in answer(decision)["related"]] == [("c", 0.9), ("e", 0.7), ("f", 0.7)]
    few = store(StoreMemory(content="c"), prepared("c", near("d", "words", 0.45), near("b", "other", 0.449999)))
    assert [edge["memory_id"] for edge in answer(few)["related"]] == ["d"]


def test_the_same_content_in_the_same_scope_is_a_repetition() -> None:
    command = StoreMemory(content="c", session_id="s")
    decision = store(command, prepared("c"), guard("mem-old", key=memory.content_key(command, "c")))
    assert facts(decision) == [MemoryRepeated(memory_id="mem-old", likeness="exact", similarity=1.0)]
    assert (answer(decision)["outcome"], answer(decision)["memory_id"]) == ("duplicate", "mem-old")


@pytest.mark.parametrize("other", [{"event_type": "decision"}, {"project": "p"}, {"entity_id": "e"}], ids=str)
def test_the_same_content_in_another_scope_is_another_memory(other: dict[str, Any]) -> None:
    held = guard("mem-old", key=memory.content_key(StoreMemory(content="c"), "c"))
    assert answer(store(StoreMemory(content="c", **other), prepared("c"), held))["outcome"] == "stored"


def test_content_of_a_memory_that_is_hidden_may_be_stored_again() -> None:
    command = StoreMemory(content="c")
    held = guard("mem-old", key=memory.content_key(command, "c"), state="deleted")
    assert answer(store(command, prepared("c"), held))["outcome"] == "stored"


@pytest.mark.parametrize(
    ("content", "neighbour", "likeness"),
    [
        ("deploys go through blue-green", near("n", "Deploys go by way of blue-green", 0.96), "cosine"),
        ("deploys go through blue-green", near("n", "Deploys go by way of blue-green", 0.9499), None),
        ("deploys go through blue-green", near("n", "deploys go through Blue-green!", 0.85), "jaccard"),
        ("deploys go through blue-green", near("n", "deploys go through Blue-green!", 0.3), "jaccard"),
        ("deploys go through blue-green", near("n", "deploys go through Blue-green!", None), "jaccard"),
        ("the timeout is 30 s", near("n", "the timeout is 60 s", 0.999), None),
        ("the cache is enabled", near("n", "the cache is disabled", 0.999), None),
        ("deploys go through blue-green", near("n", "Deploys go by way of blue-green", 0.99, event_type="decision"), None),
        ("deploys go through blue-green", near("n", "Deploys go by way of blue-green", 0.99, entity_id="shop"), None),
        ("deploys go through blue-green", near("n", "Deploys go by way of blue-green", 0.99, is_comparable=False), None),
    ],
)
def test_a_near_duplicate_is_one_only_when_kind_and_details_agree(content: str, neighbour: Neighbour, likeness: str | None) -> None:
    decision = store(StoreMemory(content=content), prepared(content, neighbour))
    first = facts(decision)[0]
    if likeness is None:
        assert isinstance(first, MemoryStored)
    else:
        assert isinstance(first, MemoryRepeated)
        assert (first.memory_id, first.likeness, first.content) == ("n", likeness, content)


def test_how_alike_words_must_be_depends_on_the_type() -> None:
    one, other = "retry the upload with jitter when it is slow", "retry the upload with jitter when slow"
    outcomes = {}
    for name in ("error_pattern", "memory", "recipe"):
        neighbour = near("n", other, 0.9, event_type=name)
        outcomes[name] = answer(store(StoreMemory(content=one, event_type=name), prepared(one, neighbour)))["outcome"]
    assert outcomes == {"error_pattern": "duplicate", "memory": "stored", "recipe": "duplicate"}


@pytest.mark.parametrize("state", ["deleted", "superseded", None])
def test_neighbours_that_have_changed_ask_for_another_look(state: str | None) -> None:
    ready = prepared("c", near("gone", "c too", 0.99))
    known = () if state is None else (guard("gone", state=state),)
    with pytest.raises(Outdated):
        memory.store(StoreMemory(content="c"), ready, 0.9, cast("Guards", FakeGuards(*known)), START_US)
    last = msgspec.structs.replace(ready, is_last_try=True)
    decision = memory.store(StoreMemory(content="c"), last, 0.9, cast("Guards", FakeGuards(*known)), START_US)
    assert answer(decision)["outcome"] == "stored"
    assert answer(decision)["related"] == []


def test_near_arrivals_ask_for_another_look_but_what_was_seen_does_not() -> None:
    ready = prepared("c", arrived=lambda: ["new", "never stored"])
    with pytest.raises(Outdated):
        store(StoreMemory(content="c"), ready, guard("new", at=11))
    assert answer(store(StoreMemory(content="c"), ready, guard("new", at=10)))["outcome"] == "stored"
    last = msgspec.structs.replace(ready, is_last_try=True)
    assert answer(store(StoreMemory(content="c"), last, guard("new", at=11)))["outcome"] == "stored"


def test_an_exact_repetition_needs_no_other_look() -> None:
    command = StoreMemory(content="c")
    ready = prepared("c", near("gone", "x"), arrived=lambda: ["new"])
    known = (guard("mem-old", key=memory.content_key(command, "c")), guard("gone", state="deleted"), guard("new", at=99))
    assert answer(store(command, ready, *known))["outcome"] == "duplicate"


def test_types_have_their_time_to_live_unless_another_is_given() -> None:
    def ttl(**changes: Any) -> int | None:
        first = facts(store(StoreMemory(content="c", **changes), prepared("c")))[0]
        assert isinstance(first, MemoryStored)
        return first.ttl_seconds

    assert ttl() is None
    assert ttl(event_type="session_summary") == TTL_SECONDS["session_summary"] == 86_400
    assert ttl(event_type="session_summary", ttl_seconds=5) == 5


def test_content_is_normalised_and_free_of_secrets() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    content, redacted = memory.clean(StoreMemory(content=unicodedata.normalize("NFD", f"café {token}")), TYPES)
    assert (content, redacted) == ("café [REDACTED:github_token]", ("github_token",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": "x" * (CONTENT_BYTES_MAX + 1)}, "262145 bytes"),
        ({"content": "é" * (CONTENT_BYTES_MAX // 2 + 1)}, "262146 bytes"),
        ({"content": " \n\t"}, "empty"),
        ({"metadata": {"k": "x" * METADATA_BYTES_MAX}}, "metadata"),
        ({"event_type": "decison"}, "unknown event_type"),
        ({"referenced_date": "yesterday"}, "referenced_date"),
        ({"referenced_date": "2026-01-01T00:00:00"}, "referenced_date"),
    ],
)
def test_what_is_too_large_or_of_no_known_kind_is_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        memory.clean(StoreMemory(**{"content": "c"} | changes), TYPES)


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999Z"])
def test_a_date_that_cannot_be_written_is_refused(date: str) -> None:
    """A view that cannot show an event fails on it for ever."""
    with pytest.raises(Invalid, match="referenced_date"):
        memory.clean(StoreMemory(content="c", referenced_date=date), TYPES)


@pytest.mark.parametrize(
    "params",
    [
        b'{"content": ""}',
        b'{"content": "c", "priority": 6}',
        b'{"content": "c", "priority": 0}',
        b'{"content": "c", "confidence": 1.1}',
        b'{"content": "c", "ttl_seconds": 0}',
        b'{"content": "c", "ttl_seconds": 9223372036854775808}',
        b'{"content": "c", "ttl_seconds": 9223372036854775807}',
        b'{"content": "c", "tags": [""]}',
        b'{"content": "c", "tags": ["' + b"x" * 65 + b'"]}',
        b'{"content": "c", "tags": [' + b",".join(b'"%d"' % n for n in range(33)) + b"]}",
        b'{"content": "c", "project": ""}',
        b'{"content": "c", "contents": "c"}',
        b'{"content": "c", "metadata": []}',
        b'{"content": "\\ud800"}',
        b'{"content": 1}',
        b"{}",
        b"[]",
        b"{",
    ],
)
def test_parameters_out_of_bounds_are_refused(params: bytes) -> None:
    with pytest.raises(Invalid):
        methods.parse("memory.store", params)


def test_content_and_metadata_at_their_limits_are_taken() -> None:
    limit: dict[str, object] = {"k": "x" * (METADATA_BYTES_MAX - len('{"k":""}'))}
    assert memory.clean(StoreMemory(content="x" * CONTENT_BYTES_MAX, metadata=limit), TYPES)


def test_an_unknown_type_is_answered_with_the_nearest() -> None:
    with pytest.raises(Invalid) as error:
        TYPES.check("decison")
    assert "did you mean 'decision'" in error.value.hint
    assert "recipe" in error.value.hint
    for name in (*JACCARD, "recipe"):
        TYPES.check(name)


def test_a_deletion_hides_what_is_there_and_refuses_what_is_not() -> None:
    def delete(*known: MemoryGuard) -> Decision:
        return memory.delete(DeleteMemory(memory_id="m", reason="old"), cast("Guards", FakeGuards(*known)), START_US)

    assert facts(delete(guard("m"))) == [MemoryDeleted(memory_id="m", reason="old")]
    assert facts(delete(guard("m", state="superseded"))) == [MemoryDeleted(memory_id="m", reason="old")]
    with pytest.raises(NotFound, match="no memory m"):
        delete()
    with pytest.raises(Refused, match="deleted already"):
        delete(guard("m", state="deleted"))


def embed(ready: PreparedStore, *known: MemoryGuard, embedded: tuple[str, ...] = ()) -> list[Fact]:
    guards = cast("Guards", FakeGuards(*known, embedded=embedded))
    return facts(memory.embed(StoreMemory(content=ready.content), ready, 0.9, guards, START_US))


VECTORS = MemoryEmbedded(memory_id="mem-new", embedder_id="paper-1", text_hashes=("hash",))


def test_a_memory_embedded_later_gets_its_vectors_and_its_relations() -> None:
    ready = prepared("c", near("n", "other", 0.6))
    vectors, relations = embed(ready, guard("mem-new", at=3, pending=True), guard("n"))
    assert vectors == VECTORS
    assert isinstance(relations, MemoryRelated)
    assert [edge.memory_id for edge in relations.related] == ["n"]


def test_a_memory_embedded_by_another_model_gets_its_vectors_alone() -> None:
    assert embed(prepared("c", near("n", "other", 0.6)), guard("mem-new"), guard("n")) == [VECTORS]


def test_embedding_twice_records_once() -> None:
    assert embed(prepared("c"), guard("mem-new", pending=True), embedded=("mem-new",)) == []
    assert embed(prepared("c")) == []


def test_a_memory_that_proves_to_be_a_duplicate_gives_way_to_the_one_there_is() -> None:
    ready = prepared("say it", near("n", "Say it!", 0.99))
    assert embed(ready, guard("mem-new", at=3, pending=True), guard("n", at=1)) == [
        VECTORS,
        MemoryRelated(memory_id="mem-new", related=()),
        MemorySuperseded(memory_id="mem-new", superseded_by="n", reason="says the same"),
    ]


@pytest.mark.parametrize("is_last_try", [True, False])
def test_no_memory_gives_way_to_one_that_is_gone(*, is_last_try: bool) -> None:
    """Else two that say the same would give way to each other, and neither were found again."""
    ready = prepared("say it", near("n", "Say it!", 0.99), is_last_try=is_last_try)
    known = (guard("mem-new", at=3, pending=True), guard("n", at=1, state="superseded"))
    if is_last_try:
        assert embed(ready, *known) == [VECTORS, MemoryRelated(memory_id="mem-new", related=())]
    else:
        with pytest.raises(Outdated):
            embed(ready, *known)


def test_the_older_of_two_that_say_the_same_is_kept() -> None:
    """What was acknowledged first is what others have linked to; the docstring of `embed` promises it."""
    ready = prepared("say it", near("younger", "Say it!", 0.99))
    known = (guard("mem-new", at=3, pending=True), guard("younger", at=9, pending=True))
    assert not any(isinstance(event, MemorySuperseded) for event in embed(ready, *known))


def test_a_hidden_memory_that_is_embedded_stays_as_it_is() -> None:
    ready = prepared("say it", near("n", "Say it!", 0.99))
    found = embed(ready, guard("mem-new", at=3, pending=True, state="deleted"), guard("n", at=1))
    assert [type(event) for event in found] == [MemoryEmbedded, MemoryRelated]
