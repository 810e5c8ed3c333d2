"""What measurements are held against: a platform, a captured host, or what the name of a GPU says."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.gpu_kinds import GpuFacts, spellings
from busbw.judge.explaining.doubts import doubt_of
from busbw.judge.explaining.references import Reference, of_figure, of_sweep, references_of
from busbw.judge.explaining.series import Series
from busbw.limits.from_hardware import compute_ports, rates_of_gpus, rates_of_hardware
from busbw.limits.from_platform import rates_of_platform
from busbw.model.host import Hardware
from busbw.model.limit import NodeRates
from busbw.model.platform import Platform, Published


@dataclass(frozen=True, kw_only=True, slots=True)
class Grounds:
    """A machine to hold measurements against; the first of these that is there gives the rates."""

    hardware: Hardware | None = None
    platform: Platform | None = None
    # As it was asked for, which may be one of several sizes.
    platform_name: str | None = None
    # GPUs by the driver's name for them.
    gpus: Mapping[str, GpuFacts] = field(default_factory=dict)
    # What the site itself measured on these hosts before.
    own: tuple[Reference, ...] = ()

    @property
    def fabric(self) -> str | None:
        """What joins the nodes; None: not known, or several things."""
        if self.hardware is not None:
            kinds = {port.kind for port in compute_ports(self.hardware)}
            return kinds.pop() if len(kinds) == 1 else None
        return self.platform.fabric.kind if self.platform is not None else None

    def sm(self, series: Series) -> int | None:
        """Return the compute capability of the GPUs, times ten; None: not known, or not NVIDIA's."""
        if self.platform is not None and self.hardware is None:
            return self.platform.gpu.sm
        facts = self._facts(series)
        return facts.sm if facts is not None else None

    def references(self, series: Series) -> tuple[Reference, ...]:
        """Return what was measured on machines of this kind; on one node wherever it has the same GPUs."""
        facts = self._facts(series)
        of_gpus = () if facts is None else (*(of_sweep(each) for each in facts.sweeps), *_figures(facts.published))
        of_platform = references_of(self.platform, doubt_of) if self.platform is not None else ()
        own = tuple(each for each in self.own if each.collective == series.collective)
        return tuple(dict.fromkeys((*own, *of_platform, *of_gpus)))

    def _facts(self, series: Series) -> GpuFacts | None:
        """Return what is known of the GPUs by their name, wherever it comes from."""
        if self.hardware is not None:
            names = tuple(gpu.name for gpu in self.hardware.gpus if gpu.name)
        elif series.gpu_name is not None:
            names = spellings(series.gpu_name)
        else:
            names = self.platform.match.gpu_names if self.platform is not None else ()
        return next((self.gpus[name] for name in names if name in self.gpus), None)

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
            rates = rates_of_hardware(self.hardware, self._facts(series), gpus=used)
            return rates, f"captured on {self.hardware.hostname}"
        if self.platform is not None:
            where = f"published for {self.platform.id}"
            return rates_of_platform(self.platform, gpus=used, name=self.platform_name), where
        known = self._facts(series)
        if known is not None and used is not None:
            rates = rates_of_gpus(known, used)
            # A name does not say whether the links of several hosts are joined.
            joined = rates if series.nodes == 1 else structs.replace(rates, domain_gpus=None)
            return joined, f"by the name of the GPU, {known.name}: links only"
        return None, _why_unknown(series, is_known=known is not None)


def _figures(published: Iterable[Published]) -> Iterator[Reference]:
    return (each for figure in published if (each := of_figure(figure, None)) is not None)


def _why_unknown(series: Series, *, is_known: bool) -> str:
    if series.library == "mpi":
        return "no platform is named"
    if series.gpu_name is None:
        return "no platform is named, and no GPU either"
    if not is_known:
        return f"no platform is named, and nothing is published about {series.gpu_name}"
    return f"no platform is named, and how many {series.gpu_name} of a node took part is not known"
