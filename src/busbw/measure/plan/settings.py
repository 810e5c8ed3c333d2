"""The settings files among captured files: which of them NCCL reads, and what a job that starts now finds."""

from pathlib import Path

from msgspec import structs

from busbw.base.errors import InputError
from busbw.env.layers import layers, settings_paths
from busbw.env.versions import newest, parse_version
from busbw.facts.envvars import variables
from busbw.machine.capture.environment import environment, take_settings
from busbw.machine.capture.files import Collection
from busbw.model.host import CapturedFile
from busbw.model.settings import JobEnvironment, SettingsFile

_NAMED = "NCCL_CONF_FILE"
_OF_A_HOME = "/.nccl.conf"
_TIMEOUT_S = 10.0


def surroundings_now() -> JobEnvironment:
    """Return the environment of this process and the settings files of this host, in milliseconds."""
    taken = Collection(Path("/"), timeout_s=_TIMEOUT_S)
    take_settings(taken)
    return with_files(JobEnvironment(where="this host", environment=environment()), taken.files)


def with_files(found: JobEnvironment, captured: tuple[CapturedFile, ...]) -> JobEnvironment:
    """Return surroundings with those of the captured files that NCCL reads settings from, the stronger first.

    Which ones those are depends on its version; where none is found they are those of the newest known.
    """
    by_path = {file.path: file for file in captured}
    named = found.environment.get(_NAMED, "")
    homes = [path.removesuffix(_OF_A_HOME) for path in by_path if path.endswith(_OF_A_HOME) and path != named]
    files: list[SettingsFile] = []
    unseen: list[str] = []
    for layer, path in settings_paths(found.environment, home=next(iter(homes), None), nccl=_version(found.nccl)):
        file = by_path.get(path)
        if file is not None and file.text is not None:
            files.append(SettingsFile(path=path, layer=layer, text=file.text))
        elif file is not None:
            unseen.append(f"{path}: {file.reason or 'cannot be read'}")
        elif path == named and not path.startswith("/"):
            unseen.append(f'{_NAMED} = "{path}": which file that is depends on the folder that a job starts in')
    if len(homes) > 1:
        unseen.append(f"{_OF_A_HOME[1:]} is in {' and '.join(homes)}: HOME and the list of accounts disagree")
    return structs.replace(found, files=tuple(files), unseen=(*found.unseen, *unseen))


def named_paths(found: JobEnvironment) -> dict[str, str]:
    """Return the absolute paths that variables are set to, by the variable's name."""
    known = variables()
    values = layers(found, _version(found.nccl) or newest()).env()
    return {
        name: value
        for name, value in values.items()
        if name in known and known[name].kind == "path" and value.startswith("/")
    }


def _version(text: str | None) -> tuple[int, ...] | None:
    """Return a version of NCCL; None, the newest known, where there is none: a library may call itself anything."""
    try:
        return parse_version(text) if text is not None else None
    except InputError:
        return None
