"""What a comparison of times takes for granted: how, where and with what each side was measured."""

import re
from collections.abc import Mapping

from busbw.model.imported import Table
from busbw.model.plan import Plan
from busbw.model.run import Run

# From here on nccl-tests warms up with one call instead of five, and opens sendrecv to two peers at most (with NCCL
# 2.30 and later). Source: nccl-tests' history, src/common.cu and src/sendrecv.cu.
_ONE_WARMUP_CALL = (2, 16, 8)
_FEWER_PEERS = (2, 18, 3)
_PEERS_SINCE_NCCL = (2, 30)
_LONGEST = 80

# Words of a circumstance, by the rule that speaks of it.
Circumstances = Mapping[str, str]


def of_plan(plan: Plan) -> Circumstances:
    """Return how a run is going to be measured, by rule: what is known before it is started."""
    tool = plan.programs[0].tool if plan.programs else "busbw"
    verification = f"verification {'on' if plan.sampling.verify else 'off'}"
    found = {
        "CMP001": plan.sampling.mode,
        "CMP002": f"{plan.placement.ranks} ranks",
        "CMP003": f"{tool}, median of {'samples' if tool == 'busbw' else 'what it prints'}",
        # OSU checks between the calls that it times; the others before or after them.
        "CMP004" if tool == "osu" else "CMP016": verification,
    }
    return {code: words for code, words in found.items() if words}


def of_run(run: Run) -> Circumstances:
    """Return how a run was measured, by rule; what is not known is left out."""
    plan = run.plan
    gpu = run.ranks[0].gpu if run.ranks else None
    program = plan.programs[0] if plan.programs else None
    tool, version = (program.tool, program.version) if program is not None else ("busbw", None)
    calls = f", {plan.sampling.calls} calls a sample" if plan.sampling.calls else ""
    crowded = ", more ranks than cores" if plan.placement.oversubscribed else ""
    found = {
        "CMP006": _warmup(tool, version, plan.sampling.warmup_calls) + calls,
        "CMP007": f"NCCL {gpu.nccl}" if gpu is not None else "",
        "CMP008": _buffers(plan),
        "CMP009": _peers(plan, tool, version, gpu.nccl if gpu is not None else None),
        "CMP010": _mpi(run),
        "CMP011": ", ".join(plan.placement.hosts),
        "CMP012": f"binding {plan.placement.binding}{crowded}",
        "CMP013": _settings(plan.surroundings.environment) if plan.surroundings is not None else "",
        "CMP018": f"busbw {plan.busbw_version}",
    }
    return {**of_plan(plan), **{code: words for code, words in found.items() if words}}


def of_table(table: Table) -> Circumstances:
    """Return how an imported table was measured, by rule, as far as the tool tells."""
    parameters = dict(table.parameters)
    versions = {name.lower(): version for name, version in table.versions}
    nccl = versions.get("nccl")
    ranks = table.ranks or table.ranks_from_rates
    hosts = sorted({device.host for device in table.devices if device.host})
    timing = [
        f"{name} {parameters[name]}" for name in ("graph", "agg iters", "blocking", "average") if name in parameters
    ]
    found = {
        "CMP001": ", ".join(timing),
        "CMP002": f"{ranks} ranks" if ranks else "",
        "CMP003": f"{table.tool}, {table.statistic}",
        "CMP004": f"validation {parameters.get('validation', '')}" if table.tool == "osu" else "",
        "CMP006": _warmup(table.tool, table.tool_version, None)
        + (f", {parameters['iters']} calls" if "iters" in parameters else ""),
        "CMP007": f"NCCL {nccl}" if nccl else "",
        "CMP008": f"registered {parameters['local_register']}" if "local_register" in parameters else "",
        "CMP011": ", ".join(hosts),
        "CMP013": _settings(dict(table.environment)) if table.environment else "",
        "CMP016": f"validation {parameters['validation']}" if "validation" in parameters else "",
    }
    return {code: words for code, words in found.items() if words}


def _warmup(tool: str, version: str | None, asked: int | None) -> str:
    if asked is not None:
        return f"{asked} warm-up calls at least"
    known = _version(version)
    if tool != "nccl-tests" or known is None:
        return "warm-up as usual"
    return "nccl-tests with 1 warm-up call" if known >= _ONE_WARMUP_CALL else "nccl-tests with 5 warm-up calls"


def _mpi(run: Run) -> str:
    """Return the MPI that the ranks loaded, by its own word; "" where they measured NCCL."""
    if not run.ranks or run.plan.gpu_setup is not None:
        return ""
    return run.ranks[0].mpi_version.partition(",")[0].strip("\0\n ")[:_LONGEST]


def _peers(plan: Plan, tool: str, version: str | None, nccl: str | None) -> str:
    if all(sweep.collective != "sendrecv" for sweep in plan.sweeps) or nccl is None:
        return ""
    tests, library = _version(version), _version(nccl)
    few = tool == "nccl-tests" and (tests or ()) >= _FEWER_PEERS and (library or ()) >= _PEERS_SINCE_NCCL
    return "sendrecv tuned for 2 peers" if few else "sendrecv not tuned for its peers"


def _buffers(plan: Plan) -> str:
    setup = plan.gpu_setup
    if setup is None:
        return ""
    memory = "ncclMemAlloc" if setup.nccl_memory else "cuMemAlloc"
    config = "".join(f", {name}={value}" for name, value in setup.config)
    return f"{setup.buffers} buffers of {memory}, {setup.cache} cache{config}"


def _settings(environment: Mapping[str, str]) -> str:
    # Numbers of jobs and places in a file system are no settings.
    kept = {name: value for name, value in environment.items() if not name.startswith("SLURM_")}
    return "\n".join(f'{name} = "{value}"' for name, value in sorted(kept.items())) or "no settings"


def _version(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version such as 2.28.9; None for a text without any."""
    return tuple(int(part) for part in re.findall(r"\d{1,6}", text or "")[:3]) or None
