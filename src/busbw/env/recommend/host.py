"""Which CPUs the ranks and NCCL's own threads run on, and how GPUs are numbered."""

from busbw.base.errors import InputError
from busbw.env.recommend.case import Case, Leave, Rule, Take
from busbw.env.recommend.topology_file import checks_of
from busbw.model.platform import PlatformSetting
from busbw.model.recommendation import LaunchAdvice
from busbw.topo.origins.from_platform import topology_of_platform


def _ignored(case: Case, setting: PlatformSetting) -> Take | Leave:
    file = next((each.value for each in case.platform.settings if each.name == "NCCL_TOPO_FILE" and each.value), None)
    return Take(
        need="check_first" if setting.reason is None else "helps",
        reason=setting.reason or "NCCL's threads go to the CPUs of their GPU, whatever the launcher bound the rank to.",
        conditions="the CPU masks that NCCL knows are right: with 1 it obeys them alone",
        cost="the application's own threads stay where the launcher put them: bind the ranks too",
        checks=checks_of(file, case.platform.id)[:1] if file else ("busbw topo show --here",),
    )


def _order(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="helps", cost="none; programs that count on CUDA's own order (fastest first) see other numbers")


def launch(case: Case) -> tuple[LaunchAdvice, ...]:
    """Return how to bind the ranks, where the platform's map of GPUs and CPUs is published."""
    try:
        topology = topology_of_platform(case.platform)
    except InputError:
        return ()
    if not topology.numa or not all(numa.cpus for numa in topology.numa):
        return ()
    return (
        LaunchAdvice(
            option=f"busbw topo masks {case.platform.id}",
            reason=(
                "prints the CPUs of each rank's GPU for srun, mpirun and taskset; "
                "`--bind-to numa` alone goes by launch order"
            ),
            source=case.platform.numa[0].source if case.platform.numa else (),
        ),
    )


RULES = (
    Rule(name="NCCL_IGNORE_CPU_AFFINITY", topic="affinity", judge=_ignored),
    Rule(name="CUDA_DEVICE_ORDER", topic="affinity", judge=_order),
)
