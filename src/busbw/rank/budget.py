"""How the time limit of a run is shared between its points. Only rank 0 decides; the others are told."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Instants of the monotonic clock: when this point began, when it has had its share, and when the whole run has."""

    began_s: float
    share_ends_s: float
    run_ends_s: float

    @classmethod
    def for_next(cls, run_ends_s: float, points_left: int) -> "Budget":
        """Return the budget of the next of `points_left` points: an equal share of the time that is left."""
        now_s = time.monotonic()
        return cls(
            began_s=now_s, share_ends_s=now_s + max(run_ends_s - now_s, 0.0) / points_left, run_ends_s=run_ends_s
        )

    @property
    def spent_share(self) -> float:
        """How much of this point's share is used up: 0 at its beginning, 1 at its end."""
        whole_s = self.share_ends_s - self.began_s
        return (time.monotonic() - self.began_s) / whole_s if whole_s > 0 else 1.0

    @property
    def share_left_s(self) -> float:
        """Time left of this point's share; negative when it is overdrawn."""
        return self.share_ends_s - time.monotonic()

    @property
    def run_left_s(self) -> float:
        """Time left of the run."""
        return self.run_ends_s - time.monotonic()
