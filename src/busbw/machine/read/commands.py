"""The programs whose answers a snapshot holds: what each is asked, how long it may take, and what it is asked for."""

from busbw.base.value import Value


class Command(Value, kw_only=True, frozen=True):
    """One question to one program."""

    # The name of its answer in a snapshot.
    name: str
    # The programs that can answer it, the first that is there is asked.
    programs: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    timeout_s: float = 10.0
    # What is not known without it, in words; None: nothing that the kernel's files do not say too.
    tells: str | None = None
    # Its answer is expected where there is a PCI function of one of these vendors; empty: nowhere in particular.
    vendors: tuple[str, ...] = ()


# The answer that says why not all of the kernel's files are there; absent where they are.
FILES = "files"
# What fixed work took on every CPU; only where it was asked for.
NOISE = "noise"
# What drivers keep of their interfaces; only where counters are asked for.
DRIVER_STATISTICS = "driver-statistics"
NVIDIA = "0x10de"
AMD = "0x1002"
MELLANOX = "0x15b3"
# Without persistence mode the driver starts up for each question, which takes seconds a GPU.
_DRIVER_TIMEOUT_S = 30.0


def _smi(name: str, *arguments: str, tells: str | None = None) -> Command:
    return Command(
        name=name,
        programs=("nvidia-smi",),
        arguments=arguments,
        timeout_s=_DRIVER_TIMEOUT_S,
        tells=tells,
        vendors=(NVIDIA,),
    )


COMMANDS = (
    Command(name="uname", programs=("uname",), arguments=("-srm",)),
    Command(name="lscpu", programs=("lscpu",), tells="the processor's name, where the kernel does not say it"),
    Command(name="numactl", programs=("numactl",), arguments=("-H",)),
    Command(name="lstopo", programs=("lstopo-no-graphics", "lstopo"), arguments=("--of", "xml"), timeout_s=20.0),
    _smi("nvidia-smi-xml", "-q", "-x", tells="names, memory, PCIe links and state of the GPUs"),
    _smi(
        "nvidia-smi-query",
        "--query-gpu=index,pci.bus_id,compute_cap",
        "--format=csv,noheader",
        tells="compute capability of the GPUs",
    ),
    _smi("nvidia-smi-topo", "topo", "-m", tells="how the driver sees the paths between GPUs and NICs"),
    _smi("nvidia-smi-p2p", "topo", "-p2p", "r"),
    _smi("nvidia-smi-nvlink", "nvlink", "-s", tells="state and rate of each NVLink"),
    _smi("nvidia-smi-nvlink-remote", "nvlink", "-R", tells="what is at the other end of each NVLink"),
    _smi("nvidia-smi-c2c", "c2c", "-s"),
    Command(
        name="rocm-smi-topo",
        programs=("rocm-smi",),
        arguments=("--showtopo",),
        timeout_s=_DRIVER_TIMEOUT_S,
        vendors=(AMD,),
        tells="how the driver sees the links between GPUs",
    ),
    Command(
        name="rocm-smi-product",
        programs=("rocm-smi",),
        arguments=("--showbus", "--showproductname"),
        timeout_s=_DRIVER_TIMEOUT_S,
        vendors=(AMD,),
        tells="names of the GPUs",
    ),
    Command(name="ibstat", programs=("ibstat",), vendors=(MELLANOX,)),
    Command(name="ibv_devinfo", programs=("ibv_devinfo",), arguments=("-v",), tells="MTU of the InfiniBand ports"),
    Command(name="ibdev2netdev", programs=("ibdev2netdev",), vendors=(MELLANOX,)),
    Command(name="cxi_stat", programs=("cxi_stat",)),
    Command(name="fi_info", programs=("fi_info",)),
    Command(name="fi_info-version", programs=("fi_info",), arguments=("--version",)),
    Command(name="ucx_info", programs=("ucx_info",), arguments=("-v",)),
    # It opens every adapter, which takes a second each on some.
    Command(name="ucx_info-devices", programs=("ucx_info",), arguments=("-d",), timeout_s=30.0),
    Command(name="ucx_info-settings", programs=("ucx_info",), arguments=("-c",)),
    Command(name="ofed_info", programs=("ofed_info",), arguments=("-s",)),
    Command(name="mpirun", programs=("mpirun", "mpiexec"), arguments=("--version",), timeout_s=20.0),
    Command(name="ompi_info", programs=("ompi_info",), arguments=("--version",), timeout_s=20.0),
    Command(name="df-shm", programs=("df",), arguments=("-k", "-P", "/dev/shm")),  # noqa: S108 - asked, not written to
    Command(name="timedatectl", programs=("timedatectl",), arguments=("show", "-p", "NTPSynchronized", "--value")),
    Command(name="ls-infiniband", programs=("ls",), arguments=("-l", "/dev/infiniband")),
)


def noise_command(python: str, seconds: float) -> Command:
    """Return the command that measures noise for some seconds."""
    return Command(
        name=NOISE,
        programs=(python,),
        arguments=("-P", "-m", "busbw.rank.noise", f"{seconds:g}"),
        timeout_s=seconds + 60,
    )


def statistics_command(python: str) -> Command:
    """Return the command that prints what `ethtool -S` does of each interface, without ethtool."""
    return Command(name=DRIVER_STATISTICS, programs=(python,), arguments=("-P", "-m", "busbw.rank.ethtool"))
