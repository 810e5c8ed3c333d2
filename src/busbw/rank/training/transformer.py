"""A decoder-only transformer with experts, split over TP and EP; grouped-query attention with rotary positions.

Weights are drawn by name, each whole and then cut, so that every layout begins with the same model. Splits are those of
arXiv 1909.08053 (TP) and arXiv 2101.03961 (experts), without dropped tokens; the router takes the softmax of its top k.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from busbw.model.train.plan import GroupKind
from busbw.model.train.proxy import ProxyPlan
from busbw.model.train.workload import Experts
from busbw.rank.training.communication import (
    ProcessGroups,
    between_experts,
    into_tensor_parallel,
    out_of_tensor_parallel,
)
from busbw.rank.training.products import product

_DEVIATION = 0.02
_ROTARY_BASE = 10_000.0
_EPSILON = 1e-5
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp8": torch.bfloat16}


class Weight(NamedTuple):
    """A weight as this process has it, and which groups hold the same or another part."""

    name: str
    values: Tensor
    # Over whom its gradients are summed at the end of a step.
    over: GroupKind
    # Whether ranks of TP have different parts of it; else all have the same.
    is_split: bool
    # Whether ranks of TP see parts of its gradient (the router's).
    is_summed_over_tp: bool = False


@dataclass(slots=True)
class Transformer:
    """The model of one process. `forward` gives the loss of its tokens, in parts that add up over TP once."""

    plan: ProxyPlan
    groups: ProcessGroups
    device: torch.device
    weights: dict[str, Weight]

    @classmethod
    def drawn(cls, plan: ProxyPlan, groups: ProcessGroups, device: torch.device) -> "Transformer":
        """Return the model at its beginning."""
        model = cls(plan=plan, groups=groups, device=device, weights={})
        for name, rows, columns, side in _matrices(plan):
            model._add_split(name, rows, columns, side)
        for layer in range(plan.layers):
            for name in (f"{layer}.attention.norm", f"{layer}.block.norm"):
                model._keep(name, torch.ones(plan.model.hidden), "DP", is_split=False)
            if _has_experts(plan, layer):
                model._add_experts(layer)
        model._keep("norm", torch.ones(plan.model.hidden), "DP", is_split=False)
        return model

    def _add_split(self, name: str, rows: int, columns: int, side: int) -> None:
        """Draw a matrix and keep this process's rows (side 0) or columns (side 1) of it."""
        whole = _drawn(self.plan, name, rows, columns)
        parts = whole.chunk(self.plan.tp, dim=side)
        self._keep(name, parts[self.groups.place("TP")], "DP", is_split=self.plan.tp > 1)

    def _add_experts(self, layer: int) -> None:
        experts, hidden = self.plan.model.experts, self.plan.model.hidden
        assert experts is not None
        router = _drawn(self.plan, f"{layer}.router", experts.number, hidden)
        self._keep(f"{layer}.router", router, "DP", is_split=False, is_summed_over_tp=self.plan.tp > 1)
        own = experts.number // self.plan.ep
        first, place = self.groups.place("EP") * own, self.groups.place("TP")
        for number in range(first, first + own):
            for part, rows, columns, side in _block(self.plan, experts.ffn):
                name = f"{layer}.expert.{number}.{part}"
                cut = _drawn(self.plan, name, rows, columns).chunk(self.plan.tp, dim=side)[place]
                self._keep(name, cut, "expert-DP", is_split=self.plan.tp > 1)

    def _keep(
        self, name: str, values: Tensor, over: GroupKind, *, is_split: bool, is_summed_over_tp: bool = False
    ) -> None:
        kept = values.to(self.device, TYPES[self.plan.dtype]).contiguous().clone().requires_grad_()
        self.weights[name] = Weight(name, kept, over, is_split, is_summed_over_tp)

    def loss(self, tokens: Tensor) -> Tensor:
        """Return the sum over tokens (sequences, length + 1) of the loss of the next one."""
        seen, wanted = tokens[:, :-1], tokens[:, 1:]
        values = self._embedded(seen)
        for layer in range(self.plan.layers):
            values = values + self._attention(layer, values)
            values = values + self._feed_forward(layer, values)
        return self._loss(self._norm("norm", values), wanted)

    def _product(self, values: Tensor, name: str) -> Tensor:
        return product(values, self.weights[name].values, in_fp8=self.plan.dtype == "fp8")

    def _norm(self, name: str, values: Tensor) -> Tensor:
        wide = values.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + _EPSILON)
        return scaled.to(values.dtype) * self.weights[name].values

    def _embedded(self, tokens: Tensor) -> Tensor:
        """Return the rows of the table, of which each rank of TP has some."""
        table = self.weights["embedding"].values
        own = tokens - self.groups.place("TP") * table.shape[0]
        is_own = (own >= 0) & (own < table.shape[0])
        rows = functional.embedding(own.clamp(0, table.shape[0] - 1), table) * is_own.unsqueeze(-1)
        return out_of_tensor_parallel(rows, self.groups)

    def _attention(self, layer: int, values: Tensor) -> Tensor:
        model, tp = self.plan.model, self.plan.tp
        width = _head_width(self.plan)
        sequences, length, hidden = values.shape
        own = into_tensor_parallel(self._norm(f"{layer}.attention.norm", values), self.groups).reshape(-1, hidden)

        def heads(name: str, count: int) -> Tensor:
            found = self._product(own, f"{layer}.attention.{name}")
            return found.view(sequences, length, count, width).transpose(1, 2)

        queries, keys = heads("queries", model.heads // tp), heads("keys", model.key_value_heads // tp)
        shared = model.heads // model.key_value_heads
        keys, worth = (each.repeat_interleave(shared, dim=1) for each in (
            _rotated(keys), heads("values", model.key_value_heads // tp)))  # fmt: skip
        found = functional.scaled_dot_product_attention(_rotated(queries), keys, worth, is_causal=True)
        rows = found.transpose(1, 2).reshape(sequences * length, -1)
        out = out_of_tensor_parallel(self._product(rows, f"{layer}.attention.out"), self.groups)
        return out.view(sequences, length, hidden)

    def _feed_forward(self, layer: int, values: Tensor) -> Tensor:
        rows = self._norm(f"{layer}.block.norm", values).reshape(-1, self.plan.model.hidden)
        own = into_tensor_parallel(rows, self.groups)
        if not _has_experts(self.plan, layer):
            found = self._dense(own, f"{layer}.block")
        else:
            found = self._experts(layer, own)
            assert self.plan.model.experts is not None
            if self.plan.model.experts.shared_ffn:
                found = found + self._dense(own, f"{layer}.shared")
        return out_of_tensor_parallel(found, self.groups).view_as(values)

    def _dense(self, rows: Tensor, name: str) -> Tensor:
        wide = self._product(rows, f"{name}.up")
        if self.plan.model.gated:
            return self._product(functional.silu(self._product(rows, f"{name}.gate")) * wide, f"{name}.down")
        return self._product(functional.gelu(wide), f"{name}.down")

    def _experts(self, layer: int, rows: Tensor) -> Tensor:
        """Return what each row's experts make of it, weighed by the router; of TP each rank has a part."""
        experts = self.plan.model.experts
        assert experts is not None
        if self.plan.graph:
            return self._even_experts(layer, rows, experts)
        weighed = functional.linear(rows, self.weights[f"{layer}.router"].values).float()
        chosen, numbers = weighed.topk(experts.top_k, dim=-1)
        shares = chosen.softmax(-1).to(rows.dtype)
        flat = numbers.reshape(-1)
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=experts.number)
        here, sent, got = self._counts(counts, experts.number)
        arrived = between_experts(rows[order // experts.top_k], self.groups, sent, got)
        # They came by sender, and of each by expert; an expert takes all of its rows at once.
        by_expert = torch.repeat_interleave(
            torch.arange(here.numel(), device=rows.device) % (experts.number // self.plan.ep), here.flatten()
        ).argsort(stable=True)
        back = torch.empty_like(by_expert)
        back[by_expert] = torch.arange(by_expert.numel(), device=rows.device)
        first = self.groups.place("EP") * (experts.number // self.plan.ep)
        parts = arrived[by_expert].split(here.sum(0).tolist())
        made = [self._dense(part, f"{layer}.expert.{first + at}") for at, part in enumerate(parts)]
        home = between_experts(torch.cat(made)[back], self.groups, got, sent)
        spread = torch.empty_like(home)
        spread = spread.index_copy(0, order, home)
        return (spread.view(*numbers.shape, -1) * shares.unsqueeze(-1)).sum(1)

    def _even_experts(self, layer: int, rows: Tensor, experts: Experts) -> Tensor:
        """Return the same where a row's experts follow from its place: all sizes are known before, and alike."""
        number, ep, hidden = experts.number, self.plan.ep, rows.shape[1]
        own, each = number // ep, rows.shape[0] * experts.top_k // number
        numbers = (torch.arange(rows.shape[0] * experts.top_k, device=rows.device) % number).view(-1, experts.top_k)
        weighed = functional.linear(rows, self.weights[f"{layer}.router"].values).float()
        shares = weighed.gather(1, numbers).softmax(-1).to(rows.dtype)
        chosen = rows.repeat_interleave(experts.top_k, dim=0).view(each, number, hidden).transpose(0, 1)
        counts = [own * each] * ep
        arrived = between_experts(chosen.reshape(-1, hidden), self.groups, counts, counts)
        parts = arrived.view(ep, own, each, hidden).transpose(0, 1).reshape(own, ep * each, hidden)
        first = self.groups.place("EP") * own
        made = torch.stack([self._dense(part, f"{layer}.expert.{first + at}") for at, part in enumerate(parts)])
        back = made.view(own, ep, each, hidden).transpose(0, 1).reshape(-1, hidden)
        home = between_experts(back, self.groups, counts, counts).view(number, each, hidden).transpose(0, 1)
        return (home.reshape(*numbers.shape, hidden) * shares.unsqueeze(-1)).sum(1)

    def _counts(self, counts: Tensor, number: int) -> tuple[Tensor, list[int], list[int]]:
        """Return the rows of each sender for each expert here, and how many go to and come from each rank of EP."""
        ep = self.plan.ep
        of_ranks = counts.view(ep, number // ep)
        here = of_ranks
        if ep > 1:
            own = [number // ep] * ep
            here = self.groups.alltoall("how many tokens go where", "EP", counts, own, own).view(ep, number // ep)
        sent, got = torch.stack((of_ranks.sum(1), here.sum(1))).tolist()
        return here, sent, got

    def _loss(self, values: Tensor, wanted: Tensor) -> Tensor:
        """Return the loss over a vocabulary that is split over TP."""
        rows = into_tensor_parallel(values, self.groups).reshape(-1, self.plan.model.hidden)
        # In FP8 too the head's product is one of bfloat16, as recipes have it.
        logits = functional.linear(rows, self.weights["head"].values).float()
        flat = wanted.reshape(-1)
        if self.plan.tp == 1:
            return functional.cross_entropy(logits, flat, reduction="sum")
        return _split_loss(logits, flat - self.groups.place("TP") * logits.shape[1], self.groups)


class _SplitLoss(torch.autograd.Function):
    """Cross entropy summed over rows, of logits whose columns are spread over TP."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, groups: ProcessGroups) -> Tensor:  # noqa: ANN401
        name = "sums of the loss"
        most = groups.all_reduce(name, "TP", logits.max(-1).values, largest=True)
        powers = (logits - most.unsqueeze(-1)).exp()
        total = groups.all_reduce(name, "TP", powers.sum(-1))
        is_own = (wanted >= 0) & (wanted < logits.shape[1])
        column = wanted.clamp(0, logits.shape[1] - 1)
        of_wanted = torch.where(is_own, logits.gather(1, column.unsqueeze(1)).squeeze(1), 0.0)
        groups.all_reduce(name, "TP", of_wanted)
        ctx.save_for_backward(powers / total.unsqueeze(-1), column, is_own)
        return (total.log() + most - of_wanted).sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        shares, column, is_own = ctx.saved_tensors
        found = shares.scatter_add(1, column.unsqueeze(1), -is_own.to(shares.dtype).unsqueeze(1))
        return found * gradient, None, None


def _split_loss(logits: Tensor, wanted: Tensor, groups: ProcessGroups) -> Tensor:
    found: Tensor = _SplitLoss.apply(logits, wanted, groups)
    return found


def _has_experts(plan: ProxyPlan, layer: int) -> bool:
    experts = plan.model.experts
    return experts is not None and layer >= experts.dense_layers


def _head_width(plan: ProxyPlan) -> int:
    model = plan.model
    return model.head_width if model.head_width is not None else model.hidden // model.heads


def _block(plan: ProxyPlan, ffn: int) -> list[tuple[str, int, int, int]]:
    """Return the matrices of a block: name, rows, columns, and which of both TP splits."""
    hidden = plan.model.hidden
    gate = [("gate", ffn, hidden, 0)] if plan.model.gated else []
    return [*gate, ("up", ffn, hidden, 0), ("down", hidden, ffn, 1)]


def _matrices(plan: ProxyPlan) -> list[tuple[str, int, int, int]]:
    """Return every matrix that is no expert's and no router: name, rows, columns, and which of both TP splits."""
    model, width = plan.model, _head_width(plan)
    found = [("embedding", model.vocabulary, model.hidden, 0), ("head", model.vocabulary, model.hidden, 0)]
    for layer in range(plan.layers):
        found += [
            (f"{layer}.attention.queries", model.heads * width, model.hidden, 0),
            (f"{layer}.attention.keys", model.key_value_heads * width, model.hidden, 0),
            (f"{layer}.attention.values", model.key_value_heads * width, model.hidden, 0),
            (f"{layer}.attention.out", model.hidden, model.heads * width, 1),
        ]
        named, ffn = f"{layer}.block", model.ffn
        if _has_experts(plan, layer):
            assert model.experts is not None
            named, ffn = f"{layer}.shared", model.experts.shared_ffn
        if ffn:
            found += [(f"{named}.{part}", *rest) for part, *rest in _block(plan, ffn)]  # type: ignore[misc]
    return found


def _drawn(plan: ProxyPlan, name: str, rows: int, columns: int) -> Tensor:
    """Return a whole matrix, the same in every process for its name."""
    seed = int.from_bytes(hashlib.sha256(f"{plan.seed} {name}".encode()).digest()[:7], "big")
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator) * _DEVIATION


def _rotated(heads: Tensor) -> Tensor:
    """Return heads (sequences, heads, length, width) turned by their positions (arXiv 2104.09864)."""
    length, width = heads.shape[-2:]
    steps = torch.arange(width // 2, device=heads.device, dtype=torch.float32) * (-2.0 / width)
    angles = torch.arange(length, device=heads.device, dtype=torch.float32)[:, None] * _ROTARY_BASE**steps
    cosine, sine = angles.cos(), angles.sin()
    front, back = heads.float().chunk(2, dim=-1)
    turned = torch.cat((front * cosine - back * sine, front * sine + back * cosine), dim=-1)
    return turned.to(heads.dtype)
