"""Results explained and judged: of a run, an import, or files of other tools, held against a machine."""

from dataclasses import replace
from pathlib import Path

import msgspec

from busbw.api.gates import AskedGates, answer_gates
from busbw.api.opened_results import OpenedRun, opened
from busbw.base.errors import InputError
from busbw.facts.gpu_kinds import facts_of_gpus
from busbw.judge.explaining.explain import explain, explain_published
from busbw.judge.explaining.from_tables import series_of_import
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.logged import Logged, logged_of
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.series import Network
from busbw.judge.explaining.slow_ends import pair_findings_of_import, pair_findings_of_run
from busbw.judge.explaining.sources import series_of_run
from busbw.judge.explaining.told import Told
from busbw.limits.algorithms import algorithm_name
from busbw.limits.ceiling import MOST_NODES
from busbw.machine.named import hardware_of_file, platform, platforms
from busbw.model.finding import Verdict
from busbw.model.host import Hardware
from busbw.model.imported import Imported
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict
from busbw.store import imports

_NETWORKS: dict[str, Network] = {"fabric": "fabric", "fallback": "fallback", "loopback": "loopback"}


def judge_results(
    names: tuple[str, ...],
    *,
    platform_name: str | None = None,
    host: Path | None = None,
    here: bool = False,
    told: Told | None = None,
    gates: AskedGates | None = None,
) -> ExplainedVerdict:
    """Return everything explained: one run or import, files of other tools, or, without a name, a platform's figures.

    `platform_name`, `host` (a snapshot) or `here`: the machine to hold it against; without them the platform that a run
    stored, else the names of the GPUs that a result holds. `gates`: what the result must meet beside. Raises InputError
    for what there is not, and where nothing at all is named.
    """
    if not names and gates is not None:
        raise InputError("gates are held against a result, and none is named", hint="busbw judge last --at-least ...")
    if not names and platform_name is None:
        raise InputError(
            "nothing to judge is named",
            hint="name a run (last), files of nccl-tests, or a platform: busbw judge --platform aws-p5",
        )
    grounds = grounds_of(platform_name, host, here=here)
    said = told or Told()
    if not names and grounds.platform is not None:
        return explain_published(grounds.platform)
    with opened(names) as result:
        if isinstance(result, OpenedRun):
            is_named = platform_name is not None or host is not None or here
            known = grounds if is_named else grounds_of_run(result.run)
            explained = judge_run(result.run, replace(known, own=_own(result.run)), said)
        else:
            explained = _judge_tables(result.where, result.name, grounds, said, _logged(result.logs))
        if gates is None:
            return explained
        return msgspec.structs.replace(explained, gates=answer_gates(result, gates))


def _own(run: Run) -> tuple[Reference, ...]:
    """Return what earlier runs over NCCL on the same hosts reached; MPI within one host is judged by the run itself."""
    if run.plan.gpu_setup is None and len(run.plan.placement.hosts) == 1:
        return ()
    from busbw.api.own_runs import own_references  # noqa: PLC0415 - the history takes as long as judging a file

    return own_references(run)


def judge_run(run: Run, grounds: Grounds, told: Told) -> ExplainedVerdict:
    """Return a run explained."""
    return explain(
        run.plan.run_id, series_of_run(run, told), grounds, run=run, findings=pair_findings_of_run(run, grounds)
    )


def grounds_of_run(run: Run) -> Grounds:
    """Return what a run is held against where nothing is named: the platform that it stored, if it is known here."""
    start = run.plan.surroundings
    known = {each.platform.id for each in platforms()}
    return grounds_of(start.platform if start is not None and start.platform in known else None)


def judge_import(where: Path, subject: str, grounds: Grounds, told: Told) -> ExplainedVerdict:
    """Return a stored import explained, with what NCCL's log says where it kept a copy of one."""
    return _judge_tables(where, subject, grounds, told, _logged(tuple(map(str, imports.copies(where)))))


def grounds_of(platform_name: str | None, host: Path | None = None, *, here: bool = False) -> Grounds:
    """Return the machine to hold results against: a platform, a host by its snapshot, this host, or none of them.

    Raises InputError for a platform or a snapshot that there is not.
    """
    if here and host is not None:
        raise InputError(f"both {str(host)!r} and --here are given", hint="choose one of them")
    known = tuple(each.platform for each in platforms())
    return Grounds(
        hardware=_hardware(host, here=here),
        platform=platform(platform_name).platform if platform_name is not None else None,
        platform_name=platform_name,
        gpus=facts_of_gpus(known),
    )


def _hardware(host: Path | None, *, here: bool) -> Hardware | None:
    if here:
        from busbw.machine.named import hardware_here  # noqa: PLC0415 - importing it takes as long as judging a file

        return hardware_here()
    return hardware_of_file(host) if host is not None else None


def _logged(names: tuple[str, ...]) -> Logged:
    """Return what NCCL's log among the rows says; of several files it is not known whose it is."""
    from busbw.api.doctoring import doctor_logs  # noqa: PLC0415 - most files hold no log

    if len(names) > 1:
        return Logged()
    try:
        return logged_of(doctor_logs(names))
    except InputError:
        # No line of NCCL's log in it.
        return Logged()


def _judge_tables(where: Path, subject: str, grounds: Grounds, told: Told, logged: Logged) -> ExplainedVerdict:
    imported = imports.read(where)
    node_gpus = _node_gpus(grounds)
    series, left_out = series_of_import(imported, imports.readings(where), told, node_gpus=node_gpus, logged=logged)
    found = (*imported.findings, *pair_findings_of_import(imported, imports.readings(where)))
    explained = explain(subject, series, grounds, findings=found, left_out=left_out)
    return _failed(explained, imported)


def _failed(explained: ExplainedVerdict, imported: Imported) -> ExplainedVerdict:
    """Return it as failed where the programs failed before they measured anything."""
    said = [f"{table.program or table.tool}: {text}" for table in imported.tables for _, text in table.failures]
    if not said or any(table.readings for table in imported.tables):
        return explained
    verdict = Verdict(outcome="failed", sentence=f"failed: {said[0]}.", because=("IMP001",))
    return msgspec.structs.replace(explained, verdict=verdict)


def _node_gpus(grounds: Grounds) -> int | None:
    if grounds.hardware is not None:
        return len(grounds.hardware.gpus) or None
    return grounds.platform.gpu.count or None if grounds.platform is not None else None


def said(
    *,
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    nvls: str | None = None,
    sharp: str | None = None,
    algorithm: str | None = None,
    network: str | None = None,
) -> Told:
    """Return what somebody says of how a result was measured, in the words of the command line.

    Raises InputError for numbers below 1 and for algorithms without a bound.
    """
    for name, number in (("--nodes", nodes), ("--gpus-per-node", gpus_per_node)):
        if number is not None and not 1 <= number <= MOST_NODES:
            raise InputError(f"{name} {number}", hint=f"from 1 to {MOST_NODES}")
    return Told(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        nvls=None if nvls is None else nvls == "on",
        sharp=None if sharp is None else sharp == "on",
        algorithms=(algorithm_name(algorithm),) if algorithm is not None else (),
        network=_NETWORKS[network] if network is not None else None,
    )
