"""The verbs about theses: how they stand, how that came to be, and how predictions came out."""

from argparse import Namespace
from collections.abc import Sequence

from omegad.edge.cli.connection import Answer, answered, ask, asked
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    moment,
    safe,
    warn,
    warn_if_stale,
    write_fields,
    write_json,
    write_table,
)
from omegad.requests.verb import GONE

BARS = "▁▂▃▄▅▆▇█"
LINE_COLUMNS = 60
SHOWN = (
    "thesis_id",
    "memory_id",
    "version",
    "standing",
    "confidence",
    "band",
    "domain",
    "project",
    "probability",
    "due",
    "criterion",
    "outcome",
)


@answered
def get(thesis: Answer, _arguments: Namespace) -> None:
    """Show one thesis, its evidence, and its confidence over time."""
    low, high = thesis["band"]
    told = thesis | {
        "band": f"{low:.2f} to {high:.2f}",
        "confidence": f"{thesis['confidence']:.2f} ({thesis['counts']})",
    }
    write_fields([(name, told[name]) for name in SHOWN])
    print(f"\n{safe(thesis['statement'])}\n")
    history = thesis["history"]
    if history:
        print(
            f"{moment(history[0]['at'])}  {sparkline([one['confidence'] for one in history])} "
            f" {moment(history[-1]['at'])}\n"
        )
    write_table(
        ("WHEN", "WHAT", "SIDE", "CONFIDENCE", "MEMORY"),
        [
            (
                moment(one["at"]),
                one["what"],
                _side(one),
                f"{one['before']:.2f} → {one['confidence']:.2f}",
                one["memory_id"] or "-",
            )
            for one in history
        ],
    )
    if thesis["evidence"]:
        print()
        write_table(
            ("EVIDENCE", "SIDE", "WEIGHT", "BY", "MEMORY"),
            [
                (
                    one["evidence_id"],
                    "retracted" if one["retracted"] is not None else _side(one),
                    f"{one['weight']:g}",
                    one["given_by"],
                    one["content"],
                )
                for one in thesis["evidence"]
            ],
        )


def _side(one: Answer) -> str:
    return f"{one['side'] or '-'}{' (echo)' if one['is_echo'] else ''}"


def sparkline(shares: Sequence[float]) -> str:
    """Draw shares, 0 to 1, as a line of bars; of many, the last of each stretch."""
    step = max(1, -(-len(shares) // LINE_COLUMNS))
    ends = [shares[min(start + step, len(shares)) - 1] for start in range(0, len(shares), step)]
    return "".join(BARS[min(int(share * len(BARS)), len(BARS) - 1)] for share in ends)


def lint(arguments: Namespace, instance: Instance) -> None:
    """Show what should be looked at, and what settles it; keep the report and put down tasks where that is
    asked for.
    """
    answer = asked(arguments, instance)
    more = {
        name: ask(instance, method, project=arguments.project)
        for name, method, is_wanted in (
            ("saved", "lint.save", arguments.save),
            ("tasks", "lint.tasks", arguments.tasks),
        )
        if is_wanted
    }
    if arguments.json:
        write_json(answer | more)
        return
    write_table(
        ("RULE", "FINDING", "SETTLE IT BY"),
        [(one["rule"], one["text"], one["settle"]) for one in answer["findings"]],
        none="nothing to look at",
    )
    print()
    write_fields([(name.replace("_", " "), str(value)) for name, value in answer["figures"].items()])
    if answer["total"] > len(answer["findings"]):
        warn(f"{answer['total'] - len(answer['findings'])} more: --limit shows them")
    if saved := more.get("saved"):
        memory_id = saved["memory_id"]
        print(f"{saved['outcome']}: report {memory_id}" if memory_id else "nothing to keep a report of")
    if tasks := more.get("tasks"):
        write_table(("TASK",), [(one["task_id"],) for one in tasks["tasks"]], none="")
        left = f"; {tasks['left']} are left for the next time" if tasks["left"] else ""
        print(f"{len(tasks['tasks'])} tasks put down; {tasks['known']} gaps had theirs{left}")
    warn_if_stale(answer)


@answered
def calibration(answer: Answer, _arguments: Namespace) -> None:
    """Show how what was held probable came out, and the curve."""
    if answer["details_gone_until"]:
        warn(GONE["details_gone_until"].format_map(answer))
    if answer["overall"] is None:
        print("nothing has come out yet")
        return
    write_table(
        ("DOMAIN", "OUTCOMES", "BRIER", "OF BASE RATE", "CAME TRUE", "WHAT THAT SAYS"),
        [
            (
                one["domain"] or "-",
                one["n"],
                f"{one['brier']:.3f}",
                f"{one['brier_of_base_rate']:.3f}",
                f"{one['base_rate']:.0%}",
                verdict(one),
            )
            for one in (*answer["domains"], answer["overall"] | {"domain": "all"})
        ],
    )
    print()
    write_table(
        ("HELD", "N", "SAID", "CAME TRUE", ""),
        [
            (
                f"{one['low']:.0%} to {one['low'] + 0.1:.0%}",
                one["n"],
                f"{one['said']:.2f}",
                f"{one['came_true']:.2f}",
                BARS[-1] * round(one["came_true"] * 20),
            )
            for one in answer["overall"]["curve"]
        ],
    )


def verdict(score: Answer) -> str:
    """Say in words what a score tells."""
    if not score["is_enough"]:
        return "too few to tell"
    return (
        "better than the base rate"
        if score["brier"] < score["brier_of_base_rate"]
        else "no better than the base rate"
    )
