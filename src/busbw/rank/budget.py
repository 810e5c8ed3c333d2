"""How the time limit of a run is shared between its points. Only rank 0 decides; the others are told."""

import time

import msgspec


class Budget(msgspec.Struct, frozen=True):
    """Instants of the monotonic clock: when this point began, when it has had its share, and when the whole run has.

    `even_s`: what every point would have if all took the same time.
    """

    began_s: float
    share_ends_s: float
    run_ends_s: float
    even_s: float

    @classmethod
    def for_next(cls, run_ends_s: float, points_left: int, even_s: float) -> "Budget":
        """Return the budget of the next of `points_left` points: an equal share of the time that is left."""
        now_s = time.monotonic()
        return cls(
            began_s=now_s,
            share_ends_s=now_s + max(run_ends_s - now_s, 0.0) / points_left,
            run_ends_s=run_ends_s,
            even_s=even_s,
        )

    @property
    def spent_share(self) -> float:
        """How much of an even share this point has used up: 0 at its beginning.

        What quick points left over is there for those that need it to narrow their interval, not to be used up.
        """
        return (time.monotonic() - self.began_s) / self.even_s if self.even_s > 0 else 1.0

    @property
    def share_left_s(self) -> float:
        """Time left of this point's share; negative when it is overdrawn."""
        return self.share_ends_s - time.monotonic()

    @property
    def run_left_s(self) -> float:
        """Time left of the run."""
        return self.run_ends_s - time.monotonic()
