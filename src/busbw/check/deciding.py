"""The whole of a check: its verdict in a sentence, and the exit code that the profile asks for."""

from collections.abc import Sequence

import msgspec

from busbw.base.errors import ExitCode
from busbw.base.hostlist import compressed
from busbw.base.text import counted, listed
from busbw.check.draining import about, nodes_to_drain
from busbw.check.profiles import Profile
from busbw.model.check.report import CheckPlan, CheckReport, NodeAnswer, NodeOutcome, StageAnswer

# Of the nodes that a sentence names.
_MOST_CHARACTERS = 120


def decided(
    plan: CheckPlan, profile: Profile, stages: Sequence[StageAnswer], nodes: Sequence[NodeAnswer]
) -> CheckReport:
    """Return the report. What is bad goes before what failed, and that before what cannot be told."""
    nodes = [_with_stages(each, stages) for each in nodes]
    stopping = ("error",) if profile.fail_on == "error" else ("error", "warn")
    unfit = [each.host for each in nodes if each.outcome in stopping]
    slow = [each for each in stages if _is_bad(each, stopping)]
    unfit += list(dict.fromkeys(host for each in slow for host in each.suspects if host not in unfit))
    failed = [each for each in stages if each.state == "failed"]
    still_open = _open(stages, nodes)
    number = len(nodes) or len(plan.names)
    code = ExitCode.OK
    if unfit or slow:
        where = f"{counted(len(unfit), 'node')} of {number}: {_named(unfit)}" if unfit else f"{slow[0].name} found"
        more = f"; {listed([f'{each.name}: {each.because}' for each in slow], 1)}" if slow else ""
        outcome, sentence, code = "not_fit", f"not fit: {where}{more}", ExitCode.FINDINGS
    elif failed:
        outcome, sentence = "failed", f"failed: {failed[0].name}: {failed[0].because}"
        code = ExitCode.RUN_FAILED
    elif still_open:
        outcome, sentence = "cannot_tell", f"cannot tell: {listed(still_open, 1, between='; ')}"
        code = ExitCode.CANNOT_TELL if profile.when_cannot_tell == "stop" else ExitCode.OK
    else:
        warned = [each.host for each in nodes if each.outcome == "warn"]
        outcome = "fit"
        sentence = f"fit: {counted(number, 'node')}" + (f"; warnings on {_named(warned)}" if warned else "")
    return CheckReport(
        check_id=plan.check_id,
        created=plan.created,
        busbw_version=plan.busbw_version,
        profile=plan.profile,
        title=profile.title,
        platform=plan.platform,
        outcome=outcome,  # type: ignore[arg-type]
        sentence=sentence,
        exit_code=int(code),
        fail_on=profile.fail_on,
        stages=tuple(stages),
        nodes=tuple(nodes),
        drain=nodes_to_drain(nodes, stages, plan.spares),
    )


def _with_stages(node: NodeAnswer, stages: Sequence[StageAnswer]) -> NodeAnswer:
    """Return a node with what later stages say of it, where that is worse than what it says itself."""
    named = [(each.name, found) for each in stages if node.host in each.suspects for found in about(each, node.host)]
    if not named or node.outcome == "error":
        return node
    name, worst = min(named, key=lambda each: each[1].severity != "error")
    outcome: NodeOutcome = "error" if worst.severity == "error" else "warn"
    return msgspec.structs.replace(node, outcome=outcome, because=f"{name}: {worst.code} {worst.title}")


def _is_bad(stage: StageAnswer, stopping: Sequence[str]) -> bool:
    if stage.verdict is not None and stage.verdict.outcome == "wrong":
        return True
    return any(found.severity in stopping for found in stage.findings)


def _open(stages: Sequence[StageAnswer], nodes: Sequence[NodeAnswer]) -> list[str]:
    """Return what could not be told: of nodes, and of stages that were asked for."""
    found = [f"{each.name}: {each.because}" for each in stages if each.state == "not_measured"]
    found += [
        f"{each.name}: {each.verdict.sentence}"
        for each in stages
        if each.verdict is not None and each.verdict.outcome == "cannot_tell"
    ]
    return found + [f"{each.host}: {each.because}" for each in nodes if each.outcome == "cannot_tell"]


def _named(hosts: Sequence[str]) -> str:
    text = compressed(hosts)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
