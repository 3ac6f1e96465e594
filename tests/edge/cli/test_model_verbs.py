from pathlib import Path

from tests.edge.cli.conftest import Command


def test_models_are_listed_without_a_daemon(omegad: Command, tmp_path: Path) -> None:
    listed = omegad.json("model", "list", XDG_CACHE_HOME=str(tmp_path))["models"]
    assert {model["name"]: model["installed"] for model in listed} == {
        "bge-small-en-v1.5": False,
        "all-MiniLM-L6-v2": False,
        "multilingual-e5-small": False,
    }
    assert "all-MiniLM-L6-v2" in omegad("model", "list").stdout
    assert not omegad.home.exists()


def test_a_model_that_is_not_in_the_catalogue_is_refused_with_those_that_are(
    omegad: Command, tmp_path: Path
) -> None:
    assert (
        "there are: bge-small-en-v1.5"
        in omegad("model", "install", "word2vec", status=2, XDG_CACHE_HOME=str(tmp_path)).stderr
    )


def test_a_folder_without_the_files_is_refused_with_what_it_lacks(omegad: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused = omegad(
        "model",
        "install",
        "bge-small-en-v1.5",
        "--from",
        str(tmp_path / "empty"),
        status=2,
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert "has no file config.json" in refused.stderr
    assert not omegad.home.exists()
