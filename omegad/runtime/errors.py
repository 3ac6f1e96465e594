"""The catalogue of what can go wrong: each error's wire code, kind, tag and what to do about it.

The tag says whose failure it is: of the files, the processes and what they run on (RUNTIME_ENV), of what was
to be remembered or changed (MEMORY), or of finding it (RETRIEVAL). People and agents see it behind the
message, programs in the error's data.

Boundary: imports nothing of omegad; anything may import it. Foreign exceptions (SQLite's, msgspec's, the
operating system's) are translated into these once, where they enter.
"""

from typing import ClassVar, Literal

Kind = Literal[
    "not_found", "conflict", "refused", "invalid", "stale", "overloaded", "unavailable", "shutting_down"
]
FailureTag = Literal["RUNTIME_ENV", "MEMORY", "RETRIEVAL"]


class OmegadError(Exception):
    """Something went wrong inside omegad."""

    code: ClassVar[int] = -32603
    kind: ClassVar[Kind] = "unavailable"
    tag: ClassVar[FailureTag] = "RUNTIME_ENV"
    hint: str = "run `omegad doctor`"

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        """Take the class's docstring for a message where none is given."""
        super().__init__(message or (type(self).__doc__ or "").strip())
        if hint:
            self.hint = hint


def forget_frames(error: BaseException) -> None:
    """Let go of the calls that *error* came through, once it is told: they hold it in turn, and with it all
    that they were at, until Python looks for circles.
    """
    told: BaseException | None = error
    while told is not None and told.__traceback__ is not None:
        told.__traceback__ = None
        told = told.__cause__ or told.__context__


class NotFound(OmegadError):
    """There is nothing by that name."""

    code, kind, tag = -32000, "not_found", "MEMORY"
    hint = "check the id; memory.query and memory.list show the ones there are"


class Conflict(OmegadError):
    """The request_id was used before, with other parameters."""

    code, kind, tag = -32001, "conflict", "MEMORY"
    hint = "use a new request_id for a new request; clients that gave no name with system.hello share theirs"


class Refused(OmegadError):
    """The command does not apply to how things stand."""

    code, kind, tag = -32002, "refused", "MEMORY"
    hint = "see the message for what stands in the way"


class Invalid(OmegadError):
    """The parameters are not valid."""

    code, kind, tag = -32602, "invalid", "MEMORY"
    hint = "`omegad methods` lists what each method takes"


class Stale(OmegadError):
    """The views did not reach the position asked for in time."""

    code, kind, tag = -32003, "stale", "RETRIEVAL"
    hint = "ask again, or leave out min_position; `omegad status` shows each view's lag"


class Overloaded(OmegadError):
    """Too much is waiting already."""

    code, kind, tag = -32004, "overloaded", "RUNTIME_ENV"
    hint = "wait for answers before sending more"


class Unavailable(OmegadError):
    """A part of the service cannot be used now."""

    code = -32005


class NoAnswer(Unavailable):
    """The service is there, and did not answer in time."""

    hint = "it may still be done: ask again, a command with the same request_id"


class PathHangs(Unavailable):
    """The disk or network that a path lies on does not answer."""

    hint = (
        "see whether it is mounted and its server is there; it is tried again when it answers, and `omegad"
        " status` names the folder"
    )


class ReadTooLong(Unavailable):
    """It took longer to read than it may."""

    code, kind, tag = -32004, "overloaded", "RETRIEVAL"
    hint = (
        "ask again in a moment where the machine is busy, or for less: a shorter question, a filter, a"
        " smaller page; `read_timeout_s` and `report_timeout_s` in config.toml bound it"
    )


class ShuttingDown(OmegadError):
    """The service is stopping."""

    code, kind, tag = -32006, "shutting_down", "RUNTIME_ENV"
    hint = "ask again once it has been started: `omegad start`"


class StorageFull(Unavailable):
    """The disk is full, so nothing was written."""

    hint = "free some space on the disk of the home; writing resumes by itself"


class StorageBusy(Unavailable):
    """Another process holds a lock on the database."""

    hint = "close other programs that write to the files of the home (reading is fine)"


class StorageFailed(Unavailable):
    """The operating system refused to read or write a database file."""

    hint = "look for disk errors; `omegad doctor` checks the files"


class StorageCorrupt(Unavailable):
    """A database file is damaged."""

    hint = "damaged views are rebuilt by themselves; a damaged log.db is restored from a backup"


class DriverMissing(Unavailable):
    """No SQLite on this Python can load extensions safely."""

    hint = "pip install pysqlite3, or use a Python whose sqlite3 loads extensions and is 3.51.3 or newer"


class SealerMissing(Unavailable):
    """What reads and writes sealed files is not installed."""

    hint = "pip install 'omegad[sealed]'"


class Sealed(Unavailable):
    """The home is sealed, and its key is not at hand."""

    hint = (
        "put the key back where seal.toml names it, or give the recovery key to `omegad seal --recover`;"
        " without either nobody can read the log, views and sealed backups: a plain backup or export, where"
        " there is one, and the home's identity/, skills/ and config.toml are what can be read"
    )


class ModelMissing(Unavailable):
    """No embedding model is installed; search works on full text alone."""

    tag = "RETRIEVAL"
    hint = "run `omegad model install`"


class ModelFailed(Unavailable):
    """The embedding model failed; search works on full text alone until it answers again."""

    tag = "RETRIEVAL"
    hint = "`omegad doctor` tries the model; `omegad model install --force` installs it anew"


class ViewFailed(Unavailable):
    """A view that this answer needs has failed."""

    tag = "RETRIEVAL"
    hint = "`omegad status` says which event it failed on; `omegad rebuild NAME` builds it again"


class LogBroken(StorageCorrupt):
    """The log's hash chain does not verify."""

    hint = "restore log.db from a backup; `omegad verify` names the first bad position"


class LogLost(Unavailable):
    """The log is shorter than, or other than, what the views have seen."""

    hint = (
        "put log.db and log.db-wal back from a backup; or keep what the views hold with `omegad salvage >"
        " salvaged.jsonl`, go on with the log as it is with `omegad salvage --accept-log`, and store it again"
        " with `omegad salvage --restore salvaged.jsonl`"
    )


class LogReplaced(StorageFailed):
    """The log was moved, replaced or removed while it was in use, so nothing is written."""

    hint = (
        "put log.db and log.db-wal back where they were, or stop omegad and start it on the log that is there"
    )


class AlreadyRunning(OmegadError):
    """Another omegad serves this home."""

    code, kind = -32002, "refused"
    hint = "`omegad stop` ends it; OMEGAD_HOME names another home"


class NoDaemon(OmegadError):
    """No omegad answers on the socket."""

    code = -32005
    hint = "run `omegad start`"


class NoHome(NoDaemon):
    """There is no home there."""

    hint = "`omegad start` makes one there; --home or OMEGAD_HOME names another"


class BadConfiguration(OmegadError):
    """The configuration is not valid."""

    code, kind = -32602, "invalid"
    hint = "mend config.toml in the home, or the OMEGAD_* variable named"
