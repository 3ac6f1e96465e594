"""Which of the configured models fits a task: the one of whose strengths the task's words are.

A strength is met where half of its telling words or more are among the task's, inflected or not. Of models
that meet as many the cheapest is chosen, and of those the one that is configured first.
"""

from collections.abc import Mapping
from typing import NamedTuple

from omegad.index.terms import stemmed
from omegad.runtime.config import ConsultedModel

CHARACTERS_OF_A_TOKEN = 3  # at least, of most languages


class Route(NamedTuple):
    """The model that fits, None where none does, and why, in a sentence."""

    name: str | None
    why: str


def route(task: str, models: Mapping[str, ConsultedModel]) -> Route:
    """Return which model fits a task, of the words in which a person said what they are good at."""
    words = set(stemmed(task))
    fitting = {name: model for name, model in models.items() if is_room(task, model)}
    met = {name: [one for one in model.strengths if _is_met(one, words)] for name, model in fitting.items()}
    most = max(map(len, met.values()), default=0)
    if not fitting:
        return Route(None, f"the task is too long for {_listed(models)}")
    if not most:
        return Route(None, f"no word of the task says one of their strengths: {_listed(fitting)}")
    best = [name for name in met if len(met[name]) == most]
    chosen = min(best, key=lambda name: models[name].cost)
    why = f"it is said to be good at {', '.join(met[chosen])}"
    if others := [name for name in best if name != chosen]:
        is_cheaper = all(models[chosen].cost < models[other].cost for other in others)
        why += f", as {', '.join(others)}, and {'costs less' if is_cheaper else 'costs no more'}"
    return Route(chosen, why)


def is_room(text: str, model: ConsultedModel) -> bool:
    """Say whether a model can take a text and answer it, by a rough estimate of its tokens."""
    return len(text) / CHARACTERS_OF_A_TOKEN + model.output_tokens <= model.context_tokens


def _is_met(strength: str, words: set[str]) -> bool:
    own = set(stemmed(strength))
    return bool(own) and 2 * len(own & words) >= len(own)


def _listed(models: Mapping[str, ConsultedModel]) -> str:
    return "; ".join(
        f"{name}: {', '.join(model.strengths) or 'nothing is said of it'}" for name, model in models.items()
    )
