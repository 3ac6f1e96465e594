"""What a long memory in English says in one of its sentences, asked in other languages, by the model for all."""

import os
from pathlib import Path

import pytest

from omegad.embedding.catalogue import E5_SMALL
from omegad.runtime.config import find_paths
from omegad.search import confidence
from omegad.search.model import fitted
from tests.retrieval.abroad import ComparedByWord, comparing
from tests.retrieval.corpora import Corpus, Memory, Question, embedder

MODELS = Path(os.environ.get("OMEGAD_TEST_MODELS") or find_paths().models)
MINUTES = (
    "We went through the open points of the belt with the plant in Ghent. The test bench was moved to hall C,"
    " and its supply is fused at 16 amperes. The simulation of the merging lanes still locks up with three of"
    " them. The vendor of the barcode gates wants an order before September. Alarms are acknowledged on the"
    " panel only, never from afar. The emergency stop has to halt the belt within 400 milliseconds at full"
    " load. Documentation moves from Word to AsciiDoc until the end of the year. Lunch was at the canal. The"
    " budget for spare parts was cut by a tenth, and the next meeting is in five weeks, by video."
)
ANSWERED = (
    "wie schnell muss der Not-Halt das Band anhalten?",
    "en combien de temps l'arrêt d'urgence doit-il stopper le tapis ?",
    "за сколько времени аварийная остановка должна остановить конвейер?",
    "紧急停止必须在多长时间内让传送带停下",
)
NOT_ANSWERED = ("Welche Schriftart verwendet der Jahresbericht?", "кто поливает цветы в приёмной?")


@pytest.mark.model
def test_one_sentence_of_a_long_memory_is_found_in_any_language() -> None:
    try:
        embed, _ = embedder(MODELS, None, E5_SMALL.name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    questions = [
        Question(text=text, kind="", gold=frozenset(["0"] if text in ANSWERED else []))
        for text in (*ANSWERED, *NOT_ANSWERED)
    ]
    home = Corpus(domain="", name="home", memories=[Memory(key="0", content=MINUTES)], questions=questions)
    library, model = ComparedByWord(embed, comparing(MODELS)), fitted()
    library.put(home)
    sure = dict[str, float]()
    for question in questions:
        signs = library.signs(library.ask(home, question, model), model)
        sure[question.text] = confidence.confidence(signs, model)
        assert not question.gold or sure[question.text] >= confidence.floor(signs, model, 1), question.text
    assert max(sure[text] for text in NOT_ANSWERED) < min(sure[text] for text in ANSWERED) / 4
