"""A machine in words: as the platform that has the same parts, and errors for what is no machine."""

import pytest
from tests.warm import warm_busbw

from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms
from busbw.predict.closed import predicted
from busbw.predict.described import described_machine

from .test_closed import machine


def test_what_a_platform_has_in_words_is_predicted_as_the_platform_is() -> None:
    _, found = described_machine("gpu=H100, gpus=8, nics=8x400G, fabric=infiniband", all_platforms(()))
    asked = {"nodes": 16, "collective": "all_reduce", "size_bytes": 2**34, "algorithm": "nvlstree"}
    own, platforms = predicted(found, **asked)[0], predicted(machine("azure-nd-h100-v5"), **asked)[0]
    assert own.busbw_Bps == pytest.approx(platforms.busbw_Bps, rel=1e-6)


def test_the_command_names_the_machine_and_what_is_taken_for_it(tmp_path) -> None:
    words = "gpu=H200, gpus=8, nics=16x200G, fabric=RoCE"
    done = warm_busbw("predict", "all_reduce", "--machine", words, "--nodes", "8", "--size", "1G", cwd=tmp_path)
    assert done.returncode == 0
    assert words in done.stdout
    assert "note: GPUs and the links between them as in" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no word for a machine"),
        ("gpu=H200", "lacks gpus"),
        ("gpu=H200, gpu=H100, gpus=8, nics=8x400G, fabric=RoCE", "said twice"),
        ("gpu=Z9, gpus=8, nics=8x400G, fabric=RoCE", "is no GPU of a platform"),
        ("gpu=H200, gpus=0, nics=8x400G, fabric=RoCE", "is no number of GPUs"),
        ("gpu=H200, gpus=\u0668, nics=8x400G, fabric=RoCE", "is no number of GPUs"),
        ("gpu=H200, gpus=99, nics=8x400G, fabric=RoCE", "no node has 99"),
        ("gpu=H200, gpus=8, nics=8x0G, fabric=RoCE", "are no NICs"),
        ("gpu=H200, gpus=8, nics=008x400G, fabric=RoCE", "are no NICs"),
        ("gpu=H200, gpus=8, nics=8x400G, fabric=string", "is no network"),
        ("gpu=H200, gpus=8, nics=8x400G, fabric=RoCE" + " " * 500, "is longer than"),
    ],
)
def test_what_is_no_machine_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        described_machine(text, all_platforms(()))
