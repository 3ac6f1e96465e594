"""What a hook does: passes the host's JSON on to the daemon and prints its answer.

Run by `hook_client`, it imports nothing of omegad, and only modules that cost next to nothing: starting the
interpreter is most of what a hook costs. Where no daemon answers within the deadline, what happened goes to
the spool of the home, one file for each hook, which the daemon takes in later, once.
"""

import posix
import sys
import time

TYPE_CHECKING = False  # typing would be most of what it costs
if TYPE_CHECKING:
    from _socket import socket

STDIN_S = 0.3  # a host may leave it open, and say nothing more
QUIET_S = 0.02  # after what may be the whole
ENDING_BYTES = 16
LONG_S, SHORT_S = 0.5, 0.15
PATIENT = (
    *("sessionstart", "userpromptsubmit", "beforesubmitprompt", "beforeagent", "userpromptsubmitted"),
    "subagentstart",
)
GUARDED = ("pretooluse", "beforetool")
"""What may be stopped: these and the patient are questions, and the others are said."""
STARTING = ("sessionstart",)
"""What has a daemon started where there is none, for the hooks after it."""
STDIN_BYTES_MAX = 15 << 20  # the daemon's line has 16 MiB
ANSWER_BYTES_MAX = 1 << 20
SPOOL_FILES_MAX = 5_000
SPOOL_BYTES_MAX = 64 << 20
PART_S = 60.0  # far longer than any hook takes to write one
PART_CHARACTERS = 59  # of the name of one
SOCKET_PATH_BYTES_MAX = 103
SHARED = b"/tmp"  # where a socket is whose name is too long in its home
OTHERS, KIND, FOLDER = 0o077, 0o170000, 0o040000
"""Of a file's mode: what others may, what kind it is, and a folder's."""
HOSTS = (
    (b"CURSOR_VERSION", b"cursor"),
    (b"GEMINI_PROJECT_DIR", b"gemini"),
    (b"CLAUDE_PROJECT_DIR", b"claude-code"),
)
BEFORE_TOOL = ("", "pretooluse", "beforetool", "beforeshellexecution")
PRE_PUSH = "pre-push"
PAUSED = b"OMEGAD_PAUSED"
UNREADABLE = (b'"code":-32700', b'"code":-32600', b'"code":-32602')  # what the daemon can never read


def main(event: str, arguments: list[str]) -> int:
    """Pass one hook on, and return the exit status."""
    home, pushes, verdict, status = find_home(), b"", b"", 0
    host = next((host for variable, host in HOSTS if variable in posix.environ), b"")
    payload = None if event == PRE_PUSH else read_stdin()
    name = "".join(letter for letter in event if letter.isalnum() and letter.isascii())[:64]
    if event == PRE_PUSH or (
        payload is not None and b"push" in payload and b"git" in payload and name.lower() in BEFORE_TOOL
    ):
        payload, pushes, verdict, status = guard(payload, arguments, host, home)
    if verdict:
        write(verdict)
    try:
        if payload is not None:
            deliver(name, payload, host, home, pushes, is_told=bool(verdict))
    except Exception:
        pass  # what is said already holds, whoever hears of it
    return status


def deliver(name: str, payload: bytes, host: bytes, home: bytes, pushes: bytes, *, is_told: bool) -> None:
    """Tell the daemon, or the spool, and print what the daemon has for the host, unless that is told
    something already.
    """
    payload, pushes = public(payload), public(pushes)
    is_paused = bool(posix.environ.get(PAUSED))
    now_us, delivery_id = time.time_ns() // 1000, posix.urandom(16).hex().encode()
    is_patient, is_guarded = name.lower() in PATIENT, name.lower() in GUARDED and not is_told
    is_behind = is_waiting(home + b"/spool")
    wait_s = LONG_S if is_patient or is_guarded else 0.0 if is_behind else SHORT_S
    is_kept = is_behind and not is_guarded
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_us // 1_000_000)).encode()
    about = (name.encode(), delivery_id, seconds, now_us % 1_000_000, host, pushes)
    params = b'{"event":"%s","delivery_id":"%s","occurred_at":"%s.%06dZ","host":"%s"%s,"payload":' % about
    deadline = time.monotonic() + wait_s
    asked = b',"answer_within_ms":%d%s%s}' % (
        wait_s * 1000,
        b',"is_kept":true' if is_kept else b"",
        b',"is_paused":true' if is_paused else b"",
    )
    answer = ask(sockets(home), params + payload + asked, deadline) if wait_s else None
    if answer is not None and is_unread(answer):
        from omegad.runtime.json_text import flattened

        payload = flattened(payload)  # as much of it as can be read
        answer = ask(sockets(home), params + payload + asked, deadline)
    if not answer or is_kept:
        if not is_paused and not keeps_off(home, payload):
            spool(home + b"/spool", b"%020d-%s.json" % (now_us, delivery_id), params + payload + b"}")
            if answer is None and name.lower() in STARTING:
                import os

                from omegad.edge.hook.launching import started

                started(home, os.environ, is_heard=False)
    elif is_unread(answer):
        lose(home + b"/spool")
    if answer and not is_unread(answer) and not is_told and b'"stdout":""' not in answer:
        tell(answer)


def keeps_off(home: bytes, payload: bytes) -> bool:
    """Say whether nothing of what happened may be kept: all is paused, or a folder that it is about."""
    from omegad.runtime import pausing

    where = home.decode("utf-8", "surrogateescape")
    return (
        pausing.of_home(where) is not None or pausing.of_folders(where, pausing.named_in(payload)) is not None
    )


def public(data: bytes) -> bytes:
    """Return JSON without what people said is private. Raises where it cannot be taken out, and then
    nothing is told.
    """
    if b"private" not in data.lower():
        return data  # importing costs more than looking
    from omegad.runtime.private import without_private

    return without_private(data)


def is_unread(answer: bytes) -> bool:
    """Say whether it is an answer to what the daemon can never read."""
    return b'"result"' not in answer and any(code in answer for code in UNREADABLE)


def guard(
    payload: bytes | None, arguments: list[str], host: bytes, home: bytes
) -> tuple[bytes | None, bytes, bytes, int]:
    """Let the push guard look: the payload, what it found as a parameter, what the host is told, and the
    exit status.
    """
    try:
        from omegad.agents import push_guard

        where = home.decode("utf-8", "surrogateescape")
        found = (
            push_guard.pre_push(arguments, where)
            if payload is None
            else push_guard.before_tool(payload, host.decode(), where)
        )
    except Exception:
        return payload, b"", b"", 0  # whatever it stumbles over, nobody is kept from pushing
    return found.payload, b',"pushes":%s' % found.pushes if found.pushes else b"", found.stdout, found.status


def read_stdin() -> bytes | None:
    """Return the JSON object on standard input, as one line; None where there is none in time."""
    from select import select

    read, deadline = bytearray(), time.monotonic() + STDIN_S
    while True:
        left_s = deadline - time.monotonic()
        is_perhaps_whole = read[-ENDING_BYTES:].rstrip().endswith(b"}")
        if left_s <= 0 or not select([0], [], [], min(left_s, QUIET_S) if is_perhaps_whole else left_s)[0]:
            if is_perhaps_whole and is_json(read):
                break
            if not is_perhaps_whole or left_s <= QUIET_S:
                return cannot_pass(read)
            select([0], [], [], left_s)
            continue
        chunk = posix.read(0, 1 << 20)
        if not chunk:
            break
        read += chunk
        deadline = time.monotonic() + STDIN_S
        if len(read) > STDIN_BYTES_MAX:
            return cannot_pass(read)
    # Lines end between the parts of JSON alone, never within a string.
    data = bytes(read.strip()).replace(b"\r", b" ").replace(b"\n", b" ")
    try:
        data.decode()
    except UnicodeDecodeError:  # text that was cut inside a character
        data = data.decode("utf-8", "replace").encode()
    return data if data.startswith(b"{") else cannot_pass(read)


def cannot_pass(read: bytearray) -> bytes | None:
    """Count what cannot be passed on, if anything was said at all; return None."""
    if read.strip():
        lose(find_home() + b"/spool")
    return None


def is_json(data: bytearray) -> bool:
    """Say whether a host that keeps its pipe open has said all."""
    import json

    try:
        json.loads(data)
    except ValueError:
        return False
    except RecursionError:
        pass  # as far as anybody can say
    return True


def find_home() -> bytes:
    """Return the folder of the daemon that this user's hooks go to."""
    home = posix.environ.get(b"OMEGAD_HOME") or b"~/.omegad"
    if home.startswith(b"~/"):
        home = user_home() + home[1:]
    return home if home.startswith(b"/") else posix.getcwdb() + b"/" + home


def user_home() -> bytes:
    """Return the user's own folder."""
    if b"HOME" in posix.environ:
        return posix.environ[b"HOME"].rstrip(b"/")
    from pwd import getpwuid

    return getpwuid(posix.getuid()).pw_dir.encode()


def sockets(home: bytes) -> list[bytes]:
    """Return where the daemon of a home may listen, in the order in which to try."""
    if explicit := posix.environ.get(b"OMEGAD_SOCKET"):
        return [user_home() + explicit[1:] if explicit.startswith(b"~/") else explicit]
    found = [home + b"/run/omegad.sock"]
    if home == user_home() + b"/.omegad":
        runtime = posix.environ.get(b"XDG_RUNTIME_DIR") or b"/run/user/%d" % posix.getuid()
        found.insert(0, runtime + b"/omegad/omegad.sock")
    if len(found[-1]) > SOCKET_PATH_BYTES_MAX:
        from hashlib import sha256

        found[-1] = b"%s/omegad-%d/%s.sock" % (SHARED, posix.getuid(), sha256(home).hexdigest()[:16].encode())
    return [path for path in found if len(path) <= SOCKET_PATH_BYTES_MAX]


def is_private(folder: bytes) -> bool:
    """Say whether a folder is this user's alone, and no link, as the daemon has it that of its socket."""
    found = posix.lstat(folder)
    return found.st_mode & KIND == FOLDER and not found.st_mode & OTHERS and found.st_uid == posix.geteuid()


def peer_uid(connection: "socket") -> int:
    """Return the user at the other end of a connection, as the kernel knows it: the second number of what
    either system says.
    """
    import _socket

    asked = (
        (0, 1, 76) if sys.platform == "darwin" else (_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    )  # LOCAL_PEERCRED has no name here
    return int.from_bytes(connection.getsockopt(*asked)[4:8], sys.byteorder)


def ask(paths: list[bytes], params: bytes, deadline: float) -> bytes | None:
    """Return the daemon's answer: nothing where there is none in time, None where nobody listens; what
    happened is still to be told then. Nobody else's daemon hears anything.
    """
    from _socket import AF_UNIX, SOCK_STREAM, socket

    line = b'{"jsonrpc":"2.0","id":1,"method":"hook.dispatch","params":%s}\n' % params
    none = None
    for path in paths:
        try:
            if not is_private(path.rpartition(b"/")[0] or b"."):
                none = b""
                continue
            connection = socket(AF_UNIX, SOCK_STREAM)
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            connection.connect(path)
            if peer_uid(connection) != posix.geteuid():
                none = b""
                continue
            connection.sendall(line)
            answer = b""
            while not answer.endswith(b"\n") and len(answer) < ANSWER_BYTES_MAX:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                chunk = connection.recv(1 << 16)
                if not chunk:
                    return b""
                answer += chunk
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        except OSError:
            none = b""
            continue
        return answer if b'"result"' in answer or is_unread(answer) else b""
    return none


def tell(answer: bytes) -> None:
    """Print what the daemon has for the host."""
    from _json import scanstring

    key = '"stdout":"'
    text = answer.decode("utf-8", "replace")
    start = text.find(key)
    if start >= 0:
        write(scanstring(text, start + len(key))[0].encode("utf-8", "replace"))


def write(data: bytes, file: int = 1) -> None:
    """Print bytes, or write them to another file."""
    while data:
        data = data[posix.write(file, data) :]


def is_waiting(folder: bytes) -> bool:
    """Say whether something is in the spool that no daemon has taken in."""
    try:
        return any(name.endswith(b".json") and not name.startswith(b".") for name in posix.listdir(folder))
    except OSError:
        return False


def spool(folder: bytes, name: bytes, data: bytes) -> None:
    """Keep what happened for later, in a file that is there whole or not at all; what cannot be kept, or
    would be too much, is counted.
    """
    part, home = folder + b"/." + name, folder.rpartition(b"/")[0]
    try:
        seal = seal_of(home)
        while True:
            whole = sealed(seal, name, data)
            make(folder)
            if not has_room(folder, len(whole)):
                lose(folder)
                return
            put(part, whole)
            posix.rename(part, folder + b"/" + name)
            before, seal = seal, seal_of(home)
            if seal == before:
                return  # or the home was sealed or opened meanwhile, by what may not have seen this
    except Exception:  # rather than to leave it where anybody could read it
        try:
            posix.unlink(part)
        except OSError:
            pass
        lose(folder)


def seal_of(home: bytes) -> bytes:
    """Return what says that the home is sealed, nothing where it is plain."""
    try:
        file = posix.open(home + b"/seal.toml", posix.O_RDONLY | posix.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    said = posix.read(file, 1 << 16)
    posix.close(file)
    return said


def sealed(seal: bytes, name: bytes, data: bytes) -> bytes:
    """Return what happened as a home keeps it: sealed to the key that *seal* has, where there is one. Raises
    what keeps it from being sealed.
    """
    if not seal:
        return data
    said = dict(line.split(b" = ", 1) for line in seal.splitlines() if b" = " in line)
    from omegad.runtime import sealed_notes

    sys.path.append(said[b"packages"].strip(b'"').decode())
    return sealed_notes.seal(bytes.fromhex(said[b"hooks"].strip(b'"').decode()), name, data)


def has_room(folder: bytes, size: int) -> bool:
    """Say whether the spool may hold so many bytes more. What hooks that were killed have left of theirs
    is removed, and counted.
    """
    count, old = 0, time.time() - PART_S
    for entry in posix.scandir(folder):
        try:
            found = entry.stat(follow_symlinks=False)
            is_part = (
                entry.name.startswith(b".")
                and entry.name.endswith(b".json")
                and len(entry.name) == PART_CHARACTERS
            )
            if is_part and found.st_mtime < old:
                posix.unlink(entry.path)
                lose(folder)
                continue
        except OSError:
            continue  # taken in this very moment
        size += found.st_size
        count += 1
    return count < SPOOL_FILES_MAX and size <= SPOOL_BYTES_MAX


def lose(folder: bytes) -> None:
    """Count what is let go: the daemon's status tells how many bytes this file has. It grows where there
    is no room for a byte, too.
    """
    try:
        make(folder)
        file = posix.open(
            folder + b"/lost", posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_APPEND, 0o600
        )
    except OSError:
        return  # the daemon has the file ready wherever it can
    try:
        posix.write(file, b".")
    except OSError:
        posix.ftruncate(file, posix.fstat(file).st_size + 1)
    posix.close(file)


def make(folder: bytes) -> None:
    """Have a folder in the home, for this user alone."""
    for made in (folder.rpartition(b"/")[0], folder):
        try:
            posix.mkdir(made, 0o700)
        except FileExistsError:
            pass


def put(path: bytes, data: bytes) -> None:
    """Write a file of this user's alone."""
    file = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_EXCL, 0o600)
    write(data, file)
    posix.close(file)
