"""What really reads each form: shells, Tcl, Lua, YAML with Kubernetes' expansion; each gives names to values."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


def program(*names: str) -> str:
    """Return the first of these programs there is; without any the test fails in CI and is skipped elsewhere."""
    found = next((path for path in map(shutil.which, names) if path is not None), None)
    if found is None:
        reason = f"no {' or '.join(names)} here"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return found


def sourced(shell: str, file: Path, before: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment after a shell has sourced a file, beginning with nothing but `before`."""
    return _environment([program(shell), "-c", '. "$1" && exec /usr/bin/env -0', "_", str(file)], before or {})


def started(file: Path, launcher: str, before: dict[str, str] | None = None) -> dict[str, str]:
    """Return what a program sees that a script starts through `launcher`, which stands in for srun or mpirun."""
    folder = file.parent / "bin"
    folder.mkdir(exist_ok=True)
    stand_in = folder / launcher
    stand_in.write_text(f"#!{sys.executable} -S\n{_STAND_IN}", encoding="utf-8")
    stand_in.chmod(0o755)
    environment = {**(before or {}), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    return _environment([program("bash"), str(file), "/usr/bin/env", "-0"], environment)


# Takes the options as the launchers do: -x NAME=VALUE, --mca NAME VALUE, -genv NAME VALUE.
_STAND_IN = """
import os, sys
arguments = sys.argv[1:]
prefix = {"--mca": "OMPI_MCA_", "--prtemca": "PRTE_MCA_", "--pmixmca": "PMIX_MCA_", "-genv": ""}
while arguments[0].startswith("-"):
    option = arguments.pop(0)
    if option == "-x":
        name, _, value = arguments.pop(0).partition("=")
        os.environ[name] = value
    elif option in prefix:
        name = prefix[option] + arguments.pop(0)
        os.environ[name] = arguments.pop(0)
    elif option != "--export=ALL":
        sys.exit(f"{option} is not an option")
os.execv(arguments[0], arguments)
"""


def _environment(argv: list[str], environment: dict[str, str]) -> dict[str, str]:
    done = subprocess.run(argv, env=environment, capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    entries = done.stdout.decode("utf-8").split("\0")
    return dict(entry.split("=", maxsplit=1) for entry in entries if entry)


def in_tcl(file: Path) -> dict[str, str | None]:
    """Return what a modulefile sets, as Tcl reads it."""
    script = file.with_suffix(".run")
    script.write_text(
        "fconfigure stdout -encoding utf-8\n"
        'proc setenv {name value} {puts "$name=$value"}\n'
        "proc unsetenv {name} {puts $name}\n"
        "proc module-whatis {text} {}\n"
        "source -encoding utf-8 [lindex $argv 0]\n"
    )
    return _printed([program("tclsh", "tclsh8.6"), str(script), str(file)])


def in_lua(file: Path) -> dict[str, str | None]:
    """Return what a modulefile sets, as Lua reads it."""
    script = file.with_suffix(".run")
    script.write_text(
        'function setenv(name, value) io.write(name, "=", value, "\\n") end\n'
        'function unsetenv(name) io.write(name, "\\n") end\n'
        "function whatis(text) end\n"
        "dofile(arg[1])\n"
    )
    return _printed([program("lua5.4", "lua5.3", "lua"), str(script), str(file)])


def _printed(argv: list[str]) -> dict[str, str | None]:
    done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    found: dict[str, str | None] = {}
    for line in done.stdout.decode("utf-8").split("\n")[:-1]:
        name, equals, value = line.partition("=")
        found[name] = value if equals else None
    return found


def in_kubernetes(text: str) -> dict[str, str]:
    """Return what a container of a manifest's pod has, as YAML and the kubelet read it."""
    pod = yaml.safe_load(text)
    assert (pod["apiVersion"], pod["kind"], bool(pod["metadata"]["name"])) == ("v1", "Pod", True)
    (container,) = pod["spec"]["containers"]
    found: dict[str, str] = {}
    for entry in container["env"]:
        assert set(entry) == {"name", "value"}
        assert isinstance(entry["value"], str)
        found[entry["name"]] = re.sub(r"\$\$|\$\(([^)]*)\)", lambda match: _expanded(match, found), entry["value"])
    return found


def _expanded(match: re.Match[str], found: dict[str, str]) -> str:
    return "$" if match[0] == "$$" else found.get(match[1], match[0])


def in_docker(text: str) -> dict[str, str]:
    """Return what a Dockerfile sets: in double quotes a backslash before `"`, `$` or itself falls away."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        if line.startswith("ENV "):
            match = re.fullmatch(r'ENV (\w+)="((?:[^"\\$]|\\["\\$])*)"', line)
            assert match is not None, line
            found[match[1]] = re.sub(r'\\(["\\$])', r"\1", match[2])
    return found
