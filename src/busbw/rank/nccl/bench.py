"""Measuring over NCCL: this process's GPUs, and one point from verification to records."""

import ctypes
import os
import re
import resource
import time
import zlib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from types import TracebackType

import msgspec

from busbw import _core
from busbw.base import layout
from busbw.model.plan import Groups, Plan, Point, Sweep
from busbw.model.record import EmptyLaunches, Hello, Launched, Mismatch, NcclChoice, NcclPoint, Record
from busbw.rank.bench import TurnTaken
from busbw.rank.blocks import Clock, SampleSeries, read_clock
from busbw.rank.heart import Heart
from busbw.rank.journal import Taken, introduce, measured
from busbw.rank.nccl.buffers import NcclBuffers, describe, host_of_plan, join, open_gpus, open_libraries, shape_of
from busbw.rank.nccl.sampler import Launcher, Measure, NcclSampler
from busbw.rank.sampling import Controls, Sampled, take_turn
from busbw.rank.world import World, same_clock

_MOST_BYTES = 1 << 20
# As NCCL 2.24 to 2.30 writes them (src/enqueue.cc, src/scheduler/symmetric_sched.cc, src/ce_coll.cc).
_SYMMETRIC = re.compile(r"NCCL INFO (\w+) \[Symmetric\]: \d+ Bytes -> Kernel (\w+) nchannels (\d+)")
_COPY_ENGINE = re.compile(r"NCCL INFO (\w+) \[Copy Engine\]: \d+ Bytes")
_USUAL = re.compile(r"NCCL INFO (\w+): \d+ Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
_VARIABLES = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE")


class TuningLog:
    """Makes NCCL write its tuning log for a while, into a file of ours."""

    def __init__(self, nccl: _core.Nccl, path: Path) -> None:
        self._nccl = nccl
        self._path = path
        # A log that the user asked for must not be cut off: NCCL opens its file anew each time.
        self._possible = nccl.has_debug_reset and not any(name in os.environ for name in _VARIABLES)

    def begin(self) -> None:
        """Turn the log on."""
        if self._possible:
            os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", NCCL_DEBUG_FILE=str(self._path))
            self._nccl.reset_debug()

    def end(self) -> tuple[NcclChoice, ...]:
        """Turn the log off and return what it says."""
        if not self._possible:
            return ()
        for name in _VARIABLES:
            del os.environ[name]
        self._nccl.reset_debug()
        try:
            with self._path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return ()
        self._path.unlink(missing_ok=True)
        return choices_in(text)


def choices_in(text: str) -> tuple[NcclChoice, ...]:
    """Return what the lines of a tuning log say, each choice once."""
    found: dict[NcclChoice, None] = {}
    for line in text.splitlines():
        if match := _SYMMETRIC.search(line):
            name = match[2].removeprefix("ncclSymk")
            found[NcclChoice(function=match[1], algorithm="SYMMETRIC", protocol=name, channels=int(match[3]))] = None
        elif match := _COPY_ENGINE.search(line):
            found[NcclChoice(function=match[1], algorithm="COPY_ENGINE", protocol=None, channels=None)] = None
        elif match := _USUAL.search(line):
            channels = int(match[5]) - int(match[4]) + 1
            found[NcclChoice(function=match[1], algorithm=match[2], protocol=match[3], channels=channels)] = None
    return tuple(found)


PLUGIN = "_nccl_profiler.so"
_SPACE_BYTES = 1 << 16
_NOT_TOLD = "-"


class Watcher:
    """Looks while it is entered; `seen` is what the last such stretch showed."""

    def __init__(self, loaded: bool, log: TuningLog | None) -> None:  # noqa: FBT001 - a fact of the plan
        self.seen: tuple[NcclChoice, ...] = ()
        self._plugin = ctypes.CDLL(str(resources.files("busbw") / PLUGIN)) if loaded else None
        self._log = log

    def __enter__(self) -> None:
        if self._log is not None:
            self._log.begin()
        if self._plugin is not None:
            self._plugin.busbw_watch(1)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.seen = self._log.end() if self._log is not None else ()
        if self._plugin is None:
            return
        self._plugin.busbw_watch(0)
        space = ctypes.create_string_buffer(_SPACE_BYTES)
        if not self.seen and self._plugin.busbw_seen(space, len(space)) <= len(space):
            self.seen = tuple(_choice(line) for line in space.value.decode(errors="replace").splitlines())


def _choice(line: str) -> NcclChoice:
    function, algorithm, protocol, channels = line.split(" ")
    return NcclChoice(
        function=function,
        algorithm=None if algorithm == _NOT_TOLD else algorithm,
        protocol=None if protocol == _NOT_TOLD else protocol,
        channels=int(channels) if int(channels) >= 0 else None,
    )


# The GPUs may take this share of the stall limit before the rank itself says that they hang: its own words, NCCL's
# among them, must be written before the launching side ends it.
_HANG_SHARE = 0.7
# And ranks wait for each other for longer than the launching side, which sees who is missing, waits for any of them.
_GATE_SHARE = 2.0


class NcclBench:
    """What every point over NCCL is measured with."""

    # Each GPU tells its own times.
    traces = False

    def __init__(self, plan: Plan, world: World, heart: Heart) -> None:
        self.plan = plan
        self._world = world
        self.heart = heart
        host, self.setup = host_of_plan(plan)
        self.libraries = open_libraries(host, self.setup)
        self.gpus = open_gpus(self.libraries, world, self.setup)
        self._gate = world.gate(_GATE_SHARE * plan.job.stall_s)
        self._launcher = Launcher(self.gpus, self._gate)
        self.ranks = world.ranks * len(self.gpus)
        self._first = world.rank * len(self.gpus)
        log = TuningLog(self.libraries.nccl, Path(plan.job.argv[-1]) / layout.RAW_DIRECTORY / f"tuning.{self._first}")
        # A profiler is not shown symmetric kernels; with plain buffers there are none, and the log is left alone.
        self._watcher = Watcher(self.setup.profiler, log if self.setup.buffers == "symmetric" else None)

    def hellos(self) -> tuple[Hello, ...]:
        """Say who the ranks of this process are."""
        hellos = (
            introduce(self._world, self._first + place, gpu=describe(self.libraries, gpu))
            for place, gpu in enumerate(self.gpus)
        )
        # There are more ranks than processes where each drives several GPUs.
        return tuple(msgspec.structs.replace(hello, ranks=self.ranks) for hello in hellos)

    def rates(self) -> Iterator[tuple[Record, ...]]:
        """Measure what starting a kernel takes; what links could carry at best is not for the host to find out."""
        launched = tuple(Launched(empty=one) for one in self._launcher.take() if one is not None)
        if launched:
            yield launched

    def prepare(self) -> None:
        """Join the other ranks and make the buffers that all points share."""
        self.heart.enter("joining")
        self._all = join(self.libraries, self.gpus, self._world, self.setup.config)
        self._groups: dict[int, tuple[_core.Communicators, _core.Communicators]] = {}
        self._within: dict[Groups, _core.Communicators] = {}
        for groups in dict.fromkeys(sweep.within for sweep in self.plan.sweeps if sweep.within is not None):
            first, place = groups.seat(self._first)
            self._within[groups] = self._all.split(colors=[first], keys=[place])
        for group in {sweep.group for sweep in self.plan.sweeps if sweep.group is not None}:
            self._groups[group] = self._split(group)
        self._buffers = NcclBuffers(self.libraries, self.gpus, self.setup, self.plan.sweeps, self.ranks)
        self._register()
        self.bench = _core.nccl_bench(
            self._gate,
            heartbeats=list(self.heart.memories),
            step_ns=round(_HANG_SHARE * self.plan.job.stall_s * 1e9),
        )
        self._shared_clock = same_clock(self._world)
        self._loads: tuple[_core.GpuLoad, ...] = ()
        if self.plan.sampling.mode == "loaded":
            self._loads = tuple(_core.GpuLoad(gpu, n=self.setup.load_side) for gpu in self.gpus)

    def _split(self, group: int) -> tuple[_core.Communicators, _core.Communicators]:
        """Return the communicators within groups of `group` ranks, and between the ranks of one place in them."""
        ranks = range(self._first, self._first + len(self.gpus))
        return (
            self._all.split(colors=[rank // group for rank in ranks], keys=[rank % group for rank in ranks]),
            self._all.split(colors=[rank % group for rank in ranks], keys=[rank // group for rank in ranks]),
        )

    def _register(self) -> None:
        both = (self._buffers.send, self._buffers.receive)
        for memories in both:
            if self.setup.buffers == "registered":
                self._all.register_buffers(memories)
            elif self.setup.buffers == "symmetric":
                self._all.register_windows(memories)

    def measure(self, number: int, point: Point, controls: Controls) -> TurnTaken:
        """Verify in the first turn, warm up, sample, verify again and describe one turn of a point."""
        sweep = self.plan.sweeps[point.sweep]
        started_unix_s = time.time()
        before = resource.getrusage(resource.RUSAGE_SELF)
        rounds, sync_s = controls.sync_rounds, time.monotonic()
        clock = read_clock(self._world, shared=self._shared_clock, yields=controls.yields, rounds=rounds)
        sync_s = time.monotonic() - sync_s
        self.heart.enter("verifying", number)
        controls.report("verifying", 0, None, None)
        exchange = self._exchange(sweep, point.size_bytes, shift=0)
        mismatches: tuple[Mismatch | None, ...] = (None,) * len(self.gpus)
        choices: tuple[NcclChoice, ...] = ()
        if controls.turn == 0:
            mismatches = self._verified(sweep, point.size_bytes, exchange, number)
            choices = self._watcher.seen
        _core.nccl_settle(exchange, self.pattern_of(sweep, 0))
        sampler = NcclSampler(self._world, self._what(sweep, exchange, clock), len(self.gpus))
        empty_before = self._beside(point.size_bytes, controls)
        sampled = None
        if not self._wrong_anywhere(mismatches):
            sampled = take_turn(self._world, self.heart, sampler, controls)
        empty_after = self._beside(point.size_bytes, controls)
        if self.plan.sampling.verify and sampled is not None and sampled.ended != "stopped":
            # What went wrong only now and then may have done so while the time was taken.
            self.heart.enter("verifying")
            mismatches = self._checked(exchange, sweep, self._seed(number, 2))
            sampled = None if self._wrong_anywhere(mismatches) else sampled
        after = resource.getrusage(resource.RUSAGE_SELF)
        taken = Taken(
            number=number,
            point=point,
            turn=controls.turn,
            sampled=sampled,
            clock=clock,
            drift_ns=0,
            switches=(after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw),
            started_unix_s=started_unix_s,
        )
        nccl = self._nccl_point(sweep, point.size_bytes, sampler, choices)
        records = tuple(
            measured(
                taken,
                series,
                mismatch=mismatch,
                verified_elements=self._output(sweep, point.size_bytes, place) if self.plan.sampling.verify else 0,
                nccl=nccl,
                empty=(empty_before[place], empty_after[place]),
            )
            for place, (series, mismatch) in enumerate(zip(self._series(sampled), mismatches, strict=True))
        )
        return TurnTaken(records=records, sampled=sampled, sync_round_s=sync_s / rounds)

    def _beside(self, size_bytes: int, controls: Controls) -> tuple[EmptyLaunches | None, ...]:
        """Return what launches take beside a small message; in the first turn, which is for one sample, nothing."""
        return self._launcher.beside(size_bytes) if controls.turn > 0 else (None,) * len(self.gpus)

    def _what(self, sweep: Sweep, exchange: _core.NcclExchange, clock: Clock) -> Measure:
        partners = sweep.pair or range(self.ranks)
        return Measure(
            exchange=exchange,
            bench=self.bench,
            mode=self.plan.sampling.mode,
            clock=clock,
            partners=len(partners),
            places=[place for place in range(len(self.gpus)) if self._first + place in partners],
            loads=self._loads,
        )

    def _series(self, sampled: Sampled | None) -> tuple[SampleSeries, ...]:
        taken = () if sampled is None else (sampled.series, *sampled.series.others)
        # A block adds those of the other GPUs, and a run may be stopped before the first.
        return (*taken, *(SampleSeries() for _gpu in self.gpus[len(taken) :]))

    def _exchange(self, sweep: Sweep, size_bytes: int, shift: int) -> _core.NcclExchange:
        return self.exchange_of(sweep, size_bytes, self._buffers, self.gpus, shift)

    def another_stream(self) -> _core.Gpu:
        """Return this process's first GPU again, with streams of its own. Raises RuntimeError with several GPUs."""
        if len(self.gpus) != 1:
            raise RuntimeError("a step is replayed with one GPU in each process")
        # Exchanges alone run there, which need no kernels of ours.
        return _core.Gpu(self.libraries.cuda, self.gpus[0].facts.ordinal, code=b"")

    def exchange_of(
        self, sweep: Sweep, size_bytes: int, buffers: NcclBuffers, gpus: Sequence[_core.Gpu], shift: int = 0
    ) -> _core.NcclExchange:
        """Return the exchange of one point between `buffers`, on the streams of `gpus`."""
        (send, slots), (receive, _), (scratch, _) = buffers.rotation(sweep, size_bytes, self.ranks)
        everyone = self._all if sweep.within is None else self._within[sweep.within]
        intra, rail = self._groups[sweep.group] if sweep.group is not None else (None, None)
        return _core.make_nccl_exchange(
            self.libraries.nccl,
            shape_of(sweep, size_bytes, self.ranks),
            _core.Equipment(
                gpus=list(gpus),
                send=buffers.send,
                receive=buffers.receive,
                scratch=buffers.scratch,
                first=self._first if sweep.within is None else sweep.within.seat(self._first)[1],
            ),
            everyone,
            intra=intra,
            rail=rail,
            rotation=_core.Rotation(
                slots=slots if shift == 0 else 1,
                send_stride=send,
                receive_stride=receive,
                scratch_stride=scratch,
            ),
            shift=shift,
        )

    def _verified(
        self, sweep: Sweep, size_bytes: int, exchange: _core.NcclExchange, number: int
    ) -> tuple[Mismatch | None, ...]:
        """Check the exchange as it will be timed, and once with every buffer moved by one element."""
        if not self.plan.sampling.verify:
            with self._watcher:
                _core.nccl_once(exchange, self.bench)
            return (None,) * len(self.gpus)
        with self._watcher:
            found = self._checked(exchange, sweep, self._seed(number, 0))
        if not self._wrong_anywhere(found):
            moved = self._exchange(sweep, size_bytes, shift=1)
            found = self._checked(moved, sweep, self._seed(number, 1))
        return found

    def _checked(self, exchange: _core.NcclExchange, sweep: Sweep, seed: int) -> tuple[Mismatch | None, ...]:
        found = _core.nccl_verify(exchange, self.bench, self.pattern_of(sweep, seed))
        return tuple(
            Mismatch(wrong=one.wrong, index=one.index, got=one.got, expected=one.expected) if one.wrong else None
            for one in found
        )

    def pattern_of(self, sweep: Sweep, seed: int) -> _core.Pattern:
        """Return the data that goes through the exchange of a sweep."""
        return _core.pattern(seed=seed, ranks=sweep.partners(self.ranks), dtype=sweep.dtype, op=sweep.op)

    def _seed(self, number: int, turn: int) -> int:
        return (zlib.crc32(self.plan.run_id.encode()) * 1_000_003 + number) * 3 + turn

    def _wrong_anywhere(self, mismatches: Sequence[Mismatch | None]) -> bool:
        return self._world.largest([int(any(one is not None for one in mismatches))])[0] != 0

    def _nccl_point(
        self, sweep: Sweep, size_bytes: int, sampler: NcclSampler, choices: tuple[NcclChoice, ...]
    ) -> NcclPoint:
        rotation = self._buffers.rotation(sweep, size_bytes, self.ranks)
        # A graph is replayed in the places that its calls were captured with.
        slots = min(rotation[0][1], sampler.graph_calls or rotation[0][1])
        return NcclPoint(
            slots=slots,
            footprint_bytes=sum(stride * slots for stride, _slots in rotation[:2]),
            graph_calls=sampler.graph_calls,
            product_ns=self._loads[0].product_ns if self._loads else None,
            choices=choices,
            checked_by="gpu" if self.gpus[0].has_kernels else "host",
        )

    def _output(self, sweep: Sweep, size_bytes: int, place: int) -> int:
        shape = shape_of(sweep, size_bytes, self.ranks)
        rank = self._first + place
        return _core.nccl_output(shape, rank=rank if sweep.within is None else sweep.within.seat(rank)[1])
