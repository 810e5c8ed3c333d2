"""A job as a command that a person can paste into a shell, an option a line."""

import re
import shlex
from collections.abc import Iterator, Sequence

from busbw.model.plan import Job

# Options of launchers with two values, and with none.
_PAIRS = frozenset(("--mca", "--prtemca", "--pmixmca", "-mca", "-genv"))
_FLAGS = frozenset(
    (
        *("--allow-run-as-root", "--oversubscribe", "--report-bindings", "-disable-auto-cleanup"),
        *("--overcommit", "--overlap", "--exclusive", "--exact", "--parsable", "--standalone", "--no-python", "-P"),
        *("--container-writable", "--no-container-mount-home", "-export-all"),
    )
)
# Programs whose first word says what they shall do.
_WITH_VERBS = frozenset(("flux",))
# Programs that take settings as words behind their options.
_WITH_SETTINGS = frozenset(("mpirun_rsh",))
_SETTING = re.compile(r"[A-Za-z_]\w*=")


def command_line(job: Job) -> str:
    """Return the command of a job, with the environment it adds, for sh and bash.

    Files and links of the job must be there. The words are the job's: what is split into lines is one command.
    """
    lines = [*_environment(job), *_lines(job.argv)]
    return " \\\n    ".join(lines)


def _environment(job: Job) -> Iterator[str]:
    """Yield what comes before the command: names removed, set, and put before lists."""
    values = dict(job.env)
    settings = [f"{name}={shlex.quote(value)}" for name, value in job.env if name not in dict(job.prepend)]
    for name in dict.fromkeys(name for name, _folder in job.prepend):
        # The first named ends up behind the later ones, as each is put first.
        folders = [folder for each, folder in reversed(job.prepend) if each == name]
        if name in values:
            settings.append(f"{name}={shlex.quote(':'.join((*folders, values[name])))}")
        else:
            settings.append(f'{name}={shlex.quote(":".join(folders))}"${{{name}:+:${name}}}"')
    if job.unset:
        yield " ".join(("env", *(f"-u {name}" for name in job.unset)))
    yield from settings


def _lines(argv: Sequence[str]) -> Iterator[str]:
    """Yield the launcher, each of its options with what belongs to it, and the command that it starts."""
    at = 2 if argv[0].rpartition("/")[2] in _WITH_VERBS else 1
    yield shlex.join(argv[:at])
    while at < len(argv) and argv[at].startswith("-"):
        end = min(at + 1 + _values(argv, at), len(argv))
        yield shlex.join(argv[at:end])
        at = end
    while argv[0].rpartition("/")[2] in _WITH_SETTINGS and at < len(argv) and _SETTING.match(argv[at]):
        yield shlex.join(argv[at : at + 1])
        at += 1
    if at < len(argv):
        yield shlex.join(argv[at:])


def _values(argv: Sequence[str], at: int) -> int:
    """Return how many words after an option are its value."""
    option = argv[at]
    if option in _PAIRS:
        return 2
    if "=" in option or option in _FLAGS or at + 1 == len(argv) or argv[at + 1].startswith("-"):
        return 0
    return 1
