"""What NCCL did, and what a run over it ran on, in few words."""

from collections.abc import Sequence

from busbw.base.units import format_size, format_time
from busbw.model.gpu import GpuHost
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan
from busbw.model.record import NcclChoice

# NCCL shows a call among two ranks as these; there is no algorithm to choose.
_MESSAGES = ("Send", "Recv", "SendRecv")


def choice_words(measurement: Measurement) -> str:
    """Return what NCCL chose: "ring simple 24", "p2p 8"; "" where it does not say."""
    if measurement.nccl is None:
        return ""
    return choices_words(measurement.nccl.choices)


def choices_words(choices: Sequence[NcclChoice]) -> str:
    """Return choices as `choice_words` does: "ring simple 24"."""
    return ", ".join(dict.fromkeys(_words(choice) for choice in choices))


def _words(choice: NcclChoice) -> str:
    channels = [] if choice.channels is None else [str(choice.channels)]
    if choice.function in _MESSAGES:
        return " ".join(["p2p", *channels])
    named = [part.lower() for part in (choice.algorithm, choice.protocol) if part is not None]
    return " ".join([*named, *channels]) if named else choice.function


def gpu_words(plan: Plan) -> tuple[str, ...]:
    """Return lines on the GPUs of a plan, their libraries and how they are used; none where it has no GPUs."""
    host, setup = plan.gpus, plan.gpu_setup
    if host is None or setup is None:
        return ()
    libraries = [
        f"NCCL {host.nccl.version} ({host.nccl.origin}: {host.nccl.path})",
        f"CUDA driver {host.driver.version}",
    ]
    libraries += [f"NVRTC {host.nvrtc.version}" if host.nvrtc is not None else "no NVRTC: the host checks results"]
    uses = [f"{setup.buffers} buffers{' of ncclMemAlloc' if setup.nccl_memory else ''}", f"{setup.cache} cache"]
    uses += [f"{setup.per_process} GPUs a process"] if setup.per_process > 1 else []
    uses += [f"{name}={value}" for name, value in setup.config]
    uses += ["NVLink multicast off"] if setup.multicast_off else []
    return (f"{_models(host, plan.placement.ranks)}; {', '.join(libraries)}", ", ".join(uses))


def _models(host: GpuHost, ranks: int) -> str:
    models = [device.model for device in host.devices]
    there = ", ".join(f"{models.count(model)} x {model}" for model in dict.fromkeys(models))
    return there if ranks == len(models) else f"{ranks} of {there}"


def has_choices(measurements: Sequence[Measurement]) -> bool:
    """Whether NCCL said of any of them what it chose."""
    return any(choice_words(measurement) for measurement in measurements)


def starts_words(measurements: Sequence[Measurement]) -> str:
    """Return from where to where the starts of each small size lie, in a line under a table; "" for one start."""
    repeated = [item for item in measurements if item.starts]
    if not repeated:
        return ""
    ranges = []
    for item in repeated:
        times_s = [start.median_s for start in item.starts]
        ranges.append(f"{format_size(item.size_bytes)} {format_time(min(times_s))} to {format_time(max(times_s))}")
    return f"the middle of {max(len(item.starts) for item in repeated)} starts: {', '.join(ranges)}"
