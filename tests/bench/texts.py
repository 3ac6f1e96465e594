"""Memories that read like the notes of coding agents, and questions about them; vectors that follow from the
words.

Everything here follows from its seed, so that two runs measure the same texts.
"""

import random
from functools import cache
from hashlib import blake2b
from itertools import product

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.embedding.cache import text_hash

DIMENSIONS = 384
PROJECTS = ("atlas", "borealis", "caravel", "dynamo", "ember")
SESSIONS = 50

_SYLLABLES = "ba cor den fi gra hol jo ka len mo nar op pri qua res sta tor ul ver win yo zen cle dra".split()  # noqa: SIM905
_NAMES = ["".join(parts) for parts in product(_SYLLABLES, repeat=2)]
_WORDS: dict[str, str] = {
    "part": (
        """order intake|label printer|seat planner|tax table|route optimiser|photo archive|login screen|
        refund queue|price feed|crawler|
        message parser|stock ledger|device registry|map tiles|subtitle editor|sensor gateway|contract signer|
        wiki export|bulk mailer|voucher desk"""
    ),
    "tool": (
        """MariaDB|Memcached|RabbitMQ|Ansible|Podman|SvelteKit|Kotlin|Elixir|Flask|SQLAlchemy|Caddy|HAProxy|
        Loki|Jaeger|MinIO|Bazel|Gradle|
        pnpm|Ruff|Hypothesis|Cypress|Avro|Zig|CockroachDB|ClickHouse|Pulumi|ArgoCD|Hono|tokio|libuv"""
    ),
    "fault": (
        """hangs when two clients connect at once|forgets its settings after an update|
        prints amounts with the wrong sign|
        loops over an empty page|runs out of sockets by the evening|
        sends every mail twice|sorts names with accents last|shows yesterday's totals until noon|
        crashes on a file without a trailing newline|keeps the lock of a process that is gone|
        truncates messages at the first emoji|
        needs a restart whenever the certificate is renewed|skips the first row of each sheet|
        answers with a page of another user"""
    ),
    "cure": (
        """took the timeout from the caller instead of a constant|held the lock only while the map is swapped|
        read the header before the body|
        made the writer flush before it closes|compared versions as tuples|
        gave every worker its own connection|parsed the reply with a schema|
        retried only what is safe to repeat|let the scheduler skip a run that is late|
        keyed the store by tenant and day|
        measured with a warm pool|moved the check in front of the queue"""
    ),
    "why": (
        """it starts in a tenth of the time|nobody on the team could debug the other one|
        the upgrade path is documented|it works without a network|
        the other one is billed by the call|its errors name the line|a crash leaves nothing half written|
        we can test it on a laptop|
        one person can run it|the auditors asked for signed records|it has no daemon of its own|
        the old one is not maintained"""
    ),
    "folder": "adapters|domain|jobs|views|schemas|drivers|plugins|services|tasks|pipes",
    "error": (
        "AssertionError|PermissionError|UnicodeDecodeError|RecursionError|BrokenPipeError|StopIteration|"
        "LookupError|MemoryError"
    ),
}
_CHOICES = {kind: [" ".join(one.split()) for one in text.split("|")] for kind, text in _WORDS.items()}

_FORMS: dict[str, tuple[str, str]] = {
    "decision": (
        """Decision on the {part} of {name}: use {tool} rather than {tool2}, because {why} and {why2}. The
        code belongs in
        {folder}/{name2}_{name3}.py; think again once it serves more than {number} requests an hour.""",
        "why is {tool} used in the {part} of {name} and not {tool2}?",
    ),
    "lesson_learned": (
        """Lesson from {name}: the {part} {fault}. Guessing at {tool} cost {number} minutes; what helped was
        that we {cure}. Also, we {cure2}.
        Look into {folder}/{name2}.py and its tests before anything else.""",
        "what helped when the {part} of {name} {fault}?",
    ),
    "error_pattern": (
        """{error} at {folder}/{name2}_{name3}.py:{number} means that the {part} of {name} {fault}. It comes
        from {tool}, not from our code:
        it went away when we {cure}.""",
        "{error} in {folder}/{name2}_{name3}.py of {name}",
    ),
    "user_preference": (
        """The user wants {tool} for everything around the {part} of {name}, never {tool2}: {why}. Commits to
        {folder} stay below {number} lines,
        and tests named after {name2} come first.""",
        "what does the user want for the {part} of {name} in {folder}?",
    ),
    "task_completion": (
        """Done with {name}-{number}: the {part}, which {fault}, passes its {name2} tests. To get there we
        {cure}. {tool} and {tool2} are at
        their latest versions; {folder}/{name3}.py still has a TODO.""",
        "is task {name}-{number} about the {part} finished?",
    ),
    "memory": (
        """The {part} of {name} listens on port {number} and reads its settings from {folder}/{name2}.toml;
        {tool} calls it through {tool2},
        since {why}.""",
        "which port does the {part} of {name} listen on, with {name2}?",
    ),
}
_WEIGHTS = (25, 25, 15, 10, 15, 10)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A memory to be: its text, where it belongs, and a question that it answers."""

    memory_id: str
    content: str
    project: str
    event_type: str
    session_id: str
    question: str


def notes(count: int, seed: str) -> list[Note]:
    """Return *count* different notes of 80 to 420 characters, about 60 tokens each, whose questions differ
    too.
    """
    choose, found = random.Random(seed), dict[str, Note]()  # noqa: S311  nothing is secret
    while len(found) < count:
        note = _note(f"{seed}-{len(found)}", choose)
        found.setdefault(note.question, note)
    return list(found.values())


def _note(name: str, choose: random.Random) -> Note:
    event_type = choose.choices(list(_FORMS), _WEIGHTS)[0]
    words = {
        f"{kind}{place}": one
        for kind, of in _CHOICES.items()
        for place, one in zip(("", "2"), choose.sample(of, 2), strict=True)
    }
    words |= dict(zip(("name", "name2", "name3"), choose.sample(_NAMES, 3), strict=True))
    words["number"] = str(choose.randrange(10, 60_000))
    content, question = (" ".join(form.format_map(words).split()) for form in _FORMS[event_type])
    return Note(
        memory_id=f"mem-{name}",
        content=content,
        project=choose.choice(PROJECTS),
        event_type=event_type,
        session_id=f"session-{choose.randrange(SESSIONS)}",
        question=question,
    )


def vector(text: str) -> bytes:
    """Return the unit vector of a text: the sum of directions that follow from its words, so that texts of
    like words are near.
    """
    summed = np.sum(
        [_direction(word) for word in set(text.lower().replace(".", " ").replace("?", " ").split())], axis=0
    )
    unit: npt.NDArray[np.float32] = (summed / np.linalg.norm(summed)).astype("<f4")
    return unit.tobytes()


@cache
def _direction(word: str) -> npt.NDArray[np.float64]:
    seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).normal(0, 1, DIMENSIONS)


class InstantModel:
    """A model that has computed its answers beforehand."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def learn(self, *texts: str) -> None:
        """Compute the vectors of *texts* now rather than while something is measured."""
        self._known.update((text, vector(text)) for text in texts)

    def embed(self, text: str) -> bytes:
        """Return the unit vector of *text*."""
        return self._known.get(text) or vector(text)

    def by_hash(self, contents: list[str]) -> dict[str, bytes]:
        """Return the vectors of *contents* as the cache keeps them."""
        return {text_hash(content): self.embed(content) for content in contents}
