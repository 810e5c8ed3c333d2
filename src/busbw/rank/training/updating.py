"""What ends a step: gradients summed over data parallelism, their norm, and Adam (arXiv 1412.6980) in float32.

Gradients of a kind lie one behind the other, so that a step has one collective for each: all_reduce, or with ZeRO 1
reduce_scatter and, after the update, all_gather of the weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from busbw.model.train.plan import GroupKind
from busbw.model.train.proxy import ProxyPlan
from busbw.rank.training.communication import ProcessGroups
from busbw.rank.training.transformer import Transformer, Weight

_BETAS = (0.9, 0.95)
_EPSILON = 1e-8
_MOST_NORM = 1.0


@dataclass(slots=True)
class _Kind:
    """The weights that are summed over one kind of group, as this process updates them: all, or with ZeRO 1 a part."""

    over: GroupKind
    what: str
    weights: tuple[Weight, ...]
    # Gradients of all of them, filled up to whole parts; and of what is updated here: where it begins, and the state.
    gradients: Tensor
    first: int
    master: Tensor
    mean: Tensor
    square: Tensor

    def places(self) -> Iterator[tuple[Weight, int, int]]:
        """Yield each weight with the place where it begins and ends."""
        begin = 0
        for weight in self.weights:
            yield weight, begin, begin + weight.values.numel()
            begin += weight.values.numel()


class Updater:
    """Gradients and optimizer of one process."""

    def __init__(self, model: Transformer, plan: ProxyPlan, groups: ProcessGroups) -> None:
        self._plan, self._groups, self._device = plan, groups, model.device
        # On the device, as a graph has no numbers of the host.
        self._steps = torch.zeros((), dtype=torch.float64, device=self._device)
        self._kinds = []
        for over, what in (("DP", ""), ("expert-DP", " of experts")):
            weights = tuple(weight for weight in model.weights.values() if weight.over == over)
            if weights:
                self._kinds.append(self._kind(over, what, weights))  # type: ignore[arg-type]

    def _kind(self, over: GroupKind, what: str, weights: tuple[Weight, ...]) -> _Kind:
        parts = self._groups.size(over) if self._plan.zero else 1
        number = sum(weight.values.numel() for weight in weights)
        whole = torch.zeros(-(-number // parts) * parts, device=self._device)
        gradients = torch.zeros_like(whole)
        begin = 0
        for weight in weights:
            whole[begin : begin + weight.values.numel()] = weight.values.detach().flatten().float()
            begin += weight.values.numel()
        each = whole.numel() // parts
        first = self._groups.place(over) * each if parts > 1 else 0
        master = whole[first : first + each].clone()
        return _Kind(
            over=over, what=what, weights=weights, gradients=gradients, first=first, master=master,
            mean=torch.zeros_like(master), square=torch.zeros_like(master),
        )  # fmt: skip

    def add(self) -> None:
        """Add the gradients of a micro-batch."""
        for kind in self._kinds:
            for weight, begin, end in kind.places():
                if weight.values.grad is not None:
                    kind.gradients[begin:end] += weight.values.grad.flatten()
                    weight.values.grad = None

    def finish(self, tokens: int) -> Tensor:
        """End a step of so many tokens over all ranks: sum, scale, update. Returns the norm of the gradient, of one."""
        self._steps += 1
        self._sum_of_routers()
        summed = [self._summed(kind) / tokens for kind in self._kinds]
        squares = [self._squares(kind, part) for kind, part in zip(self._kinds, summed, strict=True)]
        norm = self._groups.all_reduce("norm of the gradient", "all", torch.stack(squares).sum().reshape(1)).sqrt()
        scale = (_MOST_NORM / (norm + 1e-6)).clamp(max=1.0)
        for kind, part in zip(self._kinds, summed, strict=True):
            self._update(kind, part * scale)
            kind.gradients.zero_()
        return norm

    def _sum_of_routers(self) -> None:
        """Sum over TP what each of its ranks has a part of."""
        for kind in self._kinds:
            found = [(begin, end) for weight, begin, end in kind.places() if weight.is_summed_over_tp]
            if not found:
                continue
            flat = torch.cat([kind.gradients[begin:end] for begin, end in found])
            self._groups.all_reduce("gradients of routers", "TP", flat)
            at = 0
            for begin, end in found:
                kind.gradients[begin:end] = flat[at : at + end - begin]
                at += end - begin

    def _summed(self, kind: _Kind) -> Tensor:
        """Return the sums of what is updated here."""
        values = kind.gradients
        if self._plan.gradient_bytes == 2:
            values = values.to(torch.bfloat16)
        how = self._groups.reduce_scatter if self._plan.zero else self._groups.all_reduce
        return how(f"gradients{kind.what}", kind.over, values).float()

    def _squares(self, kind: _Kind, part: Tensor) -> Tensor:
        """Return this process's share of the squared norm: what several have counts once."""
        found = torch.zeros((), device=self._device)
        same = 1 if self._plan.zero else self._groups.size(kind.over)
        for weight, begin, end in kind.places():
            copies = same * (1 if weight.is_split else self._plan.tp)
            own = part[max(begin - kind.first, 0) : max(end - kind.first, 0)]
            found = found + own.square().sum() / copies
        return found

    def _update(self, kind: _Kind, gradient: Tensor) -> None:
        kind.mean.lerp_(gradient, 1 - _BETAS[0])
        kind.square.lerp_(gradient.square(), 1 - _BETAS[1])
        means, squares = (1 - beta**self._steps for beta in _BETAS)
        step = kind.mean / means / ((kind.square / squares).sqrt() + _EPSILON)
        kind.master.sub_(step, alpha=self._plan.step_factor)
        values = kind.master
        if self._plan.zero:
            sent = kind.master.to(kind.weights[0].values.dtype)
            values = self._groups.all_gather(f"weights{kind.what}", kind.over, sent)
        with torch.no_grad():
            for weight, begin, end in kind.places():
                weight.values.copy_(values[begin:end].view_as(weight.values))
