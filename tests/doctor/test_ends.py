"""Connections whose two ends differ: a host whose NICs do not reach its GPUs."""

from .test_diagnosis import codes, read

SENT = "n1:10:20 [0] NCCL INFO Channel 00 : 0[7000] -> 8[7000] [send] via NET/IB/1{}\n"
RECEIVED = "n2:30:40 [0] NCCL INFO Channel 00 : 0[7000] -> 8[7000] [receive] via NET/IB/0{}\n"
BACK = "n2:30:40 [0] NCCL INFO Channel 00 : 8[7000] -> 0[7000] [send] via NET/IB/0{}\n"
DIRECT = "/GDRDMA"


def test_a_host_that_receives_through_its_memory_lacks_the_module():
    found = read(SENT.format(DIRECT) + RECEIVED.format("")).findings

    assert [each.code for each in found] == ["LOG004"]
    assert "no connection of n2 is" in found[0].evidence
    assert found[0].fix.startswith("modprobe nvidia_peermem")


def test_a_nic_that_may_write_and_not_read_is_a_setting():
    assert codes(read(SENT.format("") + RECEIVED.format(DIRECT))) == set()


def test_a_host_with_another_direct_connection_has_the_module():
    assert codes(read(SENT.format(DIRECT) + RECEIVED.format("") + BACK.format(DIRECT))) == set()
