"""The noise of a host as text for a terminal: over all CPUs, the worst of them, and one host beside another."""

from rich.table import Table
from rich.text import Text

from busbw.base.text import counted, printable
from busbw.base.units import format_time
from busbw.machine.read.noise import NoiseSummary, summary
from busbw.model.machine import NoiseOfCpu, NoiseTest
from busbw.show.text.terminal import console

# With the lines around it one screen.
_MOST_CPUS = 10
# Below this a period says little.
_REGULAR = 0.3


def noise_text(test: NoiseTest) -> None:
    """Print what the test comes to, and the CPUs that lost most."""
    out = console()
    found = summary(test)
    out.print()
    out.print(
        Text(
            f"noise: fixed work of {format_time(test.quantum_s)}, repeated for {test.duration_s:g} s on "
            f"{counted(found.cpus, 'CPU')} at once"
        ),
        soft_wrap=True,
    )
    for line in _lines(found):
        out.print(Text(f"  {line}"), soft_wrap=True)
    rhythm = _rhythm(test)
    if rhythm is not None:
        out.print(Text(f"  {rhythm}"), soft_wrap=True)
    table = _table(
        "CPU", "least", "median", "p99", "p99.9", "max", "lost", "detours\na second", "period", "pre-\nempted"
    )
    for each in sorted(test.cpus, key=lambda each: (-each.lost, each.cpu))[:_MOST_CPUS]:
        table.add_row(*_row(each))
    out.print()
    out.print(table)
    if len(test.cpus) > _MOST_CPUS:
        out.print(Text(f"the {_MOST_CPUS} that lost most of {len(test.cpus)}; --json has all"), soft_wrap=True)


def _lines(found: NoiseSummary) -> tuple[str, ...]:
    lost = f"lost: {found.lost:.2%} of the time in the median over the CPUs, {found.worst_lost:.2%} on the worst"
    slow = f"p99.9 {found.p999_over_median:.3g} times that, longest {format_time(found.most_s)}"
    return (
        f"{lost}; {found.detoured:.2%} in detours",
        f"repeats: median {format_time(found.median_s)}, {slow}",
        f"detours: {found.detours_per_s:.3g} a second and CPU; {counted(found.preempted, 'preemption')} in all",
    )


def _rhythm(test: NoiseTest) -> str | None:
    """Return the period that most CPUs show, in words; None where none does."""
    regular = [each.period_s for each in test.cpus if each.period_s is not None and each.regularity >= _REGULAR]
    if 2 * len(regular) <= len(test.cpus):
        return None
    usual = sorted(regular)[len(regular) // 2]
    return f"regular: detours come every {format_time(usual)} on {len(regular)} of {counted(len(test.cpus), 'CPU')}"


def _row(each: NoiseOfCpu) -> tuple[str, ...]:
    times = (each.least_s, each.median_s, each.p99_s, each.p999_s, each.most_s)
    return (
        str(each.cpu),
        *(format_time(value) for value in times),
        f"{each.lost:.2%}",
        f"{each.detours / each.total_s:.3g}",
        format_time(each.period_s) if each.period_s is not None else "-",
        str(each.preempted),
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def noise_comparison_text(host: NoiseTest, name: str, other: NoiseTest, other_name: str) -> None:
    """Print two hosts beside each other, with the ratio of each number."""
    first, second = summary(host), summary(other)
    out = console()
    out.print()
    out.print(Text(printable(f"noise of {name} against {other_name}")), soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column in ("", "this", "other", "ratio"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    rows: tuple[tuple[str, float, float, str], ...] = (
        ("time lost, median CPU", first.lost, second.lost, ".2%"),
        ("time lost, worst CPU", first.worst_lost, second.worst_lost, ".2%"),
        ("time in detours, median CPU", first.detoured, second.detoured, ".2%"),
        ("p99.9 over median", first.p999_over_median, second.p999_over_median, ".4g"),
        ("longest repeat (ms)", first.most_s * 1e3, second.most_s * 1e3, ".3g"),
        ("detours a second and CPU", first.detours_per_s, second.detours_per_s, ".3g"),
    )
    for words, mine, its, form in rows:
        table.add_row(words, format(mine, form), format(its, form), f"{mine / its:.2f}" if its else "-")
    out.print(table)
    if abs(host.quantum_s - other.quantum_s) > 1e-9 or host.duration_s != other.duration_s:
        out.print(Text("not the same test: work or seconds differ, and longer tests see rarer detours"), soft_wrap=True)
