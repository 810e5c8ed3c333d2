"""A sweep over the pairs of a fabric: what was asked for, what is planned of it, and what each round measured."""

from typing import Annotated, Literal, get_args

from msgspec import Meta

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding

# latency: half a round trip; bandwidth: one way at a time; bibandwidth: both ways at once;
# message-rate: small messages one way at a time.
FabricMetric = Literal["latency", "bandwidth", "bibandwidth", "message-rate"]
METRICS: tuple[FabricMetric, ...] = get_args(FabricMetric)
# all: every pair once; sparse: a few random rounds, then what is still open; rail: all, of named NICs.
PAIRS = ("all", "sparse", "rail")


class FabricAsked(Value, kw_only=True, frozen=True, omit_defaults=True):
    """What `busbw fabric` was asked to measure, beside the hosts and how ranks are started."""

    metrics: tuple[FabricMetric, ...] = ("latency", "bandwidth")
    # One of PAIRS, or a file of pairs.
    pairs: str = "sparse"
    # Of a message of bandwidth; None: what is usual.
    size_bytes: Integer | None = None
    # One rank of each host for each of these, which it uses alone; (): one rank that uses what MPI takes.
    nics: tuple[str, ...] = ()
    # Slurm's topology.conf.
    tree: str | None = None
    # What sound pairs reach, as `380Gb/s`, `1.7us`.
    expect: tuple[str, ...] = ()
    seed: Integer = 1
    # Rounds in all, at most; None: what is usual of so many nodes.
    rounds: Integer | None = None
    # Seconds of one test, and after which a pair is given up.
    pair_s: float = 0.1
    limit_s: float = 10.0

    def words(self) -> tuple[str, ...]:
        """Return the options that ask for it."""
        usual = FabricAsked()
        given = (
            ("--metric", ",".join(self.metrics), self.metrics != usual.metrics),
            ("--pairs", self.pairs, self.pairs != usual.pairs),
            ("-b", str(self.size_bytes), self.size_bytes is not None),
            ("--nics", ",".join(self.nics), bool(self.nics)),
            ("--topology", self.tree or "", self.tree is not None),
            ("--seed", str(self.seed), self.seed != usual.seed),
            ("--rounds", str(self.rounds), self.rounds is not None),
            ("--pair-time", f"{self.pair_s:g}", self.pair_s != usual.pair_s),
            ("--pair-limit", f"{self.limit_s:g}", self.limit_s != usual.limit_s),
        )
        words = tuple(word for name, text, is_given in given if is_given for word in (name, text))
        return (*words, *(word for each in self.expect for word in ("--expect", each)))


class PairProbe(Value, kw_only=True, frozen=True):
    """How one metric is measured between the two ranks of a pair."""

    metric: FabricMetric
    size_bytes: Annotated[int, Meta(ge=1, le=2**30)]
    # Round trips of a sample, or messages that are under way at once.
    calls: Annotated[int, Meta(ge=1, le=4096)]
    # Of one test in one direction: seconds after which it ends with the sample in hand, and how many samples it takes.
    budget_s: float
    least_samples: Integer = 3
    most_samples: Integer = 2000
    # A pair that has not come to its end by then is given up.
    limit_s: float


class PlannedEndpoint(Value, kw_only=True, frozen=True):
    """An endpoint of the fabric: a host, or one of its NICs."""

    node: str
    nic: str | None = None


class PairSeen(Value, kw_only=True, frozen=True):
    """One test of a round, from a sender to a receiver, by their numbers. Seconds, or bytes or messages a second."""

    sender: Integer
    receiver: Integer
    # None: no answer within the limit.
    value: float | None
    samples: Integer = 0
    # Of its samples: the quickest and the slowest, as such values.
    best: float | None = None
    worst: float | None = None
    # How often the kernel gave the cores of the sender's and the receiver's rank to other work, and for how long both
    # were at it; None: not counted.
    taken_off: tuple[Integer, Integer] | None = None
    wall_s: float | None = None


class Earlier(Value, kw_only=True, frozen=True):
    """A round of the run that is gone on with."""

    metric: FabricMetric
    round: Integer
    tests: tuple[PairSeen, ...]


class FabricPlan(Value, kw_only=True, frozen=True):
    """A sweep, all of it but the rounds that follow from what was measured: those are decided by `seed` and values."""

    asked: FabricAsked
    seats: tuple[PlannedEndpoint, ...]
    # The leaf of each seat; None: not known.
    leaves: tuple[Integer | None, ...]
    leaf_names: tuple[str, ...] = ()
    # The group of each leaf.
    groups: tuple[Integer, ...] = ()
    # What the links of its topology show, where it has them.
    links: tuple[Finding, ...] = ()
    probes: tuple[PairProbe, ...]
    # Rounds of disjoint pairs before anything is known, for each probe; (): every pair once, by the circle method.
    first: tuple[tuple[tuple[tuple[Integer, Integer], ...], ...], ...] = ()
    # The seat of each rank.
    of_rank: tuple[Integer, ...]
    # Variables of the ranks of a host, by their number there.
    nic_settings: tuple[tuple[tuple[str, str], ...], ...] = ()
    # The run that this one goes on with, and what that measured; its lost hosts have no rank here.
    continues: str | None = None
    earlier: tuple[Earlier, ...] = ()

    def seed_of(self, metric: FabricMetric) -> str:
        """Return what the random numbers of one metric begin with."""
        return f"{self.asked.seed} {metric}"


def command_words(asked: FabricAsked) -> tuple[str, ...]:
    """Return the words of `busbw fabric` for what was asked."""
    return ("busbw", "fabric", *asked.words())
