"""The settings a job here would start with: environment and settings files, without what could be secret."""

import os
import pwd
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from busbw.formats.lines.prefix import scrub
from busbw.machine.capture.files import Collection
from busbw.model.settings import WITHHELD, is_allowed, kept

# Search paths are no setting of a library, and say which one is taken.
_ALSO = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_MOST_TOPOLOGY_BYTES = 4 * 2**20
_VIRTUAL_TOPOLOGY = "/var/run/nvidia-topologyd/virtualTopology.xml"
_FILE_SETTINGS = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
# NCCL trims nothing: spaces and `export ` are part of the name there, and stay to be seen.
_LINE = re.compile(r"(?P<before>\s*(?:export\s+)?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<equals>\s*=)(?P<value>.*)")


def environment() -> dict[str, str]:
    """Return the variables of this process that decide how jobs communicate; secrets in their values are withheld."""
    allowed, _withheld = kept(f"{name}={value}" for name, value in os.environ.items())
    search = {name: scrub(os.environ[name]) for name in _ALSO if os.environ.get(name)}
    return dict(sorted({**dict(allowed), **search}.items()))


def value_of(name: str) -> str | None:
    """Return a variable of this process as it is, which no list withholds; None where it is not set."""
    return os.environ.get(name)


@contextmanager
def variables_in_force(given: Iterable[tuple[str, str]], unset: Iterable[str]) -> Iterator[None]:
    """Have variables in this process while the block runs, so that everything is planned by them."""
    before = dict(os.environ)
    try:
        for name in unset:
            os.environ.pop(name, None)
        os.environ.update(given)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def take_settings(taken: Collection) -> None:
    """Take NCCL's settings files and the topology files that they or the environment name."""
    named = [os.environ.get(name, "") for name in _FILE_SETTINGS]
    for path in _settings_files():
        text = taken.file(path, keep=_settings)
        for line in (text or "").splitlines():
            match = _LINE.fullmatch(line)
            if match is not None and match["name"] in _FILE_SETTINGS:
                named.append(match["value"].strip())
    for path in (*named, _VIRTUAL_TOPOLOGY):
        if path.startswith("/"):
            taken.file(os.path.normpath(path), keep=_topology, most_bytes=_MOST_TOPOLOGY_BYTES)


def absent(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of these absolute paths that nothing is at; what may not be looked at counts as there."""
    return tuple(path for path in dict.fromkeys(paths) if path.startswith("/") and _is_absent(path))


def _is_absent(path: str) -> bool:
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def _settings_files() -> tuple[str, ...]:
    """Return every file that some version of NCCL looks for settings in."""
    homes = (os.environ.get("HOME", ""), _account_home())
    paths = (os.environ.get("NCCL_CONF_FILE", ""), *(f"{home}/.nccl.conf" for home in homes), "/etc/nccl.conf")
    return tuple(dict.fromkeys(os.path.normpath(path) for path in paths if path.startswith("/")))


def _account_home() -> str:
    """Return the home folder by the list of accounts, where NCCL looks until 2.30.3; later ones go by HOME."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _settings(text: str) -> str:
    """Return a settings file line by line: comments empty, and values only of what may be shown."""
    return "\n".join(_setting(line) for line in text.split("\n"))


def _setting(line: str) -> str:
    if line.lstrip().startswith("#"):
        return line[: line.index("#") + 1]
    match = _LINE.fullmatch(line)
    if match is None:
        return line if not line.strip() else WITHHELD
    if not is_allowed(match["name"]):
        return f"{match['before']}{match['name']}{match['equals']}{WITHHELD}"
    shown, _withheld = kept([f"{match['name']}={match['value']}"])
    return f"{match['before']}{match['name']}{match['equals']}{shown[0][1]}"


def _topology(text: str) -> str | None:
    """Return a topology or graph file of NCCL; any other file that is named as one stays where it is."""
    begins = re.match(r"\s*(?:<\?xml|<!--|<system|<graphs)", text) is not None
    if not begins or re.search(r"<(?:system|graphs)\b", text) is None:
        return None
    return "\n".join(scrub(line) for line in text.split("\n"))
