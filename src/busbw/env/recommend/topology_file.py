"""Files that tell NCCL how a node is made. They help where a machine hides it, and hurt where they are wrong."""

import shlex

from busbw.env.recommend.case import Case, Leave, Rule, Take
from busbw.model.platform import PlatformSetting

# Who measured with and without.
_MEASURED = frozenset({"pinning-article"})


def checks_of(path: str, platform: str) -> tuple[str, ...]:
    """Return how to see that a topology file is right, and that it helps."""
    file = shlex.quote(path)
    return (
        f"busbw topo check {file} --here",
        f"busbw topo diff {file} {platform}",
        "busbw run all_reduce alltoall --backend native-nccl -b 8 -e 1G, with it and with NCCL_TOPO_FILE= in front",
    )


def _topology(case: Case, setting: PlatformSetting) -> Take | Leave:
    path = setting.value or ""
    return Take(
        need="helps" if _MEASURED & set(setting.source) else "check_first",
        conditions=(
            "the file is there, in containers too (mount it): NCCL says nothing when it is not; "
            "and it is no older copy with wrong CPU masks"
        ),
        cost="a wrong file is obeyed: GPUs get far CPUs or far NICs",
        checks=checks_of(path, case.platform.id),
    )


def _graph(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="check_first",
        conditions="all GPUs of the node take part, in this order",
        cost="NCCL no longer searches for channels itself: the file holds for one kind of node only",
        checks=("busbw run all_reduce --backend native-nccl, with it and with NCCL_GRAPH_FILE= in front",),
    )


RULES = (
    Rule(name="NCCL_TOPO_FILE", topic="topology", judge=_topology),
    Rule(name="NCCL_GRAPH_FILE", topic="topology", judge=_graph),
)
