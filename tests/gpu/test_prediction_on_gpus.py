"""NCCL's cost model against what NCCL prints on this machine, and predictions within one node against measurements."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from tests.predict.test_nccl_model import printed_table

from busbw.facts.nccl_model import nccl_constants, nccl_model_facts
from busbw.facts.platforms import find_platform
from busbw.model.predict.nccl_choice import MODELLED, PROTOCOLS, NcclJob
from busbw.predict.closed import predicted
from busbw.predict.graphs import graphs_of_file, graphs_of_log
from busbw.predict.machines import machine_of
from busbw.predict.nccl import choice
from busbw.predict.nccl_table import cost_table

from .conftest import GUARDS
from .nccl_estimates import SIZES

SHORT = ("--time-limit", "4", "--min-samples", "30")
HOPPER = 90
LEAST_BYTES = 2**20


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


def test_what_nccl_estimates_without_running_is_what_the_model_says(nccl: Path, tmp_path: Path) -> None:
    # What NCCL takes itself, and each cell of rings and trees by itself.
    ways = ["-", *(f"{algorithm},{protocol}" for algorithm in ("Ring", "Tree") for protocol in PROTOCOLS)]
    graph_file = tmp_path / "graph.xml"
    said = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING", "NCCL_DEBUG_FILE": f"{tmp_path}/nccl.%p"}
    answer = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "nccl_estimates.py"), str(nccl), *ways],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **GUARDS, **said, "NCCL_GRAPH_DUMP_FILE": str(graph_file), "NCCL_TUNER_PLUGIN": "none"},
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    log = "\n".join(path.read_text(errors="replace") for path in sorted(tmp_path.glob("nccl.*")))
    release = re.search(r"NCCL version (\d+\.\d+\.\d+)", log)
    if release is None or release[1] not in nccl_model_facts().releases:
        pytest.skip(f"no model of the release {release[1] if release else 'that wrote the log'}")
    logged, constants = graphs_of_log(log, "log"), nccl_constants(release[1])
    job = NcclJob(nodes=1, ranks=2, sm=HOPPER, channels=logged.channels, nvls_channels=logged.nvls_channels)
    graphs = graphs_of_file(graph_file.read_bytes(), graph_file.name)
    rows, worst, off = json.loads(answer.stdout), 0.0, []
    for way, collective, size_bytes, estimated_us in rows:
        algorithm, _, protocol = way.partition(",")
        ours_us = choice(
            job,
            graphs,
            constants,
            release=release[1],
            collective=collective,
            size_bytes=size_bytes,
            algorithm=algorithm.lower() if protocol else None,
            protocol=protocol or None,
        ).chosen.time_us
        worst = max(worst, abs(ours_us / estimated_us - 1))
        if ours_us != pytest.approx(estimated_us, rel=1e-3):
            off.append((way, collective, size_bytes, estimated_us, ours_us))
    print(f"NCCL {release[1]}: {len(rows)} estimates, the largest difference {worst:.2e}; {graphs.ring}")
    assert len(rows) == (1 + len(PROTOCOLS)) * len(MODELLED) * len(SIZES) + len(PROTOCOLS) * len(SIZES)
    assert off == []


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
    outside, errors, small = [], [], []
    for point in found.points:
        call = expected.get((point["collective"], point["size_bytes"]))
        if call is not None:
            busbw_Bps = point["busbw_Bps"]
            print(f"{point['collective']} {point['size_bytes']}: {busbw_Bps:.4g}, predicted {call.busbw_Bps:.4g} B/s")
            if point["size_bytes"] < LEAST_BYTES:
                small.append(max(call.busbw_Bps / busbw_Bps, busbw_Bps / call.busbw_Bps))
                continue
            errors.append(abs(math.log(call.busbw_Bps / busbw_Bps)))
            if not call.low_Bps <= busbw_Bps <= call.high_Bps:
                outside.append((point["collective"], point["size_bytes"], busbw_Bps, call.low_Bps, call.high_Bps))
    print(f"from 1 MiB on: median of e {100 * median(errors):.1f} %, outside {outside}")
    print(f"below: times {median(small):.2f} in the median, {max(small):.2f} at most")
    assert len(errors) == len(small) == len(expected) // 2
    assert median(errors) <= 0.10
    # An interval of 90 %.
    assert len(outside) <= len(errors) // 6, outside
    # The host's part in starting a call differs from machine to machine, and from start to start.
    assert median(small) <= 2
