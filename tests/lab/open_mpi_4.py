"""Open MPI 4 as Debian builds it, unpacked into build/ and not installed: no other test gets its mpirun on PATH."""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_BUILD = Path(__file__).resolve().parents[2] / "build"
_INSTALLED = Path("/var/lib/dpkg/status")


# Debian's programs look for everything below /usr; these variables say where it is.
_MPIRUN = """\
#!/bin/sh
export OPAL_PREFIX={prefix} LD_LIBRARY_PATH={prefix}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
exec {prefix}/bin/mpirun.openmpi "$@"
"""


@dataclass(frozen=True, kw_only=True)
class OpenMpi4:
    """Where it lies: an installation with a prefix, as a module of a cluster has it."""

    prefix: Path

    @property
    def mpirun(self) -> Path:
        """Return its mpirun, which needs no variable."""
        return self.prefix / "bin" / "mpirun"

    @property
    def library(self) -> Path:
        """Return its MPI library, for MPI4PY_LIBMPI."""
        return self.prefix / "lib" / "libmpi.so.40"

    @property
    def env(self) -> dict[str, str]:
        """Return what its programs and ranks need where mpirun does not start them, as under srun."""
        return {"OPAL_PREFIX": str(self.prefix), "LD_LIBRARY_PATH": str(self.prefix / "lib")}


def open_mpi_4() -> OpenMpi4:
    """Return the unpacked Open MPI 4; the first call fetches the packages that this system lacks for it."""
    try:
        return _unpacked()
    except subprocess.CalledProcessError:  # the lists of packages are missing or old
        _ask("apt-get", "update", "-q")
        return _unpacked()


def _unpacked() -> OpenMpi4:
    # What is missing depends on what is installed.
    name = hashlib.sha256(_INSTALLED.read_bytes() + _MPIRUN.encode()).hexdigest()[:12]
    folder = _BUILD / f"open-mpi-4-{name}"
    if not folder.exists():
        _unpack(_missing_packages(), folder)
    return OpenMpi4(prefix=folder / "usr")


def _missing_packages() -> list[str]:
    """Return the Debian packages, each with its version, that would be installed with Open MPI's programs."""
    printed = _ask("apt-get", "install", "--simulate", "--no-install-recommends", "openmpi-bin")
    # `Inst NAME (VERSION ...)`, or `Inst NAME [INSTALLED] (VERSION ...)`.
    lines = [line.split() for line in printed.splitlines() if line.startswith("Inst ")]
    return sorted(f"{words[1]}={next(word for word in words if word.startswith('('))[1:]}" for words in lines)


def _unpack(packages: list[str], folder: Path) -> None:
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_BUILD) as fetched:
        _ask("apt-get", "download", "-q", *packages, folder=Path(fetched))
        part = Path(tempfile.mkdtemp(dir=_BUILD))
        for package in sorted(Path(fetched).glob("*.deb")):
            _ask("dpkg", "--extract", str(package), str(part))
    _gather_libraries(part)
    mpirun = part / "usr" / "bin" / "mpirun"
    mpirun.write_text(_MPIRUN.format(prefix=shlex.quote(str(folder / "usr"))), encoding="utf-8")
    mpirun.chmod(0o755)
    try:
        part.rename(folder)
    except OSError:  # somebody else was faster
        shutil.rmtree(part)


def _ask(*command: str, folder: Path = _BUILD.parent) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def _gather_libraries(part: Path) -> None:
    """Make every library found in `lib` of the prefix: where mpirun lets the daemons of other hosts look."""
    architecture = f"{platform.machine()}-linux-gnu"
    library = part / "usr" / "lib"
    for folder in (library / architecture, part / "lib" / architecture):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            (library / path.name).symlink_to(os.path.relpath(path, library))
    for path in library.glob("libpsm1/*.so.*"):  # installing it would make this link
        (library / ".".join(path.name.split(".")[:3])).symlink_to(os.path.relpath(path, library))
