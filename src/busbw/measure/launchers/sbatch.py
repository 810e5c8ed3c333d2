"""sbatch: a script that starts a command in a job of its own, with everything that Slurm has to know in it."""

import re
import shlex
from collections.abc import Iterator

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, srun, variables
from busbw.measure.launchers.hosts import path_of
from busbw.measure.launchers.launcher import LaunchWords
from busbw.model.launch import Batch, LaunchRequest, Start
from busbw.model.plan import Job, JobFile, Program

name = "sbatch"

SCRIPT = "job.sh"
# What sbatch reads as it is in a directive: it knows quotes, backslashes and `#`, differently from a shell.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:;=+@%/^*&|()\[\]{}<>!~?$-]+")
_WORD = re.compile(r"[A-Za-z0-9_.+@-]+")
_WORDS = re.compile(r"[A-Za-z0-9_.+@-]+(?:,[A-Za-z0-9_.+@-]+)*")
_ARRAY = re.compile(r"\d{1,7}(?:-\d{1,7}(?::\d{1,7})?)?(?:,\d{1,7}(?:-\d{1,7}(?::\d{1,7})?)?)*(?:%\d{1,7})?")
_OPTION = re.compile(r"--[a-z][a-z0-9-]*(?:=.*)?", re.DOTALL)
_MINUTE_S = 60
_DAY_S = 86_400


def job(start: Start) -> Job:
    """Return the command that submits a script which starts the program in the run directory.

    Raises InputError where no batch job is described, and for what a directive or a script cannot say.
    """
    if start.batch is None:
        raise InputError("no batch job is described", hint="say at least how many nodes: --nodes N")
    file = JobFile(path=SCRIPT, text=_script(start, start.batch), executable=True)
    return Job(
        argv=("sbatch", "--parsable", path_of(start, file)),
        env=(),
        files=(file,),
        timeout_s=hosts.SUBMITTING_S,
        stall_s=hosts.SUBMITTING_S,
    )


def _script(start: Start, batch: Batch) -> str:
    given = variables.environment(start)
    if any("\0" in word for word in start.program.argv):
        raise InputError("a command line cannot contain NUL")
    literal = "".join((*given.values(), *start.program.argv, start.directory))
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {directive}" for directive in _directives(start, batch)),
        "",
        # Values are meant as they are, which its checks cannot know.
        *(("# shellcheck disable=SC2016,SC1003",) if set(literal) & set("$`\\'") else ()),
        *(f"unset {name}" for name in start.unset),
        *(f"export {name}={_literal(value)}" for name, value in given.items()),
        *(
            f'export {name}={shlex.quote(folder)}"${{{name}:+:${name}}}"'
            for name, folder in dict.fromkeys(start.prepend)
        ),
        f"cd -- {shlex.quote(start.directory)} || exit",
        # In the place of the shell, so that the signal before the end reaches it.
        f"exec {shlex.join(start.program.argv)}",
    ]
    return "\n".join(lines) + "\n"


def _literal(value: str) -> str:
    """Return a value within quotes, also one that needs none: `A==b` is no mistake, and looks like one."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _directives(start: Start, batch: Batch) -> Iterator[str]:
    yield f"--job-name={_checked(_WORD, batch.name, 'name of the job')}"
    for option, value in (
        ("partition", batch.partition),
        ("account", batch.account),
        ("qos", batch.qos),
        ("reservation", batch.reservation),
    ):
        if value is not None:
            yield f"--{option}={_checked(_WORDS, value, option)}"
    yield f"--nodes={_positive(batch.nodes, 'nodes')}"
    for option, number in (
        ("ntasks-per-node", batch.tasks_per_node),
        ("cpus-per-task", batch.cpus_per_task),
        ("gpus-per-node", batch.gpus_per_node),
    ):
        if number is not None:
            yield f"--{option}={_positive(number, option)}"
    if batch.exclusive:
        yield "--exclusive"
    if batch.time_s is not None:
        yield f"--time={_time(_positive(batch.time_s, 'time'))}"
    if batch.warning_s is not None:
        # To the shell of the script alone, whose place the command has taken.
        yield f"--signal=B:USR1@{_positive(batch.warning_s, 'warning')}"
    if batch.array is not None:
        yield f"--array={_checked(_ARRAY, batch.array, 'array')}"
    # Said outright, as clusters differ. A job that is started again goes on in the file of its first start.
    yield from ("--requeue", "--open-mode=append") if batch.requeue else ("--no-requeue",)
    # Progress and trouble apart from the result.
    yield f"--output={_output(start, batch)}.out"
    yield f"--error={_output(start, batch)}.err"
    for option in batch.options:
        yield _option(option)


def _output(start: Start, batch: Batch) -> str:
    """Return the file of what the job prints, but for its ending. Slurm replaces %j and the like in it."""
    if not start.directory.startswith("/") or _PLAIN.fullmatch(start.directory) is None:
        raise InputError(
            "sbatch does not read this path in a directive as it is",
            where=start.directory,
            hint="take a run directory without spaces, quotes, backslashes and `#`",
        )
    number = "%A_%a" if batch.array is not None else "%j"
    return f"{start.directory.replace('%', '%%')}/slurm-{number}"


def _option(option: str) -> str:
    if _OPTION.fullmatch(option) is None:
        raise InputError(
            f"{option[:80]!r} is not a directive of sbatch", hint="a directive looks like --constraint=h100"
        )
    _name, _equals, value = option.partition("=")
    if value and _PLAIN.fullmatch(value) is None:
        raise InputError("sbatch does not read this value in a directive as it is", where=option)
    return option


def _checked(pattern: re.Pattern[str], value: str, what: str) -> str:
    if pattern.fullmatch(value) is None or value.startswith("-"):
        raise InputError(f"{value[:80]!r} cannot be the {what}")
    return value


def _positive(number: int, what: str) -> int:
    if number < 1:
        raise InputError(f"{number} cannot be the {what} of a job")
    return number


def _time(time_s: int) -> str:
    """Return a time limit as days, hours, minutes, seconds; Slurm counts whole minutes."""
    minutes = -(-time_s // _MINUTE_S)
    days, left = divmod(minutes * _MINUTE_S, _DAY_S)
    hours, left = divmod(left, 60 * _MINUTE_S)
    return f"{f'{days}-' if days else ''}{hours:02d}:{left // _MINUTE_S:02d}:00"


def _of_words(start: Start, request: LaunchRequest) -> Job:
    """Return the command that submits a step of srun with the program, in a job that has whole nodes."""
    step = srun.job(start)
    script = job(
        Start(
            program=Program(argv=step.argv, env=step.env),
            placement=start.placement,
            directory=start.directory,
            unset=step.unset,
            prepend=step.prepend,
            batch=Batch(
                name="busbw",
                nodes=len(start.placement.hosts),
                tasks_per_node=max(start.placement.ranks // len(start.placement.hosts), 1),
                gpus_per_node=start.gpus_per_host,
                time_s=request.time_s,
                exclusive=True,
                options=request.batch_options,
            ),
            measuring_s=start.measuring_s,
            stall_s=start.stall_s,
        )
    )
    return Job(
        argv=script.argv,
        env=script.env,
        files=(*step.files, *script.files),
        timeout_s=script.timeout_s,
        stall_s=script.stall_s,
    )


WORDS = LaunchWords(job=_of_words, takes_words_of_srun=True)
