"""The job a text starts: over how many nodes, and by which batch system."""

import re

from busbw.model.assignment import Launch, Reading

_DIRECTIVE = re.compile(r"#(SBATCH|PBS|BSUB|FLUX:|\$)\s+(.*)", re.ASCII)
_NODES = re.compile(r"(?:^|\s)(?:-N\s*|--nodes[=\s]\s*)(\d{1,6})(?:-\d+)?(?=\s|$)", re.ASCII)
_HOST_FILES = {"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"}
_HOSTS = {"-H", "-host", "--host", "-hosts"}
# Directives stand at the top.
_MOST_LINES = 500


def batch_system(reading: Reading) -> str | None:
    """Return the word that a script's directives begin with, None where it has none."""
    for line in reading.lines[:_MOST_LINES]:
        found = _DIRECTIVE.match(line)
        if found is not None:
            return found[1]
    return None


def nodes_of(reading: Reading) -> int | None:
    """Return the nodes that a batch script asks for, None where it does not say."""
    for line in reading.lines[:_MOST_LINES]:
        found = _DIRECTIVE.match(line)
        nodes = _NODES.search(found[2]) if found is not None and found[1] == "SBATCH" else None
        if nodes is not None:
            return int(nodes[1])
    return None


def spans_nodes(launch: Launch, nodes: int | None) -> bool | None:
    """Whether a command starts ranks on several nodes; None: it cannot be told. `nodes`: of the job."""
    own = launch.argv[: launch.program] if launch.program is not None else launch.argv
    asked = _NODES.search(" ".join(own[1:])) if launch.kind == "srun" else None
    if asked is not None:
        return int(asked[1]) > 1
    if nodes is not None:
        return nodes > 1
    for place, word in enumerate(own[:-1]):
        if word in _HOSTS:
            return None if "$" in own[place + 1] else len(set(map(_host, own[place + 1].split(",")))) > 1
        if word in _HOST_FILES:
            return True
    return None


def _host(text: str) -> str:
    return text.partition(":")[0]
