"""What a platform could reach at best."""

from busbw.api.platforms import platform
from busbw.limits.ceiling import ceiling
from busbw.limits.from_platform import rates_of_platform
from busbw.model.limit import Limit


def limit_of_platform(
    name: str, *, nodes: int = 1, gpus: int | None = None, collective: str | None = None, algorithm: str | None = None
) -> Limit:
    """Return the ceilings of bus bandwidth on `nodes` nodes of a platform, by any of its names.

    `gpus`: of each node, all by default. Without a collective those with a bound, without an algorithm those that
    libraries choose. Raises InputError for names, nodes and GPUs that there are not.
    """
    rates = rates_of_platform(platform(name).platform, gpus=gpus, name=name)
    return ceiling(rates, nodes=nodes, collective=collective, algorithm=algorithm)
