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
        ("", "does not say which GPUs"),
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
        ("gpu=H200, gpus=8, nics=8x99999G, fabric=RoCE", "no port has 99999 Gb/s"),
        ("gpu=H200, gpus=8, nics=8x50GB/s, fabric=RoCE", "are no NICs"),
        ("gpu=H200, gpus=8, nics=8, fabric=NDR", "are no NICs"),
        ("gpu=H200, gpus=8, nics=8x400G, fabric=TCP", "is no network"),
        ("gpu=H100 PCIe, gpus=8, nics=2x200G, fabric=IB", "is a card in a slot"),
        ("gpu=H20, gpus=8, nics=8x400G, fabric=IB", "is no GPU of a platform"),
        ("gpu=H800, gpus=8, nics=8x400G, fabric=IB", "is no GPU of a platform"),
        ("gpu=H200, gpus=8, nics=8x400G, fabric=IB, nvls=off", "no word for a machine"),
        ("8x H100 PCIe, 2x200G RoCE", "as cards in slots"),
        ("HGX H100, 8x400G NDR", "does not say how many GPUs"),
        ("8x H100, NDR", "does not say the NICs"),
        ("8x H100, 8x400G", "does not say the network"),
        ("8x RTX4090, 1x100G RoCE", "does not say which GPUs"),
    ],
)
def test_what_is_no_machine_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        described_machine(text, all_platforms(()))


@pytest.mark.parametrize(
    "words",
    [
        "GPU=h200 GPUS=8 NICS=8x400G FABRIC=infiniband",
        "gpu=H200; gpus=8; nics=8x400G; fabric=IB",
        "gpu=NVIDIA H200, gpus=8, nics=8 x 400 Gb/s, fabric=InfiniBand",
        "gpu=H200 SXM, gpus-per-node=8, hcas=8xNDR, network=NDR",
        "gpu=H200-SXM5-141GB, gpus=8, nics=8\u00d7400Gbps, fabric=ib",
        "gpu=H200, gpus=8, nics=8*400, fabric=Quantum-2",
        "gpu=H200, gpus=8, nics=400Gx8, fabric=NDR400",
        "gpu=H200, gpus=8, nics=3.2 Tb/s, fabric=IB",
        "8x H200, 8x400G NDR",
        "8 NVIDIA H200 GPUs, 8 ConnectX-7 400G InfiniBand",
        "H200 x8, 8 x 400 Gb/s InfiniBand",
        "HGX H200 8-GPU, 3200 Gb/s InfiniBand per node",
    ],
)
def test_one_machine_is_the_same_in_all_words_that_people_use(words: str) -> None:
    _, found = described_machine(words, all_platforms(()))
    assert found.name.endswith(", gpus=8, nics=8x400G, fabric=InfiniBand")
    assert (found.generation, found.rates.gpus, found.fabric) == ("hopper", 8, "InfiniBand")


def test_words_that_name_a_platform_and_no_nics_lead_to_it() -> None:
    with pytest.raises(InputError) as caught:
        described_machine("DGX H100, NDR", all_platforms(()), ("nvidia-dgx-h100",))
    assert "--platform nvidia-dgx-h100" in str(caught.value)
