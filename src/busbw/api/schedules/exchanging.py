"""Schedules of collectives in other programs' forms: what one takes on a platform, and our own written out."""

from dataclasses import dataclass
from pathlib import Path

from busbw.api.predictions import PredictRequest
from busbw.base.collectives import COLLECTIVES, not_a_collective
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms
from busbw.limits.algorithms import algorithm_name
from busbw.machine.named import platform
from busbw.model.predict.prediction import Prediction, TimedSchedule, TimedSize
from busbw.predict.described import described_machine
from busbw.predict.imported import ImportedSchedule, imported_schedule, timed_import
from busbw.predict.machines import CannotTellError, machine_of
from busbw.predict.schedules.chakra import chakra_texts
from busbw.predict.schedules.goal import MOST_BYTES, goal_text
from busbw.predict.schedules.programs import no_form_of, written_out
from busbw.predict.tiers import ScheduleTier, collnet_ways, lane_of, schedule_of
from busbw.store.files import read_bounded, write_folder, write_whole


@dataclass(frozen=True, kw_only=True)
class ScheduleRequest:
    """What is asked of a schedule: its file, and nodes of a platform. None: left to the file, or to what is known."""

    file: Path
    platform: str
    nodes: int
    sizes_bytes: tuple[int, ...]
    # As the file says it, where it does.
    collective: str | None = None
    gpus: int | None = None
    # Whose constants links and hops have.
    algorithm: str | None = None
    tier: ScheduleTier = "steps"


def time_schedule(asked: ScheduleRequest) -> TimedSchedule:
    """Return what a schedule in GOAL or MSCCL's XML takes. Raises InputError for what is none, or does not fit."""
    machine = machine_of(platform(asked.platform).platform, gpus=asked.gpus, name=asked.platform)
    where = str(asked.file)
    schedule = imported_schedule(read_bounded(asked.file, most_bytes=MOST_BYTES, kind="schedule"), where)
    collective = _collective(asked, schedule, where)
    if schedule.program is not None and len(asked.sizes_bytes) != 1:
        raise InputError("GOAL says bytes, so it has one size", where=where, hint="--size S that it was made for")
    algorithm = algorithm_name(asked.algorithm) if asked.algorithm is not None else "ring"
    rows = []
    for size_bytes in asked.sizes_bytes:
        try:
            timed = timed_import(
                machine, schedule, nodes=asked.nodes, collective=collective, size_bytes=size_bytes,
                algorithm=algorithm, tier=asked.tier,
            )  # fmt: skip
            rows.append(TimedSize(size_bytes=size_bytes, timed=timed))
        except CannotTellError as error:
            rows.append(TimedSize(size_bytes=size_bytes, cannot=str(error)))
    return TimedSchedule(
        name=machine.name,
        where=where,
        form=schedule.form,
        collective=collective,
        nodes=asked.nodes,
        ranks=schedule.ranks,
        acts=schedule.acts,
        constants=algorithm,
        rows=tuple(rows),
    )


def _collective(asked: ScheduleRequest, schedule: ImportedSchedule, where: str) -> str:
    said = schedule.msccl.collective if schedule.msccl is not None else None
    if said is None and asked.collective is None:
        raise InputError(
            "GOAL does not say of which collective it is", where=where, hint="busbw predict all_reduce --schedule FILE"
        )
    if said is not None and asked.collective not in (None, said):
        raise InputError(f"{where} is {said}, not {asked.collective}", where=where, hint="leave the collective out")
    collective = said or asked.collective or ""
    if collective not in COLLECTIVES:
        raise not_a_collective(collective)
    return collective


def write_schedule(path: Path, asked: PredictRequest, found: Prediction) -> int:
    """Write the schedule of a predicted call as GOAL (`.goal`) or Chakra (`.chakra`: a folder); return its acts.

    Raises InputError for several calls, another ending, more acts than are written, and a folder that is there.
    """
    call = found.rows[0].expected
    if path.suffix not in (".goal", ".chakra"):
        raise InputError(
            f"{path.name[:40]!r} says no form",
            where="--schedule-out",
            hint="FILE.goal, or FOLDER.chakra: a file a rank",
        )
    if call is None and collnet_ways(asked.algorithm):
        raise no_form_of(asked.algorithm or "")
    if len(found.rows) != 1 or call is None:
        what = "more than one call" if call is not None else "nothing is predicted"
        raise InputError(
            f"no schedule is written: {what}", where="--schedule-out", hint="one number of nodes and one size"
        )
    machine = (
        described_machine(asked.machine, all_platforms(()))[1]
        if asked.machine is not None
        else machine_of(platform(asked.platform or "").platform, gpus=asked.gpus, name=asked.platform)
    )
    try:
        schedule = schedule_of(machine, call.nodes, asked.collective, call.algorithm, call.size_bytes)
        rates = lane_of(machine, call.nodes, asked.collective, call.algorithm, call.size_bytes).rates
    except CannotTellError as error:
        raise InputError(f"no schedule is written: {error}", where="--schedule-out") from error
    program = written_out(schedule, rates)
    if path.suffix == ".goal":
        what = f"{asked.collective} of {call.size_bytes} bytes by {call.algorithm}, {call.nodes} nodes"
        words = f"{what} of {found.gpus} GPUs: {found.name}\nrank: GPU; tag: lane; calc: ns at rates of the platform"
        write_whole(path, goal_text(program, words).encode("ascii", "replace"))
    else:
        files = ((f"{path.stem}.{rank}.json", text, False) for rank, text in enumerate(chakra_texts(program)))
        write_folder(path, files)
    return program.count
