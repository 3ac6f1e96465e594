"""The verbs that ask other models, and `doctor`'s look at how they are configured."""

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import msgspec

from omegad.edge.cli.connection import ask, standard_input
from omegad.edge.cli.findings import Finding
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import safe, tell, write_fields, write_json
from omegad.edge.consult import exchange, routing
from omegad.edge.consult.budget import Budget
from omegad.edge.consult.consulting import configured, consult, prepared, summary
from omegad.edge.consult.keys import key_of
from omegad.runtime import config
from omegad.runtime.errors import NotFound, OmegadError

REACHED_S = 10.0


def opinion(arguments: Namespace, instance: Instance) -> None:
    """Ask another model, or show what it would be asked."""
    settings = configured(config.load(instance.paths, instance.environ).consult)
    question = standard_input() if arguments.question in ("-", None) else arguments.question
    asking = prepared(settings, question, arguments.context or "", arguments.model)
    if arguments.dry_run:
        spent = Budget(instance.paths.consulted, settings).spent()
        fields = {
            "model": asking.name,
            "why": asking.why,
            "url": asking.request.url,
            "key_file": asking.model.key_file,
            "keyring": asking.model.keyring,
            "redacted": asking.redacted,
            "tokens_max": asking.request.tokens_max,
            "calls": f"{spent.calls:,} of {settings.calls_per_day:,}",
            "tokens": f"{spent.tokens:,} of {settings.tokens_per_day:,}",
            "body": asking.request.body,
        }
        if arguments.json:
            write_json(fields)
        else:
            write_fields((name, value) for name, value in fields.items() if name != "body")
            print(safe(f"\n{msgspec.json.format(msgspec.json.encode(asking.request.body)).decode()}"))
        return
    store = partial(ask, instance, "memory.store", project=arguments.project) if arguments.store else None
    answer = consult(settings, instance.paths, asking, store)
    tell(arguments, answer, safe(f"{summary(answer, settings)}\n\n{answer.answer}"))


def fitting(arguments: Namespace, instance: Instance) -> None:
    """Say which model fits a task. Raises `NotFound` where none does."""
    settings = configured(config.load(instance.paths, instance.environ).consult)
    name, why = routing.route(arguments.task or standard_input(), settings.models)
    if name is None:
        raise NotFound(f"none fits: {why}", hint="name one: omegad consult --model NAME")
    tell(arguments, {"model": name, "why": why}, safe(f"{name}: {why}"))


def examine(instance: Instance, *, is_reached: bool) -> Iterator[Finding]:
    """Check that the key of each model can be read and, where asked to, that its host can be reached, which
    is told nothing.
    """
    settings = config.load(instance.paths, instance.environ).consult
    for name, model in settings.models.items():
        try:
            key = key_of(model, instance.paths.home)
            seen = f"{name} is {model.model} at {model.host}, {'with a key' if key else 'without a key'}"
            if is_reached:
                started = time.monotonic()
                with exchange.deadline(REACHED_S):
                    exchange.connected(model.url, REACHED_S).close()
                seen += f", reached in {(time.monotonic() - started) * 1e3:.0f} ms"
            yield Finding("consult", "ok", seen)
        except OmegadError as error:
            yield Finding("consult", "FAIL", f"{name}: {error}", error.hint)
    if settings.models:
        spent = Budget(instance.paths.consulted, settings).spent()
        of_calls = f"{spent.calls:,} of {settings.calls_per_day:,} calls"
        of_tokens = f"{spent.tokens:,} of {settings.tokens_per_day:,} tokens"
        yield Finding("consult", "ok", f"today {of_calls} and {of_tokens} are spent")
