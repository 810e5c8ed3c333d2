"""Lines of programs that nobody here reads, told at once: in the log of a training run they are nearly all.

What is told here is certain: every reader would be asked in vain, and no table of those that `passes_by` says takes it.
Whatever is not certain goes the long way.
"""

import re

from busbw.formats.lines.prefix import PREFIXES

# How a line begins that a reader, or a library's log, may begin with; longer than needed does no harm.
_BEGINNINGS = (
    "OSU |nThread|rccl|RCCL|NCCL|HIP|ROCm|USAGE|libfabric|MPI|srun|slurmstepd|[Ss]ize|bytes|Avg|Overall|Bandwidth|MB/s|"
    "Send|RDMA|Atomic|COMMS|Rank|The |Out of|GPU memory|Blocking|Parallel|Swap|Per-Iteration|Reducing|Testing|Errors|"
    "nvbandwidth|Running |mem|shmem_|nprocs|This is a test|"
    "skipping|out-of-place|in-place|Option|test_info|results|Test |Invalid|Cuda"
)
# A word, a path, a dictionary of Python, a date or a name in brackets, a level after a dash: no table's row, no
# comment, no JSON.
_WORD = r"[A-Za-z(/<]|\{'|\[(?:\d{4}-\d|[A-Za-z])|- [A-Z]"
_NOBODYS = re.compile(rf"(?!    )(?>{PREFIXES})(?P<line>[ \t]*+(?!{_BEGINNINGS})(?:{_WORD}).*)", re.ASCII)


def nobodys(text: str) -> str | None:
    """Return a line without its prefixes when it is certain that nobody reads it; None when readers must be asked."""
    match = _NOBODYS.match(text)
    if match is None:
        return None
    # A log line of NCCL, a colour, a failure of nccl-tests. One by one: a loop over them takes three times as long.
    if "NCCL " in text or "\x1b" in text or "failure " in text:
        return None
    return None if "Test timeout (" in text or "Invalid number of GPUs" in text else match["line"]
