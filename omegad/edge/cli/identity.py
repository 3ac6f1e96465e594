"""The verbs about who an agent is: files in a git repository of the home, whose changes are committed and
recorded.
"""

import re
import subprocess
from argparse import Namespace
from pathlib import Path

from omegad.edge.cli import starting
from omegad.edge.cli.connection import Answer, answered, ask
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import safe, tell
from omegad.runtime.errors import Invalid, NotFound, Refused, Unavailable

TEMPLATES = {
    "IDENTITY.md": (
        "<!-- Who the agent is: its role, its tone, what it never does. What stands in comments is not shown"
        " to it. -->\n"
    ),
    "USER.md": "<!-- For whom it works: names, languages, working hours, what to ask before. -->\n",
}
NAMED = re.compile(r"[A-Z][A-Z0-9_-]{0,31}\.md")
FILE_BYTES_MAX = 64 * 1024  # what may be recorded is for the daemon to say
AUTHOR = ("-c", "user.name=omegad", "-c", "user.email=omegad@localhost", "-c", "commit.gpgsign=false")


def init(arguments: Namespace, instance: Instance) -> None:
    """Make the repository, with files to fill in; what is there is left as it is."""
    starting.make_home(instance.paths)
    folder = instance.paths.identity
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet")
    for name, text in TEMPLATES.items():
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
    commit(arguments, instance)
    if not arguments.json:
        print(f"say it in the files of {folder}, then run `omegad identity commit`")


@answered
def show(answer: Answer, _arguments: Namespace) -> None:
    """Show what the files said when they were recorded last."""
    for one in answer["files"]:
        print(f"{safe(one['file'])} ({one['changed_at'][:16]}, {(one['revision'] or 'no commit')[:12]}):")
        print("\n".join(map(safe, one["content"].splitlines())))
    if not answer["files"]:
        print("nothing says who the agent is; `omegad identity init` begins it")


def commit(arguments: Namespace, instance: Instance) -> None:
    """Commit the files, and record those that say something else than before."""
    folder = instance.paths.identity
    if not (folder / ".git").exists():
        raise NotFound(f"{folder} is no git repository", hint="`omegad identity init` makes it one")
    files = {path.name: _text(path) for path in sorted(folder.glob("*.md")) if NAMED.fullmatch(path.name)}
    _git(folder, "add", "--all", ".")
    if _git(folder, "status", "--porcelain"):
        _git(folder, *AUTHOR, "commit", "--quiet", "--no-verify", "--message", "Record the identity")
    revision = _git(folder, "rev-parse", "HEAD").strip()
    known = {one["file"]: one["position"] for one in ask(instance, "identity.get")["files"]}
    changed = list[str]()
    for name in sorted({*files, *known}):
        done = ask(instance, "identity.record", file=name, content=files.get(name), revision=revision)
        if done["position"] not in (0, known.get(name)):
            changed.append(name)
    tell(
        arguments,
        {"folder": str(folder), "revision": revision, "changed": changed},
        f"recorded {', '.join(changed)} at {revision[:12]}" if changed else "nothing has changed",
    )


def _text(path: Path) -> str:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > FILE_BYTES_MAX:
        raise Refused(
            f"{path} is no plain file, or a large one", hint="put a text of a few pages in its place"
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8", hint="save it as UTF-8") from None


def _git(folder: Path, *words: str) -> str:
    try:
        # The person's own
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise Unavailable("there is no git here", hint="install git, then run it again") from None
    if done.returncode:
        raise Refused(f"git {words[-1]}: {done.stderr.strip()[:400]}", hint=f"see to it in {folder}")
    return done.stdout
