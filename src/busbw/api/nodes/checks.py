"""Checks of nodes: stage after stage, each stored when it has ended, and gone on with after a stop."""

import datetime as dt
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from busbw import __version__
from busbw.api.nodes.screenings import screen_here, screen_hosts
from busbw.base import layout
from busbw.base.errors import BusbwError, InputError, RunError
from busbw.base.hostlist import compressed, expand
from busbw.base.text import counted, maybe
from busbw.base.units import parse_size
from busbw.check.deciding import decided
from busbw.check.draining import DrainForm, drain_text
from busbw.check.history import history_of
from busbw.check.judging import judge_nodes, past_of
from busbw.check.profiles import MOST_BYTES, FabricTable, Profile, read_profile, screening_of
from busbw.facts.check_profiles import shipped_profiles
from busbw.facts.platforms import find_platform
from busbw.machine.capture import host as capture
from busbw.machine.capture.sites import site_files
from busbw.measure.execute.launch import Listener
from busbw.model.check.report import CheckHistory, CheckPlan, CheckReport, NodeAnswer, NodePast, StageAnswer, StageName
from busbw.model.check.screening import ScreenedNodes
from busbw.model.finding import Finding, Verdict
from busbw.model.request import Request
from busbw.store import checks
from busbw.store import directory as directories
from busbw.store.files import is_file, read_bounded

_SUITE, _FABRIC = "suite", "fabric"
_WORST = ("wrong", "failed", "slow", "cannot_tell", "ok")
_ENDING = ".toml"
Say = Callable[[str], None]


class CheckRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What to check, and how the nodes are reached."""

    # A shipped one by its name, or a site's file.
    profile: str = "quick"
    # Neither: this host alone.
    hosts: str | None = None
    nodes: int | None = None
    launcher: str | None = None
    interface: str | None = None
    remote_shell: tuple[str, ...] = ()
    platform: str | None = None
    # In place of the profile's.
    partners: tuple[str, ...] = ()
    # A list of hosts that may take the place of bad ones.
    spares: str = ""
    directory: Path | None = None


def profile_named(name: str) -> tuple[Profile, str]:
    """Return a profile and its text: a shipped one, or a file. Raises InputError."""
    shipped = shipped_profiles()
    if name in shipped:
        return read_profile(shipped[name], f"busbw/data/profiles/{name}{_ENDING}"), shipped[name]
    if not is_file(Path(name)):
        near = maybe(name, shipped)
        raise InputError(
            f"no profile {name[:200]!r}{near}",
            hint=f"{', '.join(sorted(shipped))}, or a file; busbw check --profile quick --print-profile shows one",
        )
    text = read_bounded(Path(name), most_bytes=MOST_BYTES, kind="profile").decode("utf-8", "replace")
    return read_profile(text, name), text


def check(request: CheckRequest, say: Say) -> tuple[CheckReport, Path | None]:
    """Check nodes from the beginning; return the report, and where it is stored.

    A screening of this host alone leaves a line in the history and no folder, unless one is named. Raises InputError
    for what cannot be checked, RunError where nothing could be started or stored.
    """
    profile, text = profile_named(request.profile)
    if request.platform is not None:
        find_platform(request.platform, site_files())
    _check_twice(request.hosts)
    spares = expand(request.spares, where="--spares")
    for each in request.partners:
        expand(each, where="--partner")
    created = dt.datetime.now(dt.UTC)
    plan = CheckPlan(
        busbw_version=__version__,
        check_id=f"{created:%Y%m%dT%H%M%S}-{Path(request.profile).name.removesuffix(_ENDING)}-{secrets.token_hex(2)}",
        created=created.isoformat(timespec="seconds"),
        profile=request.profile,
        profile_text=text,
        hosts=(),
        here=capture.host().name,
        hosts_given=request.hosts,
        nodes=request.nodes,
        launcher=request.launcher,
        interface=request.interface,
        remote_shell=request.remote_shell,
        platform=request.platform,
        spares=spares,
        screening=screening_of(
            profile,
            request.platform,
            tuple(name for each in request.partners for name in expand(each, where="--partner")),
        ),
    )
    is_alone = request.hosts is None and request.nodes is None
    if is_alone and profile.stages == ("screening",) and request.directory is None:
        return _Checking(plan, profile, None, say).report(), None
    where = (request.directory or directories.root() / checks.FOLDER / plan.check_id).absolute()
    under_way = _Checking(plan, profile, where, say)
    checks.create(where, under_way.plan)
    return under_way.report(), where


def _check_twice(hosts: str | None) -> None:
    """Raise InputError for a host that a list names twice: a node is checked once."""
    if hosts is None or is_file(Path(hosts)):
        return
    twice = [name for name, count in Counter(expand(hosts, where="--hosts")).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]} is named twice", where="--hosts", hint="name each host once")


def resume(name: str, hosts: str | None, nodes: int | None, say: Say) -> tuple[CheckReport, Path]:
    """Go on with a check: stages that have ended are kept. Raises InputError for other hosts than it was begun on."""
    where = checks.find(name, directories.root()).absolute()
    plan = checks.read_plan(where)
    profile = read_profile(plan.profile_text, str(where / checks.PLAN_FILE))
    here = capture.host().name
    if not plan.hosts and here != plan.here:
        raise InputError(
            f"this check belongs to {plan.here}, and this is {here}", where=str(where), hint="resume it there"
        )
    if hosts is not None and set(expand(hosts, where="--hosts") if not is_file(Path(hosts)) else ()) != set(plan.names):
        raise _others(hosts, plan, where)
    if nodes is not None and nodes != len(plan.names):
        raise _others(f"{nodes} nodes", plan, where)
    under_way = _Checking(plan, profile, where, say)
    if under_way.plan.hosts != plan.hosts:
        raise _others(compressed(under_way.plan.hosts), plan, where)
    return under_way.report(), where


def _others(asked: str, plan: CheckPlan, where: Path) -> InputError:
    return InputError(
        f"this check belongs to {compressed(plan.names)}, and {asked} are other hosts",
        where=str(where),
        hint="start a new check for other hosts, without --resume",
    )


class _Checking:
    """A check under way."""

    def __init__(self, plan: CheckPlan, profile: Profile, where: Path | None, say: Say) -> None:
        self._profile = profile
        self._where = where
        self._say = say
        self._began_s = time.monotonic()
        self._silent: frozenset[str] = frozenset()
        self._request = Request(
            hosts=plan.hosts_given,
            nodes=plan.nodes,
            launcher=plan.launcher,
            interface=plan.interface,
            remote_shell=plan.remote_shell,
        )
        if plan.hosts_given is None and plan.nodes is None:
            self._screen: Callable[[], ScreenedNodes] = lambda: _alone(plan)
            self.plan = plan
        else:
            hosts, self._screen = screen_hosts(self._request, plan.screening, where or Path.cwd(), say)
            self.plan = msgspec.structs.replace(plan, hosts=hosts)

    def report(self) -> CheckReport:
        """Carry out every stage that has not ended, judge, and store the whole."""
        answers: list[StageAnswer] = []
        nodes: tuple[NodeAnswer, ...] = ()
        for name in self._profile.stages:
            if name == "screening":
                answer, nodes = self._screening()
            elif answers and answers[0].name == "screening" and answers[0].state == "failed":
                answer = StageAnswer(name=name, state="not_measured", because="no host answered the screening")
            else:
                answer = self._kept(name) or self._stored(self._taken(name))
            answers.append(answer)
        report = decided(self.plan, self._profile, answers, nodes)
        # A check that was whole already, and is looked at again, is in the history.
        if self._where is None or not is_file(self._where / checks.RESULT_FILE):
            self._remember(report.nodes)
        if self._where is not None:
            checks.write_report(self._where, report)
        return report

    def _kept(self, name: StageName) -> StageAnswer | None:
        """Return what a stage came to when it was carried out before; one that failed is carried out again."""
        kept = checks.read_stage(self._where, name) if self._where is not None else None
        return kept if kept is not None and kept.state == "done" else None

    def _stored(self, answer: StageAnswer) -> StageAnswer:
        if self._where is not None:
            checks.write_stage(self._where, answer)
        return answer

    def _screening(self) -> tuple[StageAnswer, tuple[NodeAnswer, ...]]:
        screened = checks.read_screening(self._where) if self._where is not None else None
        if screened is None:
            self._say(
                f"screening: {counted(len(self.plan.names), 'node')}, at most {self.plan.screening.time_limit_s:g} s"
            )
            try:
                screened = self._screen()
            except RunError as error:
                return StageAnswer(name="screening", state="failed", because=error.cause), ()
            if self._where is not None:
                checks.write_screening(self._where, screened)
        self._silent = frozenset(each.host for each in screened.silent)
        past: dict[str, list[NodePast]] = {}
        for each in checks.read_past(directories.root(), self.plan.names):
            past.setdefault(each.host, []).append(each)
        nodes = judge_nodes(screened, self._profile, past)
        because = f"{counted(len(screened.nodes), 'node')} answered"
        return StageAnswer(name="screening", state="done", because=because, wall_s=screened.wall_s), nodes

    def _taken(self, name: StageName) -> StageAnswer:
        """Carry out a stage; what fails in it is its answer, so that the stages before it stay judged."""
        began_s = time.monotonic()
        if began_s - self._began_s > self._profile.time_limit_s:
            because = f"no time was left of {self._profile.time_limit_s:g} s"
            return StageAnswer(name=name, state="not_measured", because=because)
        self._say(f"{name}: begins")
        taken = {"fabric": self._fabric, "suite": self._suite, "judge": self._judge}
        try:
            answer = taken[name]()
        except InputError as error:
            return StageAnswer(name=name, state="not_measured", because=_words(error))
        except RunError as error:
            return StageAnswer(name=name, state="failed", because=_words(error))
        return msgspec.structs.replace(answer, wall_s=round(time.monotonic() - began_s, 2))

    def _answering(self) -> Request:
        """Return the request for stages over all hosts: without those that did not answer, where hosts are named."""
        if not self._silent or self.plan.hosts_given is None:
            return self._request
        left = [each for each in self.plan.hosts if each not in self._silent]
        self._say(f"without {compressed(sorted(self._silent))}, where nothing answered")
        return msgspec.structs.replace(self._request, hosts=",".join(left))

    def _fabric(self) -> StageAnswer:
        if len(set(self.plan.names) - self._silent) < 2:
            return StageAnswer(name="fabric", state="not_measured", because="one host has no pairs")
        assert self._where is not None
        place = self._measured_fabric(self._where / _FABRIC)
        return _of_fabric(place, self._profile.fabric)

    def _measured_fabric(self, where: Path) -> Path:
        """Measure the pairs of hosts, or what is missing of them; return the run that has the last of it."""
        from busbw.api import loading  # noqa: PLC0415 - a check of one host measures no pair
        from busbw.api.sweeping import sweeps  # noqa: PLC0415 - a check of one host measures no pair
        from busbw.model.fabric import FabricAsked  # noqa: PLC0415 - as above

        again = where.with_name(f"{where.name}.again")
        where = again if is_file(again / layout.PLAN_FILE) else where
        listener = Listener(event=lambda _event: None, remark=self._say)
        if is_file(where / layout.PLAN_FILE):
            run = loading.read(where)
            if run.outcome is None or run.outcome.ended in ("stopped", "failed"):
                plan, where = sweeps.resumed_plan(where, None)
                sweeps.resume_fabric(plan, where, listener)
            return where
        asked = self._profile.fabric
        request = msgspec.structs.replace(self._answering(), platform=self.plan.platform, tag="check")
        wanted = FabricAsked(
            metrics=asked.metrics,
            pairs=asked.pairs,
            expect=asked.expect,
            nics=asked.nics,
            size_bytes=parse_size(asked.size) if asked.size is not None else None,
            pair_s=asked.pair_s if asked.pair_s is not None else FabricAsked().pair_s,
        )
        plan, where = sweeps.plan_fabric(request, wanted, where)
        sweeps.start_fabric(plan, where, listener)
        return where

    def _suite(self) -> StageAnswer:
        from busbw.api import loading, runs  # noqa: PLC0415 - most checks measure no collective
        from busbw.measure.plan.planning import plan as planned  # noqa: PLC0415 - as above

        assert self._where is not None
        where, asked = self._where / _SUITE, self._profile.suite
        listener = Listener(event=lambda _event: None, remark=self._say)
        if is_file(where / layout.PLAN_FILE):
            run = loading.read(where)
            if run.outcome is None or run.outcome.ended in ("stopped", "failed"):
                run = runs.resume(where, listener)
        else:
            request = msgspec.structs.replace(
                self._answering(),
                collectives=asked.collectives,
                backend=f"native-{asked.backend}",
                ranks_per_node=asked.ranks_per_node if self.plan.hosts else None,
                largest_bytes=asked.largest_bytes,
                time_limit_s=asked.time_limit_s,
                platform=self.plan.platform,
                tag="check",
            )
            run = runs.start(planned(request, where, directories.root())[0], where, listener)
        return _judged("suite", run.verdict, run.findings)

    def _judge(self) -> StageAnswer:
        from busbw.api.verdicts import judge_results  # noqa: PLC0415 - most checks measure no collective

        assert self._where is not None
        if not is_file(self._where / _SUITE / layout.PLAN_FILE):
            return StageAnswer(name="judge", state="not_measured", because="the suite was not measured")
        explained = judge_results((str(self._where / _SUITE),), platform_name=self.plan.platform)
        return _judged("judge", explained.verdict, explained.findings)

    def _remember(self, nodes: Sequence[NodeAnswer]) -> None:
        """Add a line for each node to its history."""
        unix_s = dt.datetime.now(dt.UTC).timestamp()
        name = Path(self.plan.profile).name.removesuffix(_ENDING)
        try:
            checks.add_past(directories.root(), [past_of(each, profile=name, unix_s=unix_s) for each in nodes])
        except RunError as error:
            # The nodes are what was asked for.
            self._say(str(error).removeprefix("error: "))


def _alone(plan: CheckPlan) -> ScreenedNodes:
    node = screen_here(plan.screening)
    return ScreenedNodes(nodes=(node,), wall_s=node.wall_s)


def _words(error: BusbwError) -> str:
    return error.cause if error.where is None else f"{error.cause} ({error.where})"


# Kinds of answers that are one node's own.
_OF_ONE_NODE = ("node", "nic", "nic_send", "nic_receive", "unanswered")


def _of_fabric(where: Path, asked: FabricTable) -> StageAnswer:
    """Return what a measured fabric came to, all metrics together."""
    from busbw.api.sweeping.fabrics import FabricRequest, judge_fabrics  # noqa: PLC0415 - a check of one host measures no pair

    reports = [each.report for each in judge_fabrics(FabricRequest(source=str(where)))]
    worst = min(reports, key=lambda each: _WORST.index(each.verdict.outcome))
    findings = tuple(
        msgspec.structs.replace(each, severity=asked.severity)
        for report in reports
        for each in report.findings
        if each.is_serious
    )
    suspects = [
        answer.nodes[0]
        for report in reports
        for answer in report.answers
        if answer.kind in _OF_ONE_NODE and len(answer.nodes) == 1 and answer.confidence != "possible"
    ]
    return StageAnswer(
        name="fabric", state="done", because=worst.verdict.sentence, verdict=worst.verdict, findings=findings,
        suspects=tuple(dict.fromkeys(suspects)),
    )  # fmt: skip


def _judged(name: StageName, verdict: Verdict, findings: Sequence[Finding]) -> StageAnswer:
    # What only disturbed a measurement is no fault of a node.
    is_bad = verdict.outcome in ("slow", "wrong")
    serious = tuple(each for each in findings if is_bad and each.is_serious and each.code in verdict.because)
    state = "failed" if verdict.outcome == "failed" else "done"
    return StageAnswer(name=name, state=state, because=verdict.sentence, verdict=verdict, findings=serious)  # type: ignore[arg-type]


def history(hosts: str | None = None) -> CheckHistory:
    """Return the nodes that were checked, those that fail most often first. `hosts`: these alone."""
    names = expand(hosts, where="--hosts") if hosts is not None else None
    return history_of(checks.read_past(directories.root(), names))


def drain_list(report: CheckReport, form: DrainForm) -> str:
    """Return the nodes to drain in a form. Nothing is executed."""
    return drain_text(report.drain, form)
