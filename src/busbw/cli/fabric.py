"""The verb `fabric`: measure the pairs of hosts, or judge what was measured of them."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from busbw.base.errors import ExitCode, InputError, RunError
from busbw.base.text import printable
from busbw.cli.options import SIZE, GroupedCommand, GroupedOption, run_options
from busbw.model.fabric import METRICS, PAIRS, FabricAsked, FabricMetric
from busbw.model.plan import Plan
from busbw.model.request import Request, options
from busbw.model.run import Run

if TYPE_CHECKING:
    from busbw.api.sweeping.fabrics import JudgedFabric

_TOPOLOGIES = ("fat-tree-2", "fat-tree-3", "rail", "dragonfly", "dragonfly-adaptive")
_FAULTS = (
    "none", "node", "nic-send", "nic-receive", "nic", "rail", "leaf-uplink", "cable-static", "cable-destination",
    "cable-adaptive",
    "spine-link", "local-link", "flapping", "slow", "congestion", "two",
)  # fmt: skip
_HELP = """Say which node, NIC, rail, link or switch of a fabric is bad, from tests of its pairs.

With --hosts or --nodes, or alone in a job of a batch system, the pairs of these hosts are measured over MPI, in rounds
of disjoint pairs: one start of one rank on each host. With --over nccl the pairs of GPUs are, of this host or of these,
one after the other. RESULTS is a stored run, `last`, or a table `sender,receiver,value[,unit][,round]` of another tool.
With --simulate nothing is measured: the procedure runs on a fabric with a known fault.

Exit code 0: ok; 1: something is bad; 2: bad input; 3: the run failed; 4: cannot tell.
"""
_VIEWS = ("histogram", "bars", "fabric", "matrix")
_FILES = ("write_topology", "write_table", "html")
_USUAL = FabricAsked()
# Of the options of `busbw run` those that say where ranks are started, and how.
_OF_RUN = frozenset(
    ("hosts", "launcher", "launcher_options", "mpirun", "interface", "remote_shell", "allow_mixed", "stall_s", "tag",
     "runtime", "image", "mounts", "container_options", "image_python", "ranks", "gpus_per_process", "nccl", "driver",
     "nvrtc", "time_limit_s", "group")
)  # fmt: skip
_USUAL_NODES = 64


def _option(*names: str, group: str = "what", **given: Any) -> GroupedOption:  # noqa: ANN401 - as click has them
    return GroupedOption(list(names), group=group, **given)


_OWN: tuple[click.Parameter, ...] = (
    click.Argument(["source"], metavar="[RESULTS]", required=False),
    _option(
        "--metric", metavar="NAME[,NAME]",
        help=f"{', '.join(METRICS)}, or all [default: latency,bandwidth; of a stored sweep what it measured].",
    ),
    _option(
        "--pairs", metavar="|".join((*PAIRS, "FILE")),
        help="Every pair once; five random rounds, then what is still open; the NICs of --nics each with its like; or "
        "the pairs of a file, `n0,n1` a line. Over NCCL as of `busbw run` [default: sparse; over NCCL all].",
    ),
    _option("-b", "message_bytes", type=SIZE, help="Size of a message of bandwidth [default: 1M; over NCCL 128M]."),
    _option("--nics", default="", metavar="NAME[,NAME]", help="A rank for each of these NICs of a host, tested alone."),
    _option("--over", type=click.Choice(["mpi", "nccl"]), default="mpi", show_default=True,
            help="What carries it: MPI between hosts, or NCCL between GPUs, also of this host alone."),
    _option("--topology", "tree", metavar="FILE",
            help="topology.conf of Slurm, or what ibnetdiscover, iblinkinfo or opensm wrote."),
    _option("--counters", nargs=2, multiple=True, metavar="BEFORE AFTER",
            help="Counters of ports, from before and after the tests of RESULTS: busbw probe --counters, perfquery or "
            "ethtool -S."),
    _option("--platform", metavar="ID", help="The platform: what is published of its pairs is expected."),
    _option("--expect", multiple=True, metavar="VALUE", help="What a sound pair reaches: 380Gb/s, 1.7us, 3M/s."),
    _option("--size", "size_bytes", type=SIZE,
            help="This size of a stored run [default: largest; of latencies and message rates smallest]."),
    _option("--seed", type=int, default=1, show_default=True, group="how", help="Of the random rounds."),
    _option("--rounds", type=int, metavar="N", group="how",
            help="Rounds in all, at most, while something is open [default: 8 up to 64 nodes, 12 from 256 on]."),
    _option(
        "--pair-time", "pair_s", type=float, default=_USUAL.pair_s, show_default=True, metavar="SECONDS", group="how",
        help="Of one test of a pair, in one direction.",
    ),
    _option(
        "--pair-limit", "limit_s", type=float, default=_USUAL.limit_s, show_default=True, metavar="SECONDS",
        group="how", help="A pair that has not come to its end by then is given up.",
    ),
    _option("--nodes", type=int, metavar="N", group="where",
            help="So many hosts of the job busbw is in [default: all]."),
    *run_options(set(options()) - _OF_RUN),
    _option("--simulate", "topology", type=click.Choice(_TOPOLOGIES), group="simulation",
            help="Try the procedure on a simulated fabric, of --nodes nodes [64]."),
    _option("--fault", type=click.Choice(_FAULTS), default="none", show_default=True, group="simulation",
            help="What is bad in it."),
    _option("--effect", type=float, metavar="PERCENT", group="simulation", help="How much slower [default: by fault]."),
    _option("--noise", metavar="NAME", group="simulation",
            help="Values scatter as in a sweep that was measured and is stored by name, such as lab-tcp."),
    _option("--noise-from", metavar="RESULTS", group="simulation",
            help="Values scatter as repeated tests do in a stored sweep or a table."),
    _option("--full", is_flag=True, group="simulation", help="Every pair once instead of five random rounds."),
    _option("--blind", is_flag=True, group="simulation", help="The procedure is not told the leaves."),
    _option("--write-topology", type=click.Path(path_type=Path), metavar="FILE", group="output",
            help="Write the leaves as topology.conf."),
    _option("--html", type=click.Path(path_type=Path), metavar="FILE", group="output",
            help="Write one self-contained page as well."),
    _option("--write-table", type=click.Path(path_type=Path), metavar="FILE", group="output",
            help="Write the tests as a table, to be judged again."),
    _option("--view", "wanted", multiple=True, type=click.Choice(["all", *_VIEWS, "none"]), group="output",
            help="What is drawn; may be given several times [default: all]."),
    _option("--out", "directory", type=click.Path(path_type=Path), metavar="DIR", group="output",
            help="Folder for this run."),
    _option("--resume", metavar="RUN", group="output",
            help="Go on with an earlier sweep; without the hosts that it lost, in a run beside it."),
    _option("--plan", "plan_only", is_flag=True, group="output", help="Print what would be done, and stop."),
    _option("--json", "as_json", is_flag=True, group="output", help="Print JSON."),
)  # fmt: skip


def _fabric(**given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Measure or judge."""
    from busbw.store.files import check_replaceable

    if "none" in given["wanted"] and len(given["wanted"]) > 1:
        raise InputError("--view none stands alone", hint="leave the other views out")
    for name in _FILES:
        if given[name] is not None:
            check_replaceable(given[name])
    is_measured = _is_measured(given)
    if given["resume"] is not None:
        _check_resume(given)
        _go_on(given)
    _check_together(given, is_measured=is_measured)
    if is_measured or given["plan_only"]:
        _measure(given)
    _judge(given, given["source"])


def _is_measured(given: Mapping[str, Any]) -> bool:
    """Whether hosts are to be measured: those that are named, or where nothing is given to judge those of the job."""
    from busbw.api.sweeping.sweeps import is_in_job

    if given["hosts"] is not None or given["over"] == "nccl":
        return True
    if given["topology"] is not None:
        return False
    if given["nodes"] is not None:
        return True
    has_results = given["source"] is not None or given["resume"] is not None or given["counters"]
    return not has_results and is_in_job()


fabric = GroupedCommand("fabric", callback=_fabric, help=_HELP, params=list(_OWN))


def _check_together(given: Mapping[str, Any], *, is_measured: bool) -> None:
    """Raise InputError for options that do not go together."""
    if is_measured and given["source"] is not None:
        raise InputError("results are given, and hosts to be measured", hint="leave one out")
    if is_measured and given["counters"]:
        raise InputError("a sweep that is measured reads the counters itself", hint="leave --counters out")
    if given["rounds"] is not None and not is_measured and given["topology"] is None:
        raise InputError("--rounds is of a sweep: what was measured has its rounds", hint="leave --rounds out")
    if is_measured and given["topology"] is not None:
        raise InputError("--simulate measures nothing: --hosts and --over nccl are not for it", hint="leave one out")
    for option, field in (("--noise", "noise"), ("--noise-from", "noise_from")):
        if given[field] is not None and given["topology"] is None:
            raise InputError(f"{option} is of a simulation", where=option, hint="--simulate fat-tree-2")
    if is_measured and given["size_bytes"] is not None:
        raise InputError(
            "--size chooses among the sizes of a stored run", where="--size", hint="-b is what is measured"
        )


def _metrics(text: str | None) -> tuple[FabricMetric, ...]:
    """Return the metrics that are named; what is usual where none is. Raises InputError."""
    if text is None:
        return _USUAL.metrics
    if text == "all":
        return METRICS
    found: dict[FabricMetric, None] = {}
    for word in text.split(","):
        known = next((each for each in METRICS if each == word.strip()), None)
        if known is None:
            raise InputError(f"{word[:40]!r} is no metric", where="--metric", hint=f"{', '.join(METRICS)}, or all")
        found[known] = None
    return tuple(found)


def _pairs(given: Mapping[str, Any]) -> str:
    """Return which pairs are asked for: a word, the place of a file, or over NCCL what `busbw run` takes."""
    text: str | None = given["pairs"]
    if given["over"] == "nccl":
        return "all" if text is None else text
    if text is None:
        return _USUAL.pairs
    return text if text in PAIRS else str(Path(text).absolute())


def _request(given: Mapping[str, Any]) -> tuple[Request, FabricAsked]:
    asked = FabricAsked(
        metrics=("bibandwidth",) if given["over"] == "nccl" and given["metric"] is None else _metrics(given["metric"]),
        pairs=_pairs(given),
        size_bytes=given["message_bytes"],
        nics=tuple(word.strip() for word in given["nics"].split(",") if word.strip()),
        tree=None if given["tree"] is None else str(Path(given["tree"]).absolute()),
        expect=given["expect"],
        seed=given["seed"],
        rounds=given["rounds"],
        pair_s=given["pair_s"],
        limit_s=given["limit_s"],
    )
    fields = {field: given[field] for field in _OF_RUN}
    request = Request(nodes=given["nodes"], platform=given["platform"], **fields)
    request.container  # noqa: B018 - what is wrong with it is said before anything is looked for
    return request, asked


def _measure(given: Mapping[str, Any]) -> NoReturn:
    """Plan a sweep; print the plan, or carry it out and print what it says."""
    from busbw.api.sweeping.sweeps import plan_fabric, plan_gpu_pairs, start_fabric
    from busbw.cli.progress import progress

    over_nccl = given["over"] == "nccl"
    plan, where = (plan_gpu_pairs if over_nccl else plan_fabric)(*_request(given), given["directory"])
    if given["plan_only"]:
        _print_plan(plan, as_json=given["as_json"])
    with progress(plan, where) as listener, _judged_all_the_same(given, where):
        run = start_fabric(plan, where, listener)
    if over_nccl:
        _conclude_pairs(given, run, where)
    _conclude(given, where)


def _conclude_pairs(given: Mapping[str, Any], run: Run, where: Path) -> NoReturn:
    """Print what pairs of GPUs came to: as a fabric, or where the run failed or moved wrong data as that run."""
    outcome = run.outcome
    is_whole = outcome is not None and outcome.ended in ("complete", "time")
    if not is_whole or not run.measurements or run.verdict.outcome == "wrong":
        from busbw.cli.results import present_run

        present_run(run, where, as_json=given["as_json"])
    if len(run.measurements) < len(run.plan.sweeps):
        click.echo(f"{len(run.measurements)} of {len(run.plan.sweeps)} pairs were measured within the time", err=True)
        click.echo(
            printable(f"hint: go on: busbw run --resume {where.name}, then: busbw fabric {where.name}"), err=True
        )
    _judge({**given, "metric": None}, str(where))


def _check_resume(given: Mapping[str, Any]) -> None:
    """Raise InputError when --resume comes with what the run's own plan has decided."""
    context = click.get_current_context()
    allowed = {"resume", "hosts", "plan_only", "as_json", "wanted", *_FILES}
    other = [
        parameter.opts[0]
        for parameter in context.command.params
        if (name := parameter.name or "") not in allowed
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and given.get(name) not in (None, ())
    ]
    if other:
        raise InputError(f"--resume goes by the plan of that run; leave out {', '.join(other)}")


def _go_on(given: Mapping[str, Any]) -> NoReturn:
    from busbw.api.sweeping.sweeps import resume_fabric, resumed_plan
    from busbw.cli.progress import progress
    from busbw.store import directory as directories

    where = directories.find(given["resume"], directories.root()).absolute()
    plan, place = resumed_plan(where, given["hosts"])
    if given["plan_only"]:
        _print_plan(plan, as_json=given["as_json"])
    with progress(plan, place) as listener, _judged_all_the_same(given, place):
        resume_fabric(plan, place, listener)
    _conclude(given, place)


@contextlib.contextmanager
def _judged_all_the_same(given: Mapping[str, object], where: Path) -> Iterator[None]:
    """Print what was measured of a sweep, too, where it fails, as on a disk that is full."""
    from busbw.api.sweeping.swept import metrics_measured
    from busbw.store.directory import read_plan
    from busbw.store.raw import read_records

    try:
        yield
    except RunError as error:
        try:
            plan = read_plan(where)
        except InputError:
            raise error from None
        if plan.fabric is None or not metrics_measured(plan, read_records(where)[0]):
            raise
        click.echo(printable(str(error)), err=True)
        code = _judged(_as_measured(given), str(where))
        sys.exit(code if code == ExitCode.FINDINGS else ExitCode.RUN_FAILED)


def _conclude(given: Mapping[str, Any], where: Path) -> NoReturn:
    """Print what a sweep came to: its judgement, or where no pair has answered why it failed."""
    from busbw.api.loading import read
    from busbw.api.sweeping.swept import metrics_measured
    from busbw.store.raw import read_records

    run = read(where)
    if not metrics_measured(run.plan, read_records(where)[0]):
        from busbw.cli.results import present_run

        present_run(run, where, as_json=given["as_json"])
    _judge(_as_measured(given), str(where))


def _as_measured(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with which a sweep is judged as its own plan has it."""
    return {**given, "metric": None, "tree": None, "counters": (), "expect": (), "platform": None}


def _judge(given: Mapping[str, Any], source: str | None) -> NoReturn:
    """Print and write what is judged, and exit."""
    sys.exit(_judged(given, source))


def _judged(given: Mapping[str, Any], source: str | None) -> ExitCode:
    """Print and write what is judged; return the exit code that it means."""
    from busbw.api.sweeping.fabrics import FabricRequest, judge_fabrics

    metrics: tuple[FabricMetric | None, ...] = (None,) if given["metric"] is None else _metrics(given["metric"])
    if len(metrics) > 1:
        raise InputError("results are judged by one metric", where="--metric", hint=f"one of {', '.join(METRICS)}")
    request = FabricRequest(
        source=source,
        metric=metrics[0],
        size_bytes=given["size_bytes"],
        tree=given["tree"],
        before=tuple(before for before, _after in given["counters"]),
        after=tuple(after for _before, after in given["counters"]),
        platform=given["platform"],
        expect=given["expect"],
        topology=given["topology"],
        nodes=_USUAL_NODES if given["nodes"] is None else given["nodes"],
        fault=given["fault"],
        effect=None if given["effect"] is None else given["effect"] / 100,
        noise=given["noise"],
        noise_from=given["noise_from"],
        seed=given["seed"],
        rounds=given["rounds"],
        full=given["full"],
        blind=given["blind"],
    )
    judged = judge_fabrics(request)
    _write_files(given, judged)
    _print_judged(judged, given["wanted"], as_json=given["as_json"])
    is_cut_off = source is not None and _say_end(source)
    if any(finding.is_serious for each in judged for finding in each.report.findings):
        return ExitCode.FINDINGS
    if is_cut_off:
        return ExitCode.RUN_FAILED
    open_ones = any(each.report.verdict.outcome == "cannot_tell" for each in judged)
    return ExitCode.CANNOT_TELL if open_ones else ExitCode.OK


def _say_end(source: str) -> bool:
    """Say on standard error why a stored sweep did not come to its end; return whether it failed."""
    from busbw.api.sweeping.sweeps import ended_early

    early = ended_early(source)
    if early is None:
        return False
    click.echo(printable(f"the sweep did not come to its end: {early.cause}"), err=True)
    how = "go on without what is lost" if early.has_failed else "go on"
    click.echo(printable(f"hint: {how}: busbw fabric --resume {early.name}"), err=True)
    return early.has_failed


def _write_files(given: Mapping[str, Any], judged: "tuple[JudgedFabric, ...]") -> None:
    """Write what is asked for beside what is printed, and say so."""
    from busbw.api.sweeping.fabrics import tests_table
    from busbw.store.files import write_whole

    made: dict[str, str] = {}
    if given["write_topology"] is not None:
        made["write_topology"] = _topology(judged)
    if given["write_table"] is not None:
        made["write_table"] = tests_table(judged)
    if given["html"] is not None:
        from busbw.show.page.html import report_html

        made["html"] = report_html((), fabrics=tuple(each.report for each in judged))
    for name, text in made.items():
        write_whole(given[name].absolute(), text.encode())
        click.echo(printable(f"wrote {given[name]}"), err=True)


def _topology(judged: "tuple[JudgedFabric, ...]") -> str:
    tree = next((each.tree for each in judged if each.tree is not None), None)
    if tree is None:
        raise InputError(
            "the leaves are not known, so there is no topology to write",
            hint="they follow from latencies of all pairs: --metric latency",
        )
    return tree


def _print_judged(judged: "tuple[JudgedFabric, ...]", wanted: Sequence[str], *, as_json: bool) -> None:
    """Print one report, or the reports of several metrics one below the other; as JSON one, or a list of them."""
    from busbw.model import codec
    from busbw.show.text.fabric import fabric_text

    if as_json:
        content = judged[0].report if len(judged) == 1 else [each.report for each in judged]
        sys.stdout.write(codec.encode_pretty(content).decode())
    else:
        for number, each in enumerate(judged):
            if number:
                print(f"\n{'-' * 79}")
            fabric_text(each.report, _VIEWS if not wanted or "all" in wanted else wanted)
    print(end="", flush=True)


def _print_plan(plan: Plan, *, as_json: bool) -> NoReturn:
    from busbw.model import codec
    from busbw.show.text.terminal import plan_text

    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        plan_text(plan)
    print(end="", flush=True)
    sys.exit(ExitCode.OK)
