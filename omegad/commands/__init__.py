"""What may be asked to happen: a Struct for each command and, beside it, the pure decision what it comes to.

Boundary: knows events, the decision state and decisions, and errors; opens no file, and knows no socket, model or clock.
"""

from omegad.commands.compaction import CompactMemories
from omegad.commands.consolidation import ConsolidateMemories
from omegad.commands.graph import LinkMemories, UnlinkMemories
from omegad.commands.lifecycle import DeleteMemory, EditMemory, PromoteMemory, RateMemory, RestoreMemory, SupersedeMemory
from omegad.commands.store import StoreMemory
from omegad.commands.tool import RecordToolCall
from omegad.commands.upsert import UpsertMemory

Command = (
    StoreMemory
    | UpsertMemory
    | EditMemory
    | DeleteMemory
    | SupersedeMemory
    | RestoreMemory
    | RateMemory
    | PromoteMemory
    | LinkMemories
    | UnlinkMemories
    | CompactMemories
    | ConsolidateMemories
    | RecordToolCall
)
