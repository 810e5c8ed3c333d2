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
from busbw.model import codec
from busbw.model.predict.nccl_choice import MODELLED, PROTOCOLS, NcclJob
from busbw.model.predict.prediction import PredictedCall
from busbw.predict.closed import predicted
from busbw.predict.graphs import graphs_of_file, graphs_of_log
from busbw.predict.machines import machine_of
from busbw.predict.nccl import choice
from busbw.predict.nccl_table import cost_table
from busbw.predict.sends import SENDS

from .conftest import GUARDS
from .nccl_estimates import SIZES

TOLD = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv")
# No document has these: their constants are of the others.
CARRIED = ("gather", "scatter")
# 1 KiB to 1 MiB, and on to 8 GiB: buffers of 16 GiB on each GPU, and what checks them.
SMALL = tuple(4**power for power in range(5, 11))
LARGE = tuple(8**power for power in range(7, 12))
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


def written_predictions(folder: Path) -> dict[tuple[str, int], PredictedCall]:
    """Write what two GPUs of a published node are predicted to take, by rings and sends; return what was written."""
    machine, found = machine_of(find_platform("oci-bm-gpu-h200-8").platform, gpus=2), {}
    for name in (*TOLD, *CARRIED):
        ring = None if name in SENDS else "ring"
        calls = [
            predicted(machine, nodes=1, collective=name, size_bytes=size, algorithm=ring)[0]
            for size in (*SMALL, *LARGE)
        ]
        path = folder / f"{name}.json"
        path.write_bytes(codec.encode_pretty(calls))
        for call in codec.decode(path.read_bytes(), list[PredictedCall], where=path.name):
            found[name, call.size_bytes] = call
    return found


def test_of_what_no_document_has_the_predictions_say_so(tmp_path: Path) -> None:
    for (name, _size), call in written_predictions(tmp_path).items():
        untold = f"no document has {name} within a node" if name in CARRIED else None
        assert (call.unmeasured, call.kinship) == (untold, "across" if name in CARRIED else "in family")


def test_what_two_hopper_gpus_reach_is_inside_of_its_interval_and_latency_is_near(run, tmp_path: Path) -> None:
    # Before the run, so that nothing measured can have a part in it.
    expected = written_predictions(tmp_path)
    print(f"{len(expected)} predictions written before the run")
    assert {name: os.environ.get(name, value) for name, value in GUARDS.items()} == GUARDS

    # Small messages have modes that change from start to start.
    names = (*TOLD, *CARRIED)
    asked = ["-b", str(SMALL[0]), "-e", str(SMALL[-1]), "-f", "4", "--time-limit", "30", "--launches", "3"]
    points = run(*names, "--ranks", "2", *asked, limit_s=150).points
    asked = ["-b", str(LARGE[0]), "-e", str(LARGE[-1]), "-f", "8", "--time-limit", "80", "--min-samples", "5"]
    points += run(*names, "--ranks", "2", *asked, limit_s=180).points

    errors, times, outside, carried = {}, {}, [], {}
    print("collective size predicted_us measured_us predicted/measured busbw_GBps predicted_GBps interval_GBps")
    for point in points:
        place = point["collective"], point["size_bytes"]
        call = expected[place]
        ratio, is_inside = call.busbw_Bps / point["busbw_Bps"], call.low_Bps <= point["busbw_Bps"] <= call.high_Bps
        print(*place, f"{call.time_s * 1e6:.2f} {point['median_s'] * 1e6:.2f} {ratio:.3f}", end=" ")
        print(f"{point['busbw_Bps'] / 1e9:.4g} {call.busbw_Bps / 1e9:.4g}", end=" ")
        print(f"{call.low_Bps / 1e9:.4g} to {call.high_Bps / 1e9:.4g}", "" if is_inside else "outside")
        if point["collective"] in CARRIED:
            carried[place] = ratio
            outside += [] if is_inside or point["size_bytes"] < LEAST_BYTES else [place]
        elif point["size_bytes"] < LEAST_BYTES:
            times[place] = max(ratio, 1 / ratio)
        else:
            errors[place] = abs(math.log(ratio))
            outside += [] if is_inside else [place]
    for name in TOLD:
        own = [error for (collective, _size), error in errors.items() if collective == name]
        near = [each for (collective, _size), each in times.items() if collective == name]
        print(f"{name}: median of e from 1 MiB on {100 * median(own):.1f} %, below {median(near):.2f} times")
    for name in CARRIED:
        own = [abs(math.log(ratio)) for (each, size), ratio in carried.items() if each == name and size >= LEAST_BYTES]
        print(f"{name}, of which no document tells anything: median of e from 1 MiB on {100 * median(own):.1f} %")
    worst = max(errors, key=lambda place: errors[place])
    print(
        f"from 1 MiB on: median of e {100 * median(errors.values()):.1f} %, at most {100 * errors[worst]:.0f} % {worst}"
    )
    print(f"below: {median(times.values()):.2f} times in the median, {max(times.values()):.2f} at most")
    print(f"outside of the interval, from 1 MiB on: {outside}")
    assert errors.keys() | times.keys() | carried.keys() == expected.keys()
    missed = {
        "median of e from 1 MiB on": median(errors.values()) > 0.10,
        "latency, in the median": median(times.values()) > 1.5,
        # An interval of 90 %, and cells that one machine moves together.
        "outside of the interval": len(outside) > (len(errors) + len(carried) // 2) // 6,
    }
    assert not any(missed.values()), missed
