"""What is said of the number of channels, and of the machine that a log looks like."""

import pytest

from busbw.model.finding import Diagnosis, Finding

from .made import Job
from .test_diagnosis import read

AZURE = " ".join(f"[{number}]mlx5_ib{number}:1/IB" for number in range(8))
H100 = "#  Rank  0 Group  0 Pid   5950 on     node00 device  0 [0x34] NVIDIA H100 80GB HBM3\n"
MADE = "8 coll channels"
LIMIT = "NCCL_MAX_NCHANNELS set by environment to 2."


def one_node(channels: int, *lines: str) -> str:
    return Job(hosts=1, gpus=8, everywhere=lines).text().replace(MADE, f"{channels} coll channels")


def only(diagnosis: Diagnosis, code: str) -> Finding:
    (found,) = [each for each in diagnosis.findings if each.code == code]
    return found


def test_channels_that_cannot_fill_the_nvlinks_are_found_with_their_cause():
    found = only(read(one_node(2, LIMIT), platform="nvidia-dgx-h100"), "LOG017")

    assert "ranks 0-7: 2 collective channels" in found.evidence
    assert 'NCCL_MAX_NCHANNELS = "2" allows no more' in found.evidence
    assert found.fix == "unset NCCL_MAX_NCHANNELS"


@pytest.mark.parametrize("channels", [7, 16, 24])
def test_channels_that_can_fill_the_nvlinks_are_none_too_few(channels: int):
    codes = {each.code for each in read(one_node(channels), platform="nvidia-dgx-h100").findings}

    assert not codes & {"LOG017", "LOG018"}


def test_channels_fewer_than_nics_are_found_where_every_gpu_takes_part():
    text = Job(hosts=2, gpus=8, nics=AZURE).text().replace(MADE, "4 coll channels")

    assert "8 NICs" in only(read(text, platform="azure-nd-h100-v5"), "LOG017").evidence
    assert not [
        each
        for each in read(Job(hosts=2, gpus=1, nics=AZURE).text(), platform="azure-nd-h100-v5").findings
        if each.code == "LOG017"
    ]


def test_without_a_platform_it_cannot_be_told():
    found = only(read(one_node(2, LIMIT)), "LOG018")

    assert found.severity == "note"
    assert "what NCCL would choose itself is not known" in found.evidence


def test_few_channels_without_any_sign_of_more_are_nothing():
    assert not read(one_node(2)).findings


def test_channels_of_a_small_communicator_do_not_count():
    job = Job(hosts=1, gpus=8)
    small = [
        job.head(rank) + f"ncclCommSplit comm 0x9{rank} rank {rank % 2} nranks 2 cudaDev {rank} nvmlDev {rank} "
        f"busId 1000 commId 0x{rank // 2} - Init START\n"
        + job.head(rank)
        + "2 coll channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer\n"
        + job.head(rank)
        + f"ncclCommSplit comm 0x9{rank} rank {rank % 2} nranks 2 cudaDev {rank} nvmlDev {rank} "
        f"busId 1000 commId 0x{rank // 2} - Init COMPLETE\n"
        for rank in range(8)
    ]

    diagnosis = read(job.text().replace(MADE, "16 coll channels") + "".join(small), platform="nvidia-dgx-h100")

    assert "LOG017" not in {each.code for each in diagnosis.findings}
    assert [fact.values[0].value for fact in diagnosis.facts if fact.name == "channels"] == [
        "16 collective, 0 NVLS, 8 p2p"
    ]


def test_a_log_that_looks_like_platforms_names_them_and_claims_none():
    both = only(read(Job(hosts=2, gpus=8, nics=AZURE).text()), "LOG019")
    one = only(read(H100 + Job(hosts=2, gpus=8, nics=AZURE).text()), "LOG019")

    assert "azure-nd-h100-v5 or azure-nd-h200-v5" in both.title
    assert one.title == "the log fits azure-nd-h100-v5"
    assert "other machines may look the same" in one.evidence


def test_what_is_expected_of_a_machine_that_only_fits_is_said_with_that_condition():
    text = H100 + Job(hosts=2, gpus=8, nics=AZURE, network="IB", between="NET/Socket/0").text()
    text = text.replace("Using network IB", "Using network Socket")

    found = only(read(text), "LOG001")

    assert found.effect is not None
    assert found.effect.startswith("if this is azure-nd-h100-v5: expect")


def test_nothing_fits_a_log_that_shows_nothing_of_its_own():
    assert not [each for each in read(Job().text()).findings if each.code == "LOG019"]
    assert not [each for each in read(H100 + Job(hosts=1, gpus=8).text()).findings if each.code == "LOG019"]
