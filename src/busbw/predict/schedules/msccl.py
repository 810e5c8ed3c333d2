"""Schedules as MSCCL's XML has them: thread blocks of each GPU with steps, over chunks of the data.

A thread block sends to one GPU and receives from one, on a channel; its steps follow each other, and a step may wait
for one of another block (`depid`, `deps`). What stands there is done once for a slot's worth of each chunk, then again
for the next. Copies and sums within a GPU take no time here: no facts say what they take. Source of the form:
ir.py of github.com/microsoft/msccl-tools; of the order of loops: msccl_interpreter.h of github.com/microsoft/msccl.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from xml.parsers import expat

from busbw.base.errors import InputError
from busbw.predict.schedules.programs import MOST_ACTS, Act, WrittenSchedule

MOST_BYTES = 64 * 2**20
_MOST_GPUS = 4096
_MOST_BLOCKS = 65_536
_LONGEST = 400
_PARENTS = {"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"}
_HINT = "as msccl-tools writes it: <algo name=... coll=... ngpus=... nchunksperloop=...><gpu id=..><tb ..><step ..>"
_NUMBER = re.compile(r"-1|[0-9]{1,7}", re.ASCII)
_SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
_RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
_LOCAL = frozenset({"cpy", "re", "nop"})
_COLLECTIVES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter", "alltoall": "alltoall", "broadcast": "broadcast", "reduce": "reduce",
}  # fmt: skip
# What a loop moves of each chunk, in bytes of data, and how many bytes of a link one of data takes.
_PROTOCOLS = {
    "simple": (2**20, Fraction(1)),
    "ll": (32 * 2**10, Fraction(2)),
    "ll128": (576_000, Fraction(128, 120)),
}


@dataclass(frozen=True, kw_only=True)
class MscclAlgorithm:
    """What an XML says: acts over chunks, of which S has so many."""

    name: str
    collective: str
    protocol: str
    chunks: int
    program: WrittenSchedule

    @property
    def wire(self) -> Fraction:
        """Return how many bytes of a link one of data takes."""
        return _PROTOCOLS[self.protocol.lower()][1]

    def of_size(self, size_bytes: int) -> WrittenSchedule:
        """Return the program for a size: loops over what a slot holds of each chunk."""
        piece_bytes = _PROTOCOLS[self.protocol.lower()][0]
        chunk = Fraction(size_bytes, self.chunks)
        loops = max(1, -(-chunk.numerator // (chunk.denominator * piece_bytes)))
        return replace(self.program, unit_bytes=chunk / loops, rounds=loops)


def algorithm_of_msccl(raw: bytes, where: str) -> MscclAlgorithm:
    """Return what an XML of MSCCL says; `where` names it.

    Raises InputError for all else, for entities, and for more than is read.
    """
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB: no schedule that is read is", where=where)
    parser = expat.ParserCreate()
    reading = _MscclReading(where, lambda: parser.CurrentLineNumber)
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    parser.StartDoctypeDeclHandler = reading.doctype
    try:
        parser.Parse(raw, True)  # noqa: FBT003 - as expat has it
    except expat.ExpatError as error:
        raise InputError(
            f"{where} is no whole XML: {expat.ErrorString(error.code)}", where=f"{where}:{error.lineno}", hint=_HINT
        ) from error
    return reading.algorithm()


@dataclass(slots=True)
class _ThreadBlock:
    """A thread block: its peers, and the acts that each of its steps begins and ends with."""

    send: int
    receive: int
    channel: int
    steps: list[tuple[int, int]]


class _MscclReading:
    """The elements that were read so far."""

    def __init__(self, where: str, line: Callable[[], int]) -> None:
        self.where = where
        self.line = line
        self.gpus = self.chunks = 0
        self.open: list[str] = [""]
        self.head: Mapping[str, str] | None = None
        self.acts: dict[int, list[Act]] = {}
        self.blocks: dict[int, dict[int, _ThreadBlock]] = {}
        self.gpu, self.block = 0, _ThreadBlock(-1, -1, 0, [])
        # GPU, act, block and step that it waits for, and the line.
        self.waits: list[tuple[int, int, int, int, int]] = []
        self.count = self.blocks_count = 0

    def refused(self, words: str, hint: str = _HINT) -> InputError:
        return InputError(words, where=f"{self.where}:{self.line()}", hint=hint)

    def doctype(self, *_rest: object) -> None:
        raise self.refused("declares a document type or entities, which MSCCL never does")

    def text(self, text: str) -> None:
        if text.strip():
            raise self.refused(f"{text.strip()[:40]!r} stands between elements")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if _PARENTS.get(name) != self.open[-1]:
            raise self.refused(f"<{name[:40]}> is not what MSCCL writes there")
        if any(len(value) > _LONGEST for value in attributes.values()) or len(attributes) > 32:
            raise self.refused(f"attributes of <{name}> that MSCCL does not write")
        self.open.append(name)
        if name == "algo":
            self._algo(attributes)
        elif name == "gpu":
            self.gpu = self.number(attributes, "id", least=0)
            if self.gpu in self.acts or self.gpu >= self.gpus:
                what = "a second GPU" if self.gpu in self.acts else f"of {self.gpus} GPUs there is none"
                raise self.refused(f"{what} {self.gpu}", "gpu ids from 0 to ngpus - 1, each once")
            self.acts[self.gpu], self.blocks[self.gpu] = [], {}
        elif name == "tb":
            self._tb(attributes)
        else:
            self._step(attributes)

    def end(self, _name: str) -> None:
        if self.open.pop() == "tb" and self.block.steps:
            # The next loop begins when this one has ended.
            last = self.block.steps[-1][1]
            self.acts[self.gpu][self.block.steps[0][0]].after.append((last, 1))

    def number(self, attributes: Mapping[str, str], name: str, *, least: int, default: str | None = None) -> int:
        text = attributes.get(name, default)
        if text is None or _NUMBER.fullmatch(text) is None or int(text) < least:
            what = "is missing" if text is None else f"is {text[:20]!r}"
            raise self.refused(f"{name} {what}", f"a whole number from {least} on")
        return int(text)

    def _algo(self, attributes: Mapping[str, str]) -> None:
        self.head = attributes
        self.gpus = self.number(attributes, "ngpus", least=2)
        if self.gpus > _MOST_GPUS:
            raise self.refused(f"{self.gpus} GPUs", f"at most {_MOST_GPUS}")
        self.chunks = self.number(attributes, "nchunksperloop", least=1)
        if attributes.get("coll") not in _COLLECTIVES:
            raise self.refused(
                f"the collective is {attributes.get('coll', '')[:40]!r}", f"one of {', '.join(_COLLECTIVES)}"
            )
        if attributes.get("proto", "Simple").lower() not in _PROTOCOLS:
            raise self.refused(f"the protocol is {attributes['proto'][:40]!r}", "Simple, LL or LL128")

    def _tb(self, attributes: Mapping[str, str]) -> None:
        number = self.number(attributes, "id", least=0)
        self.blocks_count += 1
        own = self.blocks[self.gpu]
        if number in own or self.blocks_count > _MOST_BLOCKS:
            what = f"a second thread block {number}" if number in own else f"more than {_MOST_BLOCKS} thread blocks"
            raise self.refused(f"GPU {self.gpu} has {what}")
        send, receive = (self.number(attributes, name, least=-1) for name in ("send", "recv"))
        channel = self.number(attributes, "chan", least=0)
        for peer in (send, receive):
            if peer >= self.gpus or peer == self.gpu:
                raise self.refused(f"GPU {self.gpu} has the partner {peer} of {self.gpus} GPUs", "another GPU, or -1")
        for other in own.values():
            if other.channel == channel and (other.send == send >= 0 or other.receive == receive >= 0):
                raise self.refused(
                    f"two thread blocks of GPU {self.gpu} share a connection of channel {channel}",
                    "one thread block a partner and channel, each way",
                )
        self.block = own[number] = _ThreadBlock(send, receive, channel, [])

    def _step(self, attributes: Mapping[str, str]) -> None:
        kind, block = attributes.get("type", ""), self.block
        if kind not in _SENDS | _RECEIVES | _LOCAL:
            raise self.refused(f"a step of the type {kind[:20]!r}", "s, r, rcs, rrs, rrc, rrcs, cpy, re or nop")
        if self.number(attributes, "s", least=0) != len(block.steps):
            raise self.refused(f"step {attributes['s'][:20]} stands at place {len(block.steps)}", "steps from 0 on")
        count = self.number(attributes, "cnt", least=0 if kind == "nop" else 1, default="1")
        if count > self.chunks and kind != "nop":
            raise self.refused(f"a step over {count} chunks of {self.chunks}", "cnt of at most nchunksperloop")
        parts = [Act("recv", count, block.receive, block.channel)] if kind in _RECEIVES else []
        parts += [Act("send", count, block.send, block.channel)] if kind in _SENDS else []
        parts = parts or [Act("calc", 0)]
        self.count += len(parts)
        if self.count > MOST_ACTS:
            raise self.refused(f"more than {MOST_ACTS} sends and receives", "a schedule of fewer GPUs or chunks")
        own = self.acts[self.gpu]
        first = len(own)
        for act in parts:
            if act.what != "calc" and act.peer < 0:
                raise self.refused(
                    f"a step {kind} in a thread block without a partner for it", "send=N, recv=N of <tb>"
                )
            act.line = self.line()
            if len(own) > first or block.steps:
                act.after.append((len(own) - 1 if len(own) > first else block.steps[-1][1], 0))
            own.append(act)
        block.steps.append((first, len(own) - 1))
        waited = self.number(attributes, "depid", least=-1, default="-1")
        step = self.number(attributes, "deps", least=-1, default="-1")
        if waited >= 0:
            self.waits.append((self.gpu, first, waited, step, self.line()))

    def algorithm(self) -> MscclAlgorithm:
        missing = [gpu for gpu in range(self.gpus) if gpu not in self.acts]
        if missing or self.head is None:
            raise InputError(f"{self.where} lacks GPU {missing[0]} of {self.gpus}", where=self.where, hint=_HINT)
        for gpu, act, waited, step, line in self.waits:
            block = self.blocks[gpu].get(waited)
            if block is None or not 0 <= step < len(block.steps):
                raise InputError(
                    f"GPU {gpu} waits for step {step} of thread block {waited}, which it does not have",
                    where=f"{self.where}:{line}",
                    hint="depid and deps name a thread block of the same GPU and one of its steps",
                )
            self.acts[gpu][act].after.append((block.steps[step][1], 0))
        return MscclAlgorithm(
            name=self.head.get("name", "")[:80],
            collective=_COLLECTIVES[self.head["coll"]],
            protocol=self.head.get("proto", "Simple"),
            chunks=self.chunks,
            program=WrittenSchedule(acts=tuple(self.acts[gpu] for gpu in range(self.gpus)), where=self.where),
        )
