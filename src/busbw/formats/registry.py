"""Every reader, in the order in which they are asked."""

from busbw.formats import (
    all_reduce_bench,
    clusterkit,
    imb,
    inspector,
    nccl_tests,
    nccl_tests_json,
    nvbandwidth,
    nvbandwidth_text,
    osu,
    param,
    perftest,
    perftest_json,
    rccl_tests,
    superbench,
)
from busbw.formats.lines.stream import Formats

FORMATS = Formats(
    text=(
        nccl_tests.FORMAT,
        rccl_tests.FORMAT,
        osu.FORMAT,
        imb.FORMAT,
        perftest.FORMAT,
        perftest_json.TEXT_FORMAT,
        param.FORMAT,
        clusterkit.FORMAT,
        nvbandwidth_text.FORMAT,
        all_reduce_bench.FORMAT,
    ),
    documents=(nccl_tests_json.FORMAT, nvbandwidth.FORMAT, inspector.FORMAT, superbench.FORMAT, perftest_json.FORMAT),
)
