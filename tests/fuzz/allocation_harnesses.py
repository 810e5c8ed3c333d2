"""Harnesses of what says which hosts there are."""

from collections.abc import Callable

from busbw.base.hostlist import compressed, expand
from busbw.machine.read import allocation, batch_systems
from busbw.machine.read.batch_systems import Seen, grid_engine_file, host_file, host_list, node_file
from busbw.model.host import Answer
from busbw.model.launch import Allocation

# Variables of every system that is known, each with a value as it sets it.
_VARIABLES = {
    "SLURM_JOB_NODELIST": "n[0-3]",
    "SLURM_JOB_ID": "17",
    "SLURM_TASKS_PER_NODE": "2(x3),1",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_JOB_END_TIME": "1700000000",
    "SLURM_STEP_ID": "4294967290",
    "LSB_MCPU_HOSTS": "n0 2 n1 2",
    "LSB_HOSTS": "n0 n0 n1",
    "FLUX_URI": "local:///run/flux",
    "PBS_NODEFILE": "/pbs",
    "PE_HOSTFILE": "/pe",
}


def _list(data: bytes) -> str:
    names = expand(data.decode("latin-1"), where="fuzz")
    shown = compressed(names)
    assert expand(shown, where="again") == names
    return shown


def _environment(data: bytes) -> Allocation | None:
    """Take lines of NAME=VALUE as the environment, and the whole as every file and answer."""
    text = data.decode("latin-1")
    lines = (line.partition("=") for line in text.split("\n"))
    environment = {name: value for name, equals, value in lines if equals}
    return allocation.allocation(
        Seen(
            environment=environment,
            files={name: text for name in allocation.FILE_VARIABLES if name in environment},
            answers=(Answer(name="flux-hostlist", argv=("flux",), ended="ok", output=text),),
        )
    )


def _file(read: Callable[[str, str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode("latin-1"), "fuzz")


ALLOCATION_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "hostlist": _list,
    "host_file": _file(host_file),
    "host_list": _file(host_list),
    "node_file": _file(node_file),
    "grid_engine_file": _file(grid_engine_file),
    "allocation": _environment,
    "tasks_per_node": _file(batch_systems.repeats),
    "mpi_types": lambda data: batch_systems.mpi_types(data.decode("latin-1")),
}
ALLOCATION_SEEDS = (
    b"n[0-3,07-12],gpu-[1],rack[1-2]n[0-3]-ib",
    b"n0 slots=4 max_slots=8 # big\nn1:2\nn[2-3]\n",
    b"n0\nn0\nn1\n",
    b"n0 4 all.q@n0 UNDEFINED\n",
    b"2(x3),1",
    b"MPI plugin types are...\n\tnone\n\tpmix\nspecific pmix plugin versions available: pmix_v3,pmix_v4\n",
    *(f"{name}={value}\n".encode() for name, value in _VARIABLES.items()),
    "\n".join(f"{name}={value}" for name, value in _VARIABLES.items()).encode(),
)
