"""The model of a training step against every published step: residuals, those that are far off included.

    python benchmarks/train/step_model.py [--markdown]

One constant a workload and data type, fitted on the row marked `fit`. A step on other GPUs than the fitted row's scales
the constant with their peak. The last columns say what the same row would give if what layers communicate were not part
of the constant: exposed as expected, and at line rates.
"""

import argparse
from dataclasses import replace

from msgspec import structs

from busbw.facts.platforms import facts_of_gpus
from busbw.facts.workloads import shipped_workloads
from busbw.machine.named import platform, platforms
from busbw.model.train.workload import PublishedStep, Workload
from busbw.train.planning import constant_of_row, fitted_row, job_of_row, machine_of, work_of
from busbw.train.timing import StepTerms, terms_of, timed_calls
from busbw.train.workloads import workload_named

KNOWN = facts_of_gpus([each.platform for each in platforms()])
HEAD = ("workload", "machine", "GPUs", "type", "published s", "model s", "residual", "apart", "line rates", "")


def terms(workload: Workload, row: PublishedStep) -> StepTerms:
    """Return the terms of a published step on its own platform."""
    work = work_of(job_of_row(workload, row), machine_of(platform(row.platform).platform, KNOWN))
    return terms_of(work, timed_calls(work))


def at_line_rates(found: StepTerms) -> StepTerms:
    """Return the terms with experts' all-to-all at line rate."""
    calls = tuple(
        structs.replace(call, total_s=call.time.least_s * call.calls)
        if call.collective == "alltoall" and call.time.least_s is not None
        else call
        for call in found.calls
    )
    return replace(found, calls=calls)


def step_apart(found: StepTerms, alone_s: float) -> float:
    """Return a step whose layers take so long without what they communicate, which is put beside it."""
    return found.with_layers(alone_s + found.with_layers(alone_s).inside_s).step_s


def apart(found: StepTerms, reference: StepTerms, step_s: float) -> float:
    """Return a step whose constant is fitted on the reference without what layers communicate."""
    low, high = 0.0, step_s
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if step_apart(reference, middle) > step_s else (middle, high)
    return step_apart(found, high * found.step_flops / reference.step_flops)


def rows() -> list[tuple[str, ...]]:
    """Return a line for every published step."""
    lines = []
    for workload in (workload_named(name) for name in shipped_workloads()):
        for row in workload.published:
            reference = fitted_row(workload, row.dtype)
            if reference is None:
                continue
            there, here = (machine_of(platform(each.platform).platform, KNOWN) for each in (reference, row))
            constant = constant_of_row(workload, reference, there, here)
            if constant is None:
                continue
            found, fitted = terms(workload, row), terms(workload, reference)
            model_s = found.at(constant.rate_flops).step_s
            same = there.accelerator is here.accelerator
            others = (
                apart(found, fitted, reference.step_s),
                apart(at_line_rates(found), at_line_rates(fitted), reference.step_s),
            )
            shares = tuple(f"{100 * (each / row.step_s - 1):+.1f} %" if same else "" for each in others)
            note = "fit" if row.fitted else "" if same else "constant scaled with the peak of the GPU"
            residual = f"{100 * (model_s / row.step_s - 1):+.1f} %"
            machine = row.machine.partition(" (")[0]
            steps = (f"{row.step_s:g}", f"{model_s:.2f}")
            lines.append((workload.id, machine, str(row.gpus), row.dtype, *steps, residual, *shares, note))
    return lines


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--markdown", action="store_true")
    chosen = arguments.parse_args()
    lines = rows()
    if chosen.markdown:
        print("| " + " | ".join(HEAD) + " |")
        print("|" + "---|" * len(HEAD))
        for line in lines:
            print("| " + " | ".join(line) + " |")
        return
    widths = [max(len(line[place]) for line in (HEAD, *lines)) for place in range(len(HEAD))]
    for line in (HEAD, *lines):
        print("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
