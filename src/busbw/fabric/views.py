"""The figures of a swept fabric as values: matrix, histogram, bars, the fabric itself, the tests of its suspects.

A loss is the share of its speed that something lacks against sound pairs of as many hops in the same round: 0.1 is
10 % slower, below 0 is faster. Every view is of bounded size: what is sound is aggregated, suspects stand alone.
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from busbw.base.value import Integer, Value
from busbw.fabric.bands import LatencyBand, band_of
from busbw.fabric.blocks import ViewBlock, ViewBlocks, blocks_of, groups_above, leaf_blocks, node_blocks
from busbw.fabric.inference import LEAST_EFFECT, Fit
from busbw.fabric.named_parts import NamedParts, parts_of
from busbw.fabric.pair_table import table_of
from busbw.fabric.places import ONE_WAY, PairTest, Places
from busbw.fabric.procedure import Swept
from busbw.stats.distributions import median

# Of a matrix that is shown, besides the suspects' own; of a grid; of leaves that are drawn.
_MOST_ROWS = 32
_MOST_RAILS = 16
# Bars: all where there are so few, else the slowest and some of the fastest.
_ALL_BARS = 16
_SLOWEST, _FASTEST = 10, 3
_BINS = 24
_LOG_BIN = 0.002
# Bins are laid over the middle of the tests; beyond, the first and the last are open.
_OUTER = 0.005
_MOST_DETAILS = 6
_MOST_PARTNERS = 12
_MOST_TESTS = 40
_MOST_HOSTS = 256
_MOST_LINKS = 8
_LEAST_OF_A_LINK = 4
# Of larger sweeps one of every two, three ... tests is read, besides those of suspects.
_MOST_READ = 1_000_000


class ViewLine(Value, kw_only=True, frozen=True):
    """A row, or a box of a drawing: an endpoint, a leaf, or a run of them."""

    name: str
    endpoints: Integer
    suspect: bool = False


class FabricMatrix(Value, kw_only=True, frozen=True):
    """Sender by receiver: of each cell the median loss, the largest, and how many tests; None: no test."""

    lines: tuple[ViewLine, ...]
    typical: tuple[tuple[float | None, ...], ...]
    worst: tuple[tuple[float | None, ...], ...]
    tests: tuple[tuple[Integer, ...], ...]
    # Tests without an answer.
    silent: tuple[tuple[Integer, ...], ...] = ()


class SuspectDetail(Value, kw_only=True, frozen=True):
    """A suspect among its neighbours and partners, one by one."""

    place: str
    matrix: FabricMatrix
    # What each of them loses in tests that no answer is about; None: there is none.
    others: tuple[float | None, ...]


class HistogramBin(Value, kw_only=True, frozen=True):
    """Tests from `low` up to `high`; None: there is no end. `suspects`: those of what is suspected."""

    low: float | None
    high: float | None
    tests: Integer
    suspects: Integer = 0
    # Of latencies, the number of the band.
    band: Integer | None = None


class FabricBar(Value, kw_only=True, frozen=True):
    """What an endpoint, rail or leaf loses, sending and receiving.

    Of an endpoint as the model has it; of a rail, and of the tests that leave and enter a leaf, their median.
    """

    name: str
    # None: no test in this direction.
    sending: float | None
    receiving: float | None
    tests: Integer
    # The share of its tests that lose 5 % or more.
    slow: float
    suspect: bool = False

    @property
    def loss(self) -> float:
        """The worse direction."""
        return max(self.sending or 0.0, self.receiving or 0.0)


class RailGrid(Value, kw_only=True, frozen=True):
    """Nodes by rails: the median loss of the NICs of a cell, in its worse direction; None: no test."""

    rails: tuple[ViewLine, ...]
    lines: tuple[ViewLine, ...]
    cells: tuple[tuple[float | None, ...], ...]
    # Whether something in the cell is suspected.
    suspects: tuple[tuple[bool, ...], ...]


class HostSpot(Value, kw_only=True, frozen=True):
    """An endpoint below its leaf, and what it loses in its worse direction."""

    name: str
    loss: float
    suspect: bool = False


class LeafBox(Value, kw_only=True, frozen=True):
    """A leaf, or several that are sound alike. `group`: the number of its group of leaves; None: no leaf is known."""

    name: str
    group: Integer | None
    leaves: Integer
    endpoints: Integer
    # Median loss of tests that leave it, enter it, and stay in it; None: no test.
    leaving: float | None
    entering: float | None
    inside: float | None
    # Itself or its links, not only a host below it.
    suspect: bool = False
    # All of them, or the suspects alone, where they are many.
    hosts: tuple[HostSpot, ...] = ()


class LeafLink(Value, kw_only=True, frozen=True):
    """All ways between two boxes, by their numbers, where they are slow."""

    one: Integer
    other: Integer
    loss: float
    tests: Integer
    suspect: bool = False


class FabricTree(Value, kw_only=True, frozen=True):
    """Groups of leaves, leaves, hosts, and links between leaves that lose something."""

    # What leaves stand under: groups of leaves, rails; one without a name: all under one.
    groups: tuple[str, ...]
    boxes: tuple[LeafBox, ...]
    links: tuple[LeafLink, ...] = ()


class SuspectTest(Value, kw_only=True, frozen=True):
    """One test of a suspect. Values in the unit of the report; None: no answer."""

    place: str
    sender: str
    receiver: str
    value: float | None
    loss: float | None
    # From 1.
    round: Integer
    retest: bool = False
    alone: bool = False


class FabricViews(Value, kw_only=True, frozen=True):
    """Everything that is drawn of a swept fabric."""

    # What is suspected, as the verdict names it.
    suspects: tuple[str, ...]
    # One of so many tests is in the figures; 1: all.
    every: Integer
    matrix: FabricMatrix
    details: tuple[SuspectDetail, ...]
    histogram: tuple[HistogramBin, ...]
    nodes: tuple[FabricBar, ...]
    rails: tuple[FabricBar, ...] = ()
    leaves: tuple[FabricBar, ...] = ()
    # None: one NIC a node.
    grid: RailGrid | None = None
    tree: FabricTree
    tests: tuple[SuspectTest, ...] = ()
    # How many tests of suspects there are beside.
    more_tests: Integer = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """A test and by what it is slower, a logarithm; None: no answer. `answer`: the number of that which it is about."""

    test: PairTest
    excess: float | None
    answer: int | None


def views(outcome: Swept) -> FabricViews:
    """Return what is drawn of a sweep."""
    named = parts_of(outcome.answers, outcome.places)
    readings, every = _read(outcome, named)
    blocks = blocks_of(outcome.places, named, _MOST_ROWS)
    has_rails = len(outcome.places.rails) > 1
    tests = _suspect_tests(outcome, readings)
    return FabricViews(
        suspects=tuple(each.place for each in outcome.answers),
        every=every,
        matrix=_matrix(blocks, readings, twoway=outcome.fit.metric not in ONE_WAY),
        details=tuple(_details(outcome, named, readings)),
        histogram=_histogram(readings, outcome),
        nodes=_shown_bars(_endpoint_bars(outcome, named, readings)),
        rails=_shown_bars(_rail_bars(outcome.places, named, readings)) if has_rails else (),
        leaves=_shown_bars(_leaf_bars(outcome, named, readings)),
        grid=_grid(outcome, named) if has_rails else None,
        tree=_tree(outcome, named, readings),
        tests=tuple(tests[:_MOST_TESTS]),
        more_tests=max(0, len(tests) - _MOST_TESTS),
    )


def _read(outcome: Swept, named: NamedParts) -> tuple[tuple[_Reading, ...], int]:
    """Return the tests with their excess: all, or of very many one of some, and those of suspects; and one of how many.

    This is the only place that reads the tests of a sweep for its views.
    """
    fit, places, table = outcome.fit, outcome.places, table_of(outcome.tests)
    every = max(1, len(table) // _MOST_READ)
    numbers: Iterable[int] = range(len(table))
    if every > 1:
        numbers = sorted({*table.spread(every), *table.among(places, named.endpoints)})
    found = _levelled([_reading(table[at], fit.residuals[at], fit, places, named) for at in numbers], places)
    found += [
        _Reading(test=test, excess=None, answer=named.of(test)) for test in map(table.__getitem__, table.unanswered())
    ]
    return tuple(found), every


def _reading(test: PairTest, residual: float, fit: Fit, places: Places, named: NamedParts) -> _Reading:
    excess = None if math.isnan(residual) else residual + _terms(fit, places, test)
    if excess is not None and named.hops and (hops := places.hops(test.sender, test.receiver)) in named.hops:
        assert hops is not None
        excess += fit.hops[hops] - fit.hops[0]
    return _Reading(test=test, excess=excess, answer=named.of(test))


def _levelled(readings: Sequence[_Reading], places: Places) -> list[_Reading]:
    """Hold tests against those of as many hops that no answer is about: of few leaves a bad one moves the level."""
    sound: dict[int | None, list[float]] = defaultdict(list)
    for each in readings:
        if each.answer is None and each.excess is not None:
            sound[places.hops(each.test.sender, each.test.receiver)].append(each.excess)
    levels = {hops: median(sorted(held)) for hops, held in sound.items()}
    return [
        replace(each, excess=each.excess - levels.get(places.hops(each.test.sender, each.test.receiver), 0.0))
        for each in readings
        if each.excess is not None
    ]


def _terms(fit: Fit, places: Places, test: PairTest) -> float:
    own = fit.senders[test.sender] + fit.receivers[test.receiver]
    own += fit.rails.get(places.endpoints[test.sender].rail, 0.0)
    one, other = places.leaves[test.sender], places.leaves[test.receiver]
    if one is not None and other is not None and one != other:
        own += fit.leaf_up.get(one, 0.0) + fit.leaf_down.get(other, 0.0)
    return own


def _loss(excess: float) -> float:
    return round(1 - math.exp(-excess), 4)


def _typical(excesses_of: Sequence[float]) -> float | None:
    return _loss(median(sorted(excesses_of))) if excesses_of else None


class _Cells:
    """The excesses of each cell of a square."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.held: dict[tuple[int, int], array[float]] = defaultdict(lambda: array("d"))
        self.silent: Counter[tuple[int, int]] = Counter()

    def put(self, one: int, other: int, excess: float | None) -> None:
        """Take in a test."""
        if excess is None:
            self.silent[one, other] += 1
        else:
            self.held[one, other].append(excess)

    def matrix(self, lines: tuple[ViewLine, ...]) -> FabricMatrix:
        """Return what was taken in."""
        every = range(self.lines)
        held = [[self.held.get((one, other), ()) for other in every] for one in every]
        silent = tuple(tuple(self.silent[one, other] for other in every) for one in every)
        return FabricMatrix(
            lines=lines,
            typical=tuple(tuple(_typical(each) for each in row) for row in held),
            worst=tuple(tuple(_loss(max(each)) if each else None for each in row) for row in held),
            tests=tuple(tuple(len(each) for each in row) for row in held),
            silent=silent if self.silent else (),
        )


def _lines(blocks: Iterable[ViewBlock]) -> tuple[ViewLine, ...]:
    return tuple(ViewLine(name=each.name, endpoints=len(each.members), suspect=each.suspect) for each in blocks)


def _matrix(blocks: ViewBlocks, readings: Iterable[_Reading], *, twoway: bool) -> FabricMatrix:
    cells = _Cells(len(blocks.blocks))
    for each in readings:
        one, other = blocks.of[each.test.sender], blocks.of[each.test.receiver]
        cells.put(one, other, each.excess)
        if twoway and one != other:
            cells.put(other, one, each.excess)
    return cells.matrix(_lines(blocks.blocks))


def _details(outcome: Swept, named: NamedParts, readings: Sequence[_Reading]) -> Iterator[SuspectDetail]:
    """Yield each suspect that is an endpoint or a node among those it was tested with, of its own leaf first."""
    places = outcome.places
    for number, answer in enumerate(outcome.answers[:_MOST_DETAILS]):
        own = named.endpoints_of(number)
        if not own or len(own) > _MOST_PARTNERS:
            continue
        members = [*sorted(own), *_partners(own, places, named, readings)]
        of = {each: at for at, each in enumerate(members)}
        cells = _Cells(len(members))
        others: dict[int, list[float]] = defaultdict(list)
        for each in readings:
            one, other = of.get(each.test.sender), of.get(each.test.receiver)
            for end in (one, other):
                if end is not None and each.answer is None and each.excess is not None:
                    others[end].append(each.excess)
            if one is not None and other is not None:
                cells.put(one, other, each.excess)
                if outcome.fit.metric not in ONE_WAY:
                    cells.put(other, one, each.excess)
        lines = tuple(ViewLine(name=str(places.endpoints[each]), endpoints=1, suspect=each in own) for each in members)
        yield SuspectDetail(
            place=answer.place,
            matrix=cells.matrix(lines),
            others=tuple(_typical(others[each]) for each in range(len(members))),
        )


def _partners(own: frozenset[int], places: Places, named: NamedParts, readings: Iterable[_Reading]) -> list[int]:
    """Return endpoints that were tested with these: half of their leaf and half of others, as far as there are."""
    met: Counter[int] = Counter()
    for each in readings:
        for one, other in ((each.test.sender, each.test.receiver), (each.test.receiver, each.test.sender)):
            if one in own and other not in named.endpoints:
                met[other] += 1
    home = {places.leaves[each] for each in own}
    near = sorted(met, key=lambda each: (-met[each], each))
    inside = [each for each in near if places.leaves[each] in home]
    outside = [each for each in near if places.leaves[each] not in home]
    inside = inside[: max(_MOST_PARTNERS // 2, _MOST_PARTNERS - len(outside))]
    return [*inside, *outside[: _MOST_PARTNERS - len(inside)]]


def _histogram(readings: Iterable[_Reading], outcome: Swept) -> tuple[HistogramBin, ...]:
    """Return bins of a width of 1, 2 or 5 over the middle of the values; what lies beyond is in the first and last."""
    counts: Counter[int] = Counter()
    marked: Counter[int] = Counter()
    for each in readings:
        if each.test.value is not None:
            at = round(math.log(each.test.value) / _LOG_BIN)
            counts[at] += 1
            marked[at] += each.answer is not None
    ordered = sorted(counts)
    total, before, middle = sum(counts.values()), 0, []
    for at in ordered:
        before += counts[at]
        if _OUTER * total < before and before - counts[at] < (1 - _OUTER) * total:
            middle.append(math.exp(at * _LOG_BIN))
    wide = (middle[-1] - middle[0]) / _BINS or middle[0] * _LOG_BIN
    unit = 10.0 ** math.floor(math.log10(wide))
    step = next(unit * digit for digit in (1, 2, 5, 10) if unit * digit >= wide * 0.999)
    first, last = math.floor(middle[0] / step), math.floor(middle[-1] / step)
    held: dict[int, list[int]] = {at: [0, 0] for at in range(first, last + 1)}
    for at in ordered:
        place = min(max(math.floor(math.exp(at * _LOG_BIN) / step), first), last)
        held[place][0] += counts[at]
        held[place][1] += marked[at]
    below, above = ordered[0] * _LOG_BIN, ordered[-1] * _LOG_BIN
    return tuple(
        HistogramBin(
            low=None if at == first and math.exp(below) < first * step else float(f"{at * step:.6g}"),
            high=None if at == last and math.exp(above) > (last + 1) * step else float(f"{(at + 1) * step:.6g}"),
            tests=tests,
            suspects=suspects,
            band=_band((at + 0.5) * step, outcome.bands) if tests else None,
        )
        for at, (tests, suspects) in held.items()
    )


def _band(value: float, bands: Sequence[LatencyBand]) -> int | None:
    return band_of(value, bands) if bands else None


def _shown_bars(bars: Sequence[FabricBar]) -> tuple[FabricBar, ...]:
    """Return bars, the slowest first: all where they are few, else suspects, the slowest and the fastest."""
    ordered = sorted(bars, key=lambda each: (not each.suspect, -each.loss))
    if len(ordered) <= _ALL_BARS:
        return tuple(ordered)
    suspects = sum(each.suspect for each in ordered[: _ALL_BARS - _FASTEST])
    return (*ordered[: max(_SLOWEST, suspects)], *ordered[-_FASTEST:])


@dataclass(kw_only=True)
class _BothWays:
    """The tests of one thing in both directions."""

    sending: "array[float]"
    receiving: "array[float]"

    def bar(self, name: str, *, suspect: bool) -> FabricBar:
        """Return their medians."""
        every = (*self.sending, *self.receiving)
        slow = sum(each >= LEAST_EFFECT for each in every) / len(every) if every else 0.0
        return FabricBar(name=name, sending=_typical(self.sending), receiving=_typical(self.receiving),
                         tests=len(every), slow=round(slow, 4), suspect=suspect)  # fmt: skip


def _both_ways() -> defaultdict[int, _BothWays]:
    return defaultdict(lambda: _BothWays(sending=array("d"), receiving=array("d")))


def _endpoint_bars(outcome: Swept, named: NamedParts, readings: Iterable[_Reading]) -> list[FabricBar]:
    fit = outcome.fit
    slow: Counter[int] = Counter()
    tests: Counter[int] = Counter()
    for each in readings:
        if each.excess is not None:
            for end in (each.test.sender, each.test.receiver):
                tests[end] += 1
                slow[end] += each.excess >= LEAST_EFFECT
    return [
        FabricBar(
            name=str(endpoint),
            sending=_loss(fit.senders[at]) if fit.sent[at] else None,
            receiving=_loss(fit.receivers[at]) if fit.received[at] else None,
            tests=tests[at],
            slow=round(slow[at] / tests[at], 4) if tests[at] else 0.0,
            suspect=at in named.endpoints,
        )
        for at, endpoint in enumerate(outcome.places.endpoints)
    ]


def _rail_bars(places: Places, named: NamedParts, readings: Iterable[_Reading]) -> list[FabricBar]:
    names = list(places.rails)
    number = {rail: at for at, rail in enumerate(names)}
    tallies = _both_ways()
    for each in readings:
        if each.excess is not None:
            tallies[number[places.endpoints[each.test.sender].rail]].sending.append(each.excess)
            tallies[number[places.endpoints[each.test.receiver].rail]].receiving.append(each.excess)
    return [tallies[at].bar(str(rail), suspect=rail in named.rails) for at, rail in enumerate(names)]


def _leaf_bars(outcome: Swept, named: NamedParts, readings: Iterable[_Reading]) -> list[FabricBar]:
    """Return a bar for each leaf: tests that leave it, and that enter it."""
    places = outcome.places
    tallies = _both_ways()
    for each in readings:
        one, other = places.leaves[each.test.sender], places.leaves[each.test.receiver]
        if each.excess is not None and one is not None and other is not None and one != other:
            tallies[one].sending.append(each.excess)
            tallies[other].receiving.append(each.excess)
            if outcome.fit.metric not in ONE_WAY:
                tallies[other].sending.append(each.excess)
                tallies[one].receiving.append(each.excess)
    return [tallies[at].bar(name, suspect=named.has_leaf(at)) for at, name in enumerate(places.leaf_names)]


def _endpoint_loss(fit: Fit, endpoint: int) -> float:
    return _loss(max(fit.senders[endpoint], fit.receivers[endpoint]))


def _grid(outcome: Swept, named: NamedParts) -> RailGrid:
    """Return nodes by rails; nodes with a suspect stand alone, the others are aggregated."""
    places, fit = outcome.places, outcome.fit
    blocks = node_blocks(places, named, _MOST_ROWS - 8)
    names = sorted(places.rails, key=lambda rail: (rail not in named.rails, list(places.rails).index(rail)))
    rails = sorted(names[:_MOST_RAILS], key=list(places.rails).index)
    at = {rail: number for number, rail in enumerate(rails)}
    held: dict[tuple[int, int], list[float]] = defaultdict(list)
    marked: set[tuple[int, int]] = set()
    for number, endpoint in enumerate(places.endpoints):
        if endpoint.rail in at:
            key = (blocks.of[number], at[endpoint.rail])
            leaf = places.leaves[number]
            if fit.sent[number] or fit.received[number]:
                above = 0.0 if leaf is None else max(fit.leaf_up.get(leaf, 0.0), fit.leaf_down.get(leaf, 0.0))
                own = max(fit.senders[number], fit.receivers[number])
                held[key].append(own + above + fit.rails.get(endpoint.rail, 0.0))
            if number in named.endpoints or endpoint.rail in named.rails or (leaf is not None and named.has_leaf(leaf)):
                marked.add(key)
    rows, columns = range(len(blocks.blocks)), range(len(rails))
    return RailGrid(
        rails=tuple(ViewLine(name=str(rail), endpoints=len(places.rails[rail]), suspect=rail in named.rails)
                    for rail in rails),
        lines=_lines(blocks.blocks),
        cells=tuple(tuple(_typical(held[row, column]) for column in columns) for row in rows),
        suspects=tuple(tuple((row, column) in marked for column in columns) for row in rows),
    )  # fmt: skip


def _tree(outcome: Swept, named: NamedParts, readings: Iterable[_Reading]) -> FabricTree:
    places, fit = outcome.places, outcome.fit
    blocks = leaf_blocks(places, named, _MOST_ROWS - 8)
    tallies = _both_ways()
    inside: dict[int, array[float]] = defaultdict(lambda: array("d"))
    ways: dict[tuple[int, int], array[float]] = defaultdict(lambda: array("d"))
    for each in readings:
        ends = (each.test.sender, each.test.receiver)
        # What a bad host loses is not its leaf's.
        if each.excess is None or not named.endpoints.keys().isdisjoint(ends):
            continue
        one, other = blocks.of[each.test.sender], blocks.of[each.test.receiver]
        if one == other:
            inside[one].append(each.excess)
        else:
            tallies[one].sending.append(each.excess)
            tallies[other].receiving.append(each.excess)
            ways[min(one, other), max(one, other)].append(each.excess)
    above, groups = groups_above(blocks.blocks, places)
    boxes = tuple(
        _box(block, above[at], places, fit, named, (tallies[at].bar("", suspect=False), _typical(inside[at])))
        for at, block in enumerate(blocks.blocks)
    )
    links = () if None in places.leaves else tuple(_links(blocks, outcome, named, ways))
    return FabricTree(groups=groups, boxes=boxes, links=links)


def _box(
    block: ViewBlock, group: int, places: Places, fit: Fit, named: NamedParts, seen: tuple[FabricBar, float | None]
) -> LeafBox:
    own = {places.leaves[each] for each in block.members}
    few = len(places.endpoints) <= _MOST_HOSTS
    hosts = [each for each in block.members if few or each in named.endpoints][:_MOST_HOSTS]
    return LeafBox(
        name=block.name,
        group=None if group < 0 else group,
        leaves=len(own - {None}),
        endpoints=len(block.members),
        leaving=seen[0].sending,
        entering=seen[0].receiving,
        inside=seen[1],
        suspect=any(each is not None and named.has_leaf(each) for each in own),
        hosts=tuple(
            HostSpot(name=str(places.endpoints[each]), loss=_endpoint_loss(fit, each), suspect=each in named.endpoints)
            for each in hosts
        ),
    )


def _links(
    blocks: ViewBlocks, outcome: Swept, named: NamedParts, ways: Mapping[tuple[int, int], Sequence[float]]
) -> Iterator[LeafLink]:
    """Yield what lies between two boxes and is suspected, then what stands out from the scatter of so many."""
    places, fit = outcome.places, outcome.fit
    found = []
    for (one, other), held in ways.items():
        ends = (blocks.blocks[one].members[0], blocks.blocks[other].members[0])
        suspect = places.link(*ends) in named.links
        loss = _typical(held)
        stands_out = len(held) >= _LEAST_OF_A_LINK and (loss or 0.0) >= _loss(fit.bound(len(held), len(ways)))
        if loss is not None and (suspect or stands_out):
            found.append(LeafLink(one=one, other=other, loss=loss, tests=len(held), suspect=suspect))
    yield from sorted(found, key=lambda each: (not each.suspect, -each.loss))[:_MOST_LINKS]


def _suspect_tests(outcome: Swept, readings: Iterable[_Reading]) -> list[SuspectTest]:
    """Return the tests of suspects: by suspect, retests first, the slowest first."""
    endpoints = outcome.places.endpoints
    held = [each for each in readings if each.answer is not None]
    held.sort(key=lambda each: (each.answer, not each.test.retest, -(each.excess if each.excess is not None else 9.9)))
    return [
        SuspectTest(
            place=outcome.answers[each.answer or 0].place,
            sender=str(endpoints[each.test.sender]),
            receiver=str(endpoints[each.test.receiver]),
            value=each.test.value,
            loss=None if each.excess is None else _loss(each.excess),
            round=each.test.round + 1,
            retest=each.test.retest,
            alone=each.test.alone,
        )
        for each in held
    ]
