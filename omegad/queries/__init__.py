"""What may be asked: a Struct for each query and, beside it, how it is read from the views.

Boundary: reads through a connection it is given; writes nothing, and waits for nothing. `ranking` and `terms` are pure.
"""

from omegad.queries.graph import SimilarMemories, TraverseMemories
from omegad.queries.history import MemoryHistory
from omegad.queries.lessons import Lessons
from omegad.queries.log import FollowLog, ReadLog, VerifyLog
from omegad.queries.memory import GetMemory, ListMemories
from omegad.queries.receipts import ListReceipts
from omegad.queries.search import QueryMemory
from omegad.queries.system import Hello, Metrics, Ping, Shutdown, Status
from omegad.queries.timeline import Timeline
from omegad.queries.views import RebuildViews, VerifyViews

Reading = GetMemory | ListMemories | SimilarMemories | TraverseMemories | MemoryHistory | Timeline | Lessons | ListReceipts
"""The queries that are answered from the views without ranking, and are not logged."""

Query = QueryMemory | Reading | ReadLog | FollowLog | VerifyLog | RebuildViews | VerifyViews | Hello | Ping | Status | Metrics | Shutdown
