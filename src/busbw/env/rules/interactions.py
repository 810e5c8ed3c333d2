"""Settings that together do something else than each of them says. Each rule is a function over what is set together.

Read in NCCL's source at 2.30.7 and, where a rule names a version, at the tags around it.
"""

from collections.abc import Mapping

from busbw.env.rules.interactions_algorithms import ALGORITHMS
from busbw.env.rules.interactions_limits import LIMITS
from busbw.env.rules.interactions_network import NETWORK
from busbw.env.rules.interactions_transport import TRANSPORT
from busbw.env.together import Together
from busbw.model.understood import Interaction

_RULES = (*ALGORITHMS, *TRANSPORT, *NETWORK, *LIMITS)


def interactions(
    values: Mapping[str, str], *, version: tuple[int, ...] | None = None, nodes: int | None = None
) -> tuple[Interaction, ...]:
    """Return what settings that hold together do to each other.

    `values`: variable to text, as ranks see them. `version`: NCCL's; None: the newest known. `nodes`: None: not known.
    """
    together = Together(values, version, nodes)
    return tuple(found for rule in _RULES for found in rule(together))
