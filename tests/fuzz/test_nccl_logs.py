"""Reading any bytes as the logs of a job ends, in time that grows with their length, and claims nothing unprintable."""

import contextlib
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost
from tests.doctor.made import Job

from busbw.logs.diagnosis import diagnose
from busbw.logs.reader import LogReader
from busbw.model import codec
from busbw.model.finding import Diagnosis
from busbw.show.text.diagnosis import diagnosis_text

JOB = Job()
LINES = [
    *JOB.lines(),
    JOB.warn(1, "NET/IB : Got completion from peer 10.0.0.2<1> with error 12, opcode 0, len 0, vendor err 129"),
    JOB.warn(2, "Cuda failure 'out of memory'", time="2026-11-21 10:00:00"),
    JOB.warn(0, "socketProgress: Connection closed by remote peer node01<41234>"),
    JOB.head(2) + "init.cc:1 -> 3",
    JOB.head(0) + "AllReduce: 8 Bytes -> Algo 1 proto 0 time 12.5",
    JOB.head(3) + "Affinity for GPU 1 is empty, ignoring. (GPU affinity = 48-95 ; CPU affinity = 0-47).",
    "[rank3]:[E Pro.cpp:7] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=BROADCAST",
    "srun: error: node01: task 3: Killed",
    "bash: line 1: orted: command not found",
    "ORTE was unable to reliably start one or more daemons.",
    "ORTE has lost communication with a remote daemon.",
    "slurmstepd: error: pyxis: couldn't start container",
    "Rank: 0 Size: 1",
    "[1,2]<stdout>:\x1b[36m" + JOB.head(2) + "Using network IB\x1b[0m",
]  # fmt: skip
_PIECES = """NCCL INFO |NCCL WARN |:|[0] |0x|99999999999999999999|via NET/| -> |{|%s|\x1b[2J|\0|- Init START|nNodes |
comm 0x1 rank 0 nranks 999999999 |set by environment to |\N{RIGHT-TO-LEFT OVERRIDE}"""
PIECES = st.sampled_from(_PIECES.split("|"))
_LONG = """comm 0x1 rank 0 nranks 1 |NCCL INFO |a:1:1 [0] NCCL INFO |Affinity for GPU 1 is a (GPU affinity = |[0]a|NCCL_
Selected Provider is a |[Proxy Service 1] |1,1]<stdout>:|Got completion from peer |\x1b[1m|Could not find: a Using """


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Return lines of a job in any order, with stretches replaced."""
    text = "\n".join(draw(st.lists(st.sampled_from(LINES), max_size=12)))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + draw(PIECES | st.text(max_size=6)) + text[end:]
    return text.encode("utf-8", "surrogatepass")


def read(data: bytes, block: int) -> Diagnosis:
    reader = LogReader()
    for start in range(0, len(data), block):
        reader.feed(data[start : start + block])
    reader.end_source()
    return diagnose(reader, ("job.log",))


@settings(max_examples=133, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(logs() | st.binary(max_size=200), st.integers(1, 400))
def test_any_bytes_give_a_diagnosis_whatever_the_blocks(data: bytes, block: int) -> None:
    diagnosis = read(data, block)

    assert diagnosis == read(data, 2**20)
    assert codec.decode(codec.encode(diagnosis), Diagnosis, where="fuzz") == diagnosis


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(logs())
def test_nothing_reaches_the_terminal_as_it_was_logged(data: bytes) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        diagnosis_text(read(data, 2**20))

    assert "\x1b" not in shown.getvalue()
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown.getvalue()


@pytest.mark.parametrize("piece", _LONG.split("|"))
def test_no_line_takes_long(piece: str) -> None:
    line = (JOB.head(0) + piece * (4000 // len(piece)) + "\n") + (JOB.warn(0, piece * (4000 // len(piece))) + "\n")
    # No two have the same shape.
    log = "".join(line.replace("node00", "node" + "a" * number) for number in range(1, 20)).encode()

    check_cost(lambda: read(log, 2**20), most_s=2)
