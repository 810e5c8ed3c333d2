"""Valid inputs to start from: a document of any type made from its own description, and texts as hosts print them."""

import json
from functools import cache

import msgspec

TEXTS = (
    "",
    "64K",
    "4 GiB",
    "mpirun (Open MPI) 5.0.11\n\nReport bugs to ...\n",
    "mpirun.real (OpenRTE) 4.1.4\n",
    "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 20260101\n",
    "HYDRA build details:\n    Version:                                 5.0.2\n",
    "prterun (PRRTE) 3.0.13\n",
    "MemTotal:       24689656 kB\nMemAvailable:   20123456 kB\nHugePages_Total:       0\n",
    "processor\t: 0\nmodel name\t: A Processor @ 2.00GHz\nflags\t\t: fpu vme hypervisor\n",
    'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n',
    "0-3,8,10-11\n",
    "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12 0 9\n",
    "usage_usec 100\nnr_periods 5\nnr_throttled 1\nthrottled_usec 20\n",
    "200000 100000\n",
    "max 100000\n",
    "0::/system.slice/job.scope\n12:cpu:/job\n",
    "last",
)

# What parsers trip over: limits of number types, depth, encodings, ends of lines.
FRAGMENTS = (
    b"", b"\x00", b"\xff", b"\xc3\x28", b"\r\n", b"\n\n", b"null", b"-1", b"1e999", b"NaN", b"18446744073709551616",
    b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b'"\\ud800"', b"{}", b"[]", b'""', b" ", b"\t", b"kB", b":", b",", b"-",
    "٣".encode(), b"0x1", b"=", b"cpu ", b"0::", b"Version: ",
)  # fmt: skip


def sample(kind: object) -> object:
    """Return JSON-like data that decodes as `kind`."""
    return _sample(msgspec.inspect.type_info(kind))


@cache
def document(kind: object) -> bytes:
    """Return `sample` of a type as JSON."""
    return json.dumps(sample(kind)).encode()


def _sample(info: msgspec.inspect.Type) -> object:
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
