"""Every reader, in the order in which they are asked."""

from busbw.formats import (
    all_reduce_bench,
    clusterkit,
    cuda_bandwidth_test,
    gpcnet,
    imb,
    inspector,
    nccl_tests,
    nccl_tests_json,
    nvbandwidth,
    nvshmem_perftest,
    osu,
    param,
    perftest,
    rocm_bandwidth_test,
    superbench,
    ucx_perftest,
)
from busbw.formats.lines.stream import Formats


def formats_stating(collective: str | None) -> Formats:
    """Return every reader, with what somebody states that tables measure which do not say it; None: nothing."""
    if collective is None:
        return FORMATS
    stated = nccl_tests.stating(collective)
    text = tuple(stated if each is nccl_tests.FORMAT else each for each in FORMATS.text)
    return Formats(text=text, documents=FORMATS.documents)


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
        gpcnet.FORMAT,
        ucx_perftest.FORMAT,
        nvshmem_perftest.FORMAT,
        rocm_bandwidth_test.FORMAT,
        cuda_bandwidth_test.FORMAT,
    ),
    documents=(
        nccl_tests_json.FORMAT,
        nvbandwidth.JSON_FORMAT,
        inspector.FORMAT,
        superbench.FORMAT,
        perftest.JSON_FORMAT,
    ),
)
