"""Feed every parser for a while: `python tests/fuzz/campaign.py --seconds 60 [NAME ...]`; ends with 1 at a crash.

By random damage to valid inputs; where atheris is installed, half of the time guided by coverage. A crash is written to
build/fuzz/NAME/.
"""

import argparse
import importlib.util
import os
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

LONGEST_INPUT_BYTES = 65536


def guided(name: str, seconds: int, folder: Path) -> bool:
    """Fuzz one harness with atheris, which ends the process it runs in. Return whether nothing was found."""
    command = [
        sys.executable, str(Path(__file__)), "--within", name, str(folder / "corpus"), f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT_BYTES}", "-timeout=20", "-rss_limit_mb=4096", "-verbosity=0", "-len_control=0",
        f"-artifact_prefix={folder}/", "-print_final_stats=0",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode(errors="replace")[-6000:])
    return done.returncode == 0


def within(name: str, arguments: list[str]) -> None:
    """Be the process that atheris runs one harness in."""
    import atheris

    with atheris.instrument_imports(include=["busbw"]):
        from tests.fuzz.harnesses import HARNESSES, feed, seeds_of
    corpus = Path(arguments[0])
    for number, seed in enumerate(seeds_of(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *arguments], lambda data: feed(HARNESSES[name], data))
    atheris.Fuzz()


def unguided(name: str, seconds: int, folder: Path) -> bool:
    """Fuzz one harness with randomly damaged seeds. Return whether nothing was found."""
    from tests.fuzz.harnesses import HARNESSES, feed, seeds_of
    from tests.fuzz.seeds import FRAGMENTS

    seed = int.from_bytes(os.urandom(4))
    chance = random.Random(seed)
    valid = seeds_of(name)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        data = chance.choice(valid)
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


def main() -> int:
    """Run the harnesses one after the other and return the exit code."""
    if sys.argv[1:2] == ["--within"]:
        within(sys.argv[2], sys.argv[3:])
    from tests.fuzz.harnesses import HARNESSES

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60, help="for each harness")
    options.add_argument("names", nargs="*", metavar="NAME", help="harnesses; all without one")
    chosen = options.parse_args()
    unknown = set(chosen.names) - set(HARNESSES)
    if unknown:
        options.error(f"no harness {', '.join(sorted(unknown))}; there are: {', '.join(HARNESSES)}")
    ways = (unguided, guided) if importlib.util.find_spec("atheris") else (unguided,)
    crashed = []
    for name in chosen.names or HARNESSES:
        folder = ROOT / "build" / "fuzz" / name
        (folder / "corpus").mkdir(parents=True, exist_ok=True)
        print(f"{name}: {chosen.seconds} s, {' and '.join(way.__name__ for way in ways)}", flush=True)
        if not all(way(name, max(1, chosen.seconds // len(ways)), folder) for way in ways):
            crashed.append(name)
    print(f"crashed: {', '.join(crashed)}" if crashed else f"nothing found in {len(chosen.names or HARNESSES)} parsers")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
