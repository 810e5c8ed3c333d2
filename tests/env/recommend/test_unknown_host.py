"""A host that nobody has described: what its hardware says goes into the recommendation."""

from msgspec import structs
from tests.detect.machines import hardware_of_platform

from busbw.env.recommend import recommend
from busbw.env.recommend.host import platform_of_host
from busbw.machine.named import platform
from busbw.model.host import Hardware, HostGpu, HostPort


def port(name: str, kind: str = "InfiniBand", *, number: int = 1, gigabits: float = 400, up: bool = True) -> HostPort:
    return HostPort(name=name, port=number, bus_id=None, kind=kind, rate_bps=gigabits * 1e9, up=up)  # type: ignore[arg-type]


def host(*ports: HostPort, gpus: int = 8) -> Hardware:
    return Hardware(
        hostname="n1",
        gpus=tuple(HostGpu(index=i, bus_id=f"0000:{i:02x}:00.0", name="NVIDIA H100", sm=90) for i in range(gpus)),
        ports=ports,
    )


def test_slower_ports_are_left_out_by_exact_names():
    found = platform_of_host(host(port("mlx5_0"), port("mlx5_1"), port("mlx5_10", gigabits=100)))

    assert recommend(found).env()["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    assert found.nic.ports == 2


def test_a_port_that_is_down_is_left_out():
    found = platform_of_host(host(port("mlx5_0"), port("mlx5_1", up=False)))

    assert recommend(found).env()["NCCL_IB_HCA"] == "=mlx5_0"


def test_no_list_is_made_where_nccl_would_take_the_same_ports_anyway():
    assert "NCCL_IB_HCA" not in recommend(platform_of_host(host(port("mlx5_0"), port("mlx5_1")))).env()


def test_the_ports_of_one_device_are_told_apart():
    found = platform_of_host(host(port("mlx5_0"), port("mlx5_0", number=2, gigabits=100)))

    assert recommend(found).env()["NCCL_IB_HCA"] == "=mlx5_0:1"


def test_a_host_on_slingshot_gets_what_its_plugin_needs():
    found = recommend(platform_of_host(host(*(port(f"cxi{i}", "Slingshot", gigabits=200) for i in range(4)), gpus=4)))

    assert found.env()["NCCL_NET"] == "AWS Libfabric"
    assert found.env()["FI_CXI_DISABLE_HOST_REGISTER"] == "1"
    assert found.recommends


def test_a_host_without_gpus_and_nics_gets_nothing_but_a_log():
    found = recommend(platform_of_host(host(gpus=0)))

    assert not found.recommends
    assert found.cannot_tell


def test_a_known_machine_read_as_an_unknown_one_gets_the_same_network():
    known = platform("azure-nd-h100-v5").platform
    read = platform_of_host(structs.replace(hardware_of_platform(known), hostname="x"))

    assert read.fabric.kind == known.fabric.kind
    assert read.gpu.count == known.gpu.count
