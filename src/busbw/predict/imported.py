"""Schedules that others wrote, on a machine as the closed form sees it: the same tiers, the same constants.

What was fitted to an algorithm of ours (a ring, unless another one is named) says what links reach and what a hop
takes; the structure is that of the file. No document was left out of that, so it has no interval.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.model.predict.prediction import SimulatedCall
from busbw.predict.machines import CannotTellError, MachineClass, groups_of
from busbw.predict.schedules.goal import program_of_goal
from busbw.predict.schedules.msccl import MscclAlgorithm, algorithm_of_msccl
from busbw.predict.schedules.programs import WrittenSchedule, described
from busbw.predict.schedules.timing import busiest_s, time_events, time_steps
from busbw.predict.tiers import ScheduleTier, lane_of, schedule_of, words_of

# Collectives that a ring does; of others the hops and shares of an all_gather are taken.
_RINGS = ("all_reduce", "all_gather", "reduce_scatter")


@dataclass(frozen=True, kw_only=True)
class ImportedSchedule:
    """What a file says: a program in bytes, or one over chunks that any size has."""

    form: str
    ranks: int
    acts: int
    program: WrittenSchedule | None = None
    msccl: MscclAlgorithm | None = None


def imported_schedule(raw: bytes, where: str) -> ImportedSchedule:
    """Return what a file of MSCCL or GOAL says. Raises InputError for all else."""
    if raw.lstrip()[:1] == b"<":
        msccl = algorithm_of_msccl(raw, where)
        return ImportedSchedule(form="MSCCL", ranks=len(msccl.program.acts), acts=msccl.program.count, msccl=msccl)
    program = program_of_goal(raw, where)
    return ImportedSchedule(form="GOAL", ranks=len(program.acts), acts=program.count, program=program)


def timed_import(
    machine: MachineClass,
    schedule: ImportedSchedule,
    *,
    nodes: int,
    collective: str,
    size_bytes: int,
    algorithm: str,
    tier: ScheduleTier,
) -> SimulatedCall:
    """Return what a schedule takes as a collective of a size.

    Raises InputError for another number of ranks and for bytes that the collective cannot do with, CannotTellError
    where the machine lacks constants.
    """
    ranks = machine.rates.gpus * nodes
    if schedule.ranks != ranks:
        raise InputError(
            f"the schedule has {schedule.ranks} ranks, {nodes} nodes of {machine.rates.gpus} GPUs have {ranks}",
            where="--nodes",
            hint="--nodes N and --gpus N that are as many ranks as the schedule has",
        )
    groups = groups_of(machine, nodes)
    gpus, ports = ranks // groups, (machine.rates.ports or 0) * nodes // groups
    if groups > 1 and ports < gpus and (ports < 1 or gpus % ports):
        raise CannotTellError(f"{ports} NICs of {gpus} GPUs: which GPU has which NIC is not known")
    like = collective if collective in _RINGS else "all_gather"
    lane = lane_of(machine, nodes, like, algorithm, size_bytes)
    lanes = schedule_of(machine, nodes, like, algorithm, size_bytes).lanes
    rates = replace(lane.rates, nic_Bps=lane.rates.nic_Bps * lanes / max(1, min(ports, gpus)))
    msccl = schedule.msccl
    program = msccl.of_size(size_bytes) if msccl is not None else schedule.program
    if program is None:
        raise InputError("the schedule says nothing")
    check_bytes(program, collective, size_bytes)
    made = described(
        program,
        gpus=gpus,
        ranks_of_nic=max(1, gpus // max(1, ports)) if groups > 1 else 1,
        algorithm=schedule.form,
        collective=collective,
        wire=msccl.wire if msccl is not None else Fraction(1),
    )
    found = time_steps(made, rates, folds=True) if tier == "steps" else time_events(made, rates)
    time_s = max(found.time_s, busiest_s(made, rates)) + lane.once_s
    return SimulatedCall(
        tier=tier,
        algorithm=schedule.form,
        time_s=time_s,
        busbw_Bps=COLLECTIVES[collective].factor(ranks) * size_bytes / time_s,
        words=words_of(made, found, tier),
    )


def check_bytes(program: WrittenSchedule, collective: str, size_bytes: int) -> None:
    """Raise InputError where a rank receives less than the collective must bring it; signals and flags come on top."""
    ranks = len(program.acts)
    part = Fraction(size_bytes, ranks)
    least = {
        "all_reduce": Fraction(size_bytes), "all_gather": part * (ranks - 1), "reduce_scatter": part,
        "alltoall": part * (ranks - 1), "broadcast": Fraction(size_bytes), "reduce": Fraction(size_bytes),
    }.get(collective, Fraction(0))  # fmt: skip
    # A broadcast starts at one rank, and a reduce ends at one.
    spared = {"broadcast": 1, "reduce": ranks - 1}.get(collective, 0)
    received = [
        sum(act.amount for act in acts if act.what == "recv") * program.unit_bytes * program.rounds
        for acts in program.acts
    ]
    short = [rank for rank, moved in enumerate(received) if moved < least]
    if len(short) > spared:
        rank = short[0]
        raise InputError(
            f"rank {rank} receives {float(received[rank]):.0f} bytes; {collective} of {size_bytes} must bring it "
            f"{float(least):.0f}",
            where=program.where,
            hint="the size that the schedule was made for, as nccl-tests counts it: --size",
        )
