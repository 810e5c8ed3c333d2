"""Which ranks meet when two at a time exchange: every pair, one rail, across rails, or those named."""

from itertools import combinations

from busbw.base.errors import InputError

_MOST_PAIRS = 10_000


def pairs_of(asked: str, ranks: int, group: int | None) -> tuple[tuple[int, int], ...]:
    """Return the pairs that `asked` names: "all", "rail", "cross" or "0-1,2-3". Raises InputError.

    Ranks of one rail have the same place in their nodes of `group` ranks each; NICs of one rail share their switches.
    """
    if asked in ("all", "rail", "cross"):
        pairs = tuple(combinations(range(ranks), 2))
        if asked != "all":
            pairs = tuple(pair for pair in pairs if _is_between_nodes(pair, asked, ranks, group))
    else:
        pairs = tuple(_named(part, ranks) for part in asked.split(","))
    if not pairs:
        raise InputError("no two ranks are left", where=f"--pairs {asked}", hint="--pairs all")
    if len(pairs) > _MOST_PAIRS:
        raise InputError(f"{len(pairs)} pairs are more than {_MOST_PAIRS}", where=f"--pairs {asked}", hint="name some")
    return pairs


def _is_between_nodes(pair: tuple[int, int], asked: str, ranks: int, group: int | None) -> bool:
    if group is None or ranks % group:
        raise InputError(
            "rails need to know how many ranks a node has",
            where=f"--pairs {asked}",
            hint="--group 8 for eight GPUs a node",
        )
    left, right = pair
    same_rail = left % group == right % group
    return left // group != right // group and same_rail == (asked == "rail")


def _named(part: str, ranks: int) -> tuple[int, int]:
    left, dash, right = part.strip().partition("-")
    if not (dash and left.isdecimal() and right.isdecimal()) or len(left) > 9 or len(right) > 9:
        raise InputError(f"{part!r} is not a pair of ranks", where="--pairs", hint="all, rail, cross, or: 0-1,2-3")
    first, second = int(left), int(right)
    if first == second or max(first, second) >= ranks:
        raise InputError(
            f"{part!r} is not two of the {ranks} ranks", where="--pairs", hint=f"ranks are 0 to {ranks - 1}"
        )
    return first, second
