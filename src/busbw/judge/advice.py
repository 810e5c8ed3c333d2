"""What to try when a collective is slow: the variables that choose its algorithm, by MPI family.

Names of Open MPI are those of `ompi_info --all` 5.0.11, of MPICH those of `mpivars` 5.0.2.
"""

from busbw.model.machine import MpiFamily

# MPI's own names of what busbw measures, as the two families spell them in their variables.
_OPEN_MPI = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce_scatter_block",
    "broadcast": "bcast",
    "reduce": "reduce",
    "alltoall": "alltoall",
    "gather": "gather",
    "scatter": "scatter",
}
_MPICH = {name: spelled.upper() for name, spelled in _OPEN_MPI.items()}


def advice(family: MpiFamily, collective: str) -> str:
    """Return what to try for a slow `collective` of this MPI."""
    if collective not in _OPEN_MPI:
        return _transport_advice(family)
    if family == "Open MPI":
        name = f"coll_tuned_{_OPEN_MPI[collective]}_algorithm"
        return (
            f"try another algorithm: mpirun --mca coll_tuned_use_dynamic_rules 1 --mca {name} N, with the values of N "
            f"that `ompi_info --param coll tuned --level 9` lists; then measure again"
        )
    if family == "MPICH":
        return (
            f"try another algorithm: set MPIR_CVAR_{_MPICH[collective]}_INTRA_ALGORITHM, with the values that the "
            "documentation of your MPICH lists; then measure again"
        )
    return (
        f"try another algorithm for {collective}: look for the variables of your MPI that choose collective "
        "algorithms; then measure again"
    )


def _transport_advice(family: MpiFamily) -> str:
    if family == "Open MPI":
        return (
            "see which transport is used: mpirun --mca pml_base_verbose 10 --mca btl_base_verbose 30; on one host it "
            "should be shared memory (btl sm, or UCX)"
        )
    return "see which transport your MPI uses between ranks of one host: it should be shared memory"
