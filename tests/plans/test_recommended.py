"""What is recommended for a run, and what becomes of each setting."""

import dataclasses
import datetime as dt
from pathlib import Path

import pytest
from msgspec import structs
from tests.judge.factories import make_host

from busbw.base.errors import InputError
from busbw.env.layers import layers
from busbw.measure.backends import registry
from busbw.measure.backends.backend import Surroundings
from busbw.measure.plan.recommended import recommended_layer
from busbw.model.launch import Allocation, HostSlots
from busbw.model.machine import MpiLibrary
from busbw.model.request import Request
from busbw.model.settings import JobEnvironment, RecommendedLayer, SettingsFile

NCCL, MPI = registry.find("native-nccl"), registry.find("native-mpi")
QPS, AFFINITY, TOPOLOGY = "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IGNORE_CPU_AFFINITY", "NCCL_TOPO_FILE"


def surroundings(hosts: int = 1) -> Surroundings:
    allocation = Allocation(
        kind="host list", hosts=tuple(HostSlots(name=f"n{number}", slots=8) for number in range(hosts)), how="a list"
    )
    return Surroundings(
        host=make_host(),
        mpi=None,
        allocation=allocation if hosts > 1 else None,
        python="/opt/venv/bin/python",
        as_root=False,
        created=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        token="beef",
    )


def layer(
    goal="bandwidth", *, hosts=2, backend=NCCL, platform="azure-nd-h100-v5", environment=None, files=(), **fields
) -> RecommendedLayer:
    found = JobEnvironment(where="this host", environment=environment or {}, files=files, platform=platform)
    return recommended_layer(Request(goal=goal, **fields), surroundings(hosts), backend, found)


def standings(made: RecommendedLayer) -> dict[str, str]:
    return {each.setting.name: each.standing for each in made.settings}


def test_what_nobody_has_set_is_applied_with_reason_and_source():
    made = layer()

    assert (made.platform, made.goal, made.nodes) == ("azure-nd-h100-v5", "bandwidth", 2)
    assert made.env()[QPS] == "4"
    (qps,) = [each for each in made.settings if each.setting.name == QPS]
    assert qps.setting.source.startswith("recommended for azure-nd-h100-v5, goal bandwidth (pinning-article")
    assert qps.setting.reason == "A slight gain for collectives; the default is 1."


def test_what_the_environment_or_a_settings_file_says_stays():
    conf = SettingsFile(path="/etc/nccl.conf", layer="etc_conf", text=f"{AFFINITY}=0\nNCCL_SOCKET_IFNAME=eth0\n")
    made = layer(environment={QPS: "1"}, files=(conf,))

    found = standings(made)
    assert (found[QPS], found[AFFINITY], found["NCCL_SOCKET_IFNAME"]) == ("kept", "kept", "already")
    assert not {QPS, AFFINITY, "NCCL_SOCKET_IFNAME"} & set(made.env())
    (own,) = [each.over for each in made.settings if each.setting.name == AFFINITY]
    assert own is not None
    assert (own.value, own.source) == ("0", "/etc/nccl.conf:1")


def test_a_file_that_is_not_there_is_told_and_one_that_is_there_applied(tmp_path: Path, monkeypatch):
    (missing,) = [each for each in layer().settings if each.setting.name == TOPOLOGY]
    assert (missing.standing, missing.why) == (
        "left_out",
        "nothing is at /opt/microsoft/ndv5/topo.xml on the planning host",
    )

    topology = tmp_path / "topo.xml"
    topology.write_text('<system version="1"></system>\n', encoding="utf-8")
    (tmp_path / "ours.toml").write_text(
        'id = "ours"\nnames = ["ours"]\nkind = "gpu"\nextends = ["azure-nd-h100-v5"]\n\n[[settings]]\n'
        f'name = "{TOPOLOGY}"\nvalue = "{topology}"\nscope = "nccl"\nreason = "ours"\n'
        'source = ["az-cust"]\nchecked = "2026-11"\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("BUSBW_DATA", str(tmp_path))
    assert layer(platform="ours").env()[TOPOLOGY] == str(topology)


def test_a_run_over_mpi_is_not_given_what_nccl_reads_nor_what_only_starts_its_jobs():
    made = layer(backend=MPI)

    found = standings(made)
    assert found[QPS] == "left_out"
    assert found["UCX_NET_DEVICES"] == "left_out"
    assert found["CUDA_DEVICE_ORDER"] == "left_out"
    assert made.env() == {}


def test_buffers_on_gpus_take_what_orders_gpus():
    assert layer(backend=registry.find("osu"), gpu_buffers=True).env() == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_one_collective_that_is_measured_is_what_it_is_recommended_for():
    assert layer(collectives=("all_reduce",)).collective == "all_reduce"
    assert layer(suite="six").collective is None
    assert layer(collectives=("all_reduce", "alltoall")).collective is None


def test_a_check_is_of_one_node():
    assert layer("nic-check", hosts=1).env()["NCCL_P2P_DISABLE"] == "1"
    with pytest.raises(InputError, match="a check is of one node, and these are 2"):
        layer("nic-check", hosts=2)


@pytest.mark.parametrize("goal", ["nic-check", "nvlink-check"])
def test_a_check_of_gpus_is_no_run_over_mpi(goal):
    with pytest.raises(InputError, match="and this run measures MPI"):
        layer(goal, hosts=1, backend=MPI)


def test_without_a_platform_nothing_can_be_recommended():
    with pytest.raises(InputError, match="which platform this is cannot be told") as raised:
        layer(platform=None)
    assert "--platform ID" in (raised.value.hint or "")


def test_the_layer_lies_between_a_plug_in_and_what_somebody_wrote():
    made = layer(environment={QPS: "1"})
    run = JobEnvironment(
        where="run R", environment={QPS: "1"} | made.env(), recommended=made.settings, platform="azure-nd-h100-v5"
    )
    settings = layers(run)

    assert [(each.layer, each.value) for each in settings.explain(QPS)] == [("shell", "1"), ("recommended", "4")]
    assert [(each.layer, each.value) for each in settings.explain(AFFINITY)] == [("recommended", "1")]
    # Somebody set it to another value after all: that is what the ranks had.
    other = structs.replace(run, environment=run.environment | {AFFINITY: "0"})
    assert [each.layer for each in layers(other).explain(AFFINITY)] == ["shell", "recommended"]


def test_a_run_over_mpi_is_given_what_is_recommended_for_its_mpi():
    mpi = MpiLibrary(
        family="MVAPICH", version="2.3.7", mpirun="/opt/m/bin/mpirun", library="/opt/m/lib/libmpi.so", origin="site"
    )
    found = JobEnvironment(where="this host", environment={}, platform="azure-hbv4")
    made = recommended_layer(Request(goal="latency"), dataclasses.replace(surroundings(2), mpi=mpi), MPI, found)

    assert made.env()["MV2_IBA_HCA"] == "mlx5_ib0"
    assert standings(made)["MV2_CPU_BINDING_POLICY"] == "left_out"
