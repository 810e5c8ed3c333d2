"""What is recommended for a run, laid under what is set on the host it is planned on.

As in `env.layers` the stronger layer wins: the environment and NCCL's settings files go before what is recommended,
which goes before what a plug-in sets by itself.
"""

from collections.abc import Iterable

import msgspec

from busbw.base.errors import InputError
from busbw.env.layers import layers
from busbw.env.recommend import recommend
from busbw.env.recommend.mpi import BINDING
from busbw.env.versions import newest, parse_version
from busbw.facts.envvars import variables
from busbw.facts.platforms import all_platforms, find_platform
from busbw.machine.capture.environment import absent
from busbw.machine.capture.sites import site_files
from busbw.measure.backends.backend import Backend, Surroundings
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Plan
from busbw.model.recommendation import Recommendation, Recommended
from busbw.model.request import Request
from busbw.model.settings import JobEnvironment, RecommendedLayer, RecommendedSetting, Setting, is_allowed

_OF_ONE_NODE = ("nic-check", "nvlink-check")
_WRITTEN = ("shell", "conf", "etc_conf")
# What reads a setting that no rank over MPI does, by its scope.
_NOT_OF_MPI = {"nccl": "NCCL reads it, and this run measures MPI", "cuda": "it is about GPUs, and none takes part here"}
_START_UP = "start_up"


def recommended_layer(
    request: Request, surroundings: Surroundings, backend: Backend, found: JobEnvironment
) -> RecommendedLayer:
    """Return what is recommended for a request with a goal, and what becomes of it.

    `found`: what the run would start with. Raises InputError where the platform is not known, and for a goal that such
    a run cannot have.
    """
    goal = request.goal or "bandwidth"
    if found.platform is None:
        raise InputError(
            "which platform this is cannot be told, and settings are recommended for platforms",
            where=f"--goal {goal}",
            hint="name it: --platform ID; `busbw platform list` has them",
        )
    nodes = len(surroundings.allocation.hosts) if surroundings.allocation is not None else 1
    if goal in _OF_ONE_NODE and nodes > 1:
        raise InputError(
            f"a check is of one node, and these are {nodes}",
            where=f"--goal {goal}",
            hint="start it on each node by itself: --hosts with one name",
        )
    files = site_files()
    if goal in _OF_ONE_NODE and backend.over == "mpi":
        way = "NVLink" if goal == "nvlink-check" else "the NICs"
        raise InputError(
            f"{goal} measures what NCCL sends over {way} between the GPUs of a node, and this run measures MPI",
            where=f"--goal {goal}",
            hint="--backend nccl, or nccl-tests; MPI over the NICs takes two nodes: --nodes 2",
        )
    made = recommend(
        find_platform(found.platform, files).platform,
        nodes=nodes,
        collective=_only_one(request, backend),
        goal=goal,
        nccl=_nccl(surroundings),
        mpi_name=_mpi_name(surroundings.mpi) if backend.over == "mpi" else None,
        siblings=all_platforms(files),
    )
    return _layer(made, backend, found, is_spread=surroundings.allocation is not None, gpu_buffers=request.gpu_buffers)


def _only_one(request: Request, backend: Backend) -> str | None:
    """Return the collective that is measured where it is a single one that NCCL has."""
    one = request.collectives[0] if len(request.collectives) == 1 and request.suite is None else None
    return one if backend.over == "nccl" else None


def _nccl(surroundings: Surroundings) -> str | None:
    """Return the version of the NCCL that was found; None where there is none, or none that is known."""
    text = surroundings.gpus.nccl.version if surroundings.gpus is not None else None
    try:
        return text if text is not None and parse_version(text) else None
    except InputError:
        return None


def _mpi_name(mpi: MpiLibrary | None) -> str | None:
    """Return what recommendations call the MPI whose messages are measured; None where it is none that they know."""
    if mpi is None:
        return None
    major = (mpi.version or "").split(".", 1)[0]
    if mpi.family == "Open MPI":
        return "open-mpi-4" if major in ("3", "4") else "open-mpi-5"
    if mpi.family == "MVAPICH":
        return "mvapich2" if major == "2" else "mvapich"
    return {"MPICH": "mpich", "Intel MPI": "intel-mpi"}.get(mpi.family)


def _layer(
    made: Recommendation, backend: Backend, found: JobEnvironment, *, is_spread: bool, gpu_buffers: bool
) -> RecommendedLayer:
    there = layers(found, parse_version(made.nccl) if made.nccl else newest())
    said = f"recommended for {made.platform}, goal {made.goal}"
    return RecommendedLayer(
        platform=made.platform,
        goal=made.goal,
        nodes=made.nodes,
        collective=made.collective,
        nccl=made.nccl,
        settings=tuple(
            _standing(
                each,
                Setting(
                    name=each.name,
                    value=each.value,
                    layer="recommended",
                    source=f"{said} ({', '.join(each.source)})",
                    reason=each.reason,
                    cost=each.cost,
                    conditions=each.conditions,
                ),
                next((choice for choice in there.explain(each.name) if choice.layer in _WRITTEN), None),
                _why_not(each, backend, is_spread=is_spread, gpu_buffers=gpu_buffers),
            )
            for each in made.settings
        ),
        advice=(
            *(f"{each.option}: {each.reason}" for each in made.launch),
            *(f"cannot tell: {each}" for each in made.cannot_tell),
        ),
    )


def _standing(each: Recommended, setting: Setting, over: Setting | None, why: str | None) -> RecommendedSetting:
    """Return what becomes of one setting: what is set here stays."""
    made = RecommendedSetting(setting=setting, need=each.need, topic=each.topic, standing="applied", over=over, why=why)
    if over is not None or each.value is None:
        same = over.value == each.value if over is not None else True
        return msgspec.structs.replace(made, standing="already" if same else "kept", why=None)
    return made if why is None else msgspec.structs.replace(made, standing="left_out")


def _why_not(each: Recommended, backend: Backend, *, is_spread: bool, gpu_buffers: bool) -> str | None:
    """Return why a setting cannot be set in a run; None where it can."""
    if backend.over == "mpi" and each.scope in _NOT_OF_MPI and not (each.scope == "cuda" and gpu_buffers):
        return _NOT_OF_MPI[each.scope]
    if backend.over == "mpi" and each.topic == _START_UP:
        return "it steers how MPI starts a job over NCCL, and this run measures MPI itself"
    if each.name in BINDING:
        return "--bind-to says which CPUs a rank has"
    if is_spread and not is_allowed(each.name):
        return "it is not among the variables that reach other hosts"
    known = variables().get(each.name)
    if each.value is not None and known is not None and known.kind == "path" and absent((each.value,)):
        return f"nothing is at {each.value} on the planning host"
    return None


def with_layer(plan: Plan, layer: RecommendedLayer) -> Plan:
    """Return a plan whose commands set what is applied of a layer, and which keeps the layer."""
    return msgspec.structs.replace(with_variables(plan, layer.env().items(), ()), recommended=layer)


def with_variables(plan: Plan, given: Iterable[tuple[str, str]], unset: Iterable[str]) -> Plan:
    """Return a plan whose commands have these variables, with any launcher."""
    pairs, names = tuple(given), tuple(unset)
    steps = tuple(msgspec.structs.replace(step, job=_with(step.job, pairs, names)) for step in plan.steps)
    return msgspec.structs.replace(plan, job=_with(plan.job, pairs, names), steps=steps)


def _with(job: Job, given: tuple[tuple[str, str], ...], unset: tuple[str, ...]) -> Job:
    names = {name for name, _value in given} | set(unset)
    kept = tuple((name, value) for name, value in job.env if name not in names)
    return msgspec.structs.replace(job, env=(*kept, *given), unset=(*job.unset, *unset))
