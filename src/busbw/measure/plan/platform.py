"""Which platform a run takes place on: the one asked for, else the one that this host is recognised as.

Alone because importing what it needs takes as long as planning, and hosts without GPUs and fabric do without.
"""

from pathlib import Path

from msgspec import structs

from busbw import __version__
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, find_platform
from busbw.machine.capture.files import Collection
from busbw.machine.capture.metadata import answers
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import take_kernel
from busbw.machine.detect.ladder import detect
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Hardware, Snapshot
from busbw.model.settings import JobEnvironment

_TIMEOUT_S = 10.0
# All platforms have GPUs or a network of this kind; without either none needs to be looked for.
_FABRICS = ("InfiniBand", "EFA", "Slingshot")


def with_platform(found: JobEnvironment, asked: str | None, root: Path = Path("/")) -> JobEnvironment:
    """Return an environment with the platform that is `asked` for, or that this host is recognised as, if it is any.

    No program is asked, for some take seconds: only what the kernel tells, and within a second the metadata service of
    the cloud that the firmware names. `root`: where the kernel's files lie. Raises InputError for an unknown platform.
    """
    if asked is not None:
        named = find_platform(asked, site_files()).platform
        return structs.replace(found, platform=named.id, platform_from="asked")
    hardware = _hardware(root)
    if not hardware.gpus and not any(port.kind in _FABRICS for port in hardware.ports):
        return found
    try:
        detection = detect(hardware, answers(hardware.dmi), all_platforms(site_files()))
    except InputError:
        # A site's file that cannot be used is named by the verbs that are about platforms; it stops no measurement.
        return found
    return structs.replace(found, platform=detection.platform, platform_from=detection.rung)


def _hardware(root: Path) -> Hardware:
    taken = Collection(root, timeout_s=_TIMEOUT_S)
    take_kernel(taken)
    return hardware_of(
        Snapshot(
            busbw_version=__version__,
            captured="",
            hostname="",
            root=False,
            container=None,
            files=taken.files,
            links=taken.links,
            answers=(),
        )
    )
