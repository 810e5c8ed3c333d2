"""Where things lie in a run directory; the launching side and the ranks agree on it here."""

PLAN_FILE = "plan.json"
RUN_FILE = "run.json"
OUTCOME_FILE = "outcome.json"
RAW_DIRECTORY = "raw"
# Set in every process of a run to the run and its attempt, so that what is left of it can be found and ended.
RUN_VARIABLE = "BUSBW_RUN"


def launcher_name(stream: str, attempt: int) -> str:
    """Return the file that keeps what the launcher wrote to `stream`: stdout or stderr."""
    return f"launcher.{attempt}.{stream}"


def records_name(rank: int, attempt: int) -> str:
    """Return the file that `rank` writes its records to in the given start of the run, 0 for the first."""
    return f"rank-{rank:05d}.{attempt}.jsonl"


def heartbeat_name(rank: int) -> str:
    """Return the file that tells where `rank` is while it runs."""
    return f"rank-{rank:05d}.beat"


# The 64-bit words of a heartbeat file, in order (core/heartbeat.hpp).
HEARTBEAT_WORDS = ("process_id", "state", "point", "samples", "calls", "in_call", "stop_asked", "reserved")
HEARTBEAT_BYTES = 8 * len(HEARTBEAT_WORDS)
# What the word `state` means.
HEARTBEAT_STATES = (
    "starting",
    "machine rates",
    "verifying",
    "warming up",
    "sampling",
    "writing",
    "attributing",
    "done",
)
