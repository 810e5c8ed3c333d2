"""Prints what each of the two checks finds where STANDIN_FAULT plants wrong elements: `python -m tests.nccl.planted`.

A process of its own, because the stand-in for NCCL reads its faults once.
"""

import json
import sys
from pathlib import Path

from tests.standin.build import StandIn

from .together import Shape, Together

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
         "float8e4m3", "float8e5m2")  # fmt: skip


def main() -> None:
    """Write, for each exchange, what kernels found and what the host found, rank by rank."""
    standin = StandIn(folder=Path(sys.argv[1]))
    worlds = [Together(standin, 22809, 2, kernels=kernels) for kernels in (True, False)]
    for kind in ("all_reduce", "all_gather"):
        for dtype in TYPES:
            shape = Shape(kind=kind, ranks=2, count=4099, dtype=dtype)
            found = [
                [(one.wrong, one.index, one.got, one.expected) for one in world.verified(shape, shift=1, seed=5)]
                for world in worlds
            ]
            print(json.dumps({"shape": f"{kind} {dtype}", "kernels": found[0], "host": found[1]}))


if __name__ == "__main__":
    main()
