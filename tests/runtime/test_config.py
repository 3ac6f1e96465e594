"""Where a home's files are, and what can be set."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.memory.types import BUILT_IN, TTL_SECONDS_MAX, MemoryType, MemoryTypes
from omegad.runtime import config
from omegad.runtime.config import SOCKET_PATH_BYTES_MAX, Config, Paths, find_paths
from omegad.runtime.errors import BadConfiguration

SEGMENTS = st.text(st.sampled_from("aé漢 .-"), min_size=1, max_size=30).filter(
    lambda text: text.strip(". ") != ""
)
FOLDERS = st.lists(SEGMENTS, min_size=1, max_size=12).map(lambda parts: "/" + "/".join(parts))


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def load(home: Path, text: str | None = None, **environ: str) -> Config:
    if text is not None:
        (home / "config.toml").write_text(text, encoding="utf-8")
    return config.load(Paths(home=home, socket=home / "s", models=home), environ)


def test_without_anything_set_everything_has_its_default(tmp_path: Path) -> None:
    assert load(tmp_path) == Config()
    assert load(tmp_path, "") == Config()


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    text = 'model = "none"\nreaders = 4\nquery_timeout_s = 0.5\n'
    assert load(tmp_path, text) == Config(model="none", readers=4, query_timeout_s=0.5)
    environ = {
        "OMEGAD_READERS": "8",
        "OMEGAD_LOG_LEVEL": "debug",
        "PATH": "/bin",
        "OMEGAD_HOME": "x",
        "OMEGAD_SOCKET": "y",
    }
    assert load(tmp_path, text, **environ) == Config(
        model="none", readers=8, query_timeout_s=0.5, log_level="debug"
    )


def test_memory_types_can_be_added_with_all_that_follows_from_a_type(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "[event_types.recipe]\njaccard = 0.6\nttl_seconds = 60\npriority = 5\nweight = 1.5\ndecays ="
        " false\n[event_types.rumour]\n",
    )
    recipe = MemoryType(jaccard=0.6, ttl_seconds=60, priority=5, weight=1.5, decays=False)
    types = MemoryTypes.configured(found.event_types)
    assert (types.of("recipe"), types.of("rumour")) == (recipe, MemoryType(jaccard=0.85))


@pytest.mark.parametrize(
    ("text", "environ", "message", "hint"),
    [
        ("reader = 3", {}, "unknown setting 'reader'", "did you mean 'readers'?"),
        ("gateway_port = 8377", {}, "unknown setting 'gateway_port'", 'web = ["mcp"], at web_port'),
        ("gateway_idle_s = 60", {}, "unknown setting 'gateway_idle_s'", "take it out: `omegad web` serves"),
        ("zzz = 3", {}, "unknown setting 'zzz'", "known are: model, "),
        ("readers = 0", {}, "readers", ""),
        ("readers = 17", {}, "readers", ""),
        ('model = "gpt"', {}, "gpt", ""),
        ("", {"OMEGAD_READERS": "many"}, "readers", ""),
        ("query_timeout_s = 0", {}, "query_timeout_s", ""),
        ("line_bytes_max = 1", {}, "line_bytes_max", ""),
        ("[event_types.recipe]\njaccard = 0.1", {}, "jaccard", ""),
        ("[event_types.recipe]\njacard = 0.6", {}, "jacard", ""),
        ("[event_types.recipe]\nttl_seconds = 0", {}, "ttl_seconds", ""),
        (f"[event_types.recipe]\nttl_seconds = {TTL_SECONDS_MAX + 1}", {}, "ttl_seconds", ""),
        ("[event_types.recipe]\npriority = 6", {}, "priority", ""),
        ("[event_types.recipe]\nweight = 0", {}, "weight", ""),
        ('[event_types.recipe]\ndecays = "often"', {}, "decays", ""),
        ("", {"OMEGAD_EVENT_TYPES": "recipe"}, "event_types", ""),
        ("readers = ", {}, "config.toml", ""),
        ("[readers", {}, "config.toml", ""),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, text: str, environ: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(BadConfiguration, match=message) as error:
        MemoryTypes.configured(load(tmp_path, text, **environ).event_types)
    assert hint in error.value.hint
    assert error.value.hint


def test_variables_of_nobodys_are_warned_of_and_change_nothing(tmp_path: Path) -> None:
    environ = {"OMEGAD_FOO": "1", "OMEGAD_LOGLEVEL": "debug", "OMEGAD_READERS": "3", "OMEGAD_HOME": "x"}
    assert load(tmp_path, **environ) == Config(readers=3)
    assert config.unknown_variables(environ) == [
        "OMEGAD_FOO is ignored: there is no setting 'foo'",
        "OMEGAD_LOGLEVEL is ignored: there is no setting 'loglevel'; did you mean OMEGAD_LOG_LEVEL?",
    ]


def test_a_home_has_one_socket_by_whatever_name_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert find_paths({"OMEGAD_HOME": str(tmp_path / "link")}) == find_paths(
        {"OMEGAD_HOME": str(tmp_path / "real")}
    )
    assert find_paths({"OMEGAD_HOME": str(tmp_path / "loop")}).home == tmp_path / "loop"


@pytest.mark.parametrize("variable", ["OMEGAD_HOME", "OMEGAD_SOCKET", "XDG_CACHE_HOME"])
def test_a_place_that_cannot_be_told_is_refused(variable: str) -> None:
    with pytest.raises(BadConfiguration, match=r"'/tmp/a.+udcff.*' is not UTF-8") as error:
        find_paths({variable: "/tmp/a\udcff"})  # noqa: S108
    assert variable in error.value.hint


def test_a_file_that_is_no_text_or_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match=re.escape("config.toml")):
        load(tmp_path)
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(BadConfiguration, match=re.escape("config.toml")):
        load(tmp_path)


CONSULT = """
[consult]
calls_per_day = 3
default = "local"
[consult.models.local]
api = "openai"
model = "qwen"
base_url = "http://[::1]:11434/v1/"
[consult.models.claude]
api = "anthropic"
model = "claude"
keyring = "omegad/claude"
"""


def test_models_to_consult_are_tables(tmp_path: Path) -> None:
    consult = load(tmp_path, CONSULT).consult
    assert (consult.calls_per_day, list(consult.models)) == (3, ["local", "claude"])
    local, claude = consult.models.values()
    assert (local.url, local.host) == ("http://[::1]:11434/v1", "[::1]:11434")
    assert (claude.url, claude.host) == ("https://api.anthropic.com", "api.anthropic.com")


SECRET = "aB3dE5fG7hJ9kL1mN3pQ"  # noqa: S105  of nothing


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('model = "qwen"', 'model = "qwen"\nkey = "{SECRET}"', ".key is not known here"),
        ("calls_per_day", "calls_per_year", "calls_per_year is not known here"),
        ("calls_per_day = 3", "calls_per_day = 0", "calls_per_day must be at least 1"),
        ("calls_per_day = 3", "timeout_s = 601", "timeout_s must be at most 600"),
        ('default = "local"', 'default = "gpt"', "default is none of the models, which are: local, claude"),
        ("models.local", "models.'my local'", "the name of a model is of small letters"),
        ('api = "openai"', 'api = "gemini"', "api cannot be 'gemini'"),
        ('api = "openai"', "", "api is missing"),
        ("http://[::1]:11434/v1/", "http://192.0.2.1/v1", "base_url is not https"),
        ("http://[::1]:11434/v1/", "http://localhost.example/v1", "base_url is not https"),
        ("http://[::1]:11434/v1/", "ftp://localhost/v1", "base_url is not https"),
        ("http://[::1]:11434/v1/", "https://u:{SECRET}@example.org/v1", "base_url is more or less"),
        ("http://[::1]:11434/v1/", "https://example.org/v1?key={SECRET}", "base_url is more or less"),
        ("http://[::1]:11434/v1/", "https:///v1", "base_url is more or less"),
        ("http://[::1]:11434/v1/", "https://example.org:port/v1", "Port could not be cast"),
        ("http://[::1]:11434/v1/", "https://example.org/a b", "a character that no address has"),
        ('keyring = "omegad/claude"', 'keyring = "{SECRET}"', "SERVICE/USER"),
        ('keyring = "omegad/claude"', 'keyring = "a/b"\nkey_file = "/c"', "not both"),
        ('keyring = "omegad/claude"', 'key_file = "/a\\u0000"', "matching regex"),
        ('model = "claude"', 'model = ""', "matching regex"),
    ],
    ids=range(20),
)
def test_models_that_cannot_be_consulted_are_refused_without_a_word_of_a_key(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in CONSULT
    with pytest.raises(BadConfiguration, match=re.escape(said)) as caught:
        load(tmp_path, CONSULT.replace(before, after.replace("{SECRET}", SECRET)))
    assert SECRET not in f"{caught.value}"


def test_every_setting_can_be_set_from_the_environment(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        name: value
        for name, value in msgspec.to_builtins(Config()).items()
        if name not in {"event_types", "paused_folders", "consult", "web"}
    }
    assert (
        load(tmp_path, **{f"OMEGAD_{name.upper()}": str(value) for name, value in values.items()}) == Config()
    )


def test_the_default_home_is_in_the_users_folder(user: Path) -> None:
    found = find_paths({})
    assert found == Paths(
        home=user / ".omegad",
        socket=user / ".omegad" / "run" / "omegad.sock",
        models=user / ".cache" / "omegad" / "models",
    )
    assert {
        path.parent for path in (found.log, found.embeddings, found.lock, found.config, found.daemon_log)
    } == {found.home}


def test_the_default_home_alone_has_its_socket_in_the_runtime_directory(user: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": "/run/user/7", "XDG_CACHE_HOME": "/var/cache/me"}
    assert find_paths(environ).socket == Path("/run/user/7/omegad/omegad.sock")
    assert find_paths(environ).models == Path("/var/cache/me/omegad/models")
    assert find_paths({**environ, "OMEGAD_HOME": str(user / ".omegad")}).socket == Path(
        "/run/user/7/omegad/omegad.sock"
    )
    assert find_paths({**environ, "OMEGAD_HOME": "/srv/o"}).socket == Path("/srv/o/run/omegad.sock")


def test_an_explicit_socket_is_taken_as_it_is_or_refused(user: Path) -> None:
    assert find_paths({"OMEGAD_SOCKET": "~/s"}).socket == user / "s"
    assert find_paths({"OMEGAD_SOCKET": "/" + "x" * (SOCKET_PATH_BYTES_MAX - 1)}).socket.name == "x" * (
        SOCKET_PATH_BYTES_MAX - 1
    )
    with pytest.raises(BadConfiguration, match="longer than 103 bytes"):
        find_paths({"OMEGAD_SOCKET": "/" + "x" * SOCKET_PATH_BYTES_MAX})


def test_a_relative_home_is_one_place_wherever_it_is_asked_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_paths({"OMEGAD_HOME": "o"}).home == tmp_path / "o"


def test_a_long_home_has_a_short_socket_of_its_own() -> None:
    found = find_paths({"OMEGAD_HOME": "/" + "long/" * 40})
    assert found.socket.parent.name == f"omegad-{os.getuid()}"
    assert len(os.fsencode(found.socket)) < 60
    assert found.socket == find_paths({"OMEGAD_HOME": "/" + "long/" * 40}).socket


@given(FOLDERS, FOLDERS)
def test_two_homes_never_share_a_socket(one: str, other: str) -> None:
    sockets = [
        find_paths({"OMEGAD_HOME": home, "XDG_RUNTIME_DIR": "/run/user/7"}).socket for home in (one, other)
    ]
    assert (sockets[0] == sockets[1]) is (Path(one) == Path(other))


@given(home=st.none() | FOLDERS, runtime=st.none() | FOLDERS)
def test_no_socket_is_longer_than_a_socket_may_be(home: str | None, runtime: str | None) -> None:
    environ = {name: value for name, value in (("OMEGAD_HOME", home), ("XDG_RUNTIME_DIR", runtime)) if value}
    assert len(os.fsencode(find_paths(environ).socket)) <= SOCKET_PATH_BYTES_MAX


def test_what_is_said_of_a_built_in_type_changes_that_alone(tmp_path: Path) -> None:
    settings = load(
        tmp_path, "[event_types.decision]\nttl_seconds = 60\n\n[event_types.recipe]\nttl_seconds = 5\n"
    )
    types = MemoryTypes.configured(settings.event_types)
    assert types.of("decision") == msgspec.structs.replace(BUILT_IN["decision"], ttl_seconds=60)
    assert types.of("recipe") == MemoryType(ttl_seconds=5)


@pytest.mark.parametrize(
    "table", ["event_types = 3", "[event_types]\ndecision = 3", "[event_types.decision]\nttl = 3"]
)
def test_a_table_of_types_that_is_none_is_refused(table: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration):
        MemoryTypes.configured(load(tmp_path, table).event_types)
