"""Where things lie in a run directory; the launching side and the ranks agree on it here."""

PLAN_FILE = "plan.json"
RUN_FILE = "run.json"
OUTCOME_FILE = "outcome.json"
RAW_DIRECTORY = "raw"
# Beside a run that is a job of a queue: what the job was submitted with, and what it printed.
JOB_SUFFIX = ".job"
# What NCCL's own diagnosis service said while its calls hung.
RAS_FILE = "nccl-ras.txt"
# In raw/: what rank 0 writes for the other hosts to see whether this run directory is theirs too.
SEEN_FILE = "seen-by-all"
# Set in every process of a run to the run and its attempt, so that what is left of it can be found and ended.
RUN_VARIABLE = "BUSBW_RUN"


def launcher_name(stream: str, attempt: int) -> str:
    """Return the file that keeps what the launcher wrote to `stream`: stdout or stderr."""
    return f"launcher.{attempt}.{stream}"


def step_output_name(stream: str, attempt: int, step: int) -> str:
    """Return the file that keeps what step number `step` of a plan wrote to `stream` in the given start of the run."""
    return f"launcher.{attempt}.{step}.{stream}"


def step_report_name(step: int) -> str:
    """Return the file that a foreign program writes its single samples to; one that exists it gives a number more."""
    return f"step-{step}.json"


def records_name(rank: int, attempt: int) -> str:
    """Return the file that `rank` writes its records to in the given start of the run, 0 for the first."""
    return f"rank-{rank:05d}.{attempt}.jsonl"


# Ends the names of heartbeats: the ranks write them while they run, and no result is read from them.
HEARTBEAT_SUFFIX = ".beat"


def heartbeat_name(rank: int) -> str:
    """Return the file that tells where `rank` is while it runs."""
    return f"rank-{rank:05d}{HEARTBEAT_SUFFIX}"


def hearts_folder(user: int, tag: str) -> str:
    """Return where a host keeps the heartbeats of its own ranks, where a run has several hosts.

    A shared file system does not show one host what another has written into a mapped file. `tag`: run and attempt.
    """
    return f"/dev/shm/busbw-{user}-{tag}"  # noqa: S108 - made for its owner alone, and refused if it is another's


def stack_name(rank: int) -> str:
    """Return the file beside a heartbeat into which `rank` writes its Python stack when it is asked to."""
    return f"rank-{rank:05d}.stack"


def presence_name(rank: int) -> str:
    """Return the file beside a heartbeat in which `rank` says what belongs to it on its host."""
    return f"rank-{rank:05d}.json"


# Beside the heartbeats: the counters of this host's network devices when the latest point began.
COUNTERS_FILE = "counters.json"


def visit_name(attempt: int) -> str:
    """Return the file that keeps what the hosts answered when they were visited."""
    return f"visit.{attempt}.jsonl"


def visit_output_name(stream: str, attempt: int) -> str:
    """Return the file that keeps what the launchers of the visits wrote to `stream`."""
    return f"visit.{attempt}.{stream}"


def meeting_name(attempt: int) -> str:
    """Return the file in which rank 0 says where the others find it, where there is no MPI to tell them."""
    return f"meeting.{attempt}.json"


# The 64-bit words of a heartbeat file, in order (core/heartbeat.hpp). `turns`: of any points, begun so far.
HEARTBEAT_WORDS = ("process_id", "state", "point", "samples", "calls", "in_call", "stop_asked", "turns")
HEARTBEAT_BYTES = 8 * len(HEARTBEAT_WORDS)
# What the word `state` means.
HEARTBEAT_STATES = (
    "starting",
    "machine rates",
    "joining",
    "verifying",
    "warming up",
    "sampling",
    "writing",
    "attributing",
    "done",
    "comparing the hosts",
    "replaying the step",
)
