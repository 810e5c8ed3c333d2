"""The verb `predict`: what a collective will take where nothing was measured."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.base.units import format_size
from busbw.cli.options import COLLECTIVE, JSON, SIZE
from busbw.model.predict.nccl_choice import Protocol

if TYPE_CHECKING:
    from busbw.api.predictions import PredictRequest
    from busbw.model.predict.prediction import Prediction

_MOST_SIZES = 1000
_EXAMPLE = "busbw predict all_reduce --platform azure-nd-h100-v5 --nodes 32"
_PROTOCOLS: dict[str, Protocol] = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}


@click.command()
@click.argument("collective", required=False, type=COLLECTIVE, metavar="[COLLECTIVE]")
@click.option("--platform", metavar="ID", help="A platform, by id or any of its names.")
@click.option("--machine", metavar="WORDS", help="Instead: 'gpu=H200, gpus=8, nics=16x200G, fabric=RoCE'.")
@click.option("--host", type=click.Path(path_type=Path), metavar="HOST.tar", help="Instead: a captured host.")
@click.option("--nodes", default="1", show_default=True, metavar="N[,N...]", help="Nodes; several after each other.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of each node [default: all].")
@click.option("-b", "first", type=SIZE, metavar="SIZE", help="The smallest size [default: 1M].")
@click.option("-e", "last", type=SIZE, metavar="SIZE", help="The largest size [default: 16G].")
@click.option("-f", "step", type=int, metavar="N", help="From one size to the next [default: 4].")
@click.option(
    "--size", "sizes_bytes", multiple=True, type=SIZE, metavar="SIZE", help="A size, instead of -b, -e and -f."
)
@click.option(
    "--algorithm",
    metavar="NAME",
    help="ring, tree, nvls, nvlstree, sharp (with --tier also collnetdirect, collnetchain) "
    "[default: what NCCL takes, or the fastest].",
)
@click.option("--protocol", type=click.Choice(tuple(_PROTOCOLS), case_sensitive=False), help="As NCCL_PROTO fixes it.")
@click.option("--nccl", metavar="VERSION", help="Whose choice, as 2.28.9 [default: the newest that is known].")
@click.option("--graph", type=click.Path(path_type=Path), metavar="FILE", help="What NCCL_GRAPH_DUMP_FILE wrote.")
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="A log with NCCL_DEBUG_SUBSYS=INIT,GRAPH.")
@click.option(
    "--channels",
    "stated",
    multiple=True,
    metavar="ring=CxI/X",
    help="NCCL's channels as stated: count x GB/s within/between nodes.",
)
@click.option(
    "--what-if",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="nic=800G, nics=16, oversubscription=2, leaf=16, nvls=off, sharp=on, slow-nic=node7:0.5.",
)
@click.option(
    "--tier",
    type=click.Choice(("closed", "steps", "events")),
    help="The model [default: the cheapest that can tell what is asked].",
)
@click.option(
    "--schedule", type=click.Path(path_type=Path), metavar="FILE", help="Time a schedule: MSCCL's XML, or GOAL."
)
@click.option(
    "--schedule-out", type=click.Path(path_type=Path), metavar="NAME.goal|.chakra", help="Write the schedule of a call."
)
@click.option(
    "--calibrate",
    type=click.Path(path_type=Path),
    metavar="RUN|FILE.csv",
    help="Measured on this machine: a run, an import, a tool's file, or a table of cells.",
)
@click.option("--against", type=click.Path(path_type=Path), metavar="FILE.csv", help="Hold measured cells against it.")
@click.option(
    "--workload",
    type=click.Path(path_type=Path),
    metavar="PLAN.json",
    help="Instead: the collectives of a step, as busbw train plan --json lists them.",
)
@click.option(
    "--overlap",
    metavar="none|full|SHARE",
    help="With --workload: of what may overlap with computing, how much is hidden [default: none].",
)
@click.option("--explain", is_flag=True, help="Show each constant, the other ways, and what NCCL counts.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@JSON
def predict(
    collective: str | None,
    platform: str | None,
    machine: str | None,
    host: Path | None,
    nodes: str,
    first: int | None,
    last: int | None,
    step: int | None,
    sizes_bytes: tuple[int, ...],
    protocol: str | None,
    against: Path | None,
    schedule: Path | None,
    schedule_out: Path | None,
    workload: Path | None,
    overlap: str | None,
    *,
    explain: bool,
    as_csv: bool,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 - as click gives them
) -> None:
    """Say what COLLECTIVE will take on nodes of a platform, with a 90 % interval and what that rests on.

    With --workload all collectives of a planned step are predicted and added up, with the overlap that --overlap says.
    With --against a table of measured cells is held against predictions, with --calibrate predictions are shifted
    through a few cells of the machine. Columns: document, platform_id, nodes, gpus, collective, size_bytes,
    busbw_GBps, algorithm. With --schedule a schedule that others wrote is timed instead.

    Exit code 0: predicted; 1: with --against, a document with a cell outside of its interval; 2: bad input; 4: cannot
    tell.
    """
    if against is not None:
        _check_alone("--against", frozenset({"against", "as_json"}), f"busbw predict --against {against}")
        _hold(against, as_json=as_json)
    _predict_step(workload, overlap, platform, as_json=as_json)
    if as_csv and as_json:
        raise InputError("--csv and --json are given", where="--csv", hint="one of them")
    sizes = _sizes(sizes_bytes, first, last, step)
    if schedule is not None:
        own: dict[str, object] = {"protocol": protocol, "schedule_out": schedule_out, "machine": machine, "host": host}
        own |= {"explain": explain, "csv": as_csv}
        _time(schedule, collective, platform, _numbers(nodes), sizes, asked | own, as_json=as_json)
    if collective is None:
        raise InputError("no collective is named", hint=_EXAMPLE)
    if (platform, machine, host) == (None, None, None):
        raise InputError("neither a platform, a machine nor a host is named", hint=_EXAMPLE)
    from busbw.api.predictions import PredictRequest
    from busbw.api.predictions import predict as predicted

    request = PredictRequest(
        collective=collective,
        platform=platform,
        machine=machine,
        host=host,
        nodes=_numbers(nodes),
        sizes_bytes=sizes,
        protocol=_PROTOCOLS[protocol.lower()] if protocol is not None else None,
        **asked,
    )
    found = predicted(request)
    if schedule_out is not None:
        _write_schedule(schedule_out, request, found)
    _show(found, explain=explain, as_csv=as_csv, as_json=as_json)


def _write_schedule(path: Path, request: "PredictRequest", found: "Prediction") -> None:
    from busbw.api.schedules.exchanging import write_schedule

    acts = write_schedule(path, request, found)
    sys.stderr.write(f"{path}: {acts} sends, receives and calculations\n")


def _show(found: "Prediction", *, explain: bool, as_csv: bool, as_json: bool) -> None:
    from busbw.model import codec

    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    elif as_csv:
        from busbw.show.text.prediction import prediction_csv

        sys.stdout.write(prediction_csv(found))
    else:
        from busbw.show.text.prediction import prediction_text

        prediction_text(found, explained=explain)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if any(row.expected is not None for row in found.rows) else ExitCode.CANNOT_TELL)


def _hold(path: Path, *, as_json: bool) -> NoReturn:
    from busbw.api.predictions import hold_against
    from busbw.model import codec

    found = hold_against(path)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.prediction import held_text

        held_text(found)
    sys.stdout.flush()
    if not any(cell.predicted is not None for cell in found.cells):
        sys.exit(ExitCode.CANNOT_TELL)
    sys.exit(ExitCode.FINDINGS if any(cell.is_inside is False for cell in found.cells) else ExitCode.OK)


def _time(
    file: Path,
    collective: str | None,
    platform: str | None,
    nodes: tuple[int, ...],
    sizes_bytes: tuple[int, ...],
    asked: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    from busbw.api.schedules.exchanging import ScheduleRequest, time_schedule
    from busbw.model import codec

    others = {"gpus", "algorithm", "tier"}
    unused = [name for name, value in asked.items() if value and name not in others]
    if platform is None or len(nodes) != 1 or unused or asked["tier"] == "closed":
        what = f"--{unused[0].replace('_', '-')}" if unused else "several numbers of nodes, or the closed form"
        cause = "a schedule without a platform" if platform is None else f"a schedule with {what}"
        raise InputError(
            cause, where="--schedule", hint="--schedule FILE --platform ID --nodes N --size S [--tier events]"
        )
    found = time_schedule(
        ScheduleRequest(
            file=file, platform=platform, nodes=nodes[0], sizes_bytes=sizes_bytes, collective=collective,
            gpus=asked["gpus"], algorithm=asked["algorithm"], tier=asked["tier"] or "steps",
        )
    )  # fmt: skip
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.prediction import timed_text

        timed_text(found)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if any(row.timed is not None for row in found.rows) else ExitCode.CANNOT_TELL)


def _check_alone(name: str, used: frozenset[str], hint: str) -> None:
    """Raise InputError for what is asked for beside a file that says all of it but what `used` names."""
    context = click.get_current_context()
    for each in context.command.params:
        given = context.get_parameter_source(each.name) is click.core.ParameterSource.COMMANDLINE
        if given and each.name not in used:
            what = each.opts[-1] if isinstance(each, click.Option) else "a collective"
            raise InputError(f"{what} is not used with {name}: its file says what to predict", where=name, hint=hint)


def _predict_step(path: Path | None, overlap: str | None, platform: str | None, *, as_json: bool) -> None:
    """Print what a planned step communicates, and exit; return where no plan is named."""
    if path is None:
        if overlap is not None:
            raise InputError("--overlap without a step", where="--overlap", hint="busbw predict --workload PLAN.json")
        return
    used = frozenset({"workload", "overlap", "platform", "as_json"})
    _check_alone("--workload", used, f"busbw predict --workload {path} --overlap full")
    from busbw.api.predicting.workloads import predict_workload
    from busbw.model import codec

    found = predict_workload(path, overlap or "none", platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.prediction import step_text

        step_text(found)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if any(term.call is not None for term in found.terms) else ExitCode.CANNOT_TELL)


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if len(words) > _MOST_SIZES or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise InputError(f"{text[:40]!r} are no numbers of nodes", where="--nodes", hint="--nodes 4,16,64")
    return tuple(dict.fromkeys(int(word) for word in words))


def _sizes(sizes_bytes: tuple[int, ...], first: int | None, last: int | None, step: int | None) -> tuple[int, ...]:
    if sizes_bytes:
        if (first, last, step) != (None, None, None):
            raise InputError("--size and -b, -e or -f are given", where="--size", hint="single sizes, or a range")
        return tuple(dict.fromkeys(sizes_bytes))
    factor = 4 if step is None else step
    start = 2**20 if first is None else first
    end = max(start, 2**34) if last is None else last
    if factor < 2 or not 1 <= start <= end:
        raise InputError(
            f"no sizes lie between {format_size(start)} and {format_size(end)} with a factor of {factor}",
            where="-b",
            hint="-b 1M -e 16G -f 4: from 1 byte up, -e not below -b, -f 2 or more",
        )
    found = [start]
    while found[-1] * factor <= end:
        found.append(found[-1] * factor)
    return tuple(found)
