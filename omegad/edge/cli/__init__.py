"""The `omegad` command: arguments in, one call to the daemon, a table or JSON out.

Boundary: speaks to the daemon through its socket like anyone else; the daemon's own code is imported by
`serve` alone. Invariant: exit status 0 is done, 1 the daemon said no, 2 wrong usage or a value that is not
valid, 3 no daemon or one that does not answer, 130 interrupted.
"""

import errno
import os
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from omegad.edge.cli import arguments
from omegad.runtime.errors import BadConfiguration, Invalid, NoAnswer, NoDaemon, OmegadError, ShuttingDown
from omegad.runtime.interrupting import INTERRUPTED, raised

REFUSED = 1
WRONG_USAGE = 2
NO_DAEMON = 3
STATUSES = {(NoDaemon, NoAnswer, ShuttingDown): NO_DAEMON, (BadConfiguration, Invalid): WRONG_USAGE}
"""The statuses of errors that are no plain refusals."""
FULL = "the disk is full: free some space, or write to another"


def main(argv: Sequence[str] | None = None) -> int:
    """Do what *argv* (or the process's own arguments) asks for, tell what went wrong in words, and return the
    exit status.
    """
    try:
        status = _run(argv)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            _give_up_printing()  # what came of it is known, and is the status
    except BrokenPipeError:
        _give_up_printing()
        status = 0  # whoever read has read enough
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OmegadError as error:
        known = (status for kinds, status in STATUSES.items() if isinstance(error, kinds))
        # What was typed is nobody else's failure.
        tag = "" if isinstance(error, Invalid) else f" ({error.tag})"
        status = _explain(f"{error}{tag}", arguments.in_verbs(error.hint), next(known, REFUSED))
    except arguments.WrongUsage as error:
        status = _explain(str(error), error.hint, WRONG_USAGE)
    except UnicodeEncodeError:
        status = _explain("an argument is not UTF-8", "pass text in UTF-8", WRONG_USAGE)
    except OSError as error:
        _give_up_printing()
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        hint = FULL if error.errno in {errno.ENOSPC, errno.EDQUOT} else OmegadError.hint
        status = _explain(f"{said} ({OmegadError.tag})", hint, REFUSED)
    return status


def _run(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # a terminal that lacks a character shows its code
    try:
        parsed = arguments.parse(words)
    except SystemExit as ended:  # after --help, --version or a complaint
        return int(ended.code or 0)
    # What other verbs need costs more time than most verbs, as does reading the configuration's types.
    from omegad.edge.cli import instance  # noqa: PLC0415

    verb = getattr(import_module(f"omegad.edge.cli.{parsed.module}"), parsed.function)
    if parsed.home == "" or parsed.socket == "":  # as of a variable that is not set
        raise arguments.WrongUsage("--home and --socket need a path")
    found = instance.find(parsed)
    try:
        with raised():
            return int(verb(parsed, found) or 0)
    except arguments.WrongUsage as error:
        error.hint = error.hint or _explained(parsed)
        raise
    except Invalid as error:
        error.args = (_as_typed(str(error), parsed.method),)
        error.hint = error.hint if error.hint != Invalid.hint else _explained(parsed)
        raise
    except NoAnswer as error:
        from omegad.edge.cli import starting  # noqa: PLC0415  most daemons answer

        if error.hint == NoAnswer.hint:
            error.hint = starting.what_ends_it(found.paths)
        raise


def _explained(parsed: Namespace) -> str:
    return f"`{' '.join(('omegad', *parsed.words.split()))} --help` explains it"


def _as_typed(message: str, method: str) -> str:
    """Return what is wrong with a parameter of a method, as who typed the option calls it."""
    message = message.removeprefix(f"{method}: ")
    found = re.match(r"(\w+)(?:\[[^]]*\])?(?=:? )", message)
    if found is None or not method:
        return message
    return arguments.option_of(method, found[1], found[0]) + message[found.end() :]


def _explain(message: str, hint: str, status: int) -> int:
    from omegad.edge.cli.printing import safe  # noqa: PLC0415  most verbs end well

    with suppress(BrokenPipeError):  # nobody reads it, and the status still tells
        print(f"omegad: {safe(message)}", file=sys.stderr)
        if hint:
            print(f"  hint: {safe(hint)}", file=sys.stderr)
    return status


def _give_up_printing() -> None:
    """Let what is still buffered go nowhere, or the interpreter complains when it ends."""
    if sys.stdout is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
