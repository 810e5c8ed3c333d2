"""Runs with what is recommended on their platform: what is set, what stays as it was, and who is told of it."""

import json

from .harness import BRIEF, NcclBusbw, assert_refused

ONE = ("all_reduce", "-b", "1K", "-e", "1M", "-f", "1024", "--ranks", 2, "--time-limit", 3, *BRIEF)
H100 = ("--platform", "azure-nd-h100-v5")
# Recommended there for any job over NCCL.
AFFINITY, TOPOLOGY, DEVICE_ORDER = "NCCL_IGNORE_CPU_AFFINITY", "NCCL_TOPO_FILE", "CUDA_DEVICE_ORDER"


def standings(busbw: NcclBusbw) -> dict[str, str]:
    layer = busbw.run_of().plan.recommended
    assert layer is not None
    return {each.setting.name: each.standing for each in layer.settings}


def test_a_goal_sets_what_is_recommended_and_says_what_it_could_not_set(busbw: NcclBusbw):
    result = busbw.nccl(*ONE, "--goal", "nic-check", *H100)

    assert result.code in {0, 1, 4}, result
    ranks = [dict(each.gpu.environment) for each in busbw.run_of().ranks if each.gpu is not None]
    assert [(each["NCCL_P2P_DISABLE"], each["NCCL_SHM_DISABLE"], each["NCCL_NVLS_ENABLE"]) for each in ranks] == [
        ("1", "1", "0")
    ] * 2
    assert all(TOPOLOGY not in each for each in ranks)
    found = standings(busbw)
    assert (found["NCCL_P2P_DISABLE"], found[DEVICE_ORDER], found[TOPOLOGY]) == ("applied", "applied", "left_out")
    assert "recommended for azure-nd-h100-v5, goal nic-check (1 node, all_reduce, NCCL 2.28.9): " in result.out
    assert '  applied: NCCL_P2P_DISABLE = "1"  No traffic from GPU to GPU, over NVLink or PCIe' in result.out
    assert "  not applied: NCCL_TOPO_FILE" in result.out
    page = busbw.runs / "page.html"
    assert busbw("report", busbw.directory(), "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "What became of the recommended settings" in text
    assert "busbw run, as recommended" in text
    assert "nothing is at /opt/microsoft/ndv5/topo.xml on the planning host" in result.out


def test_what_the_environment_sets_stays_and_is_told(busbw: NcclBusbw):
    result = busbw.nccl(*ONE, "--recommended", *H100, env={AFFINITY: "0", DEVICE_ORDER: "PCI_BUS_ID"})

    assert result.code in {0, 1, 4}, result
    found = standings(busbw)
    assert (found[AFFINITY], found[DEVICE_ORDER]) == ("kept", "already")
    first = busbw.run_of().ranks[0].gpu
    assert first is not None
    assert dict(first.environment)[AFFINITY] == "0"
    assert '  kept as set here: NCCL_IGNORE_CPU_AFFINITY = "1"  "0" of the environment of this host stays' in result.out

    explained = busbw("env", "explain", AFFINITY, "--run", busbw.directory())
    assert '"0"  environment' in explained.out
    assert "recommended for azure-nd-h100-v5, goal bandwidth" in explained.out


def test_env_explain_names_the_recommendation_that_set_a_variable(busbw: NcclBusbw):
    busbw.nccl(*ONE, "--goal", "nic-check", *H100)

    explained = busbw("env", "explain", "NCCL_P2P_DISABLE", "--run", busbw.directory())
    assert '"1"  set by busbw run: recommended for azure-nd-h100-v5, goal nic-check (interconnect-article)' in (
        explained.out
    )
    other = busbw("env", "explain", "NCCL_PROTO", "--run", busbw.directory())
    assert "recommended for" not in other.out


def test_a_platform_that_nobody_can_tell_is_an_error(busbw: NcclBusbw):
    assert_refused(busbw.nccl(*ONE, "--goal", "latency"), "which platform this is cannot be told", "--platform ID")
    assert_refused(busbw.nccl(*ONE, "--goal", "latency", "--recommended", *H100), "--goal and --recommended")


def test_a_comparison_shows_what_one_side_was_given_and_what_seeks_the_setting_that_matters(busbw: NcclBusbw):
    sides = ("--set", "default", "--set", "recommended")
    libraries = ("--backend", "nccl", "--launcher", "processes", *busbw.libraries())
    result = busbw("compare", *ONE, *H100, *libraries, *sides, "--blocks", 1, "--seed", 1, "--out", "it", "--json")

    assert result.code in {1, 4}, result
    found = json.loads(result.out)
    plain, given = found["sides"]
    assert plain["recommended"] is None
    assert given["recommended"]["goal"] == "bandwidth"
    applied = [each["setting"]["name"] for each in given["recommended"]["settings"] if each["standing"] == "applied"]
    assert {AFFINITY, DEVICE_ORDER} <= set(applied)
    # One launch of each claims nothing, and there is nothing to seek.
    assert found["next_steps"] == []


def test_the_pinning_study_takes_registered_buffers_and_says_where_ranks_sat(busbw: NcclBusbw):
    sides = ("--set", "--bind-to default", "--set", "--bind-to masks --cpus 0 --cpus 0")
    libraries = ("--backend", "nccl", "--launcher", "mpirun", *busbw.libraries())
    shared = ("-R", 1, "--blocks", 1, "--seed", 1, "--out", "it")
    result = busbw("compare", *ONE, *libraries, *shared, *sides, "--json")

    assert result.code in {1, 4}, result
    default, masks = json.loads(result.out)["sides"]
    assert [place["cpus"] for place in masks["rank_placements"]] == [[0], [0]]
    assert [place["cpus"] for place in default["rank_placements"]] != [[0], [0]]
    plans = [json.loads(path.read_text(encoding="utf-8")) for path in busbw.folder.glob("**/plan.json")]
    assert [plan["gpu_setup"]["buffers"] for plan in plans] == ["registered", "registered"]
    assert {plan["placement"]["binding"] for plan in plans} == {"default", "masks"}
