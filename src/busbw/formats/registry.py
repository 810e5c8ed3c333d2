"""Every reader, in the order in which they are asked."""

from busbw.formats import (
    all_reduce_bench,
    clusterkit,
    imb,
    inspector,
    nccl_tests,
    nccl_tests_json,
    nvbandwidth,
    osu,
    param,
    perftest,
    superbench,
)
from busbw.formats.lines.stream import Formats

FORMATS = Formats(
    text=(
        nccl_tests.FORMAT,
        nccl_tests_json.RCCL_TESTS_FORMAT,
        osu.FORMAT,
        imb.FORMAT,
        perftest.FORMAT,
        perftest.OLD_JSON_FORMAT,
        param.FORMAT,
        clusterkit.FORMAT,
        nvbandwidth.TEXT_FORMAT,
        all_reduce_bench.FORMAT,
    ),
    documents=(
        nccl_tests_json.FORMAT,
        nvbandwidth.JSON_FORMAT,
        inspector.FORMAT,
        superbench.FORMAT,
        perftest.JSON_FORMAT,
    ),
)
