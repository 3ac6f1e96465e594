"""Verbs whose answer is a sentence, or the answer's own fields."""

from argparse import Namespace
from types import MappingProxyType

import msgspec

from omegad.edge.cli.parameters import asked
from omegad.edge.cli.place import Place
from omegad.edge.cli.printing import safe, write_fields, write_json

SENTENCES = MappingProxyType(
    {
        "memory.edit": "edited {memory_id} at position {position}",
        "memory.delete": "deleted {memory_id} at position {position}",
        "memory.restore": "restored {memory_id} at position {position}",
        "memory.supersede": "superseded {memory_id} by {superseded_by} at position {position}",
        "memory.rate": "rated {memory_id} {rating}; its score is {score}",
        "memory.promote": "promoted {memory_id}; it is {status}",
        "memory.link": "linked {memory_id} to {target_id} at position {position}",
        "memory.unlink": "unlinked {memory_id} from {target_id} at position {position}",
        "task.create": "created {task_id}",
        "task.claim": "{task_id} is claimed by {owner}",
        **{f"task.{verb}": "{task_id} is {status}" for verb in ("progress", "complete", "fail", "cancel", "reopen", "depend")},
        "message.send": "sent {message_id}",
        "context.assemble": "{text}",
        "thesis.state": "stated {thesis_id} in {memory_id}",
        "thesis.evidence": "{memory_id} is evidence {evidence_id} of {thesis_id}: {side}",
        "thesis.retract": "{evidence_id} counts no longer for {thesis_id}",
        "thesis.revise": "{thesis_id} says so from version {version} on, in {memory_id}",
        "thesis.predict": "{thesis_id} is held to be true with a probability of {probability}",
        "thesis.resolve": "{thesis_id} is resolved: {outcome}",
        "lint.dismiss": "dismissed; what was dismissed three times is not shown again",
        "reminder.set": "{memory_id} is due from {due} on",
        "reminder.dismiss": "dismissed {memory_id} at position {position}",
        "profile.update": "updated the profile at position {position}",
        "session.briefing": "{text}",
        "skill.improve": "{confirmation}",
        "claim.files": "claimed at position {position}",
        "claim.branch": "claimed {ref} at position {position}",
        "claim.release": "let go of {count}",
        "system.ping": "omegad {version} answers: process {pid}",
        "system.metrics": "{text}",
    }
)
"""What is said of an answer: its fields, and what was given."""


def say(arguments: Namespace, place: Place) -> int:
    """Ask the method, and say what came of it. Exit with status 1 where the answer is that it failed."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif sentence := SENTENCES.get(arguments.method):
        print(safe(sentence.format_map(vars(arguments) | answer)).rstrip("\n"))
    else:
        write_fields([(name, value if isinstance(value, str) else msgspec.json.encode(value).decode()) for name, value in answer.items()])
    return int(answer.get("outcome") == "failed")
