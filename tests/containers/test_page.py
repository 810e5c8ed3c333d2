"""The command lines of docs/containers.md are those that busbw writes."""

import re
import shlex
from pathlib import Path

import msgspec
import pytest

from busbw.measure.containers.inside import settled, wanted
from busbw.measure.containers.place import ContainerPlace
from busbw.measure.plan.containing import wrap
from busbw.model.request import RuntimeName

from .makers import container, program

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "containers.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOPOLOGY = "/opt/microsoft/ndv5-topo.xml"
# /etc/nccl.conf is not there.
PRESENT = frozenset({"/runs/1", "/tmp", "/dev/infiniband", TOPOLOGY})


def shown() -> dict[str, tuple[dict[str, str], list[str]]]:
    """Return what each section exports, and the words of its command."""
    found = {}
    for section in PAGE.split("\n### ")[1:]:
        block = BLOCK.search(section)
        if block is None:
            continue
        *exports, command = block[1].replace("\\\n", " ").strip().splitlines()
        values = [word for line in exports for word in shlex.split(line.removeprefix("export "))]
        found[section.split()[0]] = (dict(value.split("=", 1) for value in values), shlex.split(command))
    return found


@pytest.mark.parametrize("runtime", ["apptainer", "pyxis", "podman", "charliecloud"])
def test_the_line_of_a_runtime_is_the_one_that_is_written(runtime: RuntimeName) -> None:
    exports, words = shown()[runtime]
    settings = program("python3", "-P", "-m", "busbw.rank", NCCL_TOPO_FILE=TOPOLOGY, NCCL_IB_HCA="=mlx5_0,mlx5_1")
    place = ContainerPlace(starter="srun", pmi="pmix", directory="/runs/1", fabric="InfiniBand")
    bare = container(runtime, image="busbw.sif", gpus=True)
    built = msgspec.structs.replace(bare, binds=settled(wanted(bare, settings, place), PRESENT))
    wrapped = wrap(built, settings, place)
    assert words == [*(("srun", *wrapped.options) if runtime == "pyxis" else ()), *wrapped.program.argv]
    assert exports == dict(wrapped.program.env)
