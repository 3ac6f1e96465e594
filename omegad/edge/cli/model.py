"""The verbs about embedding models, which work without a daemon: a running one notices by itself."""

from argparse import Namespace
from pathlib import Path

from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    bar,
    size,
    tell,
    write_json,
    write_table,
)
from omegad.embedding import catalogue
from omegad.embedding import install as installing
from omegad.embedding.catalogue import Folder, Model
from omegad.runtime.errors import Invalid
from omegad.runtime.json_types import Fields

UNVERIFIED = (
    "its files were recorded, not compared with known hashes: no such hashes are known for this model"
)


def install(arguments: Namespace, instance: Instance) -> None:
    """Install a model from its usual source or a folder; without a name those that `auto` uses. Raises
    `Invalid` for a folder without a name.
    """
    if arguments.folder and not arguments.name:
        raise Invalid("--from takes the name of the model that is in the folder", hint="`omegad model list`")
    source = Folder(str(Path(arguments.folder).expanduser().absolute())) if arguments.folder else None
    models = [installing.known(arguments.name)] if arguments.name else catalogue.USUAL
    done = [_installed(model, source, arguments, instance) for model in models]
    was_there = "was installed already, from the same files," if source else "was installed already"
    told = [
        f"{one['model'].name} {was_there if one['was_there'] else 'is installed'} in {one['folder']}"
        for one in done
    ]
    unverified = [] if all(one["model"].verified for one in done) else [UNVERIFIED]
    tell(arguments, done[0] if arguments.name else {"models": done}, *told, *unverified)


def _installed(model: Model, source: Folder | None, arguments: Namespace, instance: Instance) -> Fields:
    with bar(model.name) as update:
        done = installing.install(
            model,
            instance.paths.models,
            source=source,
            force=arguments.force,
            progress=lambda message, done: update(done, message),
        )
    folder = catalogue.folder_of(instance.paths.models, model.name)
    return {"model": done.manifest, "folder": str(folder), "was_there": done.was_there}


def list_all(arguments: Namespace, instance: Instance) -> None:
    """List the catalogue and what is installed of it."""
    models = [_described(model, instance) for model in catalogue.ALL]
    if arguments.json:
        write_json({"models": models, "folder": str(instance.paths.models)})
    else:
        write_table(
            ("MODEL", "INSTALLED", "SIZE", "FOLDER"),
            [
                (
                    m["name"],
                    "yes" if m["installed"] else "no",
                    size(m["bytes"]) if m["bytes"] else "-",
                    m["folder"],
                )
                for m in models
            ],
        )


def _described(model: Model, instance: Instance) -> Fields:
    folder = catalogue.folder_of(instance.paths.models, model.name)
    manifest = catalogue.read_manifest(folder)
    return {
        "name": model.name,
        "installed": manifest is not None,
        "embedder_id": manifest.embedder_id if manifest else None,
        "verified": manifest.verified if manifest else None,
        "bytes": sum(file.bytes for file in manifest.files.values()) if manifest else 0,
        "tokens_max": model.tokens_max,
        "folder": str(folder),
    }
