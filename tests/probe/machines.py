"""Machines that synthetic snapshots are made of, from what is published about them. None of them was captured."""

from .hosts import GEN4, GEN5, Function, Gpu, Machine, Nic, Numa

_AZURE = {
    "sys_vendor": "Microsoft Corporation",
    "product_name": "Virtual Machine",
    "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
}
# Neither network cards of Hyper-V nor the bridge before them show on PCI; the Ethernet function does.
_AZURE_ETHERNET = Nic(
    bus_id="a1b2:00:02.0",
    name="mlx5_an0",
    interface="eth1",
    kind="RoCE",
    rate_gigabits=100,
    device="0x101a",
    guid="0015:5dff:fe01:0001",
)


def _azure_nd_h100_v5() -> Machine:
    gpus = ["0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c"]
    return Machine(
        name="azure-nd-h100-v5",
        hypervisor="Microsoft",
        dmi=_AZURE,
        numa=(Numa(id=0, cpus="0-47", memory_gibibytes=950), Numa(id=1, cpus="48-95", memory_gibibytes=950)),
        functions=(
            *(
                Gpu(bus_id=f"{domain}:00:00.0", numa=place // 4, device="0x2330", subsystem=("0x10de", "0x16c1"))
                for place, domain in enumerate(gpus)
            ),
            *(
                Nic(
                    bus_id=f"{0x101 + place:04x}:00:00.0",
                    numa=place // 4,
                    device="0x101e",
                    device_class="0x020700",
                    name=f"mlx5_ib{place}",
                    interface=f"ib{place}",
                    rate_gigabits=400,
                    guid=f"0015:5dff:fe33:ff{place:02x}",
                )
                for place in range(8)
            ),
            _AZURE_ETHERNET,
        ),
        environment={"NCCL_DEBUG": "INFO"},
        more_files={
            "/etc/nccl.conf": "NCCL_IB_PCI_RELAXED_ORDERING=1\nNCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml\n"
            "NCCL_IGNORE_CPU_AFFINITY=1\n"
        },
    )


def _oci_gpu4_8() -> Machine:
    """Two GPUs and two cards of two ports below one switch; the numbers of the root ports are made up."""
    places = {
        3: ("0000:00:01.1", "0000:01:00.0", ("0f", "15"), ("0c", "16")),
        1: ("0000:40:01.1", "0000:41:00.0", ("51", "54"), ("48", "4c")),
        7: ("0000:7e:01.1", "0000:7f:00.0", ("8d", "92"), ("8a", "94")),
        5: ("0000:ba:01.1", "0000:bb:00.0", ("d6", "da"), ("c3", "d1")),
    }
    numa = tuple(
        Numa(id=node, cpus=f"{8 * node}-{8 * node + 7},{64 + 8 * node}-{64 + 8 * node + 7}", memory_gibibytes=256)
        for node in range(8)
    )
    functions: list[Function] = []
    fast = {"speed": GEN4, "width": 16}
    rdma = 0
    for node, (port, switch, gpus, cards) in places.items():
        functions.append(Function(bus_id=port, vendor="0x1022", device="0x1483", numa=node, driver="pcieport", **fast))
        functions.append(Function(bus_id=switch, above=(port,), numa=node, driver="pcieport", **fast))
        functions += [
            Gpu(
                bus_id=f"0000:{bus}:00.0",
                above=(port, switch),
                numa=node,
                device="0x20b0",
                name="NVIDIA A100-SXM4-40GB",
                sm=80,
                memory_mebibytes=40960,
                targets=(None,) * 12,
                link_gigabytes=25,
                **fast,
            )
            for bus in gpus
        ]
        for card in cards:
            # mlx5_4 and mlx5_5 are the card of the front end.
            for place in range(2):
                name = rdma if rdma < 4 else rdma + 2
                functions.append(
                    Nic(
                        bus_id=f"0000:{card}:00.{place}",
                        above=(port, switch),
                        numa=node,
                        device="0x1019",
                        name=f"mlx5_{name}",
                        interface=f"rdma{rdma}",
                        kind="RoCE",
                        rate_gigabits=100,
                        guid=f"b8ce:f603:0000:{card}{0:02x}",
                        mtu=4220,
                        **fast,
                    )
                )
                rdma += 1
    return Machine(
        name="oci-bm-gpu4-8",
        vendor="AuthenticAMD",
        family=23,
        model=49,
        cpu="AMD EPYC 7542 32-Core Processor",
        threads_per_core=2,
        dmi={"sys_vendor": "Oracle Corporation", "chassis_asset_tag": "OracleCloud.com"},
        numa=numa,
        functions=tuple(functions),
    )


def _aws_p5() -> Machine:
    """Four EFA functions and one GPU below each switch; the buses of GPUs 2 to 7 are made up after the first two."""
    functions: list[Function] = []
    fast = {"speed": GEN5, "width": 16}
    for place in range(8):
        first = 0x4F + 0x11 * place
        port, switch, node = f"0000:{first - 3:02x}:01.0", f"0000:{first - 2:02x}:00.0", place // 4
        functions.append(Function(bus_id=port, vendor="0x1d0f", device="0x0200", numa=node, **fast))
        functions.append(Function(bus_id=switch, above=(port,), vendor="0x1d0f", device="0x0200", numa=node, **fast))
        functions += [
            Nic(
                bus_id=f"0000:{first + each:02x}:00.0",
                above=(port, switch),
                numa=node,
                vendor="0x1d0f",
                device="0xefa1",
                driver="efa",
                kind="EFA",
                name=f"rdmap{first + each}s0",
                rate_gigabits=100,
                **fast,
            )
            for each in range(4)
        ]
        functions.append(
            Gpu(bus_id=f"0000:{first + 4:02x}:00.0", above=(port, switch), numa=node, device="0x2330", **fast)
        )
    return Machine(
        name="aws-p5",
        vendor="AuthenticAMD",
        family=25,
        model=1,
        cpu="AMD EPYC 7R13 Processor",
        threads_per_core=2,
        hypervisor="KVM",
        dmi={"sys_vendor": "Amazon EC2", "product_name": "p5.48xlarge", "board_asset_tag": "i-0123456789abcdef0"},
        numa=(
            Numa(id=0, cpus="0-47,96-143", memory_gibibytes=1024),
            Numa(id=1, cpus="48-95,144-191", memory_gibibytes=1024),
        ),
        functions=tuple(functions),
    )


def _gh200_slingshot() -> Machine:
    """Four superchips; where the network cards sit is not published, so their addresses are made up."""
    gpus = tuple(f"00{place}9:01:00.0" for place in range(4))
    functions: list[Function] = []
    for place, address in enumerate(gpus):
        port = f"00{place}9:00:00.0"
        others = tuple(other for other in gpus if other != address)
        functions.append(
            Function(bus_id=port, vendor="0x10de", device="0x22b1", numa=place, driver="pcieport", speed=GEN5, width=16)
        )
        functions.append(
            Gpu(
                bus_id=address,
                above=(port,),
                numa=place,
                device="0x2342",
                name="NVIDIA GH200 120GB",
                memory_mebibytes=97871,
                targets=tuple(other for other in others for _link in range(6)),
                chip_links=10,
                speed=GEN5,
                width=16,
            )
        )
        root = f"00{place}2:00:00.0"
        functions.append(
            Function(bus_id=root, vendor="0x10de", device="0x22b2", numa=place, driver="pcieport", speed=GEN5, width=16)
        )
        functions.append(
            Nic(
                bus_id=f"00{place}2:01:00.0",
                above=(root,),
                numa=place,
                vendor="0x17db",
                device="0x0501",
                driver="cxi_ss1",
                kind="Slingshot",
                name=f"cxi{place}",
                interface=f"hsn{place}",
                rate_gigabits=200,
                mtu=9000,
                speed=GEN4,
                width=16,
            )
        )
    grace = tuple(Numa(id=place, cpus=f"{72 * place}-{72 * place + 71}", memory_gibibytes=120) for place in range(4))
    memory = tuple(Numa(id=node, cpus="", memory_gibibytes=96) for node in (4, 12, 20, 28))
    return Machine(
        name="gh200-slingshot",
        architecture="aarch64",
        cpu="Neoverse-V2",
        sockets=4,
        numa=grace + memory,
        functions=tuple(functions),
    )


def _azure_hbv4() -> Machine:
    return Machine(
        name="azure-hbv4",
        vendor="AuthenticAMD",
        family=25,
        model=17,
        cpu="AMD EPYC 9V33X 96-Core Processor",
        hypervisor="Microsoft",
        dmi=_AZURE,
        numa=tuple(Numa(id=node, cpus=f"{44 * node}-{44 * node + 43}", memory_gibibytes=189) for node in range(4)),
        functions=(
            Nic(
                bus_id="0101:00:00.0",
                numa=0,
                device="0x101e",
                device_class="0x020700",
                name="mlx5_ib0",
                interface="ib0",
                rate_gigabits=400,
                guid="0015:5dff:fe33:ff00",
            ),
            _AZURE_ETHERNET,
        ),
    )


def _h200_vm() -> Machine:
    """Four H200 in a virtual machine that hides PCI bridges, NUMA and NVSwitches, after NCCL's dump on such a one."""
    hidden = {"speed": "Unknown", "max_speed": GEN5, "width": 0}
    return Machine(
        name="h200-vm",
        model=207,
        cpu="INTEL(R) XEON(R) PLATINUM 8570",
        sockets=1,
        hypervisor="KVM",
        numa=(Numa(id=0, cpus="0-63", memory_gibibytes=512),),
        nvidia_driver="580.159.03",
        functions=(
            Function(bus_id="0000:00:00.0", vendor="0x8086", device="0x0d57", device_class="0x060000"),
            Nic(
                bus_id="0000:00:03.0",
                vendor="0x1af4",
                device="0x1041",
                driver="virtio-pci",
                kind="Ethernet",
                interface="eth0",
                mtu=1500,
                device_path="/virtio2",
            ),
            *(
                Gpu(
                    bus_id=f"0000:00:{6 + place:02x}.0",
                    device="0x2335",
                    subsystem=("0x10de", "0x18bf"),
                    name="NVIDIA H200",
                    memory_mebibytes=143771,
                    **hidden,
                )
                for place in range(4)
            ),
        ),
    )


MACHINES = {
    machine.name: machine
    for machine in (
        _azure_nd_h100_v5(),
        _oci_gpu4_8(),
        _aws_p5(),
        _gh200_slingshot(),
        _azure_hbv4(),
        _h200_vm(),
    )
}
