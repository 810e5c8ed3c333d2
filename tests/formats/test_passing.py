"""Lines that nobody reads are told at once, and nothing is told so that a reader would have taken."""

import random

import pytest

from busbw.formats.lines import driver
from busbw.formats.lines.driver import unread_text
from busbw.formats.registry import FORMATS

from .reading import SAMPLES, read, sample

TRAINING = (
    " [2026-11-21 12:00:01.123456] iteration     1000/  500000 | consumed samples:   256000 | lm loss: 2.1E+00 |\n",
    "{'loss': 2.3012, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'epoch': 0.12}\n",
    "2026-11-21 12:00:01,123 - INFO - trainer.py:77 - step 100 loss 2.30 tokens/s 123456\n",
    "[rank3]:[titan] 2026-11-21 12:00:01,123 - root - INFO - step: 100  loss:  2.3012  tps: 9,123\n",
    "INFO: step 100 done\n", "[1,3]<stdout>:Epoch 3: loss=1.25 HF_TOKEN=hf_abcdefghijklmnopqrstuvw\n",
    "/usr/lib/python3/site.py:12: UserWarning: size of count\n", "<frozen importlib>: warning\n",
)  # fmt: skip
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md")


def long_way(content, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(driver, "unread_text", lambda _text: None)
        return read(content)


def test_lines_of_a_training_run_are_told_at_once():
    assert [line for line in TRAINING if unread_text(line.rstrip()) is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_a_reader_takes_without_a_table_are_never_passed_by(name):
    for line in sample(name).decode().splitlines():
        if any(reader.starts.search(line) for reader in FORMATS.text):
            assert unread_text(line) is None, line


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_between_lines_of_others_is_read_the_same_by_both_ways(name, monkeypatch):
    chance = random.Random(name)
    lines = sample(name).decode().splitlines(keepends=True)
    mixed = "".join(line + "".join(chance.choices(TRAINING, k=chance.randrange(3))) for line in lines)

    assert read(mixed) == long_way(mixed, monkeypatch)


def test_all_lines_in_any_order_are_read_the_same_by_both_ways(monkeypatch):
    chance = random.Random(0)
    lines = [line for name in NAMES for line in sample(name).decode().splitlines(keepends=True)]
    for _ in range(20):
        chosen = chance.choices([*lines, *TRAINING * 30], k=800)
        # Torn anywhere: half a word may be another line's beginning.
        torn = [line[chance.randrange(len(line)) :] if chance.random() < 0.3 else line for line in chosen]
        mixed = "".join(torn)
        assert read(mixed) == long_way(mixed, monkeypatch)
