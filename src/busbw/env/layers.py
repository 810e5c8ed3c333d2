"""Who wins where a variable is set at several places, and everything there is to say of one variable."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from busbw.base.value import Integer, Value
from busbw.env.misspelled import read_name
from busbw.env.values import read_value
from busbw.env.versions import beyond, default_in, known_in, newest, parse_version, reaches, spelled
from busbw.facts.envvars import misspellings, plugin_exports, variables
from busbw.model.envvar import EnvVar, Explanation, InForce, PublishedValue
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.settings import JobEnvironment, PluginExport, Setting, Settings, SettingsFile

# What came with which version of NCCL; see src/misc/param.cc of its tags.
COMMENTS_SINCE = (2, 26, 2)
RETURNS_STRIPPED_SINCE = (2, 30, 3)
# Bytes of a name and of a value; what is beyond is cut.
LONGEST_BYTES = 1023
# Since RETURNS_STRIPPED_SINCE a line is read in pieces of so many bytes, and each piece counts as a line.
_PIECE_BYTES = 4095


class ConfLine(Value, kw_only=True, frozen=True):
    """One line that sets something, as NCCL understands it."""

    # Counts from 1.
    line: Integer
    name: str
    value: str
    # Whether name or value was longer than NCCL takes.
    cut: bool = False


def conf_lines(text: str, nccl: tuple[int, ...]) -> Iterator[ConfLine]:
    """Yield what a settings file sets in a version of NCCL, in the order of its lines.

    Of two lines for one name the first counts. Lines without `=` or without a name do nothing.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith("#") or not reaches(nccl, COMMENTS_SINCE):
            for piece in _pieces(line, nccl):
                found = split_line(piece)
                if found is not None:
                    name, value = found
                    yield ConfLine(
                        line=number,
                        name=_cut(name),
                        value=_cut(value),
                        cut=max(_size(name), _size(value)) > LONGEST_BYTES,
                    )


def split_line(line: str) -> tuple[str, str] | None:
    """Return name and value of a line, None where it sets nothing; a remark counts as any line does."""
    name, equals, value = line.split("\0", maxsplit=1)[0].partition("=")
    return (name, value) if equals and name else None


def _pieces(line: str, nccl: tuple[int, ...]) -> Iterator[str]:
    if not reaches(nccl, RETURNS_STRIPPED_SINCE):
        yield line
        return
    raw = _raw(line)
    for start in range(0, max(len(raw), 1), _PIECE_BYTES):
        piece = _text(raw[start : start + _PIECE_BYTES])
        if start == 0 or not piece.startswith("#"):
            yield piece.removesuffix("\r")


def _cut(text: str) -> str:
    return text if _size(text) <= LONGEST_BYTES else _text(_raw(text)[:LONGEST_BYTES])


def _size(text: str) -> int:
    return len(_raw(text))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


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


def layers(found: JobEnvironment, nccl: tuple[int, ...] | None = None) -> Settings:
    """Return every choice that a job started here meets, the weakest first.

    That is: plug-in, what a run applies of what is recommended, /etc/nccl.conf, own file, shell. `nccl`: the version to
    read as; None: the one found, else the newest known. A variable that the shell sets to nothing is set: no file gets
    through to it.
    """
    version = nccl or (parse_version(found.nccl) if found.nccl is not None else newest())
    ranks = {"etc_conf": 0, "conf": 1}
    files = sorted(found.files, key=lambda file: ranks[file.layer])
    recommended = [each for each in found.recommended if each.standing != "left_out"]
    # What a run sets is in the environment of its ranks, and is not a choice of the user.
    applied = {(each.setting.name, each.setting.value) for each in recommended if each.standing == "applied"}
    return Settings().then(
        *_from_plugin(found.platform, version),
        *(each.setting for each in recommended),
        *(setting for file in files for setting in _from_file(file, version)),
        *(
            Setting(name=name, value=value, layer="shell", source=f"the environment of {found.where}")
            for name, value in found.environment.items()
            if (name, value) not in applied
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


_Version = tuple[int, ...]


def explain(
    name: str,
    *,
    nccl: _Version | None = None,
    platforms: Iterable[Platform] = (),
    surroundings: JobEnvironment | None = None,
) -> Explanation:
    """Return what is known of `name`, and its value in force in `surroundings`.

    `nccl`: the version of NCCL to tell it for; None: that of the surroundings, else the newest known.
    """
    found = surroundings.nccl if surroundings is not None else None
    asked = nccl or (parse_version(found) if found is not None else newest())
    var = variables().get(name)
    # Of other readers no versions are known, and their facts are told as they stand.
    version = asked if var is not None and var.owner == "NCCL" else None
    return Explanation(
        name=name,
        read=read_name(name),
        variable=var,
        version=spelled(version) if version is not None else None,
        version_note=beyond(version) if version is not None else None,
        standing=known_in(var, version) if var is not None and version is not None else None,
        default=_default(var, version),
        mistaken=misspellings().get(name),
        misspellings=tuple(each for each in misspellings().values() if name in each.intended and name != each.seen),
        recipes=_recipes(name, platforms),
        exports=exports_of(name),
        in_force=_in_force(name, var, asked, surroundings) if surroundings is not None else None,
    )


def _default(var: EnvVar | None, version: _Version | None) -> str | None:
    if var is None:
        return None
    return default_in(var, version) if version is not None else var.default


def _in_force(name: str, var: EnvVar | None, nccl: _Version, surroundings: JobEnvironment) -> InForce:
    choices = layers(surroundings, nccl).explain(name)
    value = choices[0].value if choices else None
    return InForce(
        where=surroundings.where,
        choices=choices,
        understood=read_value(var, value, nccl) if var is not None and value is not None else None,
        unseen=surroundings.unseen,
    )


def _recipes(name: str, platforms: Iterable[Platform]) -> tuple[PublishedValue, ...]:
    """Return what platforms set a variable to; those that agree in everything but the platform are one recipe."""
    held: dict[tuple[str | None, str | None, str | None, tuple[str, ...]], list[str]] = {}
    for platform in platforms:
        for setting in platform.settings:
            if setting.name == name:
                key = (setting.value, setting.goal, setting.reason, _sources(platform, setting))
                held.setdefault(key, []).append(platform.id)
    return tuple(
        PublishedValue(value=value, platforms=tuple(ids), goal=goal, reason=reason, source=source)
        for (value, goal, reason, source), ids in held.items()
    )


def _sources(platform: Platform, setting: PlatformSetting) -> tuple[str, ...]:
    references = {source.id: source.reference for source in platform.sources}
    return tuple(references.get(each, each) for each in setting.source)
