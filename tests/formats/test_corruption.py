"""Whatever is cut or damaged, nothing raises and every line is accounted for."""

import random

import pytest

from .reading import SAMPLES, read, sample

# nccl-tests, rccl-tests and OSU; the readers of other tools are tried one by one beside them.
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.name.startswith(("nccl-tests", "rccl-tests", "osu")))
EVERYTHING = sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md")
DAMAGE = (b"\x00", b"\xff", b"\n", b"9", b" ", b"#", b"{", b'"', b"[", b"-", b"n")


def parts_near(content, at):
    """Return the lines around a place: the rest of a sample is the same for every damage to it."""
    start = content.rfind(b"\n", 0, max(0, at - 400)) + 1
    end = content.find(b"\n", at + 200) + 1 or len(content)
    return start, end


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_cut_at_any_byte_is_accounted_for(name):
    content = sample(name)
    whole = read(content)
    # Reading all cuts grows with the square of the length: of long samples every thirteenth, so that each column has
    # its turn.
    stride = 1 if len(content) < 1000 else 13

    for at in range(0, len(content), stride):
        found = read(content[:at])
        assert found.adds_up, at
        assert found.lines == content.count(b"\n", 0, at) + (not content[:at].endswith(b"\n") and at > 0), at
        assert len(found.readings) <= len(whole.readings), at


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_damaged_at_any_byte_is_accounted_for(name):
    content = sample(name)
    chance = random.Random(name)

    for at in range(0, len(content), 1 if len(content) < 1000 else 3):
        damage = chance.choice(DAMAGE)
        start, end = parts_near(content, at)
        head = content[: min(start, 1500)] if chance.random() < 0.2 else b""
        damaged = head + content[start:at] + damage + content[at + 1 : end]
        assert read(damaged).adds_up, (at, damage)


def differs(before, after):
    """Whether a number of a reading is another one; a digit at its end may come and go."""
    pairs = [(getattr(before, name), getattr(after, name)) for name in ("time_s", "algbw_Bps", "busbw_Bps")]
    return any(abs((one or 0.0) - (other or 0.0)) > 0.05 * max(one or 0.0, other or 0.0) for one, other in pairs)


TEXTS = [name for name in NAMES if name.startswith(("nccl-tests-1", "nccl-tests-2")) and "one-rank" not in name]


@pytest.mark.parametrize("name", TEXTS)
def test_a_row_whose_columns_grow_together_is_doubted_or_not_read(name):
    content = sample(name)
    right = {(reading.what, reading.size_bytes, reading.in_place): reading for reading in read(content).readings}

    blanks = [at for at in range(len(content)) if content[at : at + 1] == b" "]
    for at in blanks[:: 1 if len(blanks) < 300 else 7]:
        found = read(content[:at] + b"7" + content[at + 1 :])
        doubted = {line for table in found.tables for line, _ in table.doubts}
        for reading in found.readings:
            before = right.get((reading.what, reading.size_bytes, reading.in_place))
            # A row of size 0 has nothing to be held against.
            if before is not None and reading.size_bytes and differs(before, reading):
                assert doubted, (at, reading)


def test_all_samples_mixed_line_by_line_are_accounted_for():
    chance = random.Random(0)
    lines = [line for name in EVERYTHING for line in sample(name).splitlines(keepends=True)]

    for _ in range(30):
        chance.shuffle(lines)
        assert read(b"".join(lines)).adds_up


def test_all_samples_one_after_the_other_lose_nothing():
    alone = [read(sample(name)) for name in EVERYTHING]

    together = read(b"".join(sample(name).rstrip(b"\n") + b"\n" for name in EVERYTHING))

    assert together.adds_up
    assert len(together.tables) == sum(len(each.tables) for each in alone)
    assert [reading.busbw_Bps for reading in together.readings] == [
        reading.busbw_Bps for each in alone for reading in each.readings
    ]


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_accounted_for(seed):
    chance = random.Random(seed)
    assert read(chance.randbytes(20_000), block_bytes=chance.randrange(1, 5000)).adds_up
