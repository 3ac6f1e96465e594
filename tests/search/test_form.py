"""A question's vector is read as if the question were a statement, by the model for all languages alone; so
what only asks is no answer to whatever is asked.
"""

import numpy as np
import pytest

from omegad.embedding.catalogue import E5_SMALL, folder_of, read_manifest
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.runtime.config import find_paths
from omegad.search import form
from tests.acceptance.conftest import require_model
from tests.builders import EMBEDDER
from tests.retrieval import asking

OTHER = "model-for-all-languages"
NOTES = (
    "Backups go to Hetzner Storage Box every night with restic.",
    "We deploy with ArgoCD from the main branch.",
    "Invoices are numbered per country.",
    "Mirjam prefers short PRs with one commit each.",
    "Error responses follow RFC 9457 problem+json.",
    "The staging database is a nightly copy of production.",
    "Feature flags live in flags.toml, there is no flag service.",
    "Release notes are written in English and German.",
    "The rate limiter is a token bucket in Redis.",
)
TURNS = ("Piet: Who covers the release then?", "Piet: What's the plan for the French customs form?")
ANSWERED = {"Wohin gehen die Backups?": NOTES[0], "¿Dónde están los feature flags?": NOTES[6]}
UNANSWERED = ("Quelle est la capitale de la Mongolie ?", "¿Cuál es la capital de Mongolia?")


def test_a_question_is_brought_to_where_statements_are_by_the_model_for_all_languages_alone() -> None:
    indexes = VectorIndexes(VectorIndex(EMBEDDER), VectorIndex(OTHER, is_multilingual=True))
    asked = np.zeros(384, "<f4")
    asked[:2] = 0.6, 0.8
    short = np.ones(4, "<f4").tobytes()
    read = form.stated({EMBEDDER: asked.tobytes(), OTHER: asked.tobytes()}, indexes)
    assert read[EMBEDDER] == asked.tobytes()
    moved, along = np.frombuffer(read[OTHER], "<f4"), np.array(form.fitted().direction)
    assert moved @ along == pytest.approx(form.fitted().statements, abs=0.02)
    assert moved @ moved == pytest.approx(1, abs=1e-5)
    assert form.stated({OTHER: short}, indexes) == {OTHER: short}


@pytest.mark.model
def test_what_only_asks_is_no_answer_to_what_is_asked_in_another_language() -> None:
    require_model()
    if read_manifest(folder_of(models := find_paths().models, E5_SMALL.name)) is None:
        pytest.skip(f"{E5_SMALL.name} is not installed in {models}: run `omegad model install`")
    with asking.own_daemon() as client:
        for text in NOTES:
            client.call("memory.store", content=text, event_type="decision")
        for text in TURNS:
            client.call("memory.store", content=text, session_id="chat")
        for question, wanted in ANSWERED.items():
            assert client.call("memory.query", text=question)["results"][0]["content"] == wanted
        sure = {text: client.call("memory.query", text=text)["confidence"] for text in UNANSWERED}
    assert max(sure.values()) < 0.1, sure
