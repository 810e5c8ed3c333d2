"""Entry point of a rank: hundreds may start on one host at once, and each millisecond here is one of each of them."""

import gc
import sys

# What is imported stays: looking through it again and again while it grows finds nothing.
gc.disable()
# msgspec imports it where it is there and takes nothing from it that Python has not had since 3.11.
sys.modules["typing_extensions"] = None  # type: ignore[assignment]
import msgspec  # noqa: E402, F401

del sys.modules["typing_extensions"]
from busbw.rank.program import main  # noqa: E402

if __name__ == "__main__":
    gc.freeze()
    gc.enable()
    sys.exit(main(sys.argv[1:]))
