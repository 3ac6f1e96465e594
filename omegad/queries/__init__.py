"""What may be asked: a Struct for each query and, beside it, how it is read from the views.

Boundary: reads through a connection it is given; writes nothing, and waits for nothing. `ranking` and `terms` are pure.
"""

from omegad.queries.log import FollowLog, ReadLog, VerifyLog
from omegad.queries.memory import GetMemory, ListMemories
from omegad.queries.search import QueryMemory
from omegad.queries.system import Hello, Metrics, Ping, Shutdown, Status
from omegad.queries.views import RebuildViews, VerifyViews

Query = (
    QueryMemory | GetMemory | ListMemories | ReadLog | FollowLog | VerifyLog | RebuildViews | VerifyViews | Hello | Ping | Status | Metrics | Shutdown
)
