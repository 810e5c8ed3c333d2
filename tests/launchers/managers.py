"""How flux run, jsrun and aprun read their command lines, strictly, by their manuals: what is not known here fails.

They are not here to be run. Each reader returns the environment of a rank, its folder, and its command.
"""

import json
import re
import shlex
from dataclasses import dataclass

from busbw.model.plan import Job

_FLUX = {
    *("--nodes", "--ntasks", "--tasks-per-node", "--cores-per-task", "--gpus-per-node", "--gpus-per-task"),
    *("--requires", "--setopt", "--cwd"),
}
_FLUX_FLAGS = {"--exclusive"}
_JSRUN = {
    *("--nrs", "--rs_per_host", "--tasks_per_rs", "--cpu_per_rs", "--gpu_per_rs", "--launch_distribution", "--bind"),
    *("--erf_input", "--smpiargs", "--exit_on_error", "--chdir"),
}
_APRUN = {"-n", "-N", "-j", "-cc", "-L"}
_APRUN_FLAGS = {"-b", "-q"}
_RANK = re.compile(
    r"rank: (?P<rank>\d+): \{ (?:hostname: (?P<name>\S+)|host: (?P<number>\d+)); "
    r"cpu: (?P<cpus>\{[\d,-]+\}(?:,\{[\d,-]+\})*) ; (?:gpu: \* ; )?mem: \* \}"
)


@dataclass(frozen=True)
class Started:
    """What a rank gets. `given`: the values of each option, in order."""

    env: dict[str, str]
    command: tuple[str, ...]
    given: dict[str, list[str]]

    @property
    def folder(self) -> str | None:
        return next((self.given[name][0] for name in ("--cwd", "--chdir") if name in self.given), None)

    @property
    def processes(self) -> int:
        one = {name: int(values[0]) for name, values in self.given.items() if values[0].isdecimal()}
        if "--tasks_per_rs" in one:
            return one["--nrs"] * one["--tasks_per_rs"]
        if "--tasks-per-node" in one:
            return one["--nodes"] * one["--tasks-per-node"]
        return one.get("--ntasks", one.get("-n", 0))


def _split(job: Job, at: int, valued: set[str], flags: set[str], *, glued: bool) -> tuple[dict[str, list[str]], int]:
    given: dict[str, list[str]] = {}
    while at < len(job.argv) and job.argv[at].startswith("-"):
        word = job.argv[at]
        name, equals, value = word.partition("=") if glued else (word, "", "")
        if name in flags:
            given.setdefault(name, []).append("")
        elif name in valued and glued:
            assert equals, word
            given.setdefault(name, []).append(value)
        else:
            assert name in valued, word
            at += 1
            given.setdefault(name, []).append(job.argv[at])
        at += 1
    return given, at


def flux(job: Job) -> Started:
    """Read `flux run`: the job is a JSON document, and templates in a program's words and in paths are filled in."""
    assert job.argv[1] == "run"
    given, at = _split(job, 2, _FLUX, _FLUX_FLAGS, glued=True)
    document = json.dumps([job.argv[at:], dict(job.env), given["--cwd"]], ensure_ascii=False)
    command, env, _folder = json.loads(document.encode())
    for word in (*command, *given["--cwd"]):
        assert "{{" not in word
    return Started(env, tuple(command), given)


def jsrun(job: Job) -> Started:
    """Read `jsrun`, which hands its environment on."""
    given, at = _split(job, 1, _JSRUN, set(), glued=True)
    return Started(dict(job.env), job.argv[at:], given)


def aprun(job: Job) -> Started:
    """Read `aprun`, which hands its environment on."""
    given, at = _split(job, 1, _APRUN, _APRUN_FLAGS, glued=False)
    return Started(dict(job.env), job.argv[at:], given)


READERS = {"flux": flux, "jsrun": jsrun, "aprun": aprun}


def explicit_resources(text: str) -> list[tuple[str, str]]:
    """Read an explicit resource file: host and CPUs of each rank, in order. Every line must be understood."""
    found = []
    for line in text.splitlines():
        match = _RANK.fullmatch(line)
        if match is None:
            assert re.fullmatch(r"[a-z_]+: (allow|physical|packed)", line), line
            continue
        assert int(match["rank"]) == len(found)
        found.append((match["name"] or match["number"], match["cpus"].replace("{", "").replace("}", "")))
    return found


def sent_over_ssh(job: Job) -> list[str]:
    """Return the words that the shell of the other host makes of an ssh command."""
    host = next(at for at, word in enumerate(job.argv) if at > 0 and not word.startswith("-") and "=" not in word)
    return shlex.split(" ".join(job.argv[host + 1 :]))
