"""What is predicted at the points of a scaling figure, beside what was measured there.

Each point gets what `busbw predict` says of its platform, nodes, size and algorithm, or why that cannot be told.
Verdict and findings are made before, and without it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from busbw.api.predicting.calibrations import DETOURS
from busbw.api.predictions import PredictRequest, predict
from busbw.base.errors import InputError
from busbw.judge.explaining.series import detour_of, stated_by_settings
from busbw.judge.scaling.collective import OVER_MPI, is_of_size, known_algorithm
from busbw.judge.scaling.lines import UNTOLD, algorithm_of, condition, setting
from busbw.judge.scaling.places import count_of
from busbw.model.platform import Platform
from busbw.model.scaling import LinePrediction, Observation, PredictedPoint, Scaling, ScalingPoint, ScalingSeries
from busbw.predict.machines import CannotTellError

_ADDING = ("nvls", "nvlstree")
# Of other tools whose collectives are not NCCL's.
_LIBRARIES = {"gpcnet": "MPI", "nvshmem-perftest": "NVSHMEM"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedBands:
    """The platform that was asked for, its name there, and the algorithm; None: each is left to the results."""

    platform: Platform | None = None
    name: str | None = None
    algorithm: str | None = None


def with_predictions(view: Scaling, observations: Sequence[Observation], asked: AskedBands) -> Scaling:
    """Return the figure of a collective with what is predicted at each point of its lines."""
    return replace(view, predictions=tuple(_line(view, series, observations, asked) for series in view.series))


def _line(
    view: Scaling, series: ScalingSeries, observations: Sequence[Observation], asked: AskedBands
) -> LinePrediction:
    points, platforms = [], dict.fromkeys([asked.name] if asked.name is not None else [])
    for point in series.points:
        here = [each for each in observations if _is_of(each, point, view)]
        if asked.name is None:
            platforms |= dict.fromkeys(each.platform for each in here if each.platform is not None)
        try:
            points.append(_predicted(point, here, view.size_bytes, asked))
        except CannotTellError as error:
            points.append(PredictedPoint(at=point.at, cannot=str(error)))
    return LinePrediction(line=series.label, platform=", ".join(platforms) or None, points=tuple(points))


def _is_of(each: Observation, point: ScalingPoint, view: Scaling) -> bool:
    """Return whether a result is one that a point is made of: a run has one for each size."""
    is_here = each.source in point.sources and count_of(each, view.axis) == point.at
    return is_here and is_of_size(each, view.size_bytes)


def _predicted(
    point: ScalingPoint, here: Sequence[Observation], size_bytes: int | None, asked: AskedBands
) -> PredictedPoint:
    """Return what is predicted at a point. Raises CannotTellError."""
    name = _platform_name(here, asked)
    if point.nodes is None:
        raise CannotTellError("on how many nodes it was measured is not told: --ranks-per-node")
    collective = condition(here[0], "collective")
    if collective is None or size_bytes is None:
        raise CannotTellError("which collective of which size it is is not told")
    if point.ranks is not None and point.ranks % point.nodes:
        raise CannotTellError(f"{point.ranks} ranks are no whole number a node on {point.nodes} nodes")
    _check_way(point.nodes, here)
    algorithm = asked.algorithm or _algorithm(here)
    try:
        row = predict(
            PredictRequest(
                collective=collective,
                platform=name,
                nodes=(point.nodes,),
                sizes_bytes=(size_bytes,),
                gpus=point.ranks // point.nodes if point.ranks is not None else None,
                algorithm=algorithm,
            )
        ).rows[0]
    except InputError as error:
        raise CannotTellError(error.cause) from error
    call = row.expected
    if call is None:
        raise CannotTellError(row.cannot or "no data applies")
    if (
        algorithm is None
        and any(each.algorithm in _ADDING for each in (call, *row.others))
        and any(stated_by_settings(each.settings).nvls is False for each in here)
    ):
        raise CannotTellError("NVLink SHARP was off, and which algorithm ran is not told: --algorithm ring or tree")
    measured_Bps = point.busbw_Bps.value if point.busbw_Bps is not None else None
    return PredictedPoint(
        at=point.at,
        call=call,
        chosen_by=row.chosen_by if algorithm is None else "as asked for" if asked.algorithm else "as it ran",
        is_inside=call.low_Bps <= measured_Bps <= call.high_Bps if measured_Bps is not None else None,
    )


def _platform_name(here: Sequence[Observation], asked: AskedBands) -> str:
    """Return the platform of a point by name. Raises CannotTellError for none, for several, and for another."""
    stored = list(dict.fromkeys(each.platform for each in here if each.platform is not None))
    if asked.platform is not None and asked.name is not None:
        other = next((each for each in stored if each != asked.platform.id), None)
        if other is not None:
            raise CannotTellError(f"it was measured on {other}, not on {asked.platform.id}")
        return asked.name
    if not stored:
        raise CannotTellError("which platform it was measured on is not told: --platform ID")
    if len(stored) > 1:
        raise CannotTellError(f"results of {' and '.join(stored)} are one point: --platform ID")
    return stored[0]


def _check_way(nodes: int, here: Sequence[Observation]) -> None:
    """Raise CannotTellError for what was not measured with NCCL over the machine's links and network."""
    why = next((words for each in here for words in _other_ways(nodes, each)), None)
    if why is not None:
        raise CannotTellError(why)


def _other_ways(nodes: int, each: Observation) -> Iterator[str]:
    tool = setting(each, "tool")
    stated = stated_by_settings(each.settings)
    detour = detour_of(stated, nodes)
    library = "MPI" if tool in OVER_MPI else _LIBRARIES.get(tool)
    if library is not None:
        yield f"it was measured over {library} ({tool}), and predictions are of NCCL"
    if condition(each, "pair") is not None:
        yield "two ranks alone were measured"
    if stated.network is not None:
        yield "data went through the NICs of one node"
    if detour is not None:
        yield f"data went {DETOURS[detour]}, and is predicted over the machine's links and network"
    if stated.sharp:
        yield "the network's switches added (SHARP), and no prediction does"


def _algorithm(here: Sequence[Observation]) -> str | None:
    """Return the algorithm that ran, None where that is not told. Raises CannotTellError for several, or another."""
    used = [*dict.fromkeys(algorithm_of(each) for each in here)]
    if used == [UNTOLD]:
        return None
    if len(used) > 1 or "," in used[0]:
        raise CannotTellError(f"several algorithms ran: {', '.join(used)}")
    name = known_algorithm(used[0])
    if name is None:
        raise CannotTellError(f"it ran by {used[0]}, of which no measurement is published")
    return name
