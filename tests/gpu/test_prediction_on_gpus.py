"""NCCL's cost model against what NCCL prints on this machine, and predictions within one node against measurements."""

import os
import re
from pathlib import Path

import pytest
from tests.predict.test_nccl_model import printed_table

from busbw.facts.nccl_model import nccl_constants, nccl_model_facts
from busbw.facts.platforms import find_platform
from busbw.model.predict.nccl_choice import NcclJob
from busbw.predict.closed import predicted
from busbw.predict.graphs import graphs_of_log
from busbw.predict.machines import machine_of
from busbw.predict.nccl import cost_table

from .conftest import GUARDS

SHORT = ("--time-limit", "4", "--min-samples", "30")
HOPPER = 90


def test_the_table_that_nccl_prints_comes_out_to_the_digit(run, tmp_path: Path) -> None:
    said = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING", "NCCL_DEBUG_FILE": f"{tmp_path}/nccl.%p"}
    run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", *SHORT, **said)
    log = "\n".join(path.read_text(errors="replace") for path in sorted(tmp_path.glob("nccl.*")))
    release = re.search(r"NCCL version (\d+\.\d+\.\d+)", log)
    if release is None or release[1] not in nccl_model_facts().releases:
        pytest.skip(f"no model of the release {release[1] if release else 'that wrote the log'}")
    printed = printed_table(log)
    logged = graphs_of_log(log, "log")
    job = NcclJob(nodes=1, ranks=2, sm=HOPPER, channels=logged.channels, nvls_channels=logged.nvls_channels)
    ours = {
        (cell.collective, cell.algorithm, cell.protocol): (f"{cell.latency_us:.1f}", f"{cell.bandwidth_GBps:.1f}")
        for cell in cost_table(job, logged.graphs, nccl_constants(release[1]))
    }
    assert printed
    assert {place: ours[place] for place in printed} == printed


def test_what_two_hopper_gpus_reach_is_inside_of_its_interval_and_latency_is_near(run) -> None:
    machine = machine_of(find_platform("oci-bm-gpu-h200-8").platform, gpus=2)
    # Before the run, so that nothing measured can have a part in it.
    sizes = [2**power for power in range(10, 31, 4)]
    names = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
    expected = {
        (name, size): predicted(machine, nodes=1, collective=name, size_bytes=size, algorithm="ring")[0]
        for name in names
        for size in sizes
    }
    assert {name: os.environ.get(name, value) for name, value in GUARDS.items()} == GUARDS
    found = run(*names, "--ranks", "2", "-b", "1K", "-e", "1G", "-f", "16", "--time-limit", "30")
    outside = []
    for point in found.points:
        call = expected.get((point["collective"], point["size_bytes"]))
        if call is not None:
            busbw_Bps = point["busbw_Bps"]
            print(f"{point['collective']} {point['size_bytes']}: {busbw_Bps:.4g}, predicted {call.busbw_Bps:.4g} B/s")
            if not call.low_Bps <= busbw_Bps <= call.high_Bps:
                outside.append((point["collective"], point["size_bytes"], busbw_Bps, call.low_Bps, call.high_Bps))
    assert found.points
    assert outside == []
