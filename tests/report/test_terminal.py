"""What the last line of a result says."""

import pytest

from busbw.model.finding import Verdict
from busbw.show.text.terminal import verdict_line


@pytest.mark.parametrize(
    ("outcome", "sentence", "line"),
    [
        ("ok", "ok: fine.", "ok: fine."),
        ("ok", "ok with findings (PERF004): fine.", "ok with findings (PERF004): fine."),
        ("cannot_tell", "cannot tell: why.", "cannot tell: why."),
        ("slow", "half of it.", "slow: half of it."),
        ("ok", "okay.", "ok: okay."),
    ],
)
def test_a_verdict_says_its_word_once(outcome: str, sentence: str, line: str):
    assert verdict_line(Verdict(outcome=outcome, sentence=sentence, because=())).plain == line
