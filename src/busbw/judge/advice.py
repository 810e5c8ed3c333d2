"""What to try when a collective is slow: its other algorithms, as a line to paste."""

from busbw.facts.algorithms import algorithms
from busbw.model.machine import MpiFamily
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan


def advice(plan: Plan, measurement: Measurement) -> str:
    """Return what to try for a slow measurement with this MPI or NCCL."""
    collective = measurement.collective
    if plan.mpi is None or measurement.nccl is not None:
        return (
            "see what NCCL chose (the column `NCCL used`), and try what else there is: NCCL_ALGO=Ring, NCCL_ALGO=Tree, "
            "NCCL_PROTO=Simple, each for one run"
        )
    family = plan.mpi.family
    offered = algorithms().get(family)
    if offered is not None and collective in offered.choices:
        choice = offered.choices[collective]
        settings = " ".join([*offered.requires, f"{choice.variable}=$a"])
        return (
            f"try its other algorithms: `for a in {' '.join(choice.values)}; do {settings} {_again(measurement)}; done`"
        )
    if measurement.collective in ("sendrecv", "latency", "bandwidth", "bibw", "message_rate"):
        return _transport_advice(family)
    return (
        f"try another algorithm for {collective}: look for the variables of your MPI that choose collective "
        "algorithms; then measure again"
    )


def _again(measurement: Measurement) -> str:
    size = f"-b {_option(measurement.size_bytes)} -e {_option(measurement.size_bytes)}"
    form = " --in-place in" if measurement.in_place else ""
    return f"busbw run {measurement.collective} --ranks {measurement.ranks} {size}{form}"


def _option(size_bytes: int) -> str:
    """Return a size as the options -b and -e take it: 16M, not 16777216."""
    for unit, bytes_per_unit in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if size_bytes % bytes_per_unit == 0:
            return f"{size_bytes // bytes_per_unit}{unit}"
    return str(size_bytes)


def _transport_advice(family: MpiFamily) -> str:
    if family == "Open MPI":
        return (
            "see in raw/launcher.0.stderr which transport is used, after "
            "`OMPI_MCA_pml_base_verbose=10 OMPI_MCA_btl_base_verbose=30 busbw run ...`; "
            "on one host it should be shared memory (btl sm, or UCX)"
        )
    return "see which transport your MPI uses between ranks of one host: it should be shared memory"
