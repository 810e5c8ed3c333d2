"""What a host has for a container: paths to be bound, device nodes of its fabric, and an answer of an image."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from busbw.base.errors import InputError
from busbw.facts.containers import FabricName
from busbw.model.plan import Program

# An image may have to be unpacked before it starts the first time.
_ANSWER_TIMEOUT_S = 300.0
_MOST_BYTES = 2**20


def present(paths: Iterable[str]) -> frozenset[str]:
    """Return those paths that exist here."""
    return frozenset(path for path in paths if os.path.lexists(path))


def fabric() -> tuple[FabricName | None, tuple[str, ...]]:
    """Return the fabric whose device nodes are here, and the nodes; (None, ()) without one."""
    cxi = tuple(sorted(str(path) for path in Path("/dev").glob("cxi[0-9]*")))
    if cxi:
        return "Slingshot", cxi
    if Path("/dev/infiniband").is_dir():
        return ("EFA" if any(Path("/sys/class/infiniband").glob("efa*")) else "InfiniBand"), ()
    return None, ()


def program_path(name: str) -> str:
    """Return the absolute path of a runtime's program. Raises InputError where it is not on PATH."""
    found = shutil.which(name)
    if found is None:
        raise InputError(f"there is no {name} on PATH", hint="load its module, or choose another --container")
    return found


def answer(program: Program) -> tuple[str, int]:
    """Return what a program prints, its standard error behind it, and its exit code. Raises InputError."""
    try:
        done = subprocess.run(
            program.argv,
            env={**os.environ, **dict(program.env)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"the image does not answer within {_ANSWER_TIMEOUT_S:.0f} s", where=program.argv[0]
        ) from error
    except OSError as error:
        raise InputError(f"cannot start it: {error.strerror or error}", where=program.argv[0]) from error
    text = done.stdout[-_MOST_BYTES:] + done.stderr[-_MOST_BYTES:]
    return text.decode("utf-8", errors="replace"), done.returncode
