"""The weekly report on what should be looked at: one insight, which takes the place of the last one; none where nothing has changed."""

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from omegad.knowledge import lint
from omegad.knowledge.lint import Figures, Finding, LintReport
from omegad.memory.deriving import DeriveMemory
from omegad.memory.events import MadeOf
from omegad.reactions.contract import Reader

NAME = "lint"
VERSION = 1
EVERY = 7 * 86_400
VIEWS = lint.VIEWS
IDS = ("mem-", "th-")


def due(_slot: int, reader: Reader) -> Iterator[DeriveMemory]:
    """Store the report, unless it says what the last one said, or there is nothing to say."""
    report = lint.examine(reader.connection, reader.now_us)
    former = lint.last_report(reader.connection, reader.now_us)
    findings = report.findings[: lint.FINDINGS_MAX]
    digest = blake2b(msgspec.json.encode((findings, report.figures)), digest_size=16).hexdigest()
    known = msgspec.json.decode(former[0][1]) if former else {}
    if not findings or known.get("digest") == digest or not lint.is_there_since(reader.connection, reader.now_us - EVERY * 1_000_000):
        return
    metadata: dict[str, object] = {
        "source": lint.SOURCE,
        "digest": digest,
        "figures": msgspec.to_builtins(report.figures),
        "findings": msgspec.to_builtins(findings),
    }
    yield DeriveMemory(
        content=text(msgspec.structs.replace(report, findings=findings), _figures(known)),
        event_type="advisor_insight",
        made_of=MadeOf(memories=tuple(dict.fromkeys(one for finding in findings for one in finding.ids if one.startswith(IDS)))),
        source=lint.SOURCE,
        probation=False,
        metadata=metadata,
        supersedes=tuple(memory_id for memory_id, _ in former[:16]),
    )


def _figures(known: dict[str, object]) -> dict[str, int]:
    try:
        return msgspec.convert(known.get("figures", {}), dict[str, int])
    except msgspec.ValidationError:  # anybody may store what looks like a report
        return {}


def text(report: LintReport, former: dict[str, int]) -> str:
    """Write a report: its figures, with what has changed since the former ones, and its findings."""

    def figure(name: str) -> str:
        value = getattr(report.figures, name)
        change = value - former.get(name, value)
        return f"{name.replace('_', ' ')} {value}" + (f" ({change:+d})" if change else "")

    head = "Knowledge report: " + ", ".join(map(figure, Figures.__struct_fields__))
    more = [f"and {report.total - len(report.findings)} more: omegad lint --limit 100"] if report.total > len(report.findings) else []
    return "\n".join([head, *(f"- {named(one)}" for one in report.findings), *more])


def named(finding: Finding) -> str:
    """Return a finding in a line without the words that it is about: a report must not be the answer to the question that it says has none."""
    ids = ", ".join(one for one in finding.ids if one.startswith(IDS))
    return f"{finding.rule.replace('_', ' ')} ({finding.count}){f': {ids}' if ids else ''}"
