"""Compiles the kernels with NVIDIA's NVRTC and prints what it made: `python -m tests.nccl.compiled NVRTC CAPABILITY`.

A process of its own: beside the stand-in for the driver NVIDIA's compiler does not run.
"""

import json
import sys

from busbw import _core

KERNELS = (b"nothing", b"compare_float8e4m3", b"fill_bfloat16", b"neutral_int64", b"transpose_words", b"product")


def main() -> None:
    """Print the machine of the ELF file (None when it is none), and which kernels are in it."""
    code = _core.Nvrtc(sys.argv[1]).compile_kernels(int(sys.argv[2]))
    machine = int.from_bytes(code[18:20], "little") if code[:4] == b"\x7fELF" else None
    print(json.dumps({"machine": machine, "kernels": [name.decode() for name in KERNELS if name in code]}))


if __name__ == "__main__":
    main()
