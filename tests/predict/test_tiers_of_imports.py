"""Schedules that others wrote, in GOAL and in MSCCL's XML, drawn at random: what holds for ours holds for them."""

from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.limits.ceiling import ceiling
from busbw.predict.imported import imported_schedule, timed_import
from busbw.predict.schedules.description import Schedule, loads_of
from busbw.predict.schedules.goal import program_of_goal
from busbw.predict.schedules.msccl import algorithm_of_msccl
from busbw.predict.schedules.programs import described
from busbw.predict.schedules.timing import LaneRates, busiest_s, time_events, time_steps
from busbw.predict.tiers import ScheduleTier

from .test_closed import machine
from .test_exchanged_schedules import ring_xml
from .test_schedules import RATES

FEW = settings(max_examples=20, deadline=None, derandomize=True)
ALMOST = 1e-9
NO_LATENCY = LaneRates(nic_Bps=50e9, nvlink_Bps=450e9)
FASTER = LaneRates(nic_Bps=80e9, nvlink_Bps=700e9, nic_latency_s=4e-6, nvlink_latency_s=1e-6)

# From, to, bytes, and how many of the acts before it at the sender it waits for.
Message = tuple[int, int, int, int]


def goal_of(ranks: int, messages: list[Message], times: int = 1) -> bytes:
    """Return messages that are sent one after another as each sender is ready; some calculate first."""
    acts: list[list[str]] = [[] for _ in range(ranks)]
    counts = [0] * ranks

    def act(rank: int, what: str, waits: int = 0) -> None:
        counts[rank] += 1
        own = counts[rank]
        acts[rank].append(f"l{own}: {what}")
        acts[rank] += [f"l{own} requires l{other}" for other in range(max(1, own - waits), own)]

    for number, (sender, receiver, size, waits) in enumerate(messages):
        if waits > 1:
            act(sender, f"calc {100 * waits}")
        act(sender, f"send {times * size}b to {receiver} tag {number}", waits)
        act(receiver, f"recv {times * size}b from {sender} tag {number}")
    rows = [line for rank in range(ranks) for line in (f"rank {rank} {{", *acts[rank], "}")]
    return "\n".join([f"num_ranks {ranks}", *rows]).encode()


def read_goal(raw: bytes, gpus: int = 1) -> Schedule:
    return described(
        program_of_goal(raw, "it.goal"), gpus=gpus, ranks_of_nic=1, algorithm="GOAL", collective="all_reduce"
    )


def read_msccl(raw: bytes, size_bytes: int, gpus: int | None = None) -> Schedule:
    """Return the schedule on nodes of so many GPUs; None: on one node."""
    found = algorithm_of_msccl(raw, "it.xml")
    return described(
        found.of_size(size_bytes), gpus=gpus or len(found.program.acts), ranks_of_nic=1, algorithm="MSCCL",
        collective="all_reduce", wire=found.wire,
    )  # fmt: skip


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[int, list[Message]]:
    """Return ranks, and messages of which each may wait for what arrived before it."""
    ranks = draw(st.integers(2, 6)) * 2
    messages = []
    for _ in range(draw(st.integers(1, 20))):
        sender = draw(st.integers(0, ranks - 1))
        receiver = (sender + draw(st.integers(1, ranks - 1))) % ranks
        messages.append((sender, receiver, draw(st.integers(2, 2**24)), draw(st.integers(0, 4))))
    return ranks, messages


@st.composite
def relays(draw: st.DrawFn) -> tuple[int, list[Message]]:
    """Return ranks, and messages that one rank after another passes on: none shares a link with another one."""
    order = draw(st.permutations(range(draw(st.integers(2, 9)))))
    size, rounds = draw(st.integers(2, 2**24)), draw(st.integers(1, 3))
    hops = list(zip(order, (*order[1:], order[0]), strict=True)) * rounds
    return len(order), [(sender, receiver, size, 99) for sender, receiver in hops]


def chain_xml(order: list[int], chunks: int) -> bytes:
    """Return a chain in which each GPU copies chunk after chunk and sends it on."""
    lines = ['<algo name="chain" proto="Simple" coll="broadcast" nchannels="1" ']
    lines[0] += f'nchunksperloop="{chunks}" ngpus="{len(order)}" inplace="1">'
    for gpu in range(len(order)):
        at = order.index(gpu)
        before, after = (order[at - 1] if at else -1), (order[at + 1] if at + 1 < len(order) else -1)
        kind = "s" if before < 0 else "r" if after < 0 else "rcs"
        lines.append(f'<gpu id="{gpu}" i_chunks="{chunks}" o_chunks="0" s_chunks="0">')
        lines.append(f'<tb id="0" send="{after}" recv="{before}" chan="0">')
        for chunk in range(chunks):
            place = f'srcbuf="i" srcoff="{chunk}" dstbuf="i" dstoff="{chunk}" cnt="1"'
            lines.append(f'<step s="{chunk}" type="{kind}" {place} depid="-1" deps="-1" hasdep="0"/>')
        lines.append("</tb></gpu>")
    return "\n".join([*lines, "</algo>"]).encode()


@FEW
@given(drawn=exchanges(), gpus=st.sampled_from((1, 2)))
def test_bytes_of_goal_arrive_where_they_are_sent(drawn: tuple[int, list[Message]], gpus: int) -> None:
    ranks, messages = drawn
    loads = loads_of(read_goal(goal_of(ranks, messages), gpus))
    for side, end in ((loads.sent, 0), (loads.received, 1)):
        wanted: Counter[tuple[int, str]] = Counter()
        for message in messages:
            link = "nvlink" if message[0] // gpus == message[1] // gpus else "nic"
            wanted[message[end], link] += message[2]
        assert {place: moved for place, moved in side.items() if moved} == dict(wanted)


@FEW
@given(drawn=exchanges(), gpus=st.sampled_from((1, 2)), times=st.integers(1, 5))
def test_a_random_exchange_folds_exactly_and_rises_with_size_and_falls_with_rates(
    drawn: tuple[int, list[Message]], gpus: int, times: int
) -> None:
    ranks, messages = drawn
    read = read_goal(goal_of(ranks, messages), gpus)
    steps = time_steps(read, RATES)
    assert steps.time_s == time_steps(read, RATES, folds=False).time_s
    assert time_steps(read, FASTER).time_s <= steps.time_s
    assert time_steps(read_goal(goal_of(ranks, messages, times), gpus), RATES).time_s >= steps.time_s
    # No order of works is faster than the busiest link.
    for in_turns in (True, False):
        events = time_events(read, RATES, in_turns=in_turns, skips=False)
        assert events.time_s >= busiest_s(read, RATES) * (1 - ALMOST)


@FEW
@given(drawn=relays(), gpus=st.integers(1, 2))
def test_where_no_link_is_shared_events_of_goal_are_its_steps(drawn: tuple[int, list[Message]], gpus: int) -> None:
    ranks, messages = drawn
    read = read_goal(goal_of(ranks, messages), gpus if ranks % 2 == 0 else 1)
    steps_s = time_steps(read, RATES).time_s
    for in_turns in (True, False):
        events = time_events(read, RATES, in_turns=in_turns)
        assert abs(events.time_s - steps_s) <= ALMOST * steps_s


@settings(max_examples=4, deadline=None, derandomize=True)
@given(ranks=st.one_of(st.integers(2, 1024), st.just(1024)), ahead=st.integers(1, 3))
def test_nothing_of_goal_waits_for_itself_on_any_number_of_ranks(ranks: int, ahead: int) -> None:
    hops = [(rank, (rank + ahead) % ranks, 2**16, 2) for _ in range(3) for rank in range(ranks)]
    hops = [hop for hop in hops if hop[0] != hop[1]] or [(0, 1, 2**16, 0)]
    read = read_goal(goal_of(ranks, hops))
    assert time_events(read, RATES).time_s >= time_steps(read, NO_LATENCY).time_s * (1 - ALMOST)


@FEW
@given(gpus=st.integers(3, 12), size_bytes=st.integers(2**10, 2**34), more=st.integers(1, 4))
def test_an_msccl_ring_moves_its_bytes_folds_exactly_and_rises_with_size(gpus: int, size_bytes: int, more: int) -> None:
    xml = ring_xml(gpus).encode()
    read = read_msccl(xml, size_bytes)
    loads, each = loads_of(read), Fraction(2 * (gpus - 1) * size_bytes, gpus)
    assert {moved for moved in loads.sent.values() if moved} == {each}
    assert {moved for moved in loads.received.values() if moved} == {each}
    steps, whole = time_steps(read, RATES), time_steps(read, RATES, folds=False)
    assert abs(steps.time_s - whole.time_s) <= (0 if steps.rounds == whole.rounds else 1e-12) * whole.time_s
    assert time_steps(read, FASTER).time_s <= steps.time_s
    assert time_steps(read_msccl(xml, more * size_bytes), RATES).time_s >= steps.time_s * (1 - 1e-12)
    # All links are in use all the time but for latencies: what is left is the closed form of a ring.
    closed_s = float(each) / NO_LATENCY.nvlink_Bps
    for timed in (time_steps(read, NO_LATENCY), time_events(read, NO_LATENCY)):
        assert abs(timed.time_s / closed_s - 1) < 0.005


@FEW
@given(order=st.integers(2, 12).flatmap(lambda count: st.permutations(range(count))), chunks=st.integers(1, 12))
def test_an_msccl_chain_in_any_order_takes_its_hops_and_its_chunks(order: list[int], chunks: int) -> None:
    read, hops = read_msccl(chain_xml(list(order), chunks), 2**20 * chunks), len(order) - 1
    assert sum(loads_of(read).sent.values()) == 2**20 * chunks * hops
    each_s = 2**20 / RATES.nvlink_Bps
    wanted_s = (hops + chunks - 1) * each_s + (hops - 1) * RATES.nvlink_latency_s
    steps = time_steps(read, RATES)
    assert steps.time_s == time_steps(read, RATES, folds=False).time_s
    events_s = time_events(read, RATES).time_s
    assert abs(events_s - steps.time_s) <= ALMOST * events_s
    for found_s in (steps.time_s, events_s):
        assert wanted_s * (1 - ALMOST) <= found_s <= wanted_s + 2 * RATES.nvlink_latency_s


@settings(max_examples=12, deadline=None, derandomize=True)
@given(nodes=st.integers(2, 5), gpus=st.integers(1, 4), size_bytes=st.integers(2**10, 2**34))
def test_an_msccl_ring_over_nodes_is_by_events_what_it_is_by_steps(nodes: int, gpus: int, size_bytes: int) -> None:
    ranks = nodes * gpus
    read = read_msccl(ring_xml(ranks).encode(), size_bytes, gpus)
    loads, each = loads_of(read), Fraction(2 * (ranks - 1) * size_bytes, ranks)
    # It leaves each node by its last GPU, and comes in to its first.
    for side, place in ((loads.sent, gpus - 1), (loads.received, 0)):
        through = {rank: moved for (rank, link), moved in side.items() if link == "nic" and moved}
        assert through == {node * gpus + place: each for node in range(nodes)}
    steps = time_steps(read, RATES)
    for in_turns in (True, False):
        events = time_events(read, RATES, in_turns=in_turns, skips=False)
        assert abs(events.time_s - steps.time_s) <= ALMOST * steps.time_s
    assert steps.time_s >= busiest_s(read, RATES) * (1 - ALMOST)
    # With one node more it takes longer.
    more = read_msccl(ring_xml(ranks + gpus).encode(), size_bytes, gpus)
    assert time_steps(more, RATES).time_s > steps.time_s


@settings(max_examples=3, deadline=None, derandomize=True)
@given(ranks=st.one_of(st.integers(2, 1024), st.just(1024)))
def test_nothing_of_msccl_waits_for_itself_on_any_number_of_ranks(ranks: int) -> None:
    read = read_msccl(chain_xml(list(range(ranks)), 2), 2**22, 1)
    steps_s = time_steps(read, RATES).time_s
    assert abs(time_events(read, RATES).time_s - steps_s) <= ALMOST * steps_s
    assert steps_s >= (ranks - 1) * RATES.nic_latency_s


@settings(max_examples=8, deadline=None, derandomize=True)
@given(nodes=st.integers(2, 3), power=st.integers(10, 34), tier=st.sampled_from(("steps", "events")))
def test_no_ring_over_nodes_in_goal_or_msccl_is_above_the_bounds(nodes: int, power: int, tier: ScheduleTier) -> None:
    platform, size_bytes = machine("azure-nd-h100-v5", gpus=2), 2**power
    (bound,) = ceiling(platform.rates, nodes=nodes, collective="all_reduce", algorithm="ring").bounds
    hops = [(rank, (rank + 1) % (2 * nodes)) for _ in range(2 * (2 * nodes - 1)) for rank in range(2 * nodes)]
    goal = goal_of(2 * nodes, [(*hop, -(-size_bytes // (2 * nodes)), 1) for hop in hops])
    for text in (ring_xml(2 * nodes).encode(), goal):
        found = timed_import(
            platform, imported_schedule(text, "a file"), nodes=nodes, collective="all_reduce", size_bytes=size_bytes,
            algorithm="ring", tier=tier,
        )  # fmt: skip
        assert 0 < found.busbw_Bps <= (bound.busbw_Bps or 0) * (1 + ALMOST)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(power=st.integers(10, 36), tier=st.sampled_from(("steps", "events")))
def test_no_imported_ring_is_above_the_bounds_of_its_machine(power: int, tier: ScheduleTier) -> None:
    platform, collective = machine("azure-nd-h100-v5"), "all_reduce"
    found = timed_import(
        platform, imported_schedule(ring_xml(8).encode(), "r.xml"), nodes=1, collective=collective,
        size_bytes=2**power, algorithm="ring", tier=tier,
    )  # fmt: skip
    (bound,) = ceiling(platform.rates, nodes=1, collective=collective, algorithm="ring").bounds
    assert found.busbw_Bps <= (bound.busbw_Bps or 0) * (1 + ALMOST)
