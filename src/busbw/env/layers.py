"""What is in force where a job starts: the shell, NCCL's settings files, what a plug-in sets, and which one wins."""

from collections.abc import Iterator, Mapping
from typing import Literal

from busbw.env.conf_file import conf_lines
from busbw.env.versions import known_in, newest, parse_version, reaches
from busbw.facts.envvars import variables
from busbw.facts.plugin_exports import plugin_exports
from busbw.model.settings import PluginExport, Setting, Settings, SettingsFile, Surroundings

# The first version of NCCL that reads NCCL_CONF_FILE.
CONF_FILE_SINCE = (2, 23, 4)
ETC_CONF = "/etc/nccl.conf"


def settings_paths(
    environment: Mapping[str, str], *, home: str | None, nccl: tuple[int, ...] | None
) -> tuple[tuple[Literal["conf", "etc_conf"], str], ...]:
    """Return the settings files that NCCL looks for, the stronger first. `home`: the home folder; None: not known.

    NCCL_CONF_FILE counts from the environment only, takes the place of the file in the home folder, and is taken as it
    is: `~` is not expanded.
    """
    named = environment.get("NCCL_CONF_FILE", "") if reaches(nccl, CONF_FILE_SINCE) else ""
    mine = named or (f"{home}/.nccl.conf" if home is not None else "")
    return (*((("conf", mine),) if mine else ()), ("etc_conf", ETC_CONF))


def layers(found: Surroundings, nccl: tuple[int, ...] | None = None) -> Settings:
    """Return every choice that a job started here meets, the weakest first: plug-in, /etc/nccl.conf, own file, shell.

    `nccl`: the version to read as; None: the one found, else the newest known. A variable that the shell sets to
    nothing is set: no file gets through to it.
    """
    version = nccl or (parse_version(found.nccl) if found.nccl is not None else newest())
    ranks = {"etc_conf": 0, "conf": 1}
    files = sorted(found.files, key=lambda file: ranks[file.layer])
    return Settings().then(
        *_from_plugin(found.platform, version),
        *(setting for file in files for setting in _from_file(file, version)),
        *(
            Setting(name=name, value=value, layer="shell", source=f"the environment of {found.where}")
            for name, value in found.environment.items()
        ),
    )


def exports_of(name: str) -> tuple[PluginExport, ...]:
    """Return what plug-ins are known to set a variable to by themselves."""
    return tuple(export for export in plugin_exports() if export.name == name)


def _from_file(file: SettingsFile, nccl: tuple[int, ...]) -> Iterator[Setting]:
    """Yield the lines of a file, the last first: NCCL keeps what is set already, so that the first line wins."""
    for line in reversed(tuple(conf_lines(file.text, nccl))):
        yield Setting(name=line.name, value=line.value, layer=file.layer, source=f"{file.path}:{line.line}")


def _from_plugin(platform: str | None, nccl: tuple[int, ...]) -> Iterator[Setting]:
    for export in plugin_exports():
        known = known_in(variables()[export.name], nccl) == "yes"
        if known and export.value is not None and platform is not None and platform in export.platforms:
            yield Setting(
                name=export.name,
                value=export.value,
                layer="site",
                source=export.source,
                reason=export.reason,
                conditions=f"where {export.by} is loaded",
            )
