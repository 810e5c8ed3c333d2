"""How the ranks of a job share a model: sizes that follow, groups of ranks as formulas, and what cannot be."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from busbw.base.errors import InputError
from busbw.model.train.plan import GroupKind, GroupPlace, LinkName, RankGroup
from busbw.model.train.workload import Configuration, ModelShape

MOST_GPUS = 2**20
DEFAULT_ORDER = "tp-cp-ep-dp-pp"
DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")
_EXAMPLES = 2
_SHOWN_RANKS = 8
# Groups whose places are looked at; they repeat with the node.
_SAMPLED_GROUPS = 64
# Which dimensions vary within a group. `dp` is what experts leave of data parallelism.
_VARYING: dict[GroupKind, tuple[str, ...]] = {
    "TP": ("tp",), "CP": ("cp",), "EP": ("ep",), "PP": ("pp",), "DP": ("ep", "dp"), "expert-DP": ("dp",),
    "DP x CP": ("cp", "ep", "dp"), "expert-DP x CP": ("cp", "dp"), "embedding": ("pp",), "all": DIMENSIONS,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RankLayout:
    """The sizes of a job whose constraints hold."""

    gpus: int
    tp: int
    cp: int
    ep: int
    pp: int
    vp: int
    # Data parallelism of what is no expert, and of experts.
    dp: int
    expert_dp: int
    accumulation: int
    # Layers of each pipeline stage, the first has the embedding, the last the head.
    stages: tuple[int, ...]
    order: str = DEFAULT_ORDER

    def size_of(self, dimension: str) -> int:
        """Return how many ranks lie along a dimension of the order."""
        return {"tp": self.tp, "cp": self.cp, "ep": self.ep, "dp": self.expert_dp, "pp": self.pp}[dimension]

    def stride_of(self, dimension: str) -> int:
        """Return how far apart two neighbours along a dimension are, in ranks."""
        stride = 1
        for each in self.order.split("-"):
            if each == dimension:
                return stride
            stride *= self.size_of(each)
        raise KeyError(dimension)


def layout_of(model: ModelShape, configuration: Configuration, order: str = DEFAULT_ORDER) -> RankLayout:
    """Return the sizes of a configuration.

    Raises InputError for one that cannot be, with the nearest that can.
    """
    p, gpus = configuration.parallelism, configuration.gpus
    layers = configuration.layers if configuration.layers is not None else model.layers
    check_order(order)
    if layers > model.layers:
        raise InputError(f"{layers} layers of a model of {model.layers}", hint="a proxy has fewer layers, not more")
    if gpus > MOST_GPUS:
        raise InputError(f"{gpus} GPUs", hint=f"at most {MOST_GPUS}")
    dp = _divided(gpus, p.tp * p.pp * p.cp, "GPUs", f"TP {p.tp} x PP {p.pp} x CP {p.cp}")
    _check_model(model, configuration)
    if model.experts is None and p.ep > 1:
        raise InputError(f"EP {p.ep}: the model has no experts", hint="ep = 1")
    if dp % p.ep:
        raise InputError(
            f"EP {p.ep} does not divide DP {dp} ({gpus} GPUs / (TP {p.tp} x PP {p.pp} x CP {p.cp})): experts are "
            "spread over data parallelism",
            hint=f"the nearest that can: ep = {_either(_divisors_near(dp, p.ep))}, or "
            f"{_either(_multiples_near(gpus, p.tp * p.pp * p.cp * p.ep))} GPUs",
        )
    batch = configuration.micro_batch * dp
    accumulation = _divided(
        configuration.global_batch, batch, "sequences (global batch)", f"micro-batch x DP = {batch}"
    )
    if p.vp > 1 and accumulation % p.pp:
        near = _multiples_near(configuration.global_batch, batch * p.pp)
        raise InputError(
            f"{accumulation} micro-batches do not divide by PP {p.pp}, as the interleaved schedule (VP {p.vp}) needs",
            hint=f"the nearest that can: global_batch = {_either(near)}, or vp = 1",
        )
    return RankLayout(
        gpus=gpus, tp=p.tp, cp=p.cp, ep=p.ep, pp=p.pp, vp=p.vp, dp=dp, expert_dp=dp // p.ep, accumulation=accumulation,
        stages=_stages(layers, configuration), order=order,
    )  # fmt: skip


def check_order(order: str) -> None:
    """Raise InputError for an order of ranks that does not name each dimension once."""
    if sorted(order.split("-")) != sorted(DIMENSIONS):
        raise InputError(
            f"{order[:60]!r} is no order of ranks", hint=f"each of {', '.join(DIMENSIONS)} once: {DEFAULT_ORDER}"
        )


def _divided(number: int, by: int, what: str, why: str) -> int:
    whole, rest = divmod(number, by)
    if rest or whole < 1:
        near = _either(_multiples_near(number, by))
        raise InputError(f"{number} {what} do not divide by {by} ({why})", hint=f"the nearest that can: {near}")
    return whole


def _multiples_near(number: int, by: int) -> tuple[int, ...]:
    low = number // by * by
    return tuple(each for each in (low, low + by) if each > 0)


def _divisors_near(number: int, wanted: int) -> tuple[int, ...]:
    """Return the largest divisor up to what is wanted, and the smallest above it."""
    divisors = [each for each in range(1, min(number, 2**20) + 1) if number % each == 0]
    below = [each for each in divisors if each <= wanted]
    above = [each for each in divisors if each > wanted]
    return (*below[-1:], *above[:1])


def _either(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))


def _check_divides(number: int, by: int, what: str, key: str) -> None:
    if number % by:
        raise InputError(
            f"{what} {number} do not divide by {key.upper()} {by}",
            hint=f"the nearest that can: {key} = {_either(_divisors_near(number, by))}",
        )


def _check_model(model: ModelShape, configuration: Configuration) -> None:
    p, sequence = configuration.parallelism, configuration.sequence
    _check_divides(model.heads, p.tp, "heads", "tp")
    if model.key_value_heads % p.tp and p.tp % model.key_value_heads:
        _check_divides(model.key_value_heads, p.tp, "key_value_heads", "tp")
    _check_divides(model.ffn, p.tp, "columns of ffn", "tp")
    if model.experts is not None:
        _check_divides(model.experts.number, p.ep, "experts", "ep")
        if model.experts.tensor_parallel:
            _check_divides(model.experts.ffn, p.tp, "columns of an expert", "tp")
    if p.cp > 1:
        # Each rank has a piece of the front and one of the back, so that causal work is even.
        _check_divides(sequence // 2 if sequence % 2 == 0 else sequence, p.cp, "half sequences of", "cp")
    if p.sequence_parallel:
        _check_divides(sequence // p.cp, p.tp, "tokens of a rank's sequence", "tp")
    if p.vp > 1 and p.pp == 1:
        raise InputError(f"VP {p.vp} with one pipeline stage", hint="vp = 1, or pp = 2 and more")


def _stages(layers: int, configuration: Configuration) -> tuple[int, ...]:
    p = configuration.parallelism
    if p.stage_layers:
        if len(p.stage_layers) != p.pp or sum(p.stage_layers) != layers or p.vp > 1:
            raise InputError(
                f"stage_layers has {len(p.stage_layers)} stages with {sum(p.stage_layers)} layers; PP is {p.pp}, the "
                f"model has {layers} layers, VP is {p.vp}",
                hint="one number a stage, together all layers, and vp = 1",
            )
        return p.stage_layers
    if layers % (p.pp * p.vp):
        chunks = _divisors_near(layers, p.pp * p.vp)
        able = sorted(
            {(near // p.vp, p.vp) for near in chunks if near % p.vp == 0}
            | {(p.pp, near // p.pp) for near in chunks if near % p.pp == 0}
        )
        named = " or ".join(f"pp = {pp}, vp = {vp}" for pp, vp in able) or f"pp x vp = {_either(chunks)}"
        raise InputError(
            f"{layers} layers do not divide by PP {p.pp} x VP {p.vp} = {p.pp * p.vp}",
            hint=f"the nearest that can: {named}; or stage_layers",
        )
    return (layers // p.pp,) * p.pp


def group_of(layout: RankLayout, kind: GroupKind) -> RankGroup:
    """Return the groups of a kind: sizes and strides, and the ranks of the first and the last group."""
    varying = tuple(each for each in layout.order.split("-") if each in _VARYING[kind] and layout.size_of(each) > 1)
    counts = tuple(layout.size_of(each) for each in varying)
    strides = tuple(layout.stride_of(each) for each in varying)
    groups = layout.gpus // _product(counts)
    if kind == "embedding" and layout.pp > 1:
        # The first and the last stage.
        counts, strides = (2,), ((layout.pp - 1) * layout.stride_of("pp"),)
    bases = tuple(islice(_bases(layout, kind), 1))
    last = layout.gpus - 1 - sum((size - 1) * stride for size, stride in zip(counts, strides, strict=True))
    starts = tuple(dict.fromkeys((*bases, last)))[:_EXAMPLES]
    return RankGroup(
        kind=kind,
        size=_product(counts),
        groups=groups,
        sizes=counts,
        strides=strides,
        examples=tuple(tuple(islice(members(counts, strides, start), _SHOWN_RANKS)) for start in starts),
    )


def _product(counts: tuple[int, ...]) -> int:
    result = 1
    for each in counts:
        result *= each
    return result


def members(counts: tuple[int, ...], strides: tuple[int, ...], base: int) -> Iterator[int]:
    """Yield the ranks of the group that begins at `base`, ascending where strides are."""
    if len(counts) < 2:
        yield from range(base, base + counts[0] * strides[0], strides[0]) if counts else (base,)
        return
    for place in range(counts[-1]):
        yield from members(counts[:-1], strides[:-1], base + place * strides[-1])


def _bases(layout: RankLayout, kind: GroupKind) -> Iterator[int]:
    """Yield the first rank of each group."""
    fixed = [each for each in layout.order.split("-") if each not in _VARYING[kind]]
    counts = tuple(layout.size_of(each) for each in fixed)
    strides = tuple(layout.stride_of(each) for each in fixed)
    yield from members(counts, strides, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seats:
    """Where ranks sit: GPUs of a node, of an NVLink domain where that is larger, and nodes below one leaf switch."""

    node_gpus: int
    domain_gpus: int | None = None
    # None: not known.
    leaf_nodes: int | None = None


@lru_cache(maxsize=256)
def place_of(layout: RankLayout, group: RankGroup, seats: Seats) -> GroupPlace:
    """Return where the groups of a kind lie: that which is spread most."""
    found: GroupPlace | None = None
    for base in islice(_bases(layout, group.kind), _SAMPLED_GROUPS):
        place = _placed(tuple(members(group.sizes, group.strides, base)), seats)
        if found is None or (place.nodes, -place.ranks_per_node) > (found.nodes, -found.ranks_per_node):
            found = place
    return found or GroupPlace(nodes=1, ranks_per_node=1, links="itself")


def _placed(ranks: tuple[int, ...], seats: Seats) -> GroupPlace:
    taken: dict[int, list[int]] = {}
    for rank in ranks:
        taken.setdefault(rank // seats.node_gpus, []).append(rank % seats.node_gpus)
    links = _links(ranks, taken, max(seats.node_gpus, seats.domain_gpus or 0))
    spine: bool | None = False
    if links not in ("itself", "NVLink"):
        leaf = seats.leaf_nodes
        spine = len({node // leaf for node in taken}) > 1 if leaf is not None else None
    return GroupPlace(nodes=len(taken), ranks_per_node=max(map(len, taken.values())), links=links, spine=spine)


def _links(ranks: tuple[int, ...], taken: dict[int, list[int]], domain_gpus: int) -> LinkName:
    if len(ranks) == 1:
        return "itself"
    if len({rank // domain_gpus for rank in ranks}) == 1:
        return "NVLink"
    if len({tuple(each) for each in taken.values()}) > 1:
        return "NICs, rails crossed"
    return "rail" if len(next(iter(taken.values()))) == 1 else "NVLink and rails"
