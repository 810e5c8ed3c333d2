"""Samples of other tools, with some words that are others: what cannot be read is told, and nothing else happens."""

import json
import random

import pytest
from tests.formats.offering import SAMPLES, accounts_for_every_line, survives_document

from busbw.formats.registry import FORMATS

from .seeds import WORDS, with_other_words

# Of each sample, as many as take some seconds together; `make fuzz` is for more.
TIMES = 60


def test_another_word_in_a_sample_is_read_or_told() -> None:
    texts = 0
    for path in sorted(SAMPLES.iterdir()):
        raw = path.read_bytes()
        readers = [each for each in FORMATS.text if any(map(each.starts.search, raw.decode().split("\n")))]
        chance = random.Random(path.name)
        for _ in range(TIMES):
            text = with_other_words(raw, chance).decode()
            for reader in readers:
                accounts_for_every_line(reader, text)
                texts += 1
    assert texts > 1000


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in (".json", ".jsonl")))
def test_another_word_in_a_document_is_read_or_refused(name: str) -> None:
    chance = random.Random(name)
    for text in (SAMPLES / name).read_text().split("\n") if name.endswith("l") else [(SAMPLES / name).read_text()]:
        # A word that is no number ends the JSON: as text it does not.
        others = [with_other_words(text.encode(), chance).decode() for _ in range(TIMES)]
        others += [text.replace(": 1", f": {json.dumps(word)}", 1) for word in WORDS]
        for reader in FORMATS.documents:
            for each in others:
                survives_document(reader, each)
