"""What each version of NCCL has is used, and what it lacks is refused in one line."""

import pytest

from .harness import BRIEF, EVERYWHERE, VERSIONS, NcclBusbw, assert_all_right, assert_refused

SPELLED = {21803: "2.18.3", 22203: "2.22.3", 22809: "2.28.9", 23203: "2.32.3"}
SMALL = (*BRIEF, "--ranks", 2, "-g", 2, "-b", "1K", "-e", "1K", "--time-limit", 20)


# The host checks alike whatever the version: it does so over the oldest and the newest.
@pytest.mark.parametrize(
    ("version", "kernels"), [*((version, True) for version in VERSIONS), (VERSIONS[0], False), (VERSIONS[-1], False)]
)
def test_every_version_measures_every_collective(busbw: NcclBusbw, version: int, kernels: bool):
    result = busbw.nccl(
        *EVERYWHERE, *BRIEF, "--ranks", 2, "-b", "1K", "-e", "1K", "--time-limit", 20, version=version, kernels=kernels
    )

    assert len(assert_all_right(busbw, result)) == len(EVERYWHERE)
    run = busbw.run_of()
    assert {one.nccl.checked_by for one in run.measurements if one.nccl is not None} == {"gpu" if kernels else "host"}
    assert run.plan.gpu_setup is not None
    assert run.plan.gpu_setup.nccl_memory == (version > 21803)
    assert [hello.gpu.nccl for hello in run.ranks if hello.gpu is not None] == [SPELLED[version]] * 2


@pytest.mark.parametrize(
    ("register", "version", "since"),
    [(1, 21803, "2.19"), (1, 22203, None), (1, 23203, None), (2, 21803, "2.27"), (2, 22203, "2.27"), (2, 22809, None),
     (2, 23203, None)],
)  # fmt: skip
def test_buffers_are_registered_where_the_version_can(busbw: NcclBusbw, register: int, version: int, since: str | None):
    result = busbw.nccl("all_reduce", "alltoall", *SMALL, "-R", register, version=version)

    if since is not None:
        assert_refused(result, f"came with NCCL {since}, and this is {SPELLED[version]}")
        return
    assert_all_right(busbw, result)
    setup = busbw.run_of().plan.gpu_setup
    assert setup is not None
    assert setup.buffers == ("registered" if register == 1 else "symmetric")


@pytest.mark.parametrize("register", [1, 2])
def test_several_processes_register_their_buffers_together(busbw: NcclBusbw, register: int):
    result = busbw.nccl("all_reduce", *BRIEF, "--ranks", 2, "-b", "1K", "-e", "1K", "--time-limit", 20, "-R", register)

    assert_all_right(busbw, result)


@pytest.mark.parametrize(
    ("version", "field", "value"),
    [(21803, "maxCTAs", 2), (22203, "maxCTAs", 8), (22809, "CTAPolicy", 2), (22809, "nChannelsPerNetPeer", 4),
     (23203, "graphUsageMode", 1), (23203, "maxP2pPeers", 2)],
)  # fmt: skip
def test_a_field_of_the_configuration_reaches_nccl(busbw: NcclBusbw, version: int, field: str, value: int):
    result = busbw.nccl("all_reduce", *SMALL, "--config", f"{field}={value}", version=version)

    assert_all_right(busbw, result)
    setup = busbw.run_of().plan.gpu_setup
    assert setup is not None
    assert setup.config == ((field, value),)
    assert f"{field}={value}" in result.out


def test_a_configuration_that_nccl_itself_refuses_is_told_in_its_words(busbw: NcclBusbw):
    # Of minCTAs and maxCTAs NCCL wants both or the larger one: it compares them even where one is not set.
    result = busbw.nccl("all_reduce", *SMALL, "--config", "minCTAs=2")

    assert result.code == 3, result
    assert "Invalid config min/max channels attribute value 2/" in result.out


@pytest.mark.parametrize(
    ("version", "text", "words"),
    [
        (21803, "CTAPolicy=2", ("no field 'CTAPolicy'", "one of: blocking, cgaClusterSize")),
        (22809, "maxP2pPeers=2", ("no field 'maxP2pPeers'",)),
        (22809, "netName=1", ("no field 'netName'",)),
        (22809, "minCTAs=many", ("'many' is not a number",)),
        (22809, "minCTAs=", ("'' is not a number",)),
        (22809, "minCTAs=99999999999", ("is not a number",)),
    ],
)
def test_a_field_that_a_version_has_not_is_refused(busbw: NcclBusbw, version: int, text: str, words: tuple[str, ...]):
    assert_refused(busbw.nccl("all_reduce", *SMALL, "--config", text, version=version), text, *words)


@pytest.mark.parametrize(
    ("version", "dtype"), [(21803, "f8e4m3"), (22203, "float8e5m2"), (22809, "int16"), (23203, "uint16")]
)
def test_a_data_type_that_a_version_has_not_is_refused(busbw: NcclBusbw, version: int, dtype: str):
    assert_refused(busbw.nccl("all_reduce", *SMALL, "-d", dtype, version=version), "is not a data type of this NCCL")
