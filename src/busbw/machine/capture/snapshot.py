"""The door to the whole machine: one call captures everything that understanding it needs."""

import datetime as dt
import os
import socket
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.machine.capture import anonymous as names
from busbw.machine.capture import host, metadata
from busbw.machine.capture.commands import ask
from busbw.machine.capture.environment import environment, take_settings
from busbw.machine.capture.files import Collection
from busbw.machine.capture.libraries import libraries
from busbw.machine.capture.state import take_state
from busbw.machine.capture.sysfs import take_kernel
from busbw.machine.read.commands import COMMANDS, FILES
from busbw.model.snapshot import Answer, Snapshot

_FILES_TIMEOUT_S = 30.0
_LIBRARIES_TIMEOUT_S = 15.0
_COMMANDS_TIMEOUT_S = 60.0
_DMI = "/sys/class/dmi/id/"


def capture() -> Snapshot:
    """Return this host as it is now, within about 100 seconds; what cannot be had is recorded as such.

    The cloud's metadata service is asked for the kind of machine, for at most a second.
    """
    hardware = capture_hardware()
    return msgspec.structs.replace(
        hardware,
        answers=(*hardware.answers, *metadata.answers(_dmi(hardware))),
        environment=environment(),
        libraries=libraries(timeout_s=_LIBRARIES_TIMEOUT_S),
    )


def capture_hardware() -> Snapshot:
    """Return this host without what jobs would load and be set to, and without asking anybody else about it."""
    taken = Collection(Path("/"), timeout_s=_FILES_TIMEOUT_S)
    take_settings(taken)
    take_kernel(taken)
    take_state(taken)
    return Snapshot(
        busbw_version=__version__,
        captured=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        hostname=socket.gethostname(),
        root=os.geteuid() == 0,
        container=host.container(),
        files=taken.files,
        links=taken.links,
        answers=(*_cut(taken), *ask(COMMANDS, total_s=_COMMANDS_TIMEOUT_S)),
    )


def capture_anonymously() -> Snapshot:
    """Return this host as `capture` does, with names, serial numbers and addresses replaced by stable placeholders."""
    return names.anonymous(capture(), user=names.user())


def _cut(taken: Collection) -> tuple[Answer, ...]:
    """Return what says that not all files were taken; nothing where they were."""
    if not taken.is_full:
        return ()
    return (Answer(name=FILES, argv=(), ended="cut", error=f"stopped after {len(taken.files)} files"),)


def _dmi(snapshot: Snapshot) -> dict[str, str]:
    texts = ((file.path, file.text) for file in snapshot.files if file.path.startswith(_DMI))
    return {path.removeprefix(_DMI): text.strip() for path, text in texts if text is not None}
