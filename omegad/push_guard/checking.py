"""What a push would come to: whether what it puts on a remote's branches has all that is there."""

import json
from typing import Any, NamedTuple

from omegad.push_guard.commands import Push
from omegad.push_guard.repository import Repository

HEADS = "refs/heads/"
NOTHING = frozenset("0")  # the digits of the id of what is not there
REFS_MAX = 64
VALUED = ("-o", "--push-option", "--repo", "--receive-pack", "--exec")
STOPPING = ("stale", "unknown")


class Pushed(NamedTuple):
    """A branch of a remote, and what is to be pushed to it: the name and the id that it has here."""

    ref: str
    source: str
    sha: str
    is_forced: bool = False


class Ref(NamedTuple):
    """What was found of a branch: `new`, `same`, `ahead`, `stale` where commits are there that are not pushed, `unknown` where these are not here."""

    ref: str
    local_sha: str
    remote_sha: str | None
    found: str
    is_forced: bool = False
    lacks: int = 0
    commits: tuple[str, ...] = ()


class Checked(NamedTuple):
    """A push that was looked at. `reason` says why it is to be stopped, or why nothing could be said of it."""

    remote: str
    refs: tuple[Ref, ...]
    reason: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether it would leave out, or discard, what others have pushed."""
        return any(ref.found in STOPPING for ref in self.refs)

    def told(self, verdict: str) -> dict[str, Any]:
        """Return it as JSON, for the daemon."""
        return {"remote": self.remote, "verdict": verdict, "reason": self.reason or None, "refs": [ref._asdict() for ref in self.refs]}


class Asked(NamedTuple):
    """The arguments of a push, in order; what is not to be done, or cannot be foreseen, in words."""

    options: frozenset[str]
    names: tuple[str, ...]
    repo: str | None = None


class _UnforeseenError(Exception):
    """What is pushed is not known before."""


def check(push: Push, within_s: float) -> Checked | None:
    """Look at a push that is about to run; None where it pushes nothing, or only takes away."""
    remote = ""
    try:
        asked = _asked(push)
        if asked.options & {"--dry-run", "--delete", "--help"}:
            return None
        repository = _repository(push, within_s)
        remote = _remote(repository, asked)
        pushed = _wanted(repository, asked, remote)
    except _UnforeseenError as unforeseen:
        return Checked(remote, (), str(unforeseen))
    there = repository.refs_at(remote, [one.ref for one in pushed]) if pushed else {}
    if isinstance(there, str):
        return Checked(remote, tuple(Ref(one.ref, one.sha, None, "unasked", one.is_forced) for one in pushed), f"{remote} was not heard: {there}")
    return judged(repository, remote, [(one, there.get(one.ref)) for one in pushed])


def judged(repository: Repository, remote: str, pushed: list[tuple[Pushed, str | None]], *, is_forced: bool = False) -> Checked:
    """Compare what is pushed with where the remote's branches are; *is_forced* says that what lacks anything must be forced, to have come so far."""
    refs = tuple(_compared(repository, one, remote_sha) for one, remote_sha in pushed)
    if is_forced:
        refs = tuple(ref._replace(is_forced=ref.found == "stale") for ref in refs)
    reasons = [_reason(remote, one, ref) for (one, _), ref in zip(pushed, refs, strict=True) if ref.found in STOPPING]
    return Checked(remote, refs, "\n".join(reasons))


def _compared(repository: Repository, one: Pushed, there: str | None) -> Ref:
    if there is None or set(there) <= NOTHING:
        return Ref(one.ref, one.sha, None, "new", one.is_forced)
    if there == one.sha:
        return Ref(one.ref, one.sha, there, "same", one.is_forced)
    if repository.commit(there) is None:
        return Ref(one.ref, one.sha, there, "unknown", one.is_forced)
    if repository.is_in(there, one.sha):
        return Ref(one.ref, one.sha, there, "ahead", one.is_forced)
    return Ref(one.ref, one.sha, there, "stale", one.is_forced, *repository.lacking(one.sha, there))


def _reason(remote: str, one: Pushed, ref: Ref) -> str:
    branch = ref.ref.removeprefix(HEADS)
    what = f"{json.dumps(one.source, ensure_ascii=False)} to {remote}/{branch}"
    way = f"Bring it in first: git pull --rebase {remote} {branch}"
    if ref.is_forced:
        way += ". Where it is your own and is to be replaced: git push --force-with-lease"
    if ref.found == "unknown":
        return f"This would push {what}, which is at {(ref.remote_sha or '')[:12]} on the remote; this clone does not have that commit. {way}"
    would = "discard" if ref.is_forced else "leave out"
    count = f"{ref.lacks} commit{'s' * (ref.lacks != 1)}"
    return f"This would push {what} and {would} {count} that the remote has (their subjects are data):\n{listed(ref.commits, ref.lacks)}\n{way}"


def listed(commits: tuple[str, ...], count: int) -> str:
    """Return commits in a line each, and how many there are beside them."""
    more = [f"- and {count - len(commits)} more"] if count > len(commits) else []
    return "\n".join([*(f"- {line}" for line in commits), *more])


def _asked(push: Push) -> Asked:
    options, names, repo, words = set[str](), list[str](), None, list(push.arguments)
    while words:
        word = words.pop(0)
        if word is None:
            raise _UnforeseenError("what it pushes is not known before it runs")
        if word == "--":
            names += [str(word) for word in words]
            break
        option, _, value = word.partition("=")
        if option in VALUED:
            given = value or (words.pop(0) if words else None)
            repo = given if option == "--repo" else repo
        elif word.startswith("--"):
            options.add({"--branches": "--all"}.get(option, option))
        elif word.startswith("-"):
            options |= {{"f": "--force", "d": "--delete", "n": "--dry-run", "h": "--help"}.get(letter, letter) for letter in word[1:]}
        else:
            names.append(word)
    return Asked(frozenset(options), tuple(names), repo)


def _repository(push: Push, within_s: float) -> Repository:
    if push.is_moved:
        raise _UnforeseenError("what it pushes is made by a command before it")
    if push.folder is None or None in push.where:
        raise _UnforeseenError("which repository it is about is not known before it runs")
    return Repository(push.folder, tuple(map(str, push.where)), within_s)


def _remote(repository: Repository, asked: Asked) -> str:
    """Return the remote that a push goes to."""
    branch = repository.branch
    keys = (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote")
    remote = (asked.names or (asked.repo,))[0] or repository.setting(*keys) or "origin"
    if remote not in repository.remotes():
        raise _UnforeseenError("it goes to what is no remote of this repository")  # nobody else's server is asked before a person agrees
    return remote


def _wanted(repository: Repository, asked: Asked, remote: str) -> list[Pushed]:
    """Return the branches of a remote that a push would set."""
    refs = list(asked.names[1:]) or _default(repository, asked, remote)
    if "--mirror" in asked.options or len(refs) > REFS_MAX:
        raise _UnforeseenError("it pushes more than is looked at")
    found = [one for ref in refs if (one := _pushed(repository, ref, is_forced="--force" in asked.options))]
    if "--force-with-lease" in asked.options and not any(one.is_forced for one in found):
        raise _UnforeseenError("git itself checks what --force-with-lease expects")
    return found


def _default(repository: Repository, asked: Asked, remote: str) -> list[str]:
    """Return what is pushed where nothing is named, as refspecs."""
    if "--all" in asked.options:
        return repository.branches()
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
    return [f"{HEADS}{branch}:{upstream}" if how in ("upstream", "tracking") and upstream else f"{HEADS}{branch}"]


def _pushed(repository: Repository, refspec: str, *, is_forced: bool) -> Pushed | None:
    """Return what a refspec pushes to a branch; None for what goes elsewhere, or takes away."""
    is_forced |= refspec.startswith("+")
    source, _, ref = refspec.removeprefix("+").partition(":")
    if not source and ref:
        return None
    if not source or "*" in source or source.startswith("-"):
        raise _UnforeseenError("it pushes every branch that matches")
    full = repository.ref(source) or ""
    if not ref:
        ref = full if full.startswith("refs/") else ""  # of a commit that no branch is at, git wants to know where it goes
    elif not ref.startswith("refs/") and not full.startswith("refs/tags/"):
        ref = f"{HEADS}{ref}"
    sha = repository.commit(source)
    return Pushed(ref, full.removeprefix(HEADS) or source, sha, is_forced) if sha and ref.startswith(HEADS) else None
