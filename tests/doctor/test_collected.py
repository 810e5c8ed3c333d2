"""Logs as collectors keep them, one JSON object a line: what is said is what is said of the job's own log."""

import json

import pytest

from busbw.logs.diagnosis import diagnose
from busbw.logs.reader import CollectedLines, LogReader
from busbw.model.finding import Diagnosis

from .made import Job

WHEN = "2026-11-21T10:00:00.5Z"
LINE = "node00:1000:2000 [0] NCCL INFO Using network IB"
FORMS = {
    "docker": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": WHEN}),
    "loki": lambda line: json.dumps({"labels": {"app": "x"}, "line": line, "timestamp": WHEN}),
    "elastic": lambda line: json.dumps({"_index": "x", "_source": {"message": line, "@timestamp": WHEN}}),
    "journal": lambda line: json.dumps({"MESSAGE": list(f"\x1b[1m{line}".encode()), "_PID": "1"}),
    "google": lambda line: json.dumps({"textPayload": line, "timestamp": WHEN}),
    "a list": lambda line: json.dumps({"line": line}) + ",",
    "over several lines": lambda line: '  {\n    "line": ' + json.dumps(line) + ',\n    "labels": {}\n  },',
}


def read(text: str, block: int) -> Diagnosis:
    reader = LogReader()
    data = text.encode()
    for start in range(0, len(data), block):
        reader.feed(data[start : start + block])
    reader.end_source()
    return diagnose(reader, ("job.log",))


@pytest.mark.parametrize("block", [7, 100_000])
@pytest.mark.parametrize("form", FORMS)
def test_a_collected_log_says_what_the_plain_one_says(form: str, block: int):
    job = Job(network="Socket", between="NET/Socket/0")
    text = "".join(FORMS[form](line) + "\n" for line in job.lines())
    if form in {"a list", "over several lines"}:
        text = f"[\n{text}]\n"

    collected, plain = read(text, block), read(job.text(), block)

    assert (collected.traffic, collected.facts) == (plain.traffic, plain.facts)
    assert [found.evidence for found in collected.findings] == [found.evidence for found in plain.findings]


def test_the_time_of_the_collector_orders_errors():
    job = Job()
    lines = [
        (job.warn(1, "Cuda failure 'uncorrectable ECC error encountered'").strip(), "2026-11-21T10:00:05Z"),
        (job.warn(2, "Cuda failure 'uncorrectable NVLink error detected'").strip(), "2026-11-21T10:00:01Z"),
    ]
    text = "".join(json.dumps({"log": line, "time": time}) + "\n" for line, time in lines)

    (found,) = [each for each in read(text, 4096).findings if each.code == "LOG030"]

    assert "NVLink" in found.evidence
    assert "earliest time, 2026-11-21 10:00:01" in found.evidence


@pytest.mark.parametrize(
    "text",
    ["", " ", "[", "{", "{\n", f"{LINE}\n", f"[2026-11-21 10:00:00] {LINE}\n", '{"log": 3}\n', '{"log": "a"', "[[\n"],
)
def test_what_is_no_record_is_passed_on_as_it_is(text: str):
    lines = CollectedLines()

    assert lines.feed(text.encode()) + lines.end() == text.encode()


def test_a_record_without_an_end_is_bounded():
    lines = CollectedLines()
    given = b"".join(lines.feed(b"{" + b"x" * 500_000) for _ in range(5)) + lines.end()

    assert len(given) == 2_500_005


def test_a_source_that_follows_is_looked_at_afresh():
    lines = CollectedLines()
    first = lines.feed(json.dumps({"log": LINE}).encode()) + lines.end()
    second = lines.feed(LINE.encode()) + lines.end()

    assert first == second == LINE.encode()
