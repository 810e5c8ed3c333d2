"""Set up the environments that `make` works in: `python3 scripts/bootstrap.py run|test|envs|fuzz`.

busbw is compiled once, into build/wheels, and that wheel is installed everywhere: .venv (with Open MPI), .venv-mpich
and .venv-impi. What it depends on is installed meanwhile, into all of them at once: each pip waits for the network, and
uses one processor. What is up to date is left alone. Needs nothing but the standard library; the version check runs on
any Python 3.6 or later, so that an old one gets an answer and not a syntax error.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "build" / "wheels"
OLDEST, NEWEST = (3, 11), (3, 14)
# Environment: what it holds beside busbw and its own dependencies.
MPI = {".venv": (), ".venv-mpich": ("mpich>=5,<6",), ".venv-impi": ("impi-rt>=2021.15,<2022",)}
# The extra that `.venv` has: Open MPI.
EXTRA = "mpi"
# Holds the oldest versions of the dependencies that are allowed; newer interpreters have no wheels of them.
OF_OLDEST, LAST_WITH_WHEELS = ".venv-mpich", (3, 12)
# For tests of the extra `train`, and what `.venv/.torch` holds where there is no such build.
TORCH, NO_TORCH = "torch==2.13.0+cpu", "none: pip finds no build for CPUs"
GOALS = {
    "run": ((".venv",), ()),
    "test": ((".venv", ".venv-mpich", ".venv-impi"), ("dev",)),
    "dev": ((".venv",), ("dev",)),
    "envs": ((".venv-mpich", ".venv-impi"), ()),
    "fuzz": ((".venv",), ("dev",)),
}


def say(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def fail(cause: str, hint: str) -> None:
    """End with an error for a person."""
    say("error: " + cause)
    say("hint: " + hint)
    sys.exit(2)


def check_version() -> None:
    """End unless this Python is one that busbw runs on."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        fail(
            "{} is Python {}.{}; busbw needs 3.11 to 3.14".format(sys.executable, *sys.version_info[:2]),
            "make PYTHON=python3.12   # or another one between them",
        )


def succeeds(command: list) -> bool:
    """Run a command silently and return whether it ended well."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def missing_packages() -> list:
    """Return the Debian packages without which nothing can be built here."""
    version = "python{}.{}".format(*sys.version_info[:2])
    packages = []
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        packages.append(version + "-venv")
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        packages.append(version + "-dev")
    if not any(shutil.which(compiler) for compiler in (os.environ.get("CXX"), "c++", "g++", "clang++") if compiler):
        packages.append("g++")
    return packages


def install_packages(packages: list) -> None:
    """Install Debian packages, or end with the command that does."""
    if not packages:
        return
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    by_hand = "apt-get update && " + " ".join(install)
    if shutil.which("apt-get") is None:
        fail("this system lacks what Debian calls " + ", ".join(packages), "install them and try again")
    prefix = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None or not succeeds(["sudo", "-n", "true"]):
            fail("missing packages: " + ", ".join(packages), "sudo sh -c '" + by_hand + "'")
        prefix = ["sudo", "-n"]
    say("installing with apt-get: " + ", ".join(packages))
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "update", "-q"], install):
        done = subprocess.run(
            prefix + command, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode != 0:
            sys.stderr.write(done.stdout.decode(errors="replace"))
            fail("apt-get could not install " + ", ".join(packages), by_hand)


def digest_of(paths: list, *words: object) -> str:
    """Return a digest of the files' names and contents, of `words`, and of this interpreter."""
    digest = hashlib.sha256(repr((sys.version, sys.executable, words)).encode())
    for path in paths:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def sources() -> list:
    """Return every file that goes into the wheel."""
    found = [ROOT / name for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE")]
    for folder in ("core", "src"):
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path for path in found if path.suffix != ".so")


def pip(environment: str, *arguments: str) -> None:
    """Run the environment's pip; end where it fails."""
    command = [str(ROOT / environment / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, cwd=str(ROOT), check=False).returncode != 0:
        fail("pip could not do this: " + " ".join(arguments), "the lines above say why; then run make again")


def make_environment(environment: str) -> None:
    """Create a virtual environment of this interpreter unless it is there."""
    folder = ROOT / environment
    stamp, wanted = folder / ".python", digest_of([])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say("creating " + environment)
    shutil.rmtree(folder, ignore_errors=True)
    if not succeeds([sys.executable, "-m", "venv", str(folder)]):
        fail("could not create " + str(folder), "python3 -m venv " + str(folder))
    stamp.write_text(wanted)


def build_wheel() -> tuple:
    """Return the one wheel of the sources as they are now, and its digest."""
    stamp, wanted = WHEELS / ".digest", digest_of(sources())
    wheels = list(WHEELS.glob("busbw-*.whl"))
    if not (len(wheels) == 1 and stamp.exists() and stamp.read_text() == wanted):
        say("compiling busbw")
        shutil.rmtree(WHEELS, ignore_errors=True)
        WHEELS.mkdir(parents=True)
        pip(".venv", "wheel", "--no-deps", "--wheel-dir", str(WHEELS), str(ROOT))
        wheels = list(WHEELS.glob("busbw-*.whl"))
        stamp.write_text(wanted)
    return wheels[0], wanted


def install_dependencies(environment: str, project: dict, groups: tuple) -> None:
    """Make `environment` if need be, and install what busbw needs there, where that changed."""
    make_environment(environment)
    wanted = list(MPI[environment])
    if environment == ".venv":
        wanted += project["project"]["optional-dependencies"][EXTRA]
        wanted += [requirement for name in groups for requirement in project["dependency-groups"][name]]
    wanted += project["project"]["dependencies"]
    if environment == OF_OLDEST and sys.version_info[:2] <= LAST_WITH_WHEELS:
        wanted += [requirement.split(",")[0].replace(">=", "==") for requirement in project["project"]["dependencies"]]
    stamp = ROOT / environment / (".dependencies-" + "-".join(("run", *groups)))
    digest = digest_of([], *wanted)
    if stamp.exists() and stamp.read_text() == digest:
        return
    say("installing into " + environment)
    # Python compiles a module at its first import, and most modules of these packages are never imported.
    pip(environment, "install", "--no-compile", *wanted)
    stamp.write_text(digest)


def install_wheel(environment: str, wheel: Path, digest: str) -> None:
    """Install busbw itself into `environment`, unless it is this one that is there."""
    stamp = ROOT / environment / ".wheel"
    if stamp.exists() and stamp.read_text() == digest:
        return
    pip(environment, "install", "--no-deps", "--force-reinstall", str(wheel))
    # Nothing was resolved: what the wheel says it needs must be there.
    pip(environment, "check")
    stamp.write_text(digest)


def install_atheris(project: dict) -> None:
    """Install the coverage-guided fuzzer where it has a wheel for this interpreter; fuzzing works without it."""
    stamp = ROOT / ".venv" / ".atheris"
    wanted = digest_of([], project["dependency-groups"]["fuzz"])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pip", "-q", "install", "--only-binary", ":all:"]
    if not succeeds(command + project["dependency-groups"]["fuzz"]):
        say("no atheris for this interpreter: fuzzing goes on without coverage")
    stamp.write_text(wanted)


def install_torch() -> None:
    """Install PyTorch for CPUs where pip finds such a build; the tests of `busbw train proxy` say when it is not here.

    The version has `+cpu` in it: no other build has, and the one with CUDA is 5 GB.
    """
    stamp = ROOT / ".venv" / ".torch"
    if stamp.exists() and stamp.read_text() == digest_of([], TORCH):
        return
    say("installing PyTorch for CPUs into .venv")
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pip", "-q", "install", "--no-compile"]
    if succeeds([*command, "--only-binary", ":all:", TORCH]):
        stamp.write_text(digest_of([], TORCH))
    else:
        say("pip finds no build of PyTorch for CPUs: busbw train proxy stays untested")
        stamp.write_text(NO_TORCH)


def prepare(environment: str, goal: str, project: dict, groups: tuple) -> None:
    """Bring all but busbw itself up to date in one environment."""
    install_dependencies(environment, project, groups)
    if environment == ".venv" and goal == "test":
        install_torch()


def main(goal: str) -> None:
    """Do what one goal of the Makefile needs."""
    check_version()
    install_packages(missing_packages())
    import tomllib  # noqa: PLC0415, only after the version check

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    environments, groups = GOALS[goal]
    make_environment(".venv")
    with ThreadPoolExecutor() as beside:
        building = beside.submit(build_wheel)
        preparing = [beside.submit(prepare, name, goal, project, groups) for name in environments]
        wheel, digest = building.result()
        for each in preparing:
            each.result()
    for environment in environments:
        install_wheel(environment, wheel, digest)
    if goal == "fuzz":
        install_atheris(project)


if __name__ == "__main__":
    main(sys.argv[1])
