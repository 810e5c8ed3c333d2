"""What a comparison of times takes for granted: how, where and with what each side was measured."""

import re
from collections.abc import Mapping

from busbw.model.imported import Table
from busbw.model.run import Run

# From here on nccl-tests warms up with one call instead of five, and opens sendrecv to two peers at most (with NCCL
# 2.30 and later). Source: nccl-tests' history, src/common.cu and src/sendrecv.cu.
_ONE_WARMUP_CALL = (2, 16, 8)
_FEWER_PEERS = (2, 18, 3)
_PEERS_SINCE_NCCL = (2, 30)

# Words of a circumstance, by the rule that speaks of it.
Circumstances = Mapping[str, str]


def of_run(run: Run) -> Circumstances:
    """Return how a run was measured, by rule; what is not known is left out."""
    plan = run.plan
    gpu = run.ranks[0].gpu if run.ranks else None
    setup = plan.gpu_setup
    tool = plan.programs[0].tool if plan.programs else "busbw"
    version = plan.programs[0].version if plan.programs else None
    calls = {measurement.calls_per_sample for measurement in run.measurements}
    environment = dict(plan.surroundings.environment) if plan.surroundings is not None else None
    found = {
        "CMP001": plan.sampling.mode,
        "CMP002": f"{plan.placement.ranks} ranks",
        "CMP003": f"{tool}, median of samples" if tool == "busbw" else f"{tool}, median of what it prints",
        "CMP004": f"verification {'on' if plan.sampling.verify else 'off'}" if tool == "osu" else "",
        "CMP006": _warmup(tool, version, plan.sampling.warmup_calls)
        + (f", {plan.sampling.calls} calls a sample" if plan.sampling.calls and calls else ""),
        "CMP007": f"NCCL {gpu.nccl}" if gpu is not None else "",
        "CMP008": _buffers(run) if setup is not None else "",
        "CMP009": _peers(run, tool, version, gpu.nccl if gpu is not None else None),
        "CMP010": run.ranks[0].mpi_library.partition("\n")[0][:80] if run.ranks and setup is None else "",
        "CMP011": ", ".join(plan.placement.hosts),
        "CMP012": f"binding {plan.placement.binding}"
        + (", more ranks than cores" if plan.placement.oversubscribed else ""),
        "CMP013": _settings(environment) if environment is not None else "",
        "CMP016": f"verification {'on' if plan.sampling.verify else 'off'}" if tool != "osu" else "",
        "CMP018": f"busbw {plan.busbw_version}",
    }
    return {code: words for code, words in found.items() if words}


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


def _peers(run: Run, tool: str, version: str | None, nccl: str | None) -> str:
    if all(sweep.collective != "sendrecv" for sweep in run.plan.sweeps) or nccl is None:
        return ""
    tests, library = _version(version), _version(nccl)
    few = tool == "nccl-tests" and (tests or ()) >= _FEWER_PEERS and (library or ()) >= _PEERS_SINCE_NCCL
    return "sendrecv tuned for 2 peers" if few else "sendrecv not tuned for its peers"


def _buffers(run: Run) -> str:
    setup = run.plan.gpu_setup
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
