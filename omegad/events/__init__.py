"""The vocabulary of the log: everything that can have happened.

Boundary: of omegad it imports what every event has in common; anything may import it.
Invariant: a released event never changes incompatibly. A field may be added with a default; otherwise the tag's version goes up,
and `upcasting` learns the step. The golden files of the shapes before are kept as they are.
"""

from omegad.events.claims import BranchClaimed, ClaimsContested, ClaimsReleased, ClaimsReported, FilesClaimed
from omegad.events.delivery import DeliveriesExpired
from omegad.events.git import GitPushChecked
from omegad.events.identity import IdentityChanged
from omegad.events.lint import FindingDismissed
from omegad.events.memory import (
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
from omegad.events.message import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.events.profile import ProfileUpdated
from omegad.events.retrieval import MemoryQueried
from omegad.events.session import MemorySurfaced, PromptSubmitted, SessionCompacted, SessionEnded, SessionStarted, SubagentEnded, TurnEnded
from omegad.events.skill import SkillConfirmed, SkillImproved, SkillImproveFailed
from omegad.events.task import (
    TaskCancelled,
    TaskClaimed,
    TaskCompleted,
    TaskCreated,
    TaskDependencyChanged,
    TaskFailed,
    TaskProgressed,
    TaskReopened,
)
from omegad.events.thesis import (
    MemoryRippled,
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
    ThesisStated,
)
from omegad.events.tool import ToolCalled
from omegad.events.upcasting import UPCASTERS
from omegad.log.codec import Codec
from omegad.log.erasure import PayloadErased
from omegad.log.mending import ClockMended

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
