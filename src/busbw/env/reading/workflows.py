"""Reads workflows of GitHub and pipelines of GitLab: variables of the whole, of a job and of a step, and its script."""

from busbw.env.reading.context import NAME, Context
from busbw.env.reading.spelled import FILLED, Spelled, joined
from busbw.env.reading.yaml_tree import Mapping, Node, Scalar, Sequence
from busbw.model.settings import LaunchCommand

_SCRIPTS = ("before_script", "script", "after_script")


def read_workflow(root: Node, context: Context) -> bool:
    """Take a document down where it is a workflow or a pipeline; False where it is neither."""
    if not isinstance(root, Mapping):
        return False
    jobs = root.get("jobs")
    if isinstance(jobs, Mapping) and any(_steps(job) for _, job in jobs.pairs):
        outer = _level(root, "env", context)
        for _, job in jobs.pairs:
            if isinstance(job, Mapping):
                _github_job(job, outer)
        return True
    if any(_is_gitlab_job(job) for _, job in root.pairs):
        outer = _level(root, "variables", context)
        for _, job in root.pairs:
            if isinstance(job, Mapping) and _is_gitlab_job(job):
                _script(_lines(job), _level(job, "variables", outer))
        return True
    return False


def _steps(job: Node) -> list[Mapping]:
    steps = job.get("steps") if isinstance(job, Mapping) else None
    return [step for step in steps.items if isinstance(step, Mapping)] if isinstance(steps, Sequence) else []


def _is_gitlab_job(job: Node) -> bool:
    return isinstance(job, Mapping) and any(isinstance(job.get(key), Sequence) for key in _SCRIPTS)


def _github_job(job: Mapping, outer: Context) -> None:
    context = _level(job, "env", outer)
    for step in _steps(job):
        script = step.scalar("run")
        _script(script.spelled if script is not None else None, _level(step, "env", context))


def _level(node: Mapping, key: str, outer: Context) -> Context:
    """Return what is read within one part, which sees the variables of those that it is in."""
    line, column = outer.ledger.place(node.start)
    launch = LaunchCommand(kind="other", family="workflow", argv=(), file=outer.ledger.file, line=line, column=column)
    context = outer.inner(launch=outer.start(launch))
    variables = node.get(key)
    for name, value in variables.pairs if isinstance(variables, Mapping) else []:
        # GitLab also takes a mapping with a description.
        scalar = value.scalar("value") if isinstance(value, Mapping) else value
        if isinstance(scalar, Scalar) and NAME.fullmatch(name.spelled.text):
            written = (scalar.start, scalar.end)
            spelled = _known(scalar.spelled)
            context.put(name.spelled.text, spelled, "manifest", at=name.spelled.origin(0), written=written)
    return context


def _known(value: Spelled) -> Spelled:
    """Return a value as the runner passes it on; what refers to another variable is not known here."""
    return Spelled(FILLED, ((0, value.origin(0)),)) if "$" in value.text else value


def _lines(job: Mapping) -> Spelled | None:
    """Return the lines of a job's script as one, None where it has none."""
    parts: list[Spelled] = []
    for key in _SCRIPTS[:2]:
        lines = job.get(key)
        for line in lines.items if isinstance(lines, Sequence) else []:
            if isinstance(line, Scalar):
                parts += (line.spelled, Spelled("\n", ((0, line.end),)))
    return joined(parts) if parts else None


def _script(script: Spelled | None, context: Context) -> None:
    if script is not None:
        context.read("shell", script, context.inner())
