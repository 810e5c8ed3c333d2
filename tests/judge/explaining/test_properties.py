"""Whatever was measured, an explanation keeps its promises."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.facts.platforms import all_platforms, facts_of_gpus, find_platform
from busbw.judge.explaining.explain import explain
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.scenarios import ABOVE
from busbw.judge.explaining.series import Series, SizeSample, rates_of

FACTS = facts_of_gpus(all_platforms())
GROUNDS = (
    KnownMachine(gpus=FACTS),
    *(
        KnownMachine(platform=find_platform(name).platform, gpus=FACTS)
        for name in ("azure-nd-h100-v5", "isambard-ai-phase2")
    ),
    KnownMachine(platform=find_platform("azure-hbv4").platform),
    KnownMachine(platform=find_platform("generic").platform),
)
ALGORITHMS = st.sampled_from([None, None, "ring", "tree", "nvls", "nvlstree", "collnet", "pat", "symmetric"])


@st.composite
def any_series(draw):
    collective = draw(st.sampled_from(["all_reduce", "all_gather", "broadcast", "alltoall", "sendrecv", "latency"]))
    each, nodes = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.sampled_from([None, 1, 2, 5, 128]))
    ranks = max(2, each * (nodes or 1))
    sizes = sorted(draw(st.lists(st.integers(1, 2**40), min_size=1, max_size=9)))
    samples = []
    for size_bytes in sizes:
        time_s = 10 ** draw(st.floats(-9, 3))
        busbw_Bps, algbw_Bps = rates_of(collective, ranks, size_bytes, time_s)
        samples.append(
            SizeSample(
                size_bytes=size_bytes,
                time_s=time_s,
                busbw_Bps=busbw_Bps,
                algbw_Bps=algbw_Bps,
                algorithm=draw(ALGORITHMS),
                protocol=draw(st.sampled_from([None, "LL", "LL128", "SIMPLE"])),
                is_wrong=draw(st.booleans()) and draw(st.booleans()),
            )
        )
    return Series(
        title="t",
        collective=collective,
        dtype="float32",
        op="sum",
        in_place=False,
        ranks=ranks,
        nodes=nodes,
        gpus_per_node=draw(st.sampled_from([None, each])),
        gpu_name=draw(st.sampled_from([None, "NVIDIA H200", "an unknown GPU"])),
        library=draw(st.sampled_from(["nccl", "mpi"])),
        statistic="s",
        nvls=draw(st.sampled_from([None, True, False])),
        sharp=draw(st.sampled_from([None, True, False])),
        algorithms=draw(st.sampled_from([(), ("ring",), ("nvlstree", "pat")])),
        network=draw(st.sampled_from([None, "fabric", "fallback", "loopback"])),
        samples=tuple(samples),
    )


@settings(max_examples=150, deadline=None)
@given(series=any_series(), known_machine=st.sampled_from(GROUNDS))
def test_an_explanation_keeps_its_promises(series, known_machine):
    found = explain("s", (series,), known_machine)
    (explained,) = found.series
    assert len(explained.sizes) == len(series.samples)
    for size, sample in zip(explained.sizes, series.samples, strict=True):
        # Nothing above every ceiling is ok, nothing wrong is judged by its speed.
        if size.ceiling_Bps is not None and size.busbw_Bps > ABOVE * size.ceiling_Bps:
            assert size.verdict.outcome in ("cannot_tell", "wrong")
        assert (size.verdict.outcome == "wrong") is sample.is_wrong
        # A verdict on speed rests on something that may apply.
        if size.verdict.outcome in ("ok", "slow"):
            assert any(each.applies != "no" for each in size.expected)
        for each in size.expected:
            outcomes = {held.outcome for held in each.conditions}
            assert (each.applies == "no") is ("differs" in outcomes)
        if size.budget:
            total = math.fsum([size.budget[0].busbw_Bps, *(step.change_Bps for step in size.budget)])
            assert math.isclose(total, size.busbw_Bps, rel_tol=1e-6, abs_tol=size.budget[0].busbw_Bps * 1e-9)
    # The whole is no better than its worst.
    outcomes = {size.verdict.outcome for size in explained.sizes}
    if "wrong" in outcomes:
        assert found.verdict.outcome == "wrong"
    elif "slow" in outcomes:
        assert found.verdict.outcome == "slow"
    else:
        assert found.verdict.outcome in ("ok", "cannot_tell")
