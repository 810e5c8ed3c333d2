"""What an MPI library has to be told by variables: to yield, which interface to use, to leave binding to others."""

from busbw.model.launch import Start
from busbw.model.machine import MpiFamily


def mpich_settings(start: Start) -> dict[str, str]:
    """Return the variables of MPICH."""
    found = {}
    if start.placement.oversubscribed:
        # MPICH 5's shared-memory collectives spin without ever yielding: 8000 us a barrier instead of 30.
        found = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    if start.interface is not None:
        # Its network layer is built on UCX or on libfabric, and each reads its own.
        found |= {"UCX_NET_DEVICES": start.interface, "FI_TCP_IFACE": start.interface}
    return found


def mvapich_settings(start: Start) -> dict[str, str]:
    """Return the variables of MVAPICH, which binds ranks once more in MPI_Init unless told not to."""
    # The name changed with MVAPICH 3.
    return mpich_settings(start) | {"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"}


def intel_settings(start: Start) -> dict[str, str]:
    """Return the variables of Intel MPI."""
    return {"FI_TCP_IFACE": start.interface} if start.interface is not None else {}


def open_mpi_settings(start: Start) -> dict[str, str]:
    """Return the variables of Open MPI, for launchers that are not its mpirun."""
    found = {}
    if start.placement.oversubscribed:
        found["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if start.interface is not None:
        found["OMPI_MCA_btl_tcp_if_include"] = start.interface
    return found


def settings_without_mpirun(start: Start) -> dict[str, str]:
    """Return the variables of ranks that something else than their MPI's mpirun starts."""
    family: MpiFamily = start.mpi.family if start.mpi is not None else "unknown"
    if family == "Open MPI":
        return open_mpi_settings(start)
    if family == "MVAPICH":
        return mvapich_settings(start)
    if family == "MPICH":
        return mpich_settings(start)
    if family == "Intel MPI":
        # Pinning is left to the launcher.
        return intel_settings(start) | {"I_MPI_PIN": "off"}
    return {}
