"""Matrix products of the transformer: in the type of its values, or in FP8 with a scale for each tensor.

FP8 is e4m3 for values and weights and e5m2 for gradients, as arXiv 2209.05433 has it, each scaled by its own largest
element at that moment; sums stay in float32, what comes out is bfloat16.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_LEAST = 1e-12
# The products take sides that are multiples of it.
_MULTIPLE = 16


def product(values: Tensor, weight: Tensor, *, in_fp8: bool) -> Tensor:
    """Return values (rows, width in) by weight (width out, width in), transposed."""
    if not in_fp8:
        return functional.linear(values, weight)
    rows = values.shape[0]
    # An expert that no token chose has none.
    padding = -rows % _MULTIPLE if rows else _MULTIPLE
    padded = functional.pad(values, (0, 0, 0, padding)) if padding else values
    found: Tensor = _Fp8Product.apply(padded, weight)
    return found[:rows] if padding else found


class _Fp8Product(torch.autograd.Function):
    """A product in FP8, and both of its gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(values, weight)
        return scaled_product(values, torch.float8_e4m3fn, weight, torch.float8_e4m3fn)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        values, weight = ctx.saved_tensors
        of_values = scaled_product(gradient, torch.float8_e5m2, weight.t(), torch.float8_e4m3fn)
        of_weight = scaled_product(gradient.t(), torch.float8_e5m2, values.t(), torch.float8_e4m3fn)
        return of_values, of_weight


def scaled_product(left: Tensor, left_type: torch.dtype, right: Tensor, right_type: torch.dtype) -> Tensor:
    """Return left (m, k) by right (n, k), transposed, through FP8 of these types."""
    one, one_scale = _scaled(left, left_type)
    other, other_scale = _scaled(right, right_type)
    found: Tensor = torch._scaled_mm(  # noqa: SLF001 - the one way to FP8 products that PyTorch 2.6 to 2.13 share
        one, other.t(), scale_a=one_scale, scale_b=other_scale, out_dtype=torch.bfloat16
    )
    return found


def _scaled(values: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return values in FP8, row by row, and what they are to be multiplied by."""
    most = torch.finfo(kind).max
    scale = most / values.detach().abs().amax().float().clamp(min=_LEAST)
    return (values * scale).clamp(-most, most).to(kind).contiguous(), scale.reciprocal()
