"""Many tests at once: p-values that hold for all together (Holm, Scandinavian Journal of Statistics 6, 1979)."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted so that claiming those up to a level is wrong anywhere at most that often.

    The tests may depend on each other in any way.
    """
    adjusted = [1.0] * len(p_values)
    so_far = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        so_far = max(so_far, min(p_values[index] * (len(p_values) - place), 1.0))
        adjusted[index] = so_far
    return tuple(adjusted)
