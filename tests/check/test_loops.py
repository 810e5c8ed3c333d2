"""Which NICs are tried alone, what forbids every other way, and what is said of those that cannot be."""

from busbw.check.loops import NicLoop, UntriedNic, loops_of
from busbw.model.host import HostPort


def port(name, kind="InfiniBand", *, number=1, up=True, numa=0):
    return HostPort(name=name, port=number, bus_id="0000:01:00.0", kind=kind, up=up, numa=numa)


def test_over_nccl_the_nic_is_the_only_way_between_two_gpus_beside_it():
    (loop,) = loops_of((port("mlx5_7", numa=1),), (0, 0, 1, 1), "Open MPI")

    assert isinstance(loop, NicLoop)
    assert loop.words[:5] == ("broadcast", "--backend", "nccl", "--ranks", "2")
    assert dict(loop.environment) | {
        "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET": "IB", "NCCL_IB_HCA": "=mlx5_7:1",
        "CUDA_VISIBLE_DEVICES": "2,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    } == dict(loop.environment)  # fmt: skip
    # Where the kernel tells no place of a GPU, the first two.
    (loop,) = loops_of((port("mlx5_0", numa=None),), (None, None), None)
    assert ("CUDA_VISIBLE_DEVICES", "0,1") in loop.environment


def test_over_mpi_shared_memory_is_no_way():
    for mpi, forces in (("Open MPI", ("OMPI_MCA_pml", "ucx")), ("MPICH", ("MPIR_CVAR_NOLOCAL", "1"))):
        (loop,) = loops_of((port("mlx5_0", "RoCE", number=2),), (), mpi)
        assert loop.words == ("bandwidth", "--ranks", "2", "-b", "64M", "-e", "64M")
        assert {("UCX_NET_DEVICES", "mlx5_0:2"), ("UCX_TLS", "rc,ud,self"), forces} <= set(loop.environment)
        assert loop.nic == "mlx5_0:2"


def test_what_cannot_be_tried_is_told_with_its_reason():
    found = loops_of((port("eth0", "Ethernet"), port("cxi0", "Slingshot"), port("mlx5_1", up=False)), (0, 0), None)

    assert found == (
        UntriedNic(nic="eth0", absent=True, because="one NIC cannot be looped back over TCP; the stage fabric tests it "
                   "between nodes"),
        UntriedNic(nic="cxi0", absent=True, because="one NIC cannot be looped back over Slingshot; the stage fabric "
                   "tests it between nodes"),
        UntriedNic(nic="mlx5_1", absent=True, because="its link is down"),
    )  # fmt: skip
    # There is a NIC that could be tried, and nothing to try it with: that is not the same as no NIC.
    for mpi, said in (("Intel MPI", "Intel MPI is not known to leave it no other way"), (None, "no MPI is here")):
        (untried,) = loops_of((port("mlx5_0"),), (0,), mpi)
        assert (untried.absent, said in untried.because) == (False, True)
