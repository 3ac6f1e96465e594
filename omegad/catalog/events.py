"""The vocabulary of the log: everything that can have happened.

Boundary: of omegad it imports what every event has in common; anything may import it.
Invariant: a released event never changes incompatibly. A field may be added with a default; otherwise the tag's version goes up,
and `upcasting` learns the step. The golden files of the shapes before are kept as they are.
"""

from omegad.catalog.upcasting import UPCASTERS
from omegad.coordination.claim_events import BranchClaimed, ClaimsContested, ClaimsReleased, ClaimsReported, FilesClaimed
from omegad.coordination.message_events import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.coordination.task_events import (
    TaskCancelled,
    TaskClaimed,
    TaskCompleted,
    TaskCreated,
    TaskDependencyChanged,
    TaskFailed,
    TaskProgressed,
    TaskReopened,
)
from omegad.knowledge.events import (
    MemoryRippled,
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
    ThesisStated,
)
from omegad.knowledge.lint_events import FindingDismissed
from omegad.log.codec import Codec
from omegad.log.erasure import PayloadErased
from omegad.log.mending import ClockMended
from omegad.memory.events import (
    MemoryContradicted,
    MemoryDeleted,
    MemoryEdited,
    MemoryEmbedded,
    MemoryErased,
    MemoryEvolved,
    MemoryExpired,
    MemoryLinked,
    MemoryPromoted,
    MemoryRated,
    MemoryRelated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.person.identity_events import IdentityChanged
from omegad.person.profile_events import ProfileUpdated
from omegad.person.skill_events import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.search.events import MemoryQueried
from omegad.session.delivery_events import DeliveriesExpired
from omegad.session.events import MemorySurfaced, PromptSubmitted, SessionCompacted, SessionEnded, SessionStarted, SubagentEnded, TurnEnded
from omegad.session.git_events import GitPushChecked
from omegad.session.tool_events import ToolCalled

AnyEvent = (
    MemoryStored
    | MemoryEmbedded
    | MemoryRepeated
    | MemoryEvolved
    | MemoryEdited
    | MemoryRelated
    | MemoryContradicted
    | MemorySuperseded
    | MemoryDeleted
    | MemoryErased
    | MemoryExpired
    | MemoryRestored
    | MemoryRated
    | MemoryPromoted
    | MemoryLinked
    | MemoryUnlinked
    | MemoryQueried
    | MemorySurfaced
    | ToolCalled
    | SessionStarted
    | PromptSubmitted
    | TurnEnded
    | SubagentEnded
    | SessionCompacted
    | SessionEnded
    | DeliveriesExpired
    | GitPushChecked
    | IdentityChanged
    | MemoryRippled
    | ThesisStated
    | ThesisEvidenced
    | ThesisEvidenceRetracted
    | ThesisRevised
    | ThesisPredicted
    | ThesisResolved
    | FindingDismissed
    | ProfileUpdated
    | SkillImproved
    | SkillImproveFailed
    | SkillConfirmed
    | TaskCreated
    | TaskClaimed
    | TaskProgressed
    | TaskCompleted
    | TaskFailed
    | TaskCancelled
    | TaskReopened
    | TaskDependencyChanged
    | MessagePosted
    | MessageDelivered
    | IntentAnnounced
    | FilesClaimed
    | BranchClaimed
    | ClaimsReleased
    | ClaimsContested
    | ClaimsReported
    | ClockMended
    | PayloadErased
)

CODEC = Codec(AnyEvent, UPCASTERS)
"""Reads and writes every event of today, and reads those that older versions wrote."""
