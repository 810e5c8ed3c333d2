"""Feed every parser for a while: `python tests/fuzz/campaign.py --seconds 60 [NAME ...]`; ends with 1 at a crash.

By random damage to valid inputs; where atheris is installed, half of the time guided by coverage, and all of it where
a harness has one second or less. A crash is written to build/fuzz/NAME/.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import math
import os
import random
import subprocess
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

LONGEST_INPUT_BYTES = 65536
PROCESSES = os.cpu_count() or 1


def guided(names: tuple[str, ...], seconds: float) -> list[str]:
    """Fuzz harnesses with atheris, in a process whose busbw tells which lines it came to. Return those that crashed."""
    command = [sys.executable, str(Path(__file__)), "--within", str(seconds), *names]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def within(seconds: float, names: list[str]) -> None:
    """Be the process that atheris runs in: instrument busbw once, fork for each harness, write out what crashed."""
    import atheris

    # It names every module that it instruments.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["busbw"]):
        importlib.import_module("tests.fuzz.harnesses")
    waiting, running = list(names), {}
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            name = waiting.pop(0)
            print(f"{name}: {seconds:g} s guided", file=sys.stderr, flush=True)
            child = os.fork()
            if child == 0:
                guide(name, seconds)
            running[child] = name
        ended, status = os.wait()
        name = running.pop(ended)
        if status != 0:
            sys.stderr.write((folder_of(name) / "guided.log").read_text(errors="replace")[-6000:])
            print(name, flush=True)


def guide(name: str, seconds: float) -> NoReturn:
    """Be the process that atheris runs one harness in, and ends."""
    import atheris
    from tests.fuzz.harnesses import HARNESSES, feed, seeds_of

    folder = folder_of(name)
    with (folder / "guided.log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for number, seed in enumerate(seeds_of(name)):
        (folder / "corpus" / f"seed-{number}").write_bytes(seed)
    options = [
        str(folder / "corpus"), f"-max_total_time={math.ceil(seconds)}", f"-max_len={LONGEST_INPUT_BYTES}",
        "-timeout=20", "-rss_limit_mb=4096", "-verbosity=0", "-len_control=0", f"-artifact_prefix={folder}/",
        "-print_final_stats=0",
    ]  # fmt: skip
    calls, least, end_s = 0, 2 * len(seeds_of(name)), time.monotonic() + seconds

    def try_one(data: bytes) -> None:
        nonlocal calls
        feed(HARNESSES[name], data)
        calls += 1
        # It counts whole seconds that have begun: one would take two.
        if calls > least and time.monotonic() > end_s:
            os._exit(0)

    atheris.Setup([sys.argv[0], *options], try_one)
    atheris.Fuzz()
    sys.exit("atheris came back, and should have ended this process")


def unguided(name: str, seconds: float) -> bool:
    """Fuzz one harness with randomly damaged seeds. Return whether nothing was found."""
    from tests.fuzz.harnesses import HARNESSES, feed, seeds_of
    from tests.fuzz.seeds import FRAGMENTS, with_other_words

    print(f"{name}: {seconds:g} s unguided", file=sys.stderr, flush=True)
    folder = folder_of(name)
    seed = int.from_bytes(os.urandom(4))
    chance = random.Random(seed)
    valid = seeds_of(name)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        data = chance.choice(valid)
        data = with_other_words(data, chance) if chance.randrange(2) else data
        for _ in range(chance.randrange(6)):
            start = chance.randint(0, len(data))
            piece = chance.choice((chance.choice(FRAGMENTS), chance.randbytes(chance.randrange(9)), data[-start:]))
            data = (data[:start] + piece + data[start + chance.randrange(40) :])[:LONGEST_INPUT_BYTES]
        try:
            feed(HARNESSES[name], data)
        except Exception:  # noqa: BLE001, whatever comes out is what is looked for
            (folder / "crash").write_bytes(data)
            traceback.print_exc()
            sys.stderr.write(f"{name}, seed {seed}: {data[:200]!r} in {folder / 'crash'}\n")
            return False
    return True


def folder_of(name: str) -> Path:
    """Return where a harness's inputs and crashes go, made if need be."""
    folder = ROOT / "build" / "fuzz" / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    return folder


def main() -> int:
    """Run the harnesses, as many at once as there are processors, and return the exit code."""
    if sys.argv[1:2] == ["--within"]:
        within(float(sys.argv[2]), sys.argv[3:])
        return 0
    from tests.fuzz.harnesses import HARNESSES

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=60, help="for each harness")
    options.add_argument("names", nargs="*", metavar="NAME", help="harnesses; all without one")
    chosen = options.parse_args()
    unknown = set(chosen.names) - set(HARNESSES)
    if unknown:
        options.error(f"no harness {', '.join(sorted(unknown))}; there are: {', '.join(HARNESSES)}")
    names = tuple(chosen.names or HARNESSES)
    has_atheris = importlib.util.find_spec("atheris") is not None
    seconds = max(min(1, chosen.seconds), chosen.seconds / 2) if has_atheris else chosen.seconds
    crashed: list[str] = []
    if not has_atheris or chosen.seconds > 1:
        with ProcessPoolExecutor(PROCESSES) as workers:
            found = workers.map(partial(unguided, seconds=seconds), names)
            crashed += [name for name, is_clean in zip(names, found, strict=True) if not is_clean]
    if has_atheris:
        crashed += guided(tuple(name for name in names if name not in crashed), seconds)
    print(f"crashed: {', '.join(crashed)}" if crashed else f"nothing found in {len(names)} parsers")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
