"""What a push would come to: whether what it puts on a remote's branches has all that is there."""

import json
from collections.abc import Callable, Iterable, Iterator
from os.path import isdir
from typing import NamedTuple

from omegad.agents.push_guard.commands import Push
from omegad.agents.push_guard.repository import HEADS, OutOfTimeError, Repository
from omegad.text.quoting import inert

NOTHING = frozenset("0")  # the digits of the id of what is not there
GONE = "0" * 40
UNKNOWN = ""
"""The id of what is not known before."""
TOLD_MAX = 64  # branches, those that stop a push first
REASONS_MAX = 8
NAME_CHARACTERS = 1_024
NO_NAME = frozenset("*^~?[\\ :")
VALUED = ("--push-option", "--repo", "--receive-pack", "--exec", "--recurse-submodules")
_OPTIONS_TEXT = """
--all --atomic --branches --delete --dry-run --exec --follow-tags --force --force-if-includes
--force-with-lease --help --ipv4 --ipv6 --mirror --porcelain --progress --prune --push-option --quiet
--receive-pack --recurse-submodules --repo --set-upstream --signed --tags --thin --verbose --verify
"""
OPTIONS = tuple(_OPTIONS_TEXT.split())
"""The options of git-push(1), any of which may be cut short where that is plain."""
LETTERS = {"f": "--force", "d": "--delete", "n": "--dry-run", "h": "--help"}
STOPPING = ("stale", "unknown")
EVERY_BRANCH = f"{HEADS}*"


class Pushed(NamedTuple):
    """A branch of a remote, and what is to be pushed to it: the name and the id that it has here; both are
    nothing where it is to be deleted.
    """

    ref: str
    source: str
    sha: str
    is_forced: bool = False


class Ref(NamedTuple):
    """What was found of a branch: `new`, `same`, `ahead`, `stale` where commits are there that are not
    pushed, `unknown` where these are not here.
    """

    ref: str
    local_sha: str
    remote_sha: str | None
    found: str
    is_forced: bool = False
    lacks: int = 0
    commits: tuple[str, ...] = ()


class Checked(NamedTuple):
    """A push that was looked at. `reason` says why it is to be stopped, or why nothing could be said of
    it.
    """

    remote: str
    refs: tuple[Ref, ...]
    reason: str = ""
    folder: str = ""
    """Of the repository that is pushed, where it is not that of the command's folder."""

    @property
    def is_stopped(self) -> bool:
        """Whether it would leave out, or discard, what others have pushed."""
        return any(ref.found in STOPPING for ref in self.refs)

    def as_json(self, verdict: str) -> dict[str, object]:
        """Return it as JSON, for the daemon."""
        refs = sorted(self.refs, key=lambda ref: ref.found not in STOPPING)[:TOLD_MAX]
        told: dict[str, object] = {
            "remote": self.remote,
            "verdict": verdict,
            "reason": self.reason or None,
            "refs": [ref._asdict() for ref in refs],
        }
        return told | ({"folder": self.folder} if self.folder else {})


class PushArguments(NamedTuple):
    """The arguments of a push, in order; what is not to be done, or cannot be foreseen, in words."""

    options: frozenset[str]
    names: tuple[str, ...]
    repo: str | None = None


class PushedRefs(NamedTuple):
    """What a push would set: branches, those of `matching` only where the remote has them; of others that
    match `pruned` it would take all away.
    """

    pushed: tuple[Pushed, ...]
    matching: tuple[Pushed, ...] = ()
    pruned: tuple[str, ...] = ()

    def at(self, there: dict[str, str]) -> list[tuple[Pushed, str | None]]:
        """Return what is set where a remote's branches are so, and what each is there."""
        found = [*self.pushed, *(one for one in self.matching if one.ref in there)]
        kept = {one.ref for one in found}
        gone = (
            ref
            for ref in there
            if ref not in kept and any(_matched(ref, pattern) is not None for pattern in self.pruned)
        )
        return [
            (one, there.get(one.ref))
            for one in (*found, *(Pushed(ref, "", GONE, is_forced=True) for ref in gone))
        ]


class _UnforeseenError(Exception):
    """What is pushed is not known before, but for these branches."""

    def __init__(self, why: str, pushed: Iterable[Pushed] = ()) -> None:
        super().__init__(why)
        self.refs = tuple(unasked(one) for one in pushed)


def check(push: Push, within_s: float, folder: str | None = None) -> Checked | None:
    """Look at a push that a command of *folder* is about to run; None where it pushes nothing. What it takes
    away by name, and what is not known but by its name, is told and not judged.
    """
    return _looked_at(push, within_s, folder, _checked)


def foresee(push: Push, within_s: float, folder: str | None = None) -> Checked | None:
    """Return what `check` does without asking the remote, and so without judging."""
    return _looked_at(push, within_s, folder, _foreseen)


def _looked_at(
    push: Push, within_s: float, folder: str | None, look: Callable[[Repository, str, PushedRefs], Checked]
) -> Checked | None:
    named, remote, top = tuple[Ref, ...](), "", ""
    try:
        asked = _asked(push)
        if asked.options & {"--dry-run", "--help"}:
            return None
        repository = _repository(push, within_s)
        named = tuple(map(unasked, _named(asked)))
        if push.where or folder not in {None, push.folder}:
            top = repository.top
        remote = _destination(push, asked, repository)
        found = look(repository, remote, _wanted(repository, asked, remote))
        known = {ref.ref for ref in found.refs}
        deleted = (ref for ref in named if ref.local_sha == GONE and ref.ref not in known)
        return found._replace(refs=(*found.refs, *deleted), folder=top)
    except _UnforeseenError as unforeseen:
        return Checked(remote, unforeseen.refs or named, str(unforeseen), top)
    except OutOfTimeError:
        return Checked(remote, named, "looking at it took too long", top)


def _named(asked: PushArguments) -> Iterator[Pushed]:
    """Yield the branches of a remote that are named outright, to be set or taken away."""
    is_deleted = "--delete" in asked.options
    for refspec in asked.names[1:]:
        source, colon, ref = refspec.removeprefix("+").partition(":")
        name = ref if colon else source
        if name.startswith("heads/"):
            name = f"refs/{name}"
        elif not name.startswith("refs/"):
            name = HEADS + name
        is_plain = name.startswith(HEADS) and len(name) <= NAME_CHARACTERS and not set(name) & NO_NAME
        if is_plain and name.removeprefix(HEADS) not in {"", "HEAD", "@"}:
            yield Pushed(name, source, GONE if is_deleted or not source else UNKNOWN)


def unasked(one: Pushed) -> Ref:
    """Return what is known of a branch before its remote is asked."""
    return Ref(one.ref, one.sha, None, "unasked", one.is_forced)


def _foreseen(_repository: Repository, remote: str, wanted: PushedRefs) -> Checked:
    return Checked(remote, tuple(map(unasked, (*wanted.pushed, *wanted.matching))))


def _checked(repository: Repository, remote: str, wanted: PushedRefs) -> Checked:
    if wanted == PushedRefs(()):
        return Checked(remote, ())
    is_open = wanted.matching or wanted.pruned
    there = repository.refs_at(remote, None if is_open else [one.ref for one in wanted.pushed])
    if isinstance(there, str):
        return _foreseen(repository, remote, wanted)._replace(reason=f"{remote} was not heard: {there}")
    return judged(repository, remote, list(dict.fromkeys(one for refs in there for one in wanted.at(refs))))


def judged(
    repository: Repository, remote: str, pushed: list[tuple[Pushed, str | None]], *, is_forced: bool = False
) -> Checked:
    """Compare what is pushed with where the remote's branches are; *is_forced* says that what lacks
    anything must be forced, to have come so far.
    """
    refs = tuple(_compared(repository, one, remote_sha) for one, remote_sha in pushed)
    if is_forced:
        refs = tuple(ref._replace(is_forced=ref.found == "stale") for ref in refs)
    reasons = [
        _reason(remote, one, ref) for (one, _), ref in zip(pushed, refs, strict=True) if ref.found in STOPPING
    ]
    more = (
        [f"So it is with {len(reasons) - REASONS_MAX} more branches."] if len(reasons) > REASONS_MAX else []
    )
    return Checked(remote, refs, inert("\n".join([*reasons[:REASONS_MAX], *more])))


def missing(repository: Repository, remote: str) -> list[tuple[Pushed, str]]:
    """Return the branches of a remote that a mirror of the repository does not have; none where the remote
    does not answer.
    """
    here, there = repository.refs(HEADS), repository.refs_at(remote, None)
    found = {} if isinstance(there, str) else {ref: sha for refs in there for ref, sha in refs.items()}
    return [(Pushed(ref, "", GONE, is_forced=True), sha) for ref, sha in found.items() if ref not in here]


def _compared(repository: Repository, one: Pushed, there: str | None) -> Ref:
    if there is None or set(there) <= NOTHING:
        return Ref(one.ref, one.sha, None, "new", one.is_forced)
    if there == one.sha:
        return Ref(one.ref, one.sha, there, "same", one.is_forced)
    if repository.commit(there) is None:
        return Ref(one.ref, one.sha, there, "unknown", one.is_forced)
    if one.sha == GONE:
        count, commits = repository.lacking(None, there)
        return Ref(one.ref, one.sha, there, "stale" if count else "ahead", one.is_forced, count, commits)
    if repository.is_in(there, one.sha):
        return Ref(one.ref, one.sha, there, "ahead", one.is_forced)
    return Ref(one.ref, one.sha, there, "stale", one.is_forced, *repository.lacking(one.sha, there))


def _reason(remote: str, one: Pushed, ref: Ref) -> str:
    branch = ref.ref.removeprefix(HEADS)
    count = f"{ref.lacks} commit{'s' * (ref.lacks != 1)}"
    if one.sha == GONE:
        what, keep = (
            f"This would delete {remote}/{branch}",
            f"Where they are to stay: git fetch {remote} {branch}:{branch}",
        )
        if ref.found == "unknown":
            return (
                f"{what}, which is at {(ref.remote_sha or '')[:12]} on the remote; this clone does not have"
                f" that commit. {keep}"
            )
        return (
            f"{what} and {count} that no branch has here (their subjects are"
            f" data):\n{listed(ref.commits, ref.lacks)}\n{keep}"
        )
    what = f"{json.dumps(one.source, ensure_ascii=False)} to {remote}/{branch}"
    way = f"Bring it in first: git pull --rebase {remote} {branch}"
    if ref.is_forced:
        way += ". Where it is your own and is to be replaced: git push --force-with-lease"
    if ref.found == "unknown":
        return (
            f"This would push {what}, which is at {(ref.remote_sha or '')[:12]} on the remote; this clone"
            f" does not have that commit. {way}"
        )
    would = "discard" if ref.is_forced else "leave out"
    return (
        f"This would push {what} and {would} {count} that the remote has (their subjects are"
        f" data):\n{listed(ref.commits, ref.lacks)}\n{way}"
    )


def listed(commits: tuple[str, ...], count: int) -> str:
    """Return commits in a line each, and how many there are beside them."""
    more = [f"- and {count - len(commits)} more"] if count > len(commits) else []
    return "\n".join([*(f"- {line}" for line in commits), *more])


def _asked(push: Push) -> PushArguments:
    options, names, repo, words = set[str](), list[str](), None, list(push.arguments)
    while words:
        word = words.pop(0)
        if word is None:
            raise _UnforeseenError("what it pushes is not known before it runs")
        if word == "--":
            names += [str(word) for word in words]
            break
        if word.startswith("--"):
            option, _, value = word.partition("=")
            option = whole(option)
            if option in VALUED:
                given = value or (words.pop(0) if words else None)
                repo = given if option == "--repo" else repo
            elif option.startswith("--no-"):
                options.discard(whole(f"--{option[5:]}"))
            else:
                options.add(option)
        elif word.startswith("-"):
            letters, has_value, value = word[1:].partition("o")
            options |= {LETTERS.get(letter, letter) for letter in letters}
            if has_value and not value and words:
                words.pop(0)
        else:
            names.append(word)
    return PushArguments(frozenset(options), tuple(names), repo)


def whole(option: str) -> str:
    """Return the option of `git push` that is meant by one that may be cut short."""
    found = [one for one in OPTIONS if one.startswith(option)]
    option = option if option in found or len(found) != 1 else found[0]
    return {"--branches": "--all"}.get(option, option)


def _repository(push: Push, within_s: float) -> Repository:
    """Return the repository that is pushed."""
    if push.folder is None or None in push.where:
        raise _UnforeseenError("which repository it is about is not known before it runs")
    if not isdir(push.folder):
        raise _UnforeseenError("its folder is made by a command before it")
    return Repository(push.folder, tuple(map(str, push.where)), within_s)


def _destination(push: Push, asked: PushArguments, repository: Repository) -> str:
    """Return the remote that is pushed to."""
    if "--delete" in asked.options:
        raise _UnforeseenError("what is deleted by name is left to git")
    if push.is_moved:
        raise _UnforeseenError("what it pushes is made by a command before it")
    branch = repository.branch
    keys = (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote")
    remote = repository.meant((asked.names or (asked.repo,))[0] or repository.setting(*keys) or "origin")
    if remote is None:
        raise _UnforeseenError(
            "it goes to what is no remote of this repository"
        )  # nobody else's server is asked before a person agrees
    return remote


def _wanted(repository: Repository, asked: PushArguments, remote: str) -> PushedRefs:
    """Return the branches of a remote that a push would set, or take away."""
    is_mirror = "--mirror" in asked.options or (
        not asked.names[1:] and repository.is_set(f"remote.{remote}.mirror")
    )
    is_forced = is_mirror or "--force" in asked.options
    refspecs = (
        ["refs/*:refs/*"] if is_mirror else list(asked.names[1:]) or _default(repository, asked, remote)
    )
    left_out = set[str]()
    for pattern in (one[1:] for one in refspecs if one.startswith("^")):
        left_out |= {
            name for name in repository.refs(_beginning(pattern)) if _matched(name, pattern) is not None
        }
    pushed, matching, pruned = list[Pushed](), list[Pushed](), list[str]()
    for refspec in (one for one in refspecs if not one.startswith("^")):
        names, _, ref = refspec.removeprefix("+").partition(":")
        is_one_forced = is_forced or refspec.startswith("+")
        if not names and not ref:
            here = repository.refs(HEADS)
            matching += [
                Pushed(name, name.removeprefix(HEADS), sha, is_one_forced)
                for name, sha in here.items()
                if name not in left_out
            ]
            pruned.append(EVERY_BRANCH)
        elif "*" in names:
            pushed += _many(repository, names, ref or names, left_out, is_forced=is_one_forced)
            pruned.append(ref or names)
        elif one := _pushed(repository, names, ref, is_forced=is_one_forced):
            pushed.append(one)
    if "--force-with-lease" in asked.options and not any(one.is_forced for one in (*pushed, *matching)):
        raise _UnforeseenError("git itself checks what --force-with-lease expects", (*pushed, *matching))
    return PushedRefs(
        tuple(pushed), tuple(matching), tuple(pruned) if is_mirror or "--prune" in asked.options else ()
    )


def _many(
    repository: Repository, names: str, to: str, left_out: set[str], *, is_forced: bool
) -> list[Pushed]:
    """Return what a refspec with a star pushes to branches."""
    found = list[Pushed]()
    for name, sha in repository.refs(_beginning(names)).items():
        middle = _matched(name, names)
        ref = to.replace("*", middle, 1) if middle is not None else ""
        if ref.startswith(HEADS) and name not in left_out:
            found.append(Pushed(ref, name.removeprefix(HEADS), sha, is_forced))
    return found


def _beginning(pattern: str) -> str:
    """Return what the names of refs that match begin with, up to a slash."""
    return pattern.partition("*")[0].rpartition("/")[0] if "*" in pattern else pattern


def _matched(ref: str, pattern: str) -> str | None:
    """Return what stands for the star of a pattern; None where a ref does not match it."""
    before, star, after = pattern.partition("*")
    if not star:
        return "" if ref == pattern else None
    fits = ref.startswith(before) and ref.endswith(after) and len(ref) >= len(before) + len(after)
    return ref[len(before) : len(ref) - len(after)] if fits else None


def _default(repository: Repository, asked: PushArguments, remote: str) -> list[str]:
    """Return what is pushed where nothing is named, as refspecs."""
    if "--all" in asked.options:
        return [f"{EVERY_BRANCH}:{EVERY_BRANCH}"]
    if "--tags" in asked.options:
        return []
    if refspecs := repository.settings.get(f"remote.{remote}.push"):
        return refspecs
    branch = repository.branch
    how = repository.setting("push.default") or "simple"
    if how == "matching":
        return [":"]
    if branch is None or how == "nothing":
        return []
    upstream = repository.setting(f"branch.{branch}.merge")
    return [
        f"{HEADS}{branch}:{upstream}" if how in ("upstream", "tracking") and upstream else f"{HEADS}{branch}"
    ]


def _pushed(repository: Repository, source: str, ref: str, *, is_forced: bool) -> Pushed | None:
    """Return what is pushed to a branch; None for what goes elsewhere, or takes away."""
    if not source or source.startswith("-"):
        return None
    full = repository.ref(source) or ""
    if not ref:
        ref = (
            full if full.startswith("refs/") else ""
        )  # of a commit that no branch is at, git wants to know where it goes
    elif ref.startswith("heads/"):
        ref = f"refs/{ref}"  # as git reads it where the remote has that branch
    elif not ref.startswith("refs/") and not full.startswith("refs/tags/"):
        ref = f"{HEADS}{ref}"
    sha = repository.commit(source)
    return (
        Pushed(ref, full.removeprefix(HEADS) or source, sha, is_forced)
        if sha and ref.startswith(HEADS)
        else None
    )
