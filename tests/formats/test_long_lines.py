"""A line of an eighth of a mebibyte costs each reader, and the driver, time in proportion to its length only.

Every regular expression is tried on text that it takes nearly: a search that begins again at every character of such a
line would take a minute, so the limit is generous and still tells.
"""

import pytest
from tests.cost import check_cost

from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS

LENGTH = 2**17
# Of one line, where the slowest takes a tenth.
MOST_S = 1.0
PATTERNS = (
    "a", " ", "9", "NCCL ", "#", "# ", "-", ".", ":", "[", "{", '"', "=", "1 ", "a ", "a=", "A=", "_", "(", "|", "\t",
    "OSU MPI ", "COMMS-RES ", "Rank: ", "0 0 float ", "token ", "bearer ", "://", "x:1:1 ", "x:1:1 NCCL ", " .. ",
    '{"busBw"', "[1,0]:", "\x1b[", '"a=', "\\", '"\\', "failure ", "a:[],", "hf_", "Test timeout (", '"size":', "@",
)  # fmt: skip
# What opens a table of each reader, whose lines are then tried in it.
OPENINGS = {
    "no table": "",
    "nccl-tests": "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n",
    "rccl-tests": '{"name":"AllReduce","size":1,"time":1,"algBw":1,"busBw":1,"type":"float"}\n',
    "osu": "# OSU MPI Latency Test v7.3\n# Size  Avg Latency(us)\n",
    "imb": "# Benchmarking Sendrecv\n# #processes = 2\n       #bytes #repetitions  t_min[usec]\n",
    "perftest": "RDMA_Write BW Test\n #bytes  #iterations  BW peak[MB/sec]  BW average[MB/sec]  MsgRate[Mpps]\n",
    "perftest settings": "RDMA_Write BW Test\n",
    "perftest json": "test_info: {\n",
    "param": "COMMS-RES size (B) p75\n",
    "clusterkit": "Rank: 0 1\n",
    "all_reduce_bench": "| payload | busbw | algbw |\n",
}


def check(opening: str, line: str) -> None:
    """Check that a line is read in time, in the table that `opening` opens, and accounted for."""
    content = f"{line}\n".encode()

    def read() -> None:
        reader = Reader(FORMATS, source=0, first_table=0, copy=lambda _content: None)
        reader.feed(opening.encode())
        reader.feed(content)
        reader.finish()
        assert reader.ledger.reading_lines + reader.ledger.known_lines + reader.ledger.unread_lines == reader.lines

    check_cost(read, most_s=MOST_S)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_line_of_one_pattern_takes_time_in_proportion(pattern: str) -> None:
    line = pattern * (LENGTH // len(pattern))
    check("", line)
    for opening in OPENINGS.values():
        # With an end that no expression waits for.
        check(opening, line + "x")


@pytest.mark.parametrize(
    "beginning", ["# OSU MPI ", "# Size ", "8 2 float ", '{"a":', "# nThread 1 nGpus 1 ", "a : ", "|"]
)
@pytest.mark.parametrize("pattern", [" ", "a", "9", "a ", "[],"])
def test_a_line_that_begins_as_a_reader_wants_takes_time_in_proportion(beginning: str, pattern: str) -> None:
    line = beginning + pattern * (LENGTH // len(pattern))
    for opening in OPENINGS.values():
        check(opening, line + "x")
