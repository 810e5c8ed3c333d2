"""Valid inputs to start from: a document of any type made from its own description, and texts as hosts print them."""

import json
import random
import re
from functools import cache
from typing import Any

import msgspec

from busbw.model.plan import Plan
from busbw.model.record import AnyRecord

TEXTS = (
    "",
    "64K",
    "4 GiB",
    "mpirun (Open MPI) 5.0.11\n\nReport bugs to ...\n",
    "mpirun.real (OpenRTE) 4.1.4\n",
    "mpirun.openmpi (OpenRTE) 4.1.4\n",
    "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260101\n",
    "HYDRA build details:\n    Version:                                 5.0.2\n",
    "prterun (PRRTE) 3.0.13\n",
    "MemTotal:       24689656 kB\nMemAvailable:   20123456 kB\nHugePages_Total:       0\n",
    "processor\t: 0\nmodel name\t: A Processor @ 2.00GHz\nflags\t\t: fpu vme hypervisor\n",
    'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n',
    "0-3,8,10-11\n",
    "sender,receiver,value,unit,round\nn0,n1,47.1,GB/s,0\nn1:mlx5_0,n2:mlx5_0,1.7,us,1\n",
    "n0;n1;5\nn1;n0;+005.0;GB/s;000000000007\nn0;n1;\u0665;GB/s\nn1;n0;1e300;GB/s;9999999999999\nn0;n1;.5e-0400\n",
    "SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=spine Switches=leaf[0-1] # above\n",
    (
        'title = "x"\nstages = ["screening"]\ntime_limit_s = 30\n[screening]\nparts = ["memory"]\n'
        '[[threshold]]\nmeasure = "send"\nat_least = "80Gb/s"\nsource = "x"\n[transfer]\npartners = "n[0-3]"\n'
    ),
    '{"busbw": "0.1.0", "mpi": "MPICH Version:      5.0.2\\nMPICH ABI: 17:0:5", "error": null}\n',
    "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12 0 9\n",
    "usage_usec 100\nnr_periods 5\nnr_throttled 1\nthrottled_usec 20\n",
    "200000 100000\n",
    "max 100000\n",
    "0::/system.slice/job.scope\n12:cpu:/job\n",
    "prterun noticed that process rank 1 with PID 4242 on node n0 exited on\nsignal 9 (Killed).\n",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 1 PID 7 RUNNING AT n0\n=   EXIT CODE: 9\n",
    "  Process name: [prterun-n0-77@1,1]\n  Exit code:    3\n",
    "last",
    "all_reduce@1G..8G,in-place,bfloat16,sum,16ranks,checked=380.5GB/s",
    "latency@>=8,p99=2us",
    "@1M..=5%",
    '[baseline]\nrun = "a"\nwithin = ["5%"]\n[[gate]]\ncollective = "bibw"\nsize = "1G"\nat_least = "1GB/s"\n',
)

# What parsers trip over: limits of number types, depth, encodings, ends of lines.
FRAGMENTS = (
    b"", b"\x00", b"\xff", b"\xc3\x28", b"\r\n", b"\n\n", b"null", b"-1", b"1e999", b"NaN", b"18446744073709551616",
    b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b'"\\ud800"', b"{}", b"[]", b'""', b" ", b"\t", b"kB", b":", b",", b"-",
    "٣".encode(), b"0x1", b"=", b"cpu ", b"0::", b"Version: ",
)  # fmt: skip

# What stands where a number or a name is expected: versions, digits of other scripts, numbers of other notations, and
# what programs print for nothing.
WORDS = (
    "", "x", "2019 Update 1", "1,234", "\u0661\u0662", "\u00b2", "1_000", "nan", "inf", "9" * 30, "9" * 400, "0x10",
    "N/A", "-5", "1e999", "1e-400", "7" * 5000, "1.", ".5", "--", "*", "0", "-0", "1/2", "3:4:5", "[]", "{}", "%s",
    "a b c",
)  # fmt: skip
_WORD = re.compile(rb"[^\s,:|=\[\]{}()\"/;]+")


def with_other_words(data: bytes, chance: random.Random) -> bytes:
    """Return data with one word of every fifth line or so replaced, mostly one that has a digit."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        words = [*_WORD.finditer(line)] if chance.random() < 0.2 else []
        if words:
            numbers = [word for word in words if any(map(str.isdigit, word[0].decode("ascii", "replace")))]
            word = chance.choice(numbers if numbers and chance.random() < 0.8 else words)
            lines[number] = line[: word.start()] + chance.choice(WORDS).encode() + line[word.end() :]
    return b"\n".join(lines)


def sample(kind: object) -> object:
    """Return JSON-like data that decodes as `kind`."""
    return _sample(msgspec.inspect.type_info(kind))


@cache
def document(kind: object) -> bytes:
    """Return `sample` of a type as JSON."""
    return json.dumps(sample(kind)).encode()


def plan_of_two_ranks() -> dict[str, Any]:
    """Return a plan as JSON-like data: two sizes of one collective over two ranks."""
    plan: Any = sample(Plan)
    sweep = plan["sweeps"][0] | {"collective": "all_reduce", "sizes_bytes": [8, 1024], "dtype": "float32", "op": "sum"}
    plan["sweeps"] = [sweep | {"root": 0, "in_place": False}]
    plan["placement"]["ranks"] = 2
    return plan | {"backend": "native-mpi", "launcher": "local", "steps": [], "fabric": None, "step": None}


def plan_of_a_step() -> dict[str, Any]:
    """Return a plan as JSON-like data: a training step of one kind of call, replayed by two ranks."""
    plan: Any = sample(Plan)
    step = plan["step"] | {"calls": [plan["step"]["calls"][0] | {"collective": "all_reduce"}]}
    return plan_of_two_ranks() | {"step": step}


def records_of_a_rank() -> tuple[bytes, ...]:
    """Return the lines that a rank of `plan_of_two_ranks` writes."""
    lines: list[Any] = [sample(kind) for kind in AnyRecord.__args__]
    for line in lines:
        if line["type"] == "measured":
            samples_ns = list(range(1000, 1040))
            line |= {"sweep": 0, "size_bytes": 1024, "point": 1, "mismatch": None, "calls_per_sample": 1, "missed": []}
            line |= {"duration_ns": samples_ns, "lateness_ns": samples_ns, "off_processor_ns": samples_ns}
    return tuple(json.dumps(line).encode() + b"\n" for line in lines)


def _sample(info: msgspec.inspect.Type) -> object:  # noqa: PLR0911, one form of type each
    if type(info) in _PLAIN:
        return _PLAIN[type(info)]
    match info:
        case msgspec.inspect.StructType():
            tagged = {info.tag_field: info.tag} if info.tag_field is not None else {}
            return tagged | {field.encode_name: _sample(field.type) for field in info.fields}
        case msgspec.inspect.UnionType():
            return _sample(info.types[0])
        case msgspec.inspect.VarTupleType():
            return [_sample(info.item_type), _sample(info.item_type)]
        case msgspec.inspect.TupleType():
            return [_sample(item) for item in info.item_types]
        case msgspec.inspect.DictType():
            return {"name": _sample(info.value_type)}
        case msgspec.inspect.LiteralType():
            return info.values[0]
    raise NotImplementedError(f"no sample for {info}")


_PLAIN: dict[type, object] = {
    msgspec.inspect.IntType: 1,
    msgspec.inspect.FloatType: 0.5,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.StrType: "text",
    msgspec.inspect.NoneType: None,
}


# Forms of old releases that the samples of the readers do not hold.
_OLD_UCX = (
    b"|              |      overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n"
    b"| # iterations | typical | average | overall |  average |  overall |   average |   overall |\n"
    b"| perftest inter-node cfg#0 | remote memory write by ucp_put* from host memory |\n"
    b"        704005     0.522     1.424     1.424    2743.19    2743.19      702258      702258\n"
)
_OLD_ROCM = (
    b"RocmBandwidthTest Version: 1.0.0\n\nDevice Access\n\nD/D       0         1\n\n1         1         1\n\n"
    b"Bdirectional peak bandwidth GB/s\n\nD/D       0           1\n\n1         0.532834    N/A\n"
)
OLD_OUTPUTS = (_OLD_UCX, _OLD_ROCM)
