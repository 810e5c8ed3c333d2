"""Machines as documents word them, and tables of cells with other columns than the training cells."""

import pytest

from busbw.api.predicting.calibrations import table_machine, table_words
from busbw.base.errors import InputError
from busbw.predict.cells import read_cells
from busbw.predict.machines import MachineClass


@pytest.mark.parametrize(
    ("words", "gpus", "nodes", "platform"),
    [
        ("AWS p5.48xlarge x2 (H100, 3200 Gb/s EFA/node)", 8, 2, "aws-p5"),
        ("AWS p6-b200 single node (NVLink5)", 8, 1, "aws-p6-b200"),
        ("GCP A3 Mega x2 (H100, 8x200G GPUDirect-TCPXO)", 8, 2, "gcp-a3-mega"),
        ("Azure ND H100 v5, 8x400G NDR IB", 8, 4, "azure-nd-h100-v5"),
        ("NVIDIA DGX H200, NDR", 8, 4, "nvidia-dgx-h100"),
        ("OCI BM.GPU.H100.8 x2 (16x200G RoCE)", 8, 2, "oci-bm-gpu-h100-8"),
        ("CSCS Alps GH200 x2 nodes (4x200G Slingshot-11, CXI hook on)", 4, 2, "alps-gh200"),
    ],
)
def test_a_platform_is_found_in_the_words_of_a_document(words: str, gpus: int, nodes: int, platform: str) -> None:
    assert table_words(words, gpus, nodes).name == platform


@pytest.mark.parametrize(
    ("words", "fabric", "ports", "rate_gb", "generation"),
    [
        ("3 nodes x 8 A100-40G, 4x200G HDR/node", "InfiniBand", 4, 200, "ampere"),
        ("HGX H200, 8xNDR", "InfiniBand", 8, 400, "hopper"),
        ("8xH100 SXM, 3200 Gb/s InfiniBand per node", "InfiniBand", 8, 400, "hopper"),
        ("H200 servers, 400G/GPU RoCEv2", "RoCE", 8, 400, "hopper"),
        ("NVIDIA HGX B200 8x400G NDR IB", "InfiniBand", 8, 400, "blackwell"),
        ("H100, 4x400G RoCE (1 used)", "RoCE", 1, 400, "hopper"),
        ("gpu=H200, gpus=8, nics=16x200G, fabric=RoCE", "RoCE", 16, 200, "hopper"),
        ("8x H100 SXM, 8x ConnectX-7 400G, Spectrum-X", "RoCE", 8, 400, "hopper"),
        ("A100 SXM4 80GB, 8 Mellanox ConnectX-6 HDR HCAs", "InfiniBand", 8, 200, "ampere"),
        ("8 x H100, 400 Gb/s x 8 RoCEv2", "RoCE", 8, 400, "hopper"),
        ("Perlmutter, 8x A100 SXM4 and 4x Slingshot 200G", "Slingshot", 4, 200, "ampere"),
        ("8x A100 (80 GB), 2x EDR", "InfiniBand", 2, 100, "ampere"),
        ("H200 SXM, 3.2 Tbps EFA", "EFA", 8, 400, "hopper"),
        ("8xH200, 8 \u00d7 400 Gbps InfiniBand", "InfiniBand", 8, 400, "hopper"),
        ("HGX B200, 8x ConnectX-7 @ 400Gb/s, InfiniBand", "InfiniBand", 8, 400, "blackwell"),
        ("H100 nodes with 400G NIC per GPU, RoCE", "RoCE", 8, 400, "hopper"),
    ],
)
def test_nodes_without_a_platform_are_as_their_words_describe_them(
    words: str, fabric: str, ports: int, rate_gb: int, generation: str
) -> None:
    machine = table_words(words, 8, 4)
    assert machine.rates.nic is not None
    assert (machine.fabric, machine.rates.ports, machine.generation) == (fabric, ports, generation)
    assert machine.rates.nic.rate_Bps == pytest.approx(rate_gb / 8 * 1e9)


def test_one_node_needs_its_gpus_only() -> None:
    assert table_words("HGX H200 (NVLink4)", 8, 1).generation == "hopper"
    assert table_words("8x MI300X xGMI", 8, 1).generation == "gfx942"
    # The platform's links are of A100, whatever else its words hold.
    assert table_words("8x A100 NVLink3", 8, 1).generation == "ampere"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("248 nodes x 8 H200, 8 NICs/node", "does not say the NICs"),
        ("HGX H100 8x400G", "does not say the network"),
        ("A100 SXM 80G x 8, InfiniBand", "does not say the NICs"),
        ("8x B200, NVLink 1800 GB/s, InfiniBand", "does not say the NICs"),
        ("8x H100 SXM, ConnectX-7, RoCE", "does not say the NICs"),
        ("NVIDIA B300 8x800G", "no known GPU"),
        ("8x H100 PCIe", "as cards in slots"),
        ("gpu=H200, gpus=4, nics=16x200G, fabric=RoCE", "has 4 GPUs a node, the rows 8"),
    ],
)
def test_what_words_leave_open_is_not_guessed(words: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        table_words(words, 8, 4)


def test_columns_may_stand_in_any_order_and_under_other_names_and_a_rate_may_follow_from_the_time() -> None:
    table = (
        "busbw (GB/s),Size,Collective,GPUs,Nodes,Machine,Doc,Time (us)\n"
        "340,1 GiB,AllReduce,32,4,DGX H100,A,\n"
        ",1M,all-gather,16,2,AWS p5.48xlarge,B,100\n"
        "330,512M,reduce_scatter_perf,16,2,AWS p5.48xlarge,B,\n"
    )
    found = read_cells(table.encode(), "cells.csv", table_machine, table_words)
    assert not found.left_out
    cells = {(each.document, each.collective): each.cells for each in found.groups}
    assert cells["A", "all_reduce"] == ((2**30, 340e9),)
    assert cells["B", "all_gather"] == ((2**20, pytest.approx(15 / 16 * 2**20 / 100e-6)),)
    assert cells["B", "reduce_scatter"] == ((2**29, 330e9),)


HEAD = "machine,nodes,gpus,collective,"


@pytest.mark.parametrize(
    ("heading", "cell", "busbw_GBps"),
    [
        ("size,busbw (GB/s)", "1 GiB,340", 340),
        ("size,busbw (Gb/s)", "1 GiB,2720", 340),
        ("size,Busbw_Gbps", "1073741824,2720", 340),
        ("size,busbw_gbps", "1073741824,340", 340),
        ("size (MB),bus bandwidth [MB/s]", "1024,340000", 340),
        ("size_KiB,busbw", "1048576,3.4e2", 340),
        ("size,busbw", '"1,073,741,824",340 GB/s', 340),
        ("size,busbw", "1.0GiB,2720 Gb/s", 340),
        ("msg size (bytes),algbw GB/s", "1073741824,175.483871", 340),
        ("size,time (ms)", "1G,6.1", 341.06),
        ("size,time_s", "1G,0.0061", 341.06),
        ("size,Time [us]", "1G,6100", 341.06),
        ("size,time_us,time_ms", "1G,,6.1", 341.06),
        ("size,time", "1G,6.1 ms", 341.06),
    ],
)
def test_numbers_have_the_unit_of_their_heading_or_their_own(heading: str, cell: str, busbw_GBps: float) -> None:
    table = f"{HEAD}{heading}\nDGX H100,4,32,ncclAllReduce,{cell}\n"
    found = read_cells(table.encode(), "cells.csv", table_machine, table_words)
    assert not found.left_out
    (((size_bytes, busbw_Bps),),) = (each.cells for each in found.groups)
    assert size_bytes == 2**30
    assert busbw_Bps == pytest.approx(busbw_GBps * 1e9, rel=1e-4)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_may_begin_with_comments_and_be_divided_otherwise(delimiter: str) -> None:
    rows = "machine,nodes,gpus,collective,size,busbw\nDGX H100,4,32,all_reduce,1G,340\nDGX H100,4,32,all_reduce,x,340\n"
    text = "# mean of 5 runs, out of place\n\n" + rows.replace(",", delimiter)
    found = read_cells(text.encode(), "cells.csv", table_machine, table_words)
    assert [each.cells for each in found.groups] == [((2**30, 340e9),)]
    assert found.left_out == ("line 5: size_bytes 'x' is no number from 1 on",)


@pytest.mark.parametrize(
    ("heading", "cell", "words"),
    [
        ("size,busbw", "1G,340 GHz", "is no bandwidth"),
        ("size,busbw", '"1,07,374",340', "is no number"),
        ("size,busbw", "0.3 KiB,340", "is no number of bytes"),
        ("size,busbw", "9999999G,340", "is no number of bytes"),
        ("size,time (ms)", "1G,inf", "is no time"),
    ],
)
def test_a_number_that_says_something_else_is_left_out(heading: str, cell: str, words: str) -> None:
    table = f"{HEAD}{heading}\nDGX H100,4,32,all_reduce,{cell}\n"
    found = read_cells(table.encode(), "cells.csv", table_machine, table_words)
    assert any(words in each for each in found.left_out)


@pytest.mark.parametrize("heading", ["busbw (GHz)", "busbw (requests)", "timestamp", "throughput", "busbwx"])
def test_a_column_of_another_unit_is_no_bandwidth(heading: str) -> None:
    table = f"{HEAD}size,{heading}\nDGX H100,4,32,all_reduce,1G,340\n"
    with pytest.raises(InputError, match="lacks the column busbw_GBps or algbw_GBps or time_us"):
        read_cells(table.encode(), "cells.csv", table_machine, table_words)


def test_a_table_of_ever_other_machines_ends() -> None:
    head = "document,platform,nodes,gpus,collective,size_bytes,busbw_GBps\n"
    rows = "".join(f"A,nobody {number},1,8,all_reduce,1024,1\n" for number in range(2100))
    asked: list[str] = []

    def never(words: str, gpus: int, nodes: int) -> MachineClass:
        asked.append(words)
        raise InputError("no platform")

    read_cells((head + rows).encode(), "cells.csv", table_machine, never)
    assert len(asked) == 2000


def test_a_platform_that_is_named_goes_before_words_and_a_run_over_tcp_is_of_no_network_that_is_known() -> None:
    head = "document,platform_id,platform,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    rows = (
        "A,aws-p5,H100 with NICs,2,16,all_reduce,1024,1,default\n"
        "B,nobody-knows,AWS p5en.48xlarge,2,16,all_reduce,1024,1,default\n"
        "C,alps-gh200,GH200 x2 (TCP fallback),2,8,all_reduce,1024,1,default\n"
        "D,,,2,16,all_reduce,1024,1,default\n"
    )
    found = read_cells((head + rows).encode(), "cells.csv", table_machine, table_words)
    assert [(each.document, each.machine.name) for each in found.groups] == [("A", "aws-p5"), ("B", "aws-p5en")]
    assert "in place of the machine's network" in found.left_out[0]
    assert "no platform is named" in found.left_out[1]
