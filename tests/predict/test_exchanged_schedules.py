"""Schedules of other programs: ours written out and read again, MSCCL's timed as ours, and what cannot be refused."""

import json
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.base.errors import InputError
from busbw.predict.imported import imported_schedule, timed_import
from busbw.predict.schedules.chakra import chakra_texts
from busbw.predict.schedules.goal import goal_text, program_of_goal
from busbw.predict.schedules.msccl import algorithm_of_msccl
from busbw.predict.schedules.programs import MOST_ACTS, WrittenSchedule, described, written_out
from busbw.predict.schedules.rings import ring
from busbw.predict.schedules.timing import time_events, time_steps
from busbw.predict.tiers import ScheduleTier, lane_of, schedule_of, simulated

from .test_closed import machine
from .test_schedules import RATES, made

TIERS: tuple[ScheduleTier, ...] = ("steps", "events")


def ring_xml(gpus: int, head: str = 'proto="Simple" coll="allreduce"') -> str:
    """Return a ring of all_reduce in one thread block a GPU, chunk r - s in step s."""
    lines = [f'<algo name="ring" {head} nchannels="1" nchunksperloop="{gpus}" ngpus="{gpus}" inplace="1">']
    kinds = ["s", *["rrs"] * (gpus - 2), "rrcs", *["rcs"] * (gpus - 2), "r"]
    for gpu in range(gpus):
        lines.append(f'<gpu id="{gpu}" i_chunks="{gpus}" o_chunks="0" s_chunks="0">')
        lines.append(f'<tb id="0" send="{(gpu + 1) % gpus}" recv="{(gpu - 1) % gpus}" chan="0">')
        for step, kind in enumerate(kinds):
            place = f'srcbuf="i" srcoff="{(gpu - step) % gpus}" dstbuf="i" dstoff="{(gpu - step) % gpus}" cnt="1"'
            lines.append(f'<step s="{step}" type="{kind}" {place} depid="-1" deps="-1" hasdep="0"/>')
        lines.append("</tb></gpu>")
    return "\n".join([*lines, "</algo>"])


@pytest.mark.parametrize(
    ("name", "nodes", "collective", "algorithm", "size_bytes"),
    [
        ("azure-nd-h100-v5", 1, "all_reduce", "ring", 2**24),
        ("azure-nd-h100-v5", 2, "all_reduce", "ring", 2**27),
        ("aws-p5", 3, "all_gather", "ring", 3 * 2**24),
    ],
)
def test_a_ring_that_is_written_in_goal_and_read_again_takes_the_same_time(
    name: str, nodes: int, collective: str, algorithm: str, size_bytes: int
) -> None:
    call = {"nodes": nodes, "collective": collective, "algorithm": algorithm, "size_bytes": size_bytes}
    rates = lane_of(machine(name), **call).rates
    text = goal_text(written_out(schedule_of(machine(name), **call), rates), "a ring")
    again = imported_schedule(text.encode(), "ring.goal")
    own, told = (
        simulated(machine(name), **call, tier="steps"),
        timed_import(machine(name), again, **call, tier="steps"),
    )
    assert told.time_s == pytest.approx(own.time_s, rel=1e-12)
    # By events lanes meet at the links of GPUs, of which each has its part in ours: it is no slower.
    events = timed_import(machine(name), again, **call, tier="events")
    assert events.time_s <= own.time_s * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["tree", "nvlstree", "two-level", "alltoall", "broadcast"])
def test_any_schedule_that_is_written_moves_its_bytes_and_can_be_read(kind: str) -> None:
    schedule = made(kind, 4, 2, 2**20, chunks=4)
    program = written_out(schedule, RATES)
    again = program_of_goal(goal_text(program, kind).encode(), "it.goal")
    assert again.count == program.count
    between = sum(
        act.amount
        for rank, acts in enumerate(again.acts)
        for act in acts
        if act.what == "send" and act.amount > 1 and act.peer // 2 != rank // 2
    )
    sent = sum(
        work.part_bytes * schedule.rounds * schedule.lanes
        for work in schedule.works
        for rank in work.ranks
        if work.via_of(rank).link == "nic"
    )
    assert between == sent
    own_s = time_steps(schedule, RATES).time_s
    read = described(again, gpus=2, ranks_of_nic=1, algorithm="GOAL", collective="all_reduce")
    # Signals stand for slots, and shares are those at one depth: about the same.
    assert time_events(read, RATES).time_s == pytest.approx(own_s, rel=0.5)


def test_an_msccl_ring_takes_what_ours_does_while_a_chunk_is_one_loop() -> None:
    read = imported_schedule(ring_xml(8).encode(), "ring.xml")
    platform = machine("azure-nd-h100-v5")
    for size_bytes in (2**16, 2**23, 2**28):
        call = {"nodes": 1, "collective": "all_reduce", "algorithm": "ring", "size_bytes": size_bytes}
        for tier in TIERS:
            own = simulated(platform, **call, tier=tier).time_s
            told = timed_import(platform, read, **call, tier=tier).time_s
            if size_bytes <= 8 * 2**20:
                assert told == pytest.approx(own, rel=1e-9)
            else:
                # Loops do not overlap, so each step of each waits for what arrives; slices of our ring hide that.
                hop_s = lane_of(platform, **call).rates.nvlink_latency_s
                loops = size_bytes // 8 // 2**20
                assert told - own == pytest.approx(14 * (loops - 1) * hop_s + 14 * hop_s, rel=0.1)


def test_flags_of_ll_take_half_of_a_link() -> None:
    simple, low = (
        algorithm_of_msccl(ring_xml(4, f'proto="{name}" coll="allreduce"').encode(), "r.xml")
        for name in ("Simple", "LL")
    )
    assert (simple.wire, low.wire) == (1, 2)
    assert low.of_size(2**20).rounds == 8
    assert simple.of_size(2**20).rounds == 1


def test_chakra_has_a_node_for_each_act_and_its_dependencies() -> None:
    program = written_out(ring("all_reduce", nodes=2, gpus=2, ports=2, size_bytes=2**20), RATES)
    traces = [json.loads(text)["workload_graph"] for text in chakra_texts(program)]
    assert [len(nodes) for nodes in traces] == [len(acts) for acts in program.acts]
    sends = sorted(
        (node["comm_src"], node["comm_dst"], node["comm_tag"], node["comm_size"])
        for nodes in traces for node in nodes if node["NodeType"] == 5
    )  # fmt: skip
    received = sorted(
        (node["comm_src"], node["comm_dst"], node["comm_tag"], node["comm_size"])
        for nodes in traces for node in nodes if node["NodeType"] == 6
    )  # fmt: skip
    assert sends == received
    assert all(other < node["Id"] for nodes in traces for node in nodes for other in node["data_deps"])


HEAD = "num_ranks 2\n"
PAIR = HEAD + "rank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no rank does anything"),
        ("rank 0 {\n", "no schedule in GOAL"),
        (PAIR.replace("to 1", "to 7"), "partner 7, and there are 2"),
        (PAIR.replace("recv 8b", "recv 9b"), "receives 9 of what rank 0 sends as 8"),
        (PAIR.replace("l1: recv 8b from 0 tag 0\n", ""), "does not receive"),
        (PAIR.replace("tag 0\n}\nrank 1", "tag 1\n}\nrank 1"), "does not send"),
        (PAIR.replace("recv 8b from 0", "recv 8b from -1"), "from any rank"),
        (PAIR + "rank 1 {\n}\n", "stands there twice"),
        (PAIR + "rank 2 {\n}\n", "not one of 2"),
        (PAIR[:-2], "has no end"),
        (PAIR.replace("send 8b", "send ٣b"), "plain ASCII"),
        (PAIR.replace("send 8b", f"send {'9' * 17}b"), "in one act"),
        (PAIR.replace("8b to 1 tag 0\n", "8b to 1 tag 0\nl1 requires l9\n"), "no act l9"),
        (
            HEAD + "rank 0 {\na: send 1b to 1\nb: recv 1b from 1\na requires b\n}\n"
            "rank 1 {\na: send 1b to 0\nb: recv 1b from 0\na requires b\n}\n",
            "a deadlock",
        ),
        (HEAD + "rank 0 {\n" + "calc 1\n" * (MOST_ACTS + 1) + "}\n", "more than"),
        (f"num_ranks {'9' * 9}\n", "no schedule in GOAL"),
    ],
)  # fmt: skip
def test_goal_that_cannot_be_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        described(program_of_goal(text.encode(), "it.goal"), gpus=1, ranks_of_nic=1, algorithm="", collective="")
    assert len(str(refused.value).splitlines()) <= 4


XML = ring_xml(4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<algo", "no whole XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + XML, "document type or entities"),
        (XML.replace("<gpu", "<node", 1), "not what MSCCL writes"),
        (XML.replace('ngpus="4"', 'ngpus="5"'), "lacks GPU 4"),
        (XML.replace('ngpus="4"', 'ngpus="007777777"'), "ngpus is"),
        (XML.replace('send="1"', 'send="9"'), "partner 9 of 4"),
        (XML.replace('send="1"', 'send="-1"', 1), "without a partner"),
        (XML.replace('id="3"', 'id="2"'), "a second GPU 2"),
        (XML.replace('type="rrs"', 'type="xyz"', 1), "type 'xyz'"),
        (XML.replace('<step s="1"', '<step s="2"', 1), "stands at place 1"),
        (XML.replace('cnt="1"', 'cnt="5"', 1), "5 chunks of 4"),
        (XML.replace('cnt="1"', 'cnt="2"', 1), "of what rank"),
        (XML.replace('depid="-1" deps="-1"', 'depid="0" deps="99"', 1), "which it does not have"),
        (XML.replace('depid="-1" deps="-1"', 'depid="0" deps="2"', 1), "a deadlock"),
        (XML.replace("allreduce", "custom"), "collective is 'custom'"),
        (XML.replace("<tb", "words<tb", 1), "between elements"),
    ],
)
def test_msccl_that_cannot_be_is_refused_in_words(text: str, words: str) -> None:
    def read() -> None:
        program = algorithm_of_msccl(text.encode(), "it.xml").program
        described(program, gpus=1, ranks_of_nic=1, algorithm="", collective="")

    with pytest.raises(InputError, match=words) as refused:
        read()
    assert len(str(refused.value).splitlines()) <= 4


def test_what_moves_too_little_or_has_other_ranks_is_refused() -> None:
    platform = machine("azure-nd-h100-v5")
    pair: dict[str, int | str] = {"nodes": 1, "collective": "all_reduce", "algorithm": "ring"}
    with pytest.raises(InputError, match="the schedule has 4 ranks"):
        timed_import(platform, imported_schedule(XML.encode(), "r.xml"), **pair, size_bytes=2**20, tier="steps")  # type: ignore[arg-type]
    eight = WrittenSchedule(acts=tuple(described_ring(8)))
    text = goal_text(eight, "").encode()
    with pytest.raises(InputError, match="must bring it"):
        timed_import(platform, imported_schedule(text, "r.goal"), **pair, size_bytes=2**30, tier="steps")  # type: ignore[arg-type]


def described_ring(gpus: int) -> tuple[list[object], ...]:
    """Return the acts of a ring of 1 MiB."""
    return written_out(ring("all_reduce", nodes=1, gpus=gpus, ports=1, size_bytes=2**20), RATES).acts  # type: ignore[return-value]


def test_too_large_a_schedule_is_not_written() -> None:
    with pytest.raises(InputError, match="are written at most"):
        written_out(ring("all_reduce", nodes=64, gpus=8, ports=8, size_bytes=2**30), RATES)


def test_the_command_writes_a_schedule_and_times_it(tmp_path: Path) -> None:
    asked = ("all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "2", "--size", "16M")
    written = warm_busbw(
        "predict", *asked, "--algorithm", "ring", "--tier", "steps", "--json", "--schedule-out", "r.goal", cwd=tmp_path
    )
    own = json.loads(written.stdout)["rows"][0]["simulated"]["time_s"]
    timed = json.loads(warm_busbw("predict", *asked, "--schedule", "r.goal", "--json", cwd=tmp_path).stdout)
    assert timed["rows"][0]["timed"]["time_s"] == pytest.approx(own, rel=1e-12)
    assert (
        warm_busbw("predict", *asked, "--algorithm", "ring", "--schedule-out", "r.chakra", cwd=tmp_path).returncode == 0
    )
    assert len(list((tmp_path / "r.chakra").iterdir())) == 16
    for wrong in (("--schedule", "missing.goal"), ("--schedule-out", "r.txt"), ("--schedule-out", "r.chakra")):
        refused = warm_busbw("predict", *asked, *wrong, cwd=tmp_path)
        assert refused.returncode == 2
        assert len(refused.stderr.splitlines()) <= 4
