"""What measurements are held against: a platform, a captured host, or what the name of a GPU says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from msgspec import structs

from busbw.catalog.gpu_kinds import GpuFacts, spellings
from busbw.errors import InputError
from busbw.judge.explaining.series import Series
from busbw.limits.ceiling import ceiling
from busbw.limits.from_hardware import compute_ports, rates_of_gpus, rates_of_hardware
from busbw.limits.from_platform import rates_of_platform
from busbw.model.hardware import Hardware
from busbw.model.limit import Bound, Line, NodeRates
from busbw.model.platform import Platform
from busbw.units import format_rate

# Ways of NCCL that are one kernel over memory that all GPUs see: bound by the links alone.
_LEAST = "any"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grounds:
    """A machine to hold measurements against; the first of these that is there gives the rates."""

    hardware: Hardware | None = None
    platform: Platform | None = None
    # As it was asked for, which may be one of several sizes.
    platform_name: str | None = None
    # GPUs by the driver's name for them.
    gpus: Mapping[str, GpuFacts] = field(default_factory=dict)

    @property
    def fabric(self) -> str | None:
        """What joins the nodes; None: not known, or several things."""
        if self.hardware is not None:
            kinds = {port.kind for port in compute_ports(self.hardware)}
            return kinds.pop() if len(kinds) == 1 else None
        return self.platform.fabric.kind if self.platform is not None else None

    def rates(self, series: Series) -> tuple[NodeRates | None, str]:
        """Return the rates of a node of this series, and where they come from, or why there are none."""
        mismatch = self._mismatch(series)
        if mismatch is not None:
            return None, mismatch
        try:
            rates, where = self._rates(series)
        except InputError as error:
            return None, error.cause
        if rates is not None and not rates.gpus and series.nodes:
            # On CPUs as many ranks as were started, not as there are cores.
            rates = structs.replace(rates, cpu_ranks=max(1, series.ranks // series.nodes))
        return rates, where

    def _mismatch(self, series: Series) -> str | None:
        """Return why the series cannot be of this machine; None: nothing speaks against it."""
        if self.hardware is not None:
            whose, names = self.hardware.hostname, tuple({gpu.name for gpu in self.hardware.gpus if gpu.name})
            has = len(self.hardware.gpus)
        elif self.platform is not None:
            whose, names, has = self.platform.id, self.platform.match.gpu_names, self.platform.gpu.count
        else:
            return None
        called = spellings(series.gpu_name) if series.gpu_name else ()
        if called and names and not any(fnmatchcase(name, glob) for name in called for glob in names):
            return f"it is of {series.gpu_name}, and {whose} has {', '.join(names)}: another machine"
        each = series.gpus_per_node
        if each is not None and has and each > has:
            return f"it is of {each} GPUs a node, and {whose} has {has}: another machine, or more nodes"
        return None

    def _rates(self, series: Series) -> tuple[NodeRates | None, str]:
        used = series.gpus_per_node
        if self.hardware is not None:
            name = next((gpu.name for gpu in self.hardware.gpus if gpu.name), None)
            facts = self.gpus.get(name) if name is not None else None
            return rates_of_hardware(self.hardware, facts, gpus=used), f"captured on {self.hardware.hostname}"
        if self.platform is not None:
            where = f"published for {self.platform.id}"
            return rates_of_platform(self.platform, gpus=used, name=self.platform_name), where
        called = spellings(series.gpu_name) if series.gpu_name is not None else ()
        known = next((self.gpus[name] for name in called if name in self.gpus), None)
        if known is not None and used is not None:
            return rates_of_gpus(known, used), f"by the name of the GPU, {known.name}: links only"
        return None, _why_unknown(series, is_known=known is not None)


def _why_unknown(series: Series, *, is_known: bool) -> str:
    if series.library == "mpi":
        return "no platform is named"
    if series.gpu_name is None:
        return "no platform is named, and no GPU either"
    if not is_known:
        return f"no platform is named, and nothing is published about {series.gpu_name}"
    return f"no platform is named, and how many {series.gpu_name} of a node took part is not known"


def bounds(rates: NodeRates | None, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    """Return the bound of each algorithm that may be used, and why there is none where there is none."""
    if rates is None:
        return (), "the rates of this machine are not known"
    if series.nodes is None:
        return (), "on how many nodes it ran is not known"
    if series.network == "loopback" and series.nodes == 1:
        return _loopback(rates, series)
    try:
        found = ceiling(_as_said(rates, series), nodes=series.nodes, collective=series.collective).bounds
    except InputError as error:
        return (), error.cause
    allowed = tuple(each for each in found if not series.algorithms or each.algorithm in series.algorithms)
    if series.algorithms and not allowed:
        allowed = tuple(bound for name in series.algorithms if (bound := bound_named(rates, series, name)) is not None)
    known = tuple(each for each in allowed if each.busbw_Bps is not None)
    if known:
        return known, None
    missing = dict.fromkeys(words for each in allowed for words in each.missing)
    return (), f"not known: {', '.join(missing)}" if missing else "no algorithm with a bound is allowed"


def bound_named(rates: NodeRates, series: Series, algorithm: str) -> Bound | None:
    """Return the bound of one algorithm, whether or not a library would choose it; None where it has none here."""
    try:
        limit = ceiling(rates, nodes=series.nodes or 1, collective=series.collective, algorithm=algorithm)
    except InputError:
        return None
    return next((each for each in limit.bounds if each.busbw_Bps is not None), None)


def least_bound(rates: NodeRates, series: Series) -> Bound | None:
    """Return the bound that holds whatever the algorithm, unless a switch adds."""
    return bound_named(rates, series, _LEAST)


def _as_said(rates: NodeRates, series: Series) -> NodeRates:
    """Return the rates with what is said of switches that add; SHARP is off in NCCL until it is switched on."""
    return structs.replace(
        rates,
        nvls=rates.nvls if series.nvls is None else series.nvls and rates.nvls is not False,
        sharp=bool(series.sharp),
    )


def _loopback(rates: NodeRates, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    nic = rates.nic
    if nic is None or not rates.ports or not rates.gpus:
        return (), "not known: the number of NIC ports and their rate"
    each_Bps = nic.rate_Bps * rates.ports / rates.gpus
    seen = next((seen for seen in rates.attained if seen.part == "nic"), None)
    attained_Bps = each_Bps * seen.share if seen is not None else None
    line = Line(
        part="nic",
        formula="busbw <= k B / g",
        figures=f"{rates.ports} x {nic.figures} / {rates.gpus} = {format_rate(each_Bps)}",
        busbw_Bps=each_Bps,
        attained_Bps=attained_Bps,
        attained_words=seen.words if seen is not None else None,
        limits=True,
    )
    bound = Bound(
        collective=series.collective,
        algorithm="ring",
        why="each GPU sends f S bytes to the next through the NICs that are its own",
        source=nic.source,
        lines=(line,),
        busbw_Bps=each_Bps,
        algbw_Bps=each_Bps / series.factor,
        attained_Bps=attained_Bps,
        limited_by="nic",
    )
    return (bound,), None
