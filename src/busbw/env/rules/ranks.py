"""Ranks that differ: values made from what is different on each of them."""

import re
from collections.abc import Iterator

from busbw.env.rules.subject import Subject, known, report, setting_text, where_value
from busbw.model.finding import Finding

_NAMES = (
    "SLURM_PROCID|SLURM_LOCALID|SLURM_NODEID|SLURMD_NODENAME|OMPI_COMM_WORLD_(?:LOCAL_|NODE_)?RANK|PMIX?_RANK"
    "|PALS_(?:LOCAL_)?RANKID|MPI_LOCALRANKID|RANK|LOCAL_RANK|NODE_RANK|GROUP_RANK|HOSTNAME"
)
# The same on all ranks of a node.
_OF_NODE = {"HOSTNAME", "hostname", "SLURMD_NODENAME"}
# As a variable, in arithmetic, or as what a command prints.
_OF_RANK = re.compile(rf"\$\{{?({_NAMES})\b|\$\(\([^()]*\b({_NAMES})\b|(?:\$\(|`)\s*(hostname)\b", re.ASCII)
# torchrun on each of several nodes.
_NODES = re.compile(r"--nnodes[= ](?!1(?:\s|$))", re.ASCII)
_LONGEST = 4_000


def ranks(subject: Subject) -> Iterator[Finding]:
    """Yield variables that all ranks must have alike, with values that are made from the rank."""
    # A script that starts the ranks, or is started by a batch system, works its values out once, for all of them.
    starting = {launch.target for launch in subject.reading.launches if launch.kind in ("mpirun", "srun")}
    several = _has_several_nodes(subject)
    for each in subject.reading.assignments:
        variable = known(each.name)
        if variable is None or variable.agreement != "same" or not each.computed:
            continue
        runs_once = each.target in starting or (each.target is None and subject.batch_system is not None)
        if each.form == "shell" or (each.launch is None and runs_once):
            continue
        found = _OF_RANK.search(each.written[:_LONGEST])
        if found is not None and (several or not _OF_NODE.issuperset(filter(None, found.groups()))):
            yield report(
                "ENV160",
                at=where_value(each),
                evidence=f"{setting_text(each)}: {next(filter(None, found.groups()))} is another one on each",
                confidence="likely",
                effect="the job hangs or fails where ranks come to different decisions",
                fix="the same value on every rank",
                name=each.name,
            )


def _has_several_nodes(subject: Subject) -> bool:
    """Whether the text says that the job has more than one node."""
    if subject.nodes is not None:
        return subject.nodes > 1
    return any(_NODES.search(" ".join(each.argv)) is not None for each in subject.reading.launches)
