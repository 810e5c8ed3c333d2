"""A program: many processes that write runs into one folder at once, and tag one run that is there.

python -m tests.history.writers FOLDER PROCESSES RUNS_OF_EACH
"""

import os
import sys
from pathlib import Path

from busbw.store import tags

from .stored import keep, make_run


def main(base: Path, processes: int, runs: int) -> int:
    shared = keep(make_run(0), base)
    ready, begin = os.pipe()
    children = []
    for process in range(processes):
        child = os.fork()
        if child == 0:
            # All begin when the parent closes its end.
            os.close(begin)
            os.read(ready, 1)
            os._exit(_write(base, shared, process, runs))
        children.append(child)
    os.close(begin)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return int(any(codes))


def _write(base: Path, shared: Path, process: int, runs: int) -> int:
    try:
        for number in range(runs):
            directory = keep(make_run(1 + process * runs + number, host=f"node{process:02d}"), base)
            tags.add(directory, f"by-{process}")
            tags.add(shared, f"seen-by-{process}-{number}")
    except BaseException as error:  # noqa: BLE001 - a forked child has nobody above it
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
