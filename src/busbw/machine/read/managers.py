"""What package managers of a site write down of what they have built: Spack, EasyBuild, conda, and module files."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from busbw.model.host import BuiltPackage, BuiltSource

_LONGEST_FIELD = 200


def spack_package(raw: bytes, prefix: str, file: str) -> BuiltPackage | None:
    """Return what Spack wrote of a folder it installed into, `.spack/spec.json`; None for what is none."""
    try:
        nodes = msgspec.json.decode(raw)["spec"]["nodes"]
        node = nodes[0] if isinstance(nodes, list) else None
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            return None
        version = node.get("version")
        details = list(_compilers(node))
        arch = node.get("parameters", {}).get("cuda_arch") if isinstance(node.get("parameters"), dict) else None
        details += [f"cuda_arch={','.join(map(str, arch))}"] if isinstance(arch, list) else []
        hashed = node.get("hash")
        details += [f"/{hashed[:7]}"] if isinstance(hashed, str) else []
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return BuiltPackage(
        manager="Spack",
        name=node["name"][:_LONGEST_FIELD],
        version=str(version)[:_LONGEST_FIELD],
        prefix=prefix,
        details=", ".join(details)[:_LONGEST_FIELD] or None,
        file=file,
    )


def _compilers(node: dict[str, Any]) -> Iterator[str]:
    """Yield the compiler: a part of the node up to version 4 of the form, a remark or a need of it from 5 on."""
    compiler = node.get("compiler")
    if isinstance(compiler, dict):
        yield f"{compiler['name']} {compiler['version']}"
        return
    remarks = node.get("annotations")
    said = remarks.get("compiler") if isinstance(remarks, dict) else None
    if isinstance(said, str):
        yield said.replace("@=", "@").replace("@", " ", 1)


_EASYCONFIG = re.compile(
    r"(?P<name>[A-Za-z][\w+.]*(?:-[A-Za-z][\w+.]*)*)-(?P<version>\d[\w.]*)(?P<rest>-[\w.+-]+)?\.eb"
)


_LOG = re.compile(
    r"easybuild-(?P<name>[A-Za-z][\w+.]*(?:-[A-Za-z][\w+.]*)*)-(?P<version>\d[\w.]*)(?P<rest>-[\w.+-]+)?"
    r"-\d{8}\.\d{6}\.log(?:\.\w+)?"
)


def easybuild_package(names: Iterable[str], prefix: str) -> BuiltPackage | None:
    """Return what EasyBuild left in the folder `easybuild` of what it installed: its recipe, or a log."""
    every = list(names)
    for pattern, name in [(pattern, name) for pattern in (_EASYCONFIG, _LOG) for name in every]:
        match = pattern.fullmatch(name)
        if match is not None:
            return BuiltPackage(
                manager="EasyBuild",
                name=match["name"],
                version=match["version"],
                prefix=prefix,
                details=(match["rest"] or "").removeprefix("-") or None,
                file=f"{prefix}/easybuild/{name}",
            )
    return None


def easybuild_module(prefix: str) -> Iterator[tuple[str, str]]:
    """Yield names of modules that may load what lies in ROOT/software/NAME/VERSION, each with its file."""
    parts = prefix.rsplit("/", 3)
    if len(parts) == 4 and parts[1] == "software":
        root, _software, name, version = parts
        for ending in (".lua", ""):
            yield f"{name}/{version}", f"{root}/modules/all/{name}/{version}{ending}"


def conda_package(raw: bytes, prefix: str, file: str) -> BuiltPackage | None:
    """Return what conda wrote of a package that it installed, `conda-meta/NAME.json`; None for what is none."""
    try:
        found = msgspec.json.decode(raw)
        name, version = found["name"], found["version"]
        if not isinstance(name, str) or not isinstance(version, str):
            return None
        build, channel = found.get("build"), found.get("channel")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    details = [each for each in (build, _channel(channel)) if isinstance(each, str)]
    return BuiltPackage(
        manager="conda",
        name=name[:_LONGEST_FIELD],
        version=version[:_LONGEST_FIELD],
        prefix=prefix,
        details=", ".join(details)[:_LONGEST_FIELD] or None,
        file=file,
    )


def _channel(written: object) -> str | None:
    """Return a channel's name; it is written as an address with the processor at its end."""
    if not isinstance(written, str):
        return None
    parts = [each for each in written.split("/") if each]
    if len(parts) > 1 and parts[-1].partition("-")[0] in ("linux", "noarch"):
        return parts[-2]
    return parts[-1] if parts else None


class ModuleFile(NamedTuple):
    """What a module file sets: folders of libraries, and roots of what it loads, in its order."""

    source: BuiltSource
    libraries: tuple[str, ...]
    roots: tuple[str, ...]

    @property
    def places(self) -> tuple[str, ...]:
        """The folders to look through: those of libraries, else the roots."""
        return self.libraries or self.roots


_LUA = re.compile(
    r"^[ \t]*(?P<verb>prepend_path|append_path|setenv|pushenv)[ \t]*[({](?P<rest>[^\n]{1,4000})[)}]", re.MULTILINE
)
_LUA_NAMED = re.compile(
    r"^[ \t]*(?:local[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?P<value>[^\n]{1,4000})$", re.MULTILINE
)
_TCL = re.compile(
    r"^[ \t]*(?P<verb>prepend-path|append-path|setenv|pushenv|set)[ \t]+(?P<rest>[^\n]{1,4000})$", re.MULTILINE
)
_WORD = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'|([^\s,()\"'{}]+)")
_TCL_WORD = re.compile(r"(?<!\S)(?:\"([^\"\n]*)\"|\{([^{}\n]*)\}|([^\s]+))")
_TCL_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ROOT_VARIABLE = re.compile(r"EBROOT\w+|\w+_(?:ROOT|HOME|PREFIX)|CMAKE_PREFIX_PATH")
_BY_SPACK = re.compile(r"[Mm]odule ?file created by [Ss]pack")
_BY_EASYBUILD = re.compile(r"\bEBROOT[A-Z0-9]|[Bb]uilt (?:with|by) EasyBuild")
_LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "LIBRARY_PATH")
_MOST_PLACES = 64
_MOST_MODULE_CHARACTERS = 256 * 2**10
_LONGEST_PATHS = 4096


def module_file(text: str, path: str) -> ModuleFile | None:
    """Return what a module file in Lua or Tcl sets, read and never run; None for what is none."""
    text = text[:_MOST_MODULE_CHARACTERS]
    is_tcl = text.startswith("#%Module")
    if not is_tcl and not path.endswith(".lua"):
        return None
    set_ = list(_set_by_tcl(text) if is_tcl else _set_by_lua(text))
    if not set_:
        return None
    libraries = [each for wanted in _LIBRARY_VARIABLES for name, each in set_ if name == wanted]
    loader = [each for name, each in set_ if name == _LIBRARY_VARIABLES[0]]
    roots = [each for name, each in set_ if _ROOT_VARIABLE.fullmatch(name)]
    manager = "Spack" if _BY_SPACK.search(text) else "EasyBuild" if _BY_EASYBUILD.search(text) else None
    return ModuleFile(
        source=BuiltSource(kind="module", manager=manager, name=module_name(path), file=path),  # type: ignore[arg-type]
        libraries=_folders(loader or libraries),
        roots=_folders(roots),
    )


def module_name(path: str) -> str:
    """Return the name by which a module file is loaded: its folder and its file, as nearly every site has them."""
    return "/".join(PurePosixPath(path.removesuffix(".lua")).parts[-2:]).removeprefix("/")


def _folders(paths: Iterable[str]) -> tuple[str, ...]:
    every = [part.rstrip("/") or "/" for path in paths for part in path.split(":") if part.startswith("/")]
    # Spack writes a prefix with "/." behind it.
    return tuple(dict.fromkeys(each.removesuffix("/.") for each in every if each != "/"))[:_MOST_PLACES]


def _bounded(written: str) -> str:
    """Return a value, or nothing of one that grew by being put together of others again and again."""
    return written if len(written) <= _LONGEST_PATHS else ""


def _set_by_lua(text: str) -> Iterator[tuple[str, str]]:
    known: dict[str, str] = {}
    for match in _LUA_NAMED.finditer(text):
        known.setdefault(match["name"], _bounded(_lua_value(match["value"], known)))
    for match in _LUA.finditer(text):
        name, _, value = match["rest"].partition(",")
        yield name.strip(" \"'"), _lua_value(value, known)


def _lua_value(written: str, known: dict[str, str]) -> str:
    """Return a text of Lua: quoted, a name, parts joined by `..` or by pathJoin."""
    joins = "pathJoin" in written
    parts: list[str] = []
    for match in _WORD.finditer(written.partition("--")[0]):
        quoted = next((each for each in match.groups()[:2] if each is not None), None)
        if quoted is not None:
            parts.append(quoted)
        elif match[3] in known:
            parts.append(known[match[3]])
    if joins:
        return "/".join(each.strip("/") if place else each.rstrip("/") for place, each in enumerate(parts))
    # What follows a path as a second text is its separator.
    return "".join(parts) if ".." in written else parts[0] if parts else ""


def _set_by_tcl(text: str) -> Iterator[tuple[str, str]]:
    known: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        return known.get(match[1] or match[2], "")

    for match in _TCL.finditer(text):
        words = [next(each for each in word.groups() if each is not None) for word in _TCL_WORD.finditer(match["rest"])]
        if words[:1] in (["-d"], ["--delim"]):
            words = words[2:]
        words = [each for each in words if not each.startswith("--")]
        if len(words) >= 2:
            written = _TCL_VARIABLE.sub(value, words[1])
            if match["verb"] == "set":
                known[words[0]] = _bounded(written)
            else:
                yield words[0], written


_VIEW = re.compile(r"^[ \t]*(?:view|root):[ \t]*[\"']?(?P<path>[^\s\"'#{}\[\]]+)", re.MULTILINE)
_NO_VIEW = ("true", "false")


def spack_views(text: str, folder: str) -> tuple[str, ...]:
    """Return the folders that an environment of Spack links into, as its `spack.yaml` has them, or the usual one."""
    named = [match["path"] for match in _VIEW.finditer(text) if match["path"].lower() not in _NO_VIEW]
    usual = f"{folder}/.spack-env/view"
    return tuple(dict.fromkeys([*(each if each.startswith("/") else f"{folder}/{each}" for each in named), usual]))
