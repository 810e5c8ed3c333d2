"""busbw from Python: one function a verb of the command line, each with the values that the command prints.

Begin with `run`, `judge`, `lint`, `recommend` and `limit`. What is wrong with what you ask raises `InputError`, what
fails while it is done `RunError` (`busbw.base.errors`); both say what, where, and what to do. Values are frozen, and
`busbw.model.codec.encode_pretty` makes of any of them the JSON that `--json` prints. The modules of this folder hold
what is behind these functions, a family of verbs each; they may import everything but `cli`.

>>> import busbw.api
>>> busbw.api.limit("azure-ndv4", nodes=2).bounds[0].collective
'all_reduce'
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from busbw.api.topologies import MadeFile
    from busbw.fabric.groups.isolation import Isolation, ReadRule
    from busbw.fabric.report import FabricReport
    from busbw.model.check.report import CheckReport
    from busbw.model.comparison import Comparison
    from busbw.model.envvar import Explanation
    from busbw.model.finding import Checked, Diagnosis, HostDiagnosis, SettingsFix
    from busbw.model.host import Detection, Snapshot
    from busbw.model.imported import Imported
    from busbw.model.launch import LaunchLine
    from busbw.model.limit import Limit
    from busbw.model.plan import Plan
    from busbw.model.predict.prediction import Prediction
    from busbw.model.recommendation import Recommendation
    from busbw.model.request import Request
    from busbw.model.run import Run
    from busbw.model.scaling import ScalingReport
    from busbw.model.topology import NodeView, TopologyComparison
    from busbw.model.train.plan import TrainPlan
    from busbw.model.train.proxy import ProxyResult
    from busbw.model.train.trace import TrainReadReport
    from busbw.model.verdict import ExplainedVerdict


def _silent(_word: object) -> None:
    """Say nothing."""


def plan(request: "Request", directory: Path | None = None) -> "tuple[Plan, Path]":
    """Return what `run` would do, and the folder it would make: `busbw run --plan`. Starts nothing.

    >>> import busbw.api
    >>> from busbw.model.request import Request
    >>> made, folder = busbw.api.plan(Request(collectives=("all_reduce",), ranks=2, largest_bytes=1024))
    >>> made.sweeps[0].sizes_bytes
    (8, 16, 32, 64, 128, 256, 512, 1024)
    """
    from busbw.measure.plan.planning import plan as planned
    from busbw.measure.plan.request import with_matrix
    from busbw.store import directory as directories

    return planned(with_matrix(request), directory, directories.root())


def run(request: "Request", directory: Path | None = None, say: Callable[[str], None] = _silent) -> "Run":
    """Measure what is asked for, judge and store it: `busbw run`. `say` is told what a person should know meanwhile."""
    from busbw.api.runs import start
    from busbw.measure.execute.launch import Listener

    made, where = plan(request, directory)
    return start(made, where, Listener(event=_silent, remark=say))


def resume(name: str, say: Callable[[str], None] = _silent) -> "Run":
    """Measure what is missing in an earlier run: `busbw run --resume`."""
    from busbw.api.runs import resume as go_on
    from busbw.api.stored import find
    from busbw.measure.execute.launch import Listener

    return go_on(find(name).absolute(), Listener(event=_silent, remark=say))


def show(name: str = "last") -> "Run":
    """Return a stored run: `busbw show`. `name`: a path, the beginning of a name, or `last`."""
    from busbw.api.loading import read
    from busbw.api.stored import find

    return read(find(name))


def load(name: str) -> "Run":
    """Return a run rebuilt from its raw records, and store it: `busbw load`."""
    from busbw.api.loading import load as rebuilt
    from busbw.api.stored import find

    return rebuilt(find(name))


def compare(*names: str, anyway: bool = False, geometric_mean: bool = False) -> "Comparison":
    """Return two or more results held against each other: `busbw compare A B`. Launches of one side: `A1,A2`."""
    from busbw.api.comparisons import compare_stored

    return compare_stored(names, anyway=anyway, geometric_mean=geometric_mean)


def judge(*names: str, platform: str | None = None, **said: Any) -> "ExplainedVerdict":  # noqa: ANN401 - see `said`
    """Return results explained and judged: `busbw judge`. `said`: nodes, nvls, network, ... as the command's options.

    >>> import busbw.api
    >>> busbw.api.judge(platform="azure-ndv4").verdict.outcome
    'ok'
    """
    from busbw.api.verdicts import judge_results, stated_facts

    return judge_results(names, platform_name=platform, stated=stated_facts(**said))


def doctor(*logs: str, platform: str | None = None) -> "Diagnosis":
    """Return what the logs of a job tell: `busbw doctor`."""
    from busbw.api.diagnoses import doctor_logs

    return doctor_logs(logs, platform=platform)


def doctor_here(platform: str | None = None) -> "HostDiagnosis":
    """Return what is wrong with this host: `busbw doctor --here`."""
    from busbw.api.diagnoses import examine_here

    return examine_here(platform=platform)


def lint(file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None) -> "Checked":
    """Return what is wrong with the settings of a script or file: `busbw env lint`. Nothing of it is executed."""
    from busbw.api.settings import lint_file

    return lint_file(file, language=language, platform=platform, nccl=nccl)


def fix(
    file: str, *, language: str | None = None, platform: str | None = None, nccl: str | None = None
) -> "SettingsFix":
    """Return what to change in it, as a diff: `busbw env lint --fix`."""
    from busbw.api.settings import fixed_file

    return fixed_file(file, language=language, platform=platform, nccl=nccl)


def explain(name: str, *, nccl: str | None = None) -> "Explanation":
    """Return what is known of a variable: `busbw env explain`.

    >>> import busbw.api
    >>> busbw.api.explain("NCCL_IB_HCA").variable.owner
    'NCCL'
    """
    from busbw.api.settings import explained

    return explained(name, nccl=nccl)


def recommend(platform: str | None = None, **asked: Any) -> "Recommendation":  # noqa: ANN401 - see `asked`
    """Return what to set on a platform, and why: `busbw env recommend`. `asked`: nodes, collective, goal, ...

    >>> import busbw.api
    >>> busbw.api.recommend("azure-ndv4").settings[0].name
    'NCCL_IB_HCA'
    """
    from busbw.api.recommendations import recommendation

    return recommendation(platform, **asked)


def launch(*program: str, directory: Path | None = None, **asked: Any) -> "LaunchLine":  # noqa: ANN401 - see `asked`
    """Return how to start a program on a platform: `busbw launch`. `asked`: the fields of `LaunchRequest`.

    >>> import busbw.api
    >>> line = busbw.api.launch("./train", platform="azure-ndv4", nodes=2, launcher="srun")
    >>> line.job.argv[0]
    'srun'
    """
    from busbw.api.launches import launch_line
    from busbw.model.launch import LaunchRequest

    return launch_line(LaunchRequest(program=program, **asked), str((directory or Path()).absolute()))


def limit(platform: str, **asked: Any) -> "Limit":  # noqa: ANN401 - see `asked`
    """Return what bus bandwidth a platform can reach at best: `busbw limit`. `asked`: nodes, gpus, collective, ..."""
    from busbw.api.machine import limit_of_platform

    return limit_of_platform(platform, **asked)


def predict(
    collective: str,
    platform: str,
    *,
    nodes: int = 1,
    size_bytes: int = 2**30,
    **asked: Any,  # noqa: ANN401 - see `asked`
) -> "Prediction":
    """Return what a collective will take where nothing was measured: `busbw predict`.

    `asked`: gpus, algorithm, protocol, nccl, graph, log, calibrate.

    >>> import busbw.api
    >>> found = busbw.api.predict("all_reduce", "azure-nd-h100-v5", nodes=32, size_bytes=2**30)
    >>> found.rows[0].expected.algorithm
    'nvlstree'
    """
    from busbw.api.predictions import PredictRequest
    from busbw.api.predictions import predict as predicted

    return predicted(
        PredictRequest(collective=collective, platform=platform, nodes=(nodes,), sizes_bytes=(size_bytes,), **asked)
    )


def detect() -> "Detection":
    """Return which platform this host is: `busbw platform detect`."""
    from busbw.api.machine import detect_here

    return detect_here()


def probe() -> "Snapshot":
    """Return this host captured as text: `busbw probe`."""
    from busbw.machine.named import snapshot_here

    return snapshot_here()


def topology(source: str | None = None) -> "NodeView":
    """Return one node, of a topology file, a platform or a snapshot, or this host: `busbw topo show`.

    >>> import busbw.api
    >>> len(busbw.api.topology("azure-ndv4").topology.gpus)
    8
    """
    from busbw.machine.named import node_view

    return node_view(source, here=source is None)


def make_topology(source: str | None = None) -> "MadeFile":
    """Return an NCCL topology file for one node: `busbw topo make`."""
    from busbw.api.topologies import made_file

    return made_file(source, here=source is None)


def check_topology(file: str, *, platform: str | None = None, host: Path | None = None) -> "Checked":
    """Return what is wrong with an NCCL topology file: `busbw topo check`."""
    from busbw.api.topologies import check_topology as checked

    return checked(file, platform=platform, host=host)


def compare_topologies(first: str, second: str) -> "TopologyComparison":
    """Return what NCCL would see differently in two topologies: `busbw topo diff`."""
    from busbw.api.topologies import compared

    return compared(first, second)


def import_results(
    *files: str,
    directory: Path | None = None,
    tag: str | None = None,
    collective: str | None = None,
    ranks: int | None = None,
    nodes: int | None = None,
    platform: str | None = None,
) -> "Imported":
    """Read results of other tools, and store them: `busbw import`. The last four state what the files do not say."""
    from busbw.api.importing import import_files, stated_figures
    from busbw.store import directory as directories

    stated = stated_figures(collective=collective, ranks=ranks, nodes=nodes, platform_name=platform)
    return import_files(files, directory, directories.root(), tag=tag, stated=stated).imported


def export(name: str, form: str) -> bytes:
    """Return a result in another tool's format: `busbw export`."""
    from busbw.api.reports import export as written
    from busbw.api.stored import find

    return written(find(name), form)


def report(*names: str, machine: str | None = None) -> str:
    """Return one self-contained HTML page about results: `busbw report`."""
    from busbw.api.reports import page_of
    from busbw.show.page.html import report_html

    page = page_of(names or ("last",), machine)
    return report_html(page.subjects, page.comparison, None, page.imports, page.bisection, page.fabrics)


def fabric(source: str | None = None, **asked: Any) -> "FabricReport":  # noqa: ANN401 - see `asked`
    """Return which node, NIC or link is bad: `busbw fabric`. `asked`: the fields of `FabricRequest`.

    >>> import busbw.api
    >>> busbw.api.fabric(topology="fat-tree-2", nodes=64, fault="node").answers[0].kind
    'node'
    """
    from busbw.api.sweeping.fabrics import FabricRequest, judge_fabric

    return judge_fabric(FabricRequest(source=source, **asked)).report


def isolate(
    *command: str,
    hosts: str,
    read: "ReadRule",
    directory: Path | None = None,
    say: Callable[[str], None] = _silent,
    **asked: Any,  # noqa: ANN401 - see `asked`
) -> "Isolation":
    """Return which host makes groups of hosts slow or fail: `busbw isolate`. `asked`: fields of `IsolationRequest`."""
    from busbw.api.isolations import IsolationRequest, isolate_nodes, plan_isolation
    from busbw.store import directory as directories

    request = IsolationRequest(command=command, hosts=hosts, read=read, **asked)
    made, where = plan_isolation(request, directory, directories.root())
    return isolate_nodes(made, where, say)


def check(profile: str = "quick", **asked: Any) -> "CheckReport":  # noqa: ANN401 - see `asked`
    """Return whether nodes are fit for jobs: `busbw check`. `asked`: the fields of `CheckRequest`: hosts, nodes, ..."""
    from busbw.api.nodes.checks import CheckRequest
    from busbw.api.nodes.checks import check as checked

    return checked(CheckRequest(profile=profile, **asked), _silent)[0]


def train_plan(workload: str, platform: str, **asked: Any) -> "TrainPlan":  # noqa: ANN401 - see `asked`
    """Return what a training step communicates and takes: `busbw train plan`. `asked`: the fields of `TrainRequest`.

    >>> import busbw.api
    >>> busbw.api.train_plan("grok1-314b", "azure-nd-h100-v5", gpus=512).accumulation
    128
    """
    from busbw.api.training.planning import TrainRequest, plan_training

    return plan_training(TrainRequest(workload=workload, platform=platform, **asked))


def train_run(
    workload: str,
    request: "Request",
    directory: Path | None = None,
    say: Callable[[str], None] = _silent,
    **asked: Any,  # noqa: ANN401 - see `asked`
) -> "Run":
    """Replay a training step and return what came of it: `busbw train run`.

    `request` says where ranks run, `asked` the fields of `StepAsked`; the result is in `step` of the run.
    """
    from busbw.api.runs import start
    from busbw.api.training.replaying import plan_replay
    from busbw.measure.execute.launch import Listener
    from busbw.model.train.replay import StepAsked

    plan, where = plan_replay(request, StepAsked(workload=workload, **asked), directory)
    return start(plan, where, Listener(event=_silent, remark=say))


def scaling(*sources: str, **asked: Any) -> "ScalingReport":  # noqa: ANN401 - see `asked`
    """Return results over the size of the machine: `busbw scaling`. `asked`: the fields of `ScalingRequest`.

    >>> import busbw.api
    >>> busbw.api.scaling(published="azure-nd-h100-v5").views[0].title is not None
    True
    """
    from busbw.api.scaling_reports import ScalingRequest
    from busbw.api.scaling_reports import scaling as drawn

    return drawn(ScalingRequest(sources=sources, **asked))


def train_proxy(workload: str, directory: "Path | str", **asked: Any) -> "ProxyResult":  # noqa: ANN401 - see `asked`
    """Train a small transformer for real and return what was measured: `busbw train proxy`. Needs PyTorch.

    `asked`: the fields of `ProxyRequest`.
    """
    from busbw.api.training.proxying import ProxyRequest
    from busbw.api.training.proxying import train_proxy as trained

    return trained(ProxyRequest(workload=workload, directory=Path(directory), **asked), lambda _line: None).result


def train_read(*sources: str, **asked: Any) -> "TrainReadReport":  # noqa: ANN401 - see `asked`
    """Return what logs and traces of training jobs say: `busbw train read`. `asked`: fields of `TrainReadRequest`."""
    from busbw.api.training.reading import TrainReadRequest
    from busbw.api.training.reading import train_read as read

    return read(TrainReadRequest(sources=sources, **asked))


def train_scale(*sources: str, **asked: Any) -> "ScalingReport":  # noqa: ANN401 - see `asked`
    """Return how training jobs scale: `busbw train scale`. `asked`: the fields of `TrainScaleRequest`."""
    from busbw.api.training.scaling import TrainScaleRequest
    from busbw.api.training.scaling import train_scale as scaled

    return scaled(TrainScaleRequest(sources=sources, **asked))
