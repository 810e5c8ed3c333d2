"""Launchers that hand their own environment on to every rank, byte for byte: srun, flux run, jsrun, aprun."""

from collections.abc import Iterable

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, variables
from busbw.measure.launchers.hosts import check_arguments, even, processes_of_hosts
from busbw.measure.launchers.variables import LibraryVariables, library_variables, settings_without_mpirun
from busbw.model.launch import Start
from busbw.model.plan import Job, JobFile

# An option and its values, a word each.
Option = tuple[str, ...]
# Options that are told apart by the name before the second equals sign.
_NAMED = "--setopt="


def step(
    start: Start,
    launcher: str,
    command: tuple[str, ...],
    options: Iterable[Option],
    *,
    refused: tuple[str, ...],
    own: LibraryVariables | None = None,
    before: tuple[str, ...] = (),
    files: tuple[JobFile, ...] = (),
    unset: tuple[str, ...] = (),
) -> Job:
    """Return the job whose settings are in the environment of the launcher.

    `refused`: what the names of its own variables begin with; `own`: what the ranks' MPI needs, by default what
    mpi4py does; `before`: words between the launcher's and the program's; `unset`: further names that ranks must not
    have. A user's option takes the place of ours of the same name. Raises InputError for what cannot arrive.
    """
    check_arguments(start, launcher)
    given = variables.environment(start)
    wrong = next((each for each in given if each.startswith(refused)), None)
    if wrong is not None:
        raise InputError(f"{launcher} sets this variable itself", where=wrong)
    if own is None:
        own = library_variables(start, start.mpi) if start.mpi is not None else LibraryVariables()
    asked = {_key(word) for word in start.options}
    return Job(
        argv=(
            *command,
            *(word for option in options if _key(option[0]) not in asked for word in option),
            *start.options,
            *before,
            *start.program.argv,
        ),
        env=tuple((dict(own.env) | settings_without_mpirun(start) | given).items()),
        prepend=(*own.prepend, *start.prepend),
        links=own.links,
        files=files,
        unset=(*start.unset, *unset),
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def processes_of_each_host(start: Start, launcher: str, hint: str) -> int:
    """Return how many processes every host starts. Raises InputError where hosts differ in it."""
    counts = processes_of_hosts(start)
    each = even(counts)
    if each is None:
        raise InputError(
            f"{launcher} starts as many processes on every host, and these are {min(counts)} to {max(counts)}",
            hint=hint,
        )
    return each


def _key(word: str) -> str:
    """Return what an option is called: `--cpu-bind` of `--cpu-bind=cores`, `--setopt=pmi` of `--setopt=pmi=pmix`."""
    if word.startswith(_NAMED):
        return _NAMED + word.removeprefix(_NAMED).partition("=")[0]
    return word.partition("=")[0]
