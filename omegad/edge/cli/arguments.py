"""What can be asked on the command line: every verb with its options, derived from the methods and the verbs
that ask none.

Cheap to import, because `--help` and every verb pay for it: what there is to say of the methods is derived
beforehand.
"""

import json
import re
import shlex
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace, RawDescriptionHelpFormatter
from argparse import _SubParsersAction as SubParsers
from collections.abc import Mapping, Sequence
from functools import cache
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, NoReturn

from omegad import __version__
from omegad.edge.cli.verbs import GROUPS, MOST_USED, OWN
from omegad.requests.verb import Verb, of
from omegad.runtime import derived
from omegad.runtime.json_types import Fields
from omegad.text.meant import nearest

if TYPE_CHECKING:
    Verbs = SubParsers["_Parser"]

EXAMPLES = """\
examples:
  omegad store "We deploy with blue-green since May" --event-type decision --project shop
  git log -1 --format=%B | omegad store - --event-type task_completion
  omegad query "how do we deploy?" --project shop
  omegad memory edit mem-0123456789abcdef "We deploy with canaries since June"
  omegad timeline --days 3
  omegad log --follow
  omegad doctor

The daemon is started when a verb needs it. OMEGAD_HOME or --home says where its files are (~/.omegad).

exit status: 0 done, 1 the daemon said no, 2 wrong usage, 3 no daemon, or no home
"""

SINGULAR = {
    "event_types": "event-type",
    "edge_types": "edge-type",
    "tags": "tag",
    "memory_ids": "memory-id",
    "statuses": "status",
    "types": "type",
    "paths": "path",
    "refs": "ref",
    "capabilities": "capability",
}
ALIASES = {"event_type": ("--type",), "event_types": ("--type",)}
FOR_PROGRAMS = frozenset({"progress_token"})
METAVAR = {"integer": "N", "number": "X", "json": "JSON"}
STANDS_FOR = {
    "supersedes": "ID",
    "as_of": "MOMENT",
    "asked_in": "SESSION_ID",
    "since": "TIME",
    "until": "TIME",
    "due": "TIME",
}
WORDS_CHARACTERS = 60  # of what was typed are said again
TEXT_CHARACTERS = 400  # of a text that is said again as it is to be typed
OTHER_WORDS: dict[str, str] = {
    **dict.fromkeys(("add", "remember", "save", "note"), "store"),
    **dict.fromkeys(("search", "find", "ask", "recall"), "query"),
    **dict.fromkeys(("remove", "rm", "forget"), "delete"),
    "show": "get",
    "ls": "list",
    "info": "status",
    "init": "setup",
    "install": "model install",
    "gateway": "web",
}
"""What other programs, and earlier versions, call it."""
TYPES: dict[str, type] = {"integer": int, "number": float}
NUMBERS = {"int": "a whole number", "float": "a number"}
AFTER_DASHES = "; a text that begins with a dash comes after --"
TEXTS = frozenset(
    {"content", "text", "statement", "title", "reason", "lesson", "progress", "question", "task", "sql"}
)
"""What is given in several words, or by standard input."""


UNASKED = {"--yes", "--force"}
"""What nobody is led to who typed something else."""


class WrongUsage(Exception):
    """The arguments are not what the verb takes."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        """What to do; `--help` of the verb says it where nothing is said."""


class _Parser(ArgumentParser):
    """Says in a line what is wrong and what to type, where argparse prints all that a verb takes."""

    verbs: Mapping[str, "_Parser"] = {}
    """The parsers of the verbs that may be asked for, by their words."""
    given: tuple[str, ...] = ()
    """What that takes without a dash, in its order."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUsage`."""
        explained = f"`{self.prog} --help` explains it"
        if found := re.match(
            r"argument (?:VERB|ACTION): invalid choice: '(.*?)' \(choose", message, re.DOTALL
        ):
            words = f"{self.prog.removeprefix('omegad').strip()} {found[1]}".strip()
            listed = f"`{self.prog} --help` lists the verbs"
            raise WrongUsage(f"there is no `omegad {words[:WORDS_CHARACTERS]}`{_meant(words)}", hint=listed)
        if message.endswith("required: ACTION"):
            raise WrongUsage(f"`{self.prog}` wants to know what to do", hint=f"`{self.prog} --help` lists it")
        if found := re.match(r"the following arguments are required: (.+)", message):
            example = re.search(r"^  (omegad .+)", self.epilog or "", re.MULTILINE)
            as_in = f"as in: {example[1]}\n  " if example else ""
            raise WrongUsage(f"`{self.prog}` needs {found[1]}", hint=as_in + explained)
        if found := re.match(r"argument (\S+): invalid (int|float) value: (.+)", message):
            raise WrongUsage(f"{found[1]} is {NUMBERS[found[2]]}, and not {found[3]}", hint=explained)
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.+)\)", message, re.DOTALL)
        if choice:
            given = choice[2][:WORDS_CHARACTERS]
            raise WrongUsage(f"{choice[1]} is one of {choice[3]}, and not {given!r}", hint=explained)
        raise WrongUsage(
            re.sub(r"argument (\S+): expected one argument", r"\1 needs a value", message), hint=explained
        )

    def refuse(self, more: Sequence[str], known: Namespace) -> NoReturn:
        """Raise `WrongUsage` for words that are more than the verb takes, beside what it knows."""
        if unknown := next((word for word in more if word.startswith("-")), ""):
            name = unknown.partition("=")[0][:WORDS_CHARACTERS]
            meant = nearest(name, {*re.findall(r"--[\w-]+", self.format_usage())} - UNASKED)
            raise WrongUsage(
                f"`{self.prog}` has no {name}{f'; did you mean {meant}?' if meant else ''}",
                hint=f"`{self.prog} --help` lists what it has{AFTER_DASHES * bool(TEXTS & {*self.given})}",
            )
        hint = f"`{self.prog} --help` says what it takes"
        if TEXTS.intersection(self.given):
            hint = "several words that are one text stand in quotes"
            if self.given[-1] in TEXTS:  # so that what is left over belongs to it
                text = " ".join((str(getattr(known, self.given[-1])), *more))
                hint += f": {shlex.quote(text)}" if len(text) <= TEXT_CHARACTERS else ""
        raise WrongUsage(f"`{self.prog}` does not take {' '.join(more)[:WORDS_CHARACTERS]!r} too", hint=hint)


def _meant(words: str) -> str:
    group, _, typed = words.rpartition(" ")
    known = [verb.words for verb in verbs()]
    if group:
        beside = [one.removeprefix(f"{group} ") for one in known if one.startswith(f"{group} ")]
        near = nearest(typed, beside)
        found = f"{group} {near}" if near else ""
    else:  # or it is an action whose group was left out
        inner = (one for one in known if one.endswith(f" {typed}"))
        found = OTHER_WORDS.get(typed) or next(inner, nearest(typed, [*known, *GROUPS, *OTHER_WORDS]))
    return f"; did you mean `omegad {OTHER_WORDS.get(found, found)}`?" if found else ""


@cache
def methods() -> dict[str, Fields]:
    """Return what there is to say of every method, by its name."""
    return {method["name"]: method for method in json.loads(derived.read(derived.METHODS))}


def parse(words: Sequence[str]) -> Namespace:
    """Return what *words* ask for. Raises `WrongUsage`."""
    whole = parser(words)
    known, more = whole.parse_known_args(words)
    if more:
        whole.verbs.get(known.words, whole).refuse(more, known)
    return known


def in_verbs(text: str) -> str:
    """Return what is said of methods, with the verbs in their place that people type."""
    return re.sub(r"`?\b([a-z]+\.[a-z_]+)\b`?", lambda found: _verb_of().get(found[1], found[0]), text)


@cache
def _verb_of() -> dict[str, str]:
    return {verb.method: f"`omegad {verb.words}`" for verb in reversed(verbs())}


def option_of(method: str, name: str, otherwise: str) -> str:
    """Return the option that gives a method's parameter, *otherwise* where none does."""
    verb = next((verb for verb in verbs() if verb.method == method), Verb())
    options = [one["name"] for one, is_given in _parameters(verb) if not is_given]
    return f"--{_option(name)}" if name in options else otherwise


def parser(words: Sequence[str]) -> "_Parser":
    """Return the parser for a command line of *words*; of a hundred verbs it knows those that may be
    meant, and what those take.
    """
    whole = _Parser(
        prog="omegad",
        description="Long-term memory for coding agents: a service over an append-only log.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"omegad {__version__}")
    whole.set_defaults(
        home=None,
        socket=None,
        json=False,
        no_spawn=False,
        module="daemon",
        function="begin",
        words="",
        method="",
    )
    _add_global(whole)
    groups: dict[str, Verbs] = {}
    groups[""] = whole.add_subparsers(title="verbs", metavar="VERB", dest="verb")

    def group_of(words: str) -> "Verbs":
        if words not in groups:
            before, _, name = words.rpartition(" ")
            does = GROUPS.get(words, f"Ask about the {words}")
            used = [verb for verb in known if verb.words == MOST_USED.get(words)]
            first = next(verb for verb in used or known if verb.words.startswith(f"{words} "))
            of_group = group_of(before).add_parser(
                name,
                help=does,
                description=f"{does}.",
                epilog=_examples(first),
                formatter_class=RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )
            _add_global(of_group)
            groups[words] = of_group.add_subparsers(title="actions", metavar="ACTION", required=True)
        return groups[words]

    known, filled = verbs(), dict[str, _Parser]()
    for verb in [verb for verb in known if verb.words.split()[:1] == list(words[:1])] or known:
        group, _, name = verb.words.rpartition(" ")
        target = _add(group_of(group), name, verb)
        if name in words:
            _fill(target, verb)
            filled[verb.words] = target
    whole.verbs = filled
    return whole


def verbs() -> list[Verb]:
    """Return every verb, in the order of the help."""
    known = list(OWN)
    for name, method in methods().items():
        if "verb" in method:
            verb = of(method["verb"] | {"method": name})
            known += [verb, verb._replace(words=verb.also)] if verb.also else [verb]
    return sorted(known, key=lambda verb: (" " in verb.words or not verb.is_first, verb.words))


def _add_global(target: ArgumentParser) -> None:
    """Add what is understood before and after the verb; without defaults, or the one place would undo the
    other.
    """
    options = target.add_argument_group("everywhere")
    options.add_argument(
        "--home", metavar="DIR", default=SUPPRESS, help="the daemon's files (OMEGAD_HOME, else ~/.omegad)"
    )
    options.add_argument(
        "--socket",
        metavar="PATH",
        default=SUPPRESS,
        help="the daemon's socket (OMEGAD_SOCKET, else one that belongs to the home)",
    )
    options.add_argument("--json", action="store_true", default=SUPPRESS, help="print the answer as JSON")
    options.add_argument(
        "--no-spawn",
        action="store_true",
        default=SUPPRESS,
        help="do not start the daemon; exit with status 3 when none answers",
    )


def _add(verbs: "Verbs", name: str, verb: Verb) -> _Parser:
    does = in_verbs(verb.about or methods()[verb.method]["about"])
    target = verbs.add_parser(
        name,
        help=does,
        description=f"{does}.",
        epilog="\n\n".join(filter(None, (verb.more, _examples(verb)))),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module, _, function = verb.by.partition(".")
    target.set_defaults(
        module=module,
        function=function,
        words=verb.words,
        method=verb.method,
        says=verb.says,
        table=verb.table,
    )
    return target


def _examples(verb: Verb) -> str:
    """Return what the help shows of how it is used; one that needs to be told nothing is its own example."""
    needs = any(one.get("is_required") for one, _ in _parameters(verb))
    lines = verb.examples or (() if needs else (f"omegad {verb.words}",))
    return "\n".join(("examples:", *(f"  {line}" for line in lines))) if lines else ""


def _parameters(verb: Verb) -> list[tuple[Fields, bool]]:
    """Return the parameters of a verb's method, and whether each stands for itself, without a dash."""
    return [
        (one, one.get("is_required", False) if verb.given is None else one["name"] in verb.given)
        for one in (methods()[verb.method].get("parameters", ()) if verb.method else ())
    ]


def _option(name: str) -> str:
    return SINGULAR.get(name, name.replace("_", "-"))


def _fill(target: _Parser, verb: Verb) -> None:
    """Add what a verb takes: what it says itself, and the parameters of its method."""
    for option in verb.options:
        name, about = option.name, option.about
        if option.is_given:
            about += "" if option.default in (None, "") else f" ({option.default})"
            nargs = "*" if option.is_many else "?"
            target.add_argument(name, metavar=name.upper(), nargs=nargs, default=option.default, help=about)
        elif option.kind == "flag":
            target.add_argument(f"--{name}", action="store_true", help=about)
        else:
            target.add_argument(
                f"--{name}",
                dest=option.into or name.replace("-", "_"),
                metavar=METAVAR.get(option.kind, name.upper()),
                type=TYPES.get(option.kind, str),
                action="append" if option.is_many else "store",
                help=about,
            )
    taken = FOR_PROGRAMS | {option.name for option in verb.options}
    own = [option.name for option in verb.options if option.is_given]
    target.description = fill(target.description or "", get_terminal_size().columns - 2)  # as argparse does
    parameters = [(one, is_given) for one, is_given in _parameters(verb) if one["name"] not in taken]
    for parameter, is_given in parameters:
        _add_parameter(target, parameter, is_given=is_given)
    target.given = (*own, *(one["name"] for one, is_given in parameters if is_given))
    _add_global(target)


def _add_parameter(target: ArgumentParser, parameter: Fields, *, is_given: bool) -> None:
    """Add a parameter of a method: what it is, what it may be, and what it is when left out."""
    name, kind, about = str(parameter["name"]), parameter["kind"], parameter["about"]
    least, most = parameter.get("limits") or (None, None)
    if least is not None:
        about += f", {least:g} to {most:,.10g}" if most is not None else f", {least:g} or more"
    if (default := parameter.get("default")) is not None:
        about += f" ({', '.join(map(str, default)) if isinstance(default, list) else default})"
    if is_given and name in TEXTS and "standard input" not in about:
        about += "; - reads it from standard input"
    option = _option(name)
    more: Fields = {"help": about.replace("%", "%%")}
    if kind == "flag":
        more |= {"action": "store_true", "default": None}
    elif kind == "yes_or_no":
        more["action"] = BooleanOptionalAction
    elif choices := parameter.get("choices"):
        more["choices"] = choices
    else:
        metavar = STANDS_FOR.get(name) or option.rpartition("-")[2].upper()
        more |= {"type": TYPES.get(kind, str), "metavar": METAVAR.get(kind, metavar)}
    if parameter.get("is_many") and "action" not in more:
        more |= {"nargs": "+"} if is_given else {"action": "append"}
    if is_given and parameter.get("is_required"):
        target.add_argument(name, **more)
    else:
        if is_given:
            target.add_argument(name, nargs="?", default=SUPPRESS, **more)
        is_required = parameter.get("is_required", False)
        target.add_argument(f"--{option}", *ALIASES.get(name, ()), dest=name, required=is_required, **more)
