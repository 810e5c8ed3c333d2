"""What an MPI is told: published where somebody publishes it, derived and said to be so where nobody does."""

import pytest

from busbw.api.launches import MPIS as OF_LAUNCH
from busbw.api.recommendations import recommendation
from busbw.base.errors import InputError
from busbw.env.recommend.mpi import MPIS, device_names
from busbw.facts.advice import advice_sources, published_for_mpi
from busbw.facts.envvars import variables
from busbw.facts.platforms import all_platforms
from busbw.model.recommendation import Recommendation, Recommended

CPU_ONLY = sorted(each.id for each in all_platforms() if each.kind == "cpu")
AZURE = ("azure-hb", "azure-hc", "azure-hbv2", "azure-hbv3", "azure-hbv4", "azure-hxv1")


def of(platform: str, **asked: object) -> Recommendation:
    return recommendation(platform, **asked)  # type: ignore[arg-type]


def setting(found: Recommendation, name: str) -> Recommended:
    return next(each for each in found.settings if each.name == name)


def test_azures_machines_without_gpus_and_isambard_3_are_all_there():
    assert set(CPU_ONLY) >= {*AZURE, "isambard-3"}


@pytest.mark.parametrize("platform", CPU_ONLY)
@pytest.mark.parametrize("mpi", [None, *MPIS])
@pytest.mark.parametrize("nodes", [1, 2])
def test_every_machine_without_gpus_is_told_something_for_every_mpi(platform: str, mpi: str | None, nodes: int):
    found = of(platform, mpi=mpi, nodes=nodes)

    assert found.recommends
    assert found.cannot_tell == ()
    assert not any(each.scope == "nccl" for each in found.settings)


@pytest.mark.parametrize("platform", CPU_ONLY)
@pytest.mark.parametrize("mpi", MPIS)
def test_what_is_derived_says_so_and_what_is_published_does_not(platform: str, mpi: str):
    for each in of(platform, mpi=mpi).settings:
        is_derived = each.source == ("platform-facts",)
        assert ("Derived from the platform's facts: " in each.reason) == is_derived, each.name
        assert each.reason.endswith("; not published.") == is_derived, each.name


def test_every_source_is_shown():
    for mpi in MPIS:
        found = of("azure-hbv4", mpi=mpi, goal="sharp")
        cited = {source for each in (*found.settings, *found.left_out, *found.launch) for source in each.source}
        assert cited == {each.id for each in found.sources}


@pytest.mark.parametrize("platform", AZURE)
def test_azure_publishes_settings_for_mvapich2_and_intel_mpi(platform: str):
    mvapich, intel = of(platform, mpi="mvapich2"), of(platform, mpi="intel-mpi")

    assert setting(mvapich, "MV2_CPU_BINDING_POLICY").value == "scatter"
    assert setting(mvapich, "MV2_CPU_BINDING_LEVEL").source == ("ms-mpi",)
    assert setting(mvapich, "MV2_IBA_HCA").value == "mlx5_ib0"
    assert setting(intel, "FI_PROVIDER").value == "mlx"
    assert setting(intel, "I_MPI_FABRICS").value == "shm:ofi"
    assert {each.name for each in mvapich.left_out} >= {"MV2_SHOW_CPU_BINDING", "MV2_SHOW_HCA_BINDING"}


def test_the_list_of_transports_of_a_test_of_two_ranks_is_left_out():
    found = of("azure-hbv4", mpi="hpcx")

    assert "UCX_TLS" not in found.env()
    assert next(each for each in found.left_out if each.name == "UCX_TLS").kind == "other_job"


@pytest.mark.parametrize(
    ("platform", "words"),
    [("azure-hb", "ppr:4:numa"), ("azure-hc", "ppr:22:numa"), ("azure-hbv3", "ppr:30:numa"), ("azure-hxv1", "ppr:44:")],
)
def test_ranks_are_counted_by_numa_node(platform: str, words: str):
    (advice,) = of(platform, mpi="hpcx").launch

    assert words in advice.option


def test_settings_differ_by_mpi_on_one_network():
    assert "OMPI_MCA_pml" not in of("azure-hbv4", mpi="mvapich").env()
    assert of("azure-hbv4", mpi="open-mpi-4").env()["OMPI_MCA_btl"] == "^vader,tcp,openib"
    assert "OMPI_MCA_btl" not in of("azure-hbv4", mpi="open-mpi-5").env()


def test_cray_mpich_takes_the_nic_of_the_ranks_numa_node_where_there_are_several():
    assert of("isambard-ai-phase2", mpi="cray-mpich").env()["MPICH_OFI_NIC_POLICY"] == "NUMA"
    assert "MPICH_OFI_NIC_POLICY" not in of("isambard-3").env()
    assert of("isambard-3").mpi == "cray-mpich"


def test_over_efa_what_aws_publishes_stays_as_published():
    found = of("aws-p5", mpi="intel-mpi")

    assert setting(found, "FI_PROVIDER").source != ("platform-facts",)
    assert setting(found, "I_MPI_OFI_LIBRARY_INTERNAL").value == "0"
    assert of("aws-p5", mpi="open-mpi-5").env()["OMPI_MCA_pml"] == "cm"


def test_a_machine_with_gpus_is_told_of_mpi_only_when_asked():
    plain, asked = of("azure-nd-h100-v5"), of("azure-nd-h100-v5", mpi="hpcx")

    assert plain.mpi is None
    assert plain.env()["UCX_NET_DEVICES"] == "mlx5_ib0:1"
    assert asked.env()["UCX_NET_DEVICES"].startswith("mlx5_ib0:1,mlx5_ib1:1")
    assert asked.env()["NCCL_IB_HCA"] == plain.env()["NCCL_IB_HCA"]
    # UCX_TLS=rc has neither shared memory nor memory of GPUs: enough to start ranks, not for MPI's own messages.
    assert plain.env()["UCX_TLS"] == "rc"
    assert "UCX_TLS" not in asked.env()
    assert {each.kind for each in asked.left_out if each.name == "UCX_TLS"} == {"other_job"}


def test_sharp_is_asked_for_in_the_words_of_the_mpi():
    assert of("azure-hbv4", mpi="mvapich2", goal="sharp").env()["MV2_ENABLE_SHARP"] == "1"
    assert of("azure-hbv4", mpi="hpcx", goal="sharp").env()["HCOLL_ENABLE_SHARP"] == "2"
    assert "HCOLL_ENABLE_SHARP" not in of("azure-hbv4", mpi="hpcx").env()


def test_mvapich2_with_memory_of_gpus_is_told_of_them_on_one_node_too():
    for nodes in (1, 2):
        assert of("azure-ndv4", mpi="mvapich2-gdr", nodes=nodes).env()["MV2_USE_CUDA"] == "1"
    assert of("azure-ndv4", mpi="mvapich2-gdr").env()["MV2_IBA_HCA"].startswith("mlx5_ib0:mlx5_ib1:")
    assert "MV2_USE_CUDA" not in of("azure-ndv4", mpi="mvapich2").env()
    assert "MV2_USE_CUDA" not in of("azure-hbv4", mpi="mvapich2-gdr").env()
    assert "MV2_USE_CUDA" not in of("azure-nd-mi300x-v5", mpi="mvapich2-gdr").env()
    assert of("azure-ndv4", mpi="mvapich-plus").env() == of("azure-ndv4", mpi="mvapich").env()


@pytest.mark.parametrize("name", ["isambard-3", "aws-p5"])
def test_an_mpi_over_verbs_is_not_promised_a_network_of_libfabric(name):
    def advice(name: str, mpi: str) -> str:
        return " ".join(f"{each.option} {each.reason}" for each in of(name, mpi=mpi).launch)

    assert "--mpi mvapich MVAPICH2 sends over InfiniBand verbs" in advice(name, "mvapich2")
    assert "verbs" not in advice(name, "mvapich")
    assert "verbs" not in advice("azure-hbv4", "mvapich2")


def test_there_is_no_nvlink_to_check_without_gpus():
    assert "there is no NVLink to check" in " ".join(of("azure-hbv4", goal="nvlink-check").cannot_tell)


def test_an_mpi_that_is_none_is_refused():
    with pytest.raises(InputError, match="no MPI that is known"):
        of("azure-hbv4", mpi="lam")


def test_the_mpis_are_those_that_a_launch_line_knows():
    assert set(MPIS) == set(OF_LAUNCH)


def test_what_is_published_names_variables_sources_and_mpis_that_are_known():
    for each in published_for_mpi():
        assert each.name in variables(), each.name
        assert set(each.mpi) <= set(MPIS), each.name
        assert set(each.source) <= set(advice_sources()), each.name
        assert (each.need is None) != (each.left is None), each.name
        assert each.checked


def test_every_setting_that_is_recommended_is_a_known_variable():
    for platform in (*CPU_ONLY, "isambard-ai-phase2", "aws-p5", "gcp-a3-mega", "oci-bm-gpu-h100-8"):
        for mpi in MPIS:
            for each in of(platform, mpi=mpi).settings:
                assert each.name in variables(), (platform, mpi, each.name)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mlx5_ib0", ("mlx5_ib0",)),
        ("mlx5_0, mlx5_3..5", ("mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5")),
        ("rdmap79s0 to rdmap201s0, four for each GPU", ()),
        ("mlx5_9..3", ()),
        ("mlx5_0..9999", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_devices_are_read_where_they_are_names(text: str | None, names: tuple[str, ...]):
    assert device_names(text) == names


@pytest.mark.parametrize("platform", ["nvidia-dgx-a100", "nvidia-dgx-b200", "gcp-a3-ultra"])
@pytest.mark.parametrize("mpi", ["hpcx", "open-mpi-4", "open-mpi-5"])
def test_a_network_whose_devices_have_no_known_names_is_used_over_ucx_or_the_job_says_so(platform: str, mpi: str):
    found = of(platform, mpi=mpi)

    assert setting(found, "OMPI_MCA_pml").value == "ucx"
    assert setting(found, "OMPI_MCA_pml").source == ("platform-facts",)
    assert not any(each.name == "UCX_NET_DEVICES" for each in found.settings)
