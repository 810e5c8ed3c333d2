"""A process of two that goes through several layouts with one start of PyTorch: gradients of a step, then some steps.

Started by `busbw.rank.start` with a file for the meeting, a folder for what it found, and plans, JSON each.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from busbw.model import codec
from busbw.model.train.proxy import ProxyPlan
from busbw.rank.training import steps
from busbw.rank.training.communication import Meter, ProcessGroups
from busbw.rank.training.transformer import Transformer
from busbw.rank.training.updating import Updater


def gradients(plan: ProxyPlan, rank: int) -> tuple[float, dict[str, torch.Tensor]]:
    """Return this process's share of the loss, and of each weight that it has the gradient of the whole batch."""
    groups = ProcessGroups(plan, rank, Meter(has_events=False))
    model = Transformer.drawn(plan, groups, torch.device("cpu"))
    updater = Updater(model, plan, groups)
    loss = 0.0
    for batch in steps._tokens(plan, rank, 1):
        part = model.loss(batch)
        part.backward()
        loss += float(part.detach()) / plan.tp
        updater.add()
    updater._sum_of_routers()
    found = {}
    for kind in updater._kinds:
        summed = updater._summed(kind)
        for weight, begin, end in kind.places():
            found[weight.name] = summed[begin:end].view_as(weight.values).clone()
    return loss, found


def main() -> None:
    meeting, folder, *plans = sys.argv[1:]
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    for number, text in enumerate(plans):
        plan = codec.decode(text.encode(), ProxyPlan, where="plan")
        if plan.zero == 0:
            torch.save(gradients(plan, rank), Path(folder) / f"gradients-{number}-{rank}.pt")
        # A graph is of GPUs; what it would launch runs on CPUs too.
        if not plan.graph:
            steps.train(plan, rank, torch.device("cpu"), "CPU")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
