"""What may be asked to happen: a Struct for each command and, beside it, the pure decision what it comes to.

Boundary: knows events, the log's guards and decisions, and errors; no database, socket, model or clock.
"""

from omegad.commands.memory import DeleteMemory, StoreMemory
from omegad.commands.tool import RecordToolCall

Command = StoreMemory | DeleteMemory | RecordToolCall
