"""Valid inputs of the harnesses of what describes machines; what a machine says is made up, see tests/probe."""

import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES
from tests.probe.network_texts import SETTINGS, devinfo, transports
from tests.probe.noise_texts import noise_answer

from busbw.facts.platforms import find_platform
from busbw.model.host import Snapshot
from busbw.model.platform import SiteFile
from busbw.store.snapshots import write_snapshot
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform

from .stack_seeds import IMAGE_ENVIRONMENT, SPACK_SPEC, elf_file, loader_cache, sif_image, squash_image

TOPOLOGY_FILE = b"""<!-- two GPUs -->
<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:c4:00.0" count="18" tclass="0x068000"/></gpu>
      </pci>
      <pcilink target="0000:03:00.0"/>
    </pci>
    <nic><net name="mlx5_0" dev="0" speed="400000" port="1" latency="0" guid="0x1" maxconn="131072" gdr="1"/></nic>
  </cpu>
</system>
"""
CHECKED_FILE = """<system version="1">
<cpu host_hash="0x1" numaid="0" affinity="00000000,00ffffff" arch="x86_64" vendor="AuthenticAMD" familyid="23">
<pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
<pci busid="0003:00:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16 GT/s" link_width="16">
<gpu dev="0" sm="80" rank="0"><nvlink target="0004:00:00.0" count="12" tclass="0x030200"/><c2c bw="1" count="1"/></gpu>
</pci>
<pci busid="0004:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">
<gpu dev="1" sm="80" rank="1"><nvlink target="0003:00:00.0" count="12" tclass="0x030200"/></gpu>
</pci>
<pci busid="0103:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">
<nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1"/></nic>
</pci>
<pcilink target="ffff:ff:02.0"/>
</pci>
</cpu>
<cpu numaid="1" affinity="0000ffff,ff000000" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
<pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
<pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
</cpu>
</system>
"""
SITE_PLATFORM = """extends = ["family/card"]
unknown = ["gpu.sm"]
names = ["Ours (O1)"]
provider = "us"
kind = "gpu"
traps = ["one"]
[match]
skus = ["ours*"]
[match.dmi]
sys_vendor = "x"
[gpu]
count = 1
source = ["wiki"]
checked = 2026-11-21
[nic]
port_bps = 400e9
[[numa]]
id = 0
cpus = "0-3"
[[gpus]]
gpu = 0
bus_id = "0000:01:00.0"
numa = 0
nics = ["a"]
nvlinks = { "0000:02:00.0" = 2 }
[[nics]]
name = "a"
port = 1
[[settings]]
name = "NCCL_A"
scope = "nccl"
unset = true
[[published]]
test = "all_reduce"
metric = "busbw"
value = 1.5
unit = "GB/s"
kind = "measured"
[[sweeps]]
test = "all_reduce"
nodes = 2
gpus = 16
points = [[1024, 0.5], [2048, 1]]
document = "wiki"
[[sources]]
id = "wiki"
reference = "our wiki"
"""
SITE_FAMILY = SiteFile(path="/etc/busbw/platforms/family/card.toml", text="[gpu]\nsm = 90\n")
BINDINGS = (
    "default",
    "--bind-to numa --map-by ppr:8:node --report-bindings",
    "mpirun --map-by ppr:2:numa:PE=3 --bind-to core:overload-allowed",
    "--map-by slot:PE=2:OVERSUBSCRIBE",
    '--cpu-bind=verbose,mask_cpu:"0xff*2,ff00,0xf"',
    "srun --cpu_bind map_cpu:0,0x4,8*3",
    "map_ldom:0,1",
    "taskset -c 0-3,8 4-7;9",
    "rank 0=+n0 slot=0-3\nrank 1=host slot=1:0,2-3;s0:*  # socket\n",
)
EXTENDING_PLATFORM = (
    'extends = ["azure-ndv4"]\nnames = ["mine"]\nunknown = ["gpus[2].bus_id"]\n[nic]\nport_bps = 400e9\n'
)
SERVICES = (
    "Standard_ND96isr_H100_v5",
    "p5.48xlarge",
    "projects/1/machineTypes/a3-highgpu-8g",
    json.dumps({"shape": "BM.GPU.H100.8", "compute": {"vmSize": "Standard_ND96asr_v4"}}),
)
# What the tools of RDMA print, which no machine of tests/probe needs: its ports are in the kernel's files.
_RDMA = {
    "ibstat": "CA 'mlx5_0'\n\tCA type: MT4129\n\tNode GUID: 0x58a2e10300f1a2b4\n\tPort 1:\n\t\tState: Active\n"
    "\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tPort GUID: 0x58a2e10300f1a2b4\n\t\tLink layer: InfiniBand\n",
    "ibv_devinfo": "hca_id:\tmlx5_0\n\tnode_guid:\t58a2:e103:00f1:a2b4\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n"
    "\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t4096 (5)\n\t\t\tlink_layer:\tInfiniBand\n",
    "ibdev2netdev": "mlx5_0 port 1 ==> ib0 (Up)\n0000:03:00.0 mlx5_1 (MT4129 - x) ConnectX-7 fw 28.1 port 1 (DOWN)\n",
    "cxi_stat": "Device: cxi0\n    Description: SS11 200Gb 2P NIC\n    PCIe Speed/Width: 16.0 GT/s PCIe x16\n"
    "    MAC: 02:00:00:00:00:01\n    Link speed: BS_200G\n    Link state: up\n",
    "rocm-smi-product": "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X\nGPU[0]\t\t: GFX Version: \t\tgfx942\n",
    "rocm-smi-topo": "============ Link Type between two GPUs ============\n       GPU0         GPU1\n"
    "GPU0   0            XGMI\nGPU1   XGMI         0\n============== Numa Nodes ==============\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n",
}


@cache
def captured() -> Snapshot:
    """Return the snapshot of a machine with one GPU."""
    return snapshot_of(MACHINES["h200-vm"])


def _small(snapshot: Snapshot) -> Snapshot:
    """Return every file that is not a CPU's: a tar takes a block of 512 bytes for the name of each."""
    kept = tuple(file for file in snapshot.files if "/cpu/cpu" not in file.path)
    return Snapshot(
        busbw_version="1",
        captured=snapshot.captured,
        hostname="h",
        root=False,
        files=kept[:20],
        links=snapshot.links[:20],
        answers=snapshot.answers[:6],
    )


def _tars() -> Iterator[bytes]:
    """Yield a snapshot, the same compressed, and a tar that is none."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("host.tar", "host.tar.gz"):
            write_snapshot(Path(folder, name), _small(captured()))
            yield Path(folder, name).read_bytes()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for place in ("a" * 200, "b/é"):
            archive.addfile(tarfile.TarInfo(place), io.BytesIO())
    yield made.getvalue()


def _texts(names: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return what answers say, of every machine, each as a text of its own and all as one."""
    found = [
        f"{answer.name}\0{answer.output}\0".encode()
        for machine in MACHINES.values()
        for answer in snapshot_of(machine).answers
        if answer.name in names and answer.output
    ]
    found += [f"{name}\0{text}\0".encode() for name, text in _RDMA.items() if name in names]
    return (*dict.fromkeys(found), b"".join(found[:4]))


def _kernel_texts() -> tuple[bytes, ...]:
    files = [f"{file.path}\0{file.text}\0".encode() for file in captured().files if "/cpu/cpu" not in file.path]
    links = [f"@{link.path}\0{link.target}\0".encode() for link in captured().links]
    return (b"".join(files[:40]), b"".join(files[40:80]), b"".join(links))


def _network_texts() -> tuple[bytes, ...]:
    """Return what the tools say of the network's features, below a port of InfiniBand and its files."""
    port, function = "/sys/class/infiniband/mlx5_0/ports/1", "/sys/bus/pci/devices/0000:09:00.0"
    texts = {
        f"{port}/link_layer": "InfiniBand\n",
        f"{port}/pkeys/0": "0x8023\n",
        f"{port}/pkeys/1": "0x7fff\n",
        "@/sys/class/infiniband/mlx5_0/device": "../../../0000:09:00.0",
        f"{function}/vendor": "0x15b3\n",
        f"{function}/device": "0x101c\n",
        f"{function}/class": "0x020700\n",
        f"{function}/sriov_totalvfs": "16\n",
        "ibv_devinfo": devinfo("mlx5_0"),
        "ucx_info-devices": transports("rc_mlx5", "dc_mlx5"),
        "ucx_info-settings": SETTINGS,
    }
    every = [f"{name}\0{text}\0".encode() for name, text in texts.items()]
    return (*every, b"".join(every))


def _files() -> tuple[bytes, ...]:
    made = file_text(topology_of_platform(find_platform("alps-gh200").platform))
    return (TOPOLOGY_FILE, CHECKED_FILE.encode(), made.encode(), TOPOLOGY_FILE.replace(b"\n", b""))


_SMI = ("nvidia-smi-xml", "nvidia-smi-query", "nvidia-smi-c2c")
_LINKS = ("nvidia-smi-topo", "nvidia-smi-nvlink", "nvidia-smi-nvlink-remote")
_SEEDS: dict[str, Callable[[], tuple[bytes, ...]]] = {
    "topology_file": _files,
    "site_platform": lambda: tuple(text.encode() for text in (SITE_PLATFORM, EXTENDING_PLATFORM)),
    "snapshot": lambda: tuple(_tars()),
    "host_gpus": lambda: _texts(_SMI),
    "host_nvlinks": lambda: _texts(_LINKS),
    "host_rdma": lambda: _texts(tuple(_RDMA)),
    "host_kernel": lambda: (*_kernel_texts(), *_texts(("lscpu", "uname"))),
    "host_network": _network_texts,
    "mpi_build": lambda: (
        b"mca:mpi:base:param:mpi_built_with_cuda_support:value:true\n",
        b"options:mpi_ext:cuda\nmca:opal:base:param:opal_built_with_cuda_support:value:false\n",
    ),
    "noise": lambda: (noise_answer().encode(), noise_answer(cpus=12).encode()),
    "network_log": lambda: (
        b"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n",
        b"[1.2] [n:1:0] ucp_worker.c:1903 UCX  INFO    x inter-node cfg#8 tag(dc_mlx5/mlx5_2:1 rc_mlx5/mlx5_0:1)\n",
        b"n:1:2 [0] NCCL INFO CollNet 00/0 : 0 [receive] via COLLNET/SHARP/1/GDRDMA\n",
    ),
    "metadata": lambda: tuple(text.encode() for text in SERVICES),
    "binding": lambda: tuple(text.encode() for text in BINDINGS),
    "built_binary": lambda: (elf_file(), elf_file(needs=("libfabric.so.1", "libc.so.6"), rpath="$ORIGIN:/opt/lib")),
    # The last two are packed otherwise than they say: what unpacks them gets to see anything.
    "built_image": lambda: (
        squash_image(),
        sif_image(squash_image()),
        # As mksquashfs fills its last page.
        squash_image().ljust(4096, b"\0"),
        # Said to be of other packers: their unpackers get what is none of theirs.
        squash_image(packer=3),
        squash_image(packer=5),
    ),
    "built_package": lambda: (SPACK_SPEC, b"nccl-2.27.7-GCCcore-13.3.0.eb\n", IMAGE_ENVIRONMENT),
    "loader_cache": lambda: (loader_cache(),),
}


def machine_seeds(name: str) -> tuple[bytes, ...]:
    """Return valid inputs of a harness of machine_harnesses.py."""
    return _SEEDS[name]()
