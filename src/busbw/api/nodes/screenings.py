"""Nodes screened: this host by itself, and others through the launchers that reach them."""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from busbw.api.nodes.devices import Screened, screen_gpu_pairs, screen_nics, screen_pcie
from busbw.base.errors import InputError, RunError
from busbw.base.text import one_line
from busbw.machine.capture import host as capture
from busbw.machine.capture.files import ask
from busbw.machine.read.commands import Command, noise_command
from busbw.measure.execute.calling import HostCall, call
from busbw.measure.execute.processes import end_all
from busbw.measure.plan.each_host import on_each_host
from busbw.model import codec
from busbw.model.check.screening import (
    SCREENED_PREFIX,
    NodeKind,
    NodeReading,
    NotScreened,
    Part,
    ScreenedNode,
    ScreenedNodes,
    Screening,
    SilentNode,
)
from busbw.model.finding import HostCheck, HostDiagnosis
from busbw.model.host import Answer
from busbw.model.machine import NoiseTest
from busbw.model.plan import Job
from busbw.model.request import Request

# What the start of Python on a busy node may take beside what a part measures.
_START_S = 4.0
# Of the memory that is available, copies take this share at most.
_MEMORY_SHARE = 0.25
# Beyond the limit of the screening itself: a launcher, and Python on a busy node.
_GRACE_S = 30.0


def screen_here(asked: Screening) -> ScreenedNode:
    """Return what this host finds of itself. It ends within the limit that was asked for, whatever hangs."""
    began = time.time()
    screener = _Screener(asked)
    for part in asked.parts:
        screener.take(part)
    host = capture.host()
    return ScreenedNode(
        host=host.name,
        unix_s=began,
        wall_s=round(screener.spent_s, 2),
        kind=NodeKind(
            cpu_model=host.cpu_model,
            cpus=len(host.cpus),
            memory_gib=round(host.memory_bytes / 2**30),
            gpus=capture.gpus_seen(),
            platform=screener.platform,
        ),
        checks=tuple(screener.checks),
        readings=tuple(screener.readings),
        changed=tuple(screener.changed),
        unscreened=tuple(screener.unscreened),
    )


class _Screener:
    """A screening under way: one part after the other, since one would disturb the other."""

    def __init__(self, asked: Screening) -> None:
        self._asked = asked
        self._began_s = time.monotonic()
        self.platform = asked.platform
        self.checks: list[HostCheck] = []
        self.readings: list[NodeReading] = []
        self.unscreened: list[NotScreened] = []
        self.changed: list[str] = []

    @property
    def spent_s(self) -> float:
        """Return the seconds since it began."""
        return time.monotonic() - self._began_s

    def take(self, part: Part) -> None:
        """Look at one part, as far as there is time for it."""
        taken: dict[Part, Callable[[], str | None]] = {
            "health": self._health,
            "memory": self._memory,
            "noise": self._noise,
            "transfer": self._transfer,
            "pcie": self._pcie,
            "gpus": self._gpus,
            "nics": self._nics,
        }
        if self._left_s() < 1.0:
            self._open(part, f"no time was left of {self._asked.time_limit_s:g} s")
            return
        why_not = taken[part]()
        if why_not is not None:
            self._open(part, why_not)

    def _left_s(self) -> float:
        return self._asked.time_limit_s - self.spent_s

    def _open(self, part: Part, because: str, *, absent: bool = False) -> None:
        self.unscreened.append(NotScreened(part=part, because=one_line(because), absent=absent))

    def _asked_of(self, words: tuple[str, ...], environment: Mapping[str, str], longest_s: float) -> Answer:
        """Return what a program of ours says, which is ended with all it started when it takes too long.

        `environment`: what it has beside this one's own.
        """
        tag = f"check.{capture.token()}"
        command = Command(
            name="check",
            programs=("env",),
            arguments=(
                f"BUSBW_RUN={tag}",
                *(f"{name}={value}" for name, value in environment.items()),
                sys.executable,
                "-P",
                "-m",
                *words,
            ),
            timeout_s=longest_s,
        )
        (answer,) = ask((command,), total_s=max(self._left_s(), 0.1))
        if answer.ended != "ok":
            end_all(tag)
        return answer

    def _health(self) -> str | None:
        named = ("--platform", self._asked.platform) if self._asked.platform is not None else ()
        answer = self._asked_of(("busbw", "doctor", "--here", "--json", *named), {}, math.inf)
        # Findings and "cannot tell" are answers too.
        if not answer.output.startswith("{"):
            return _why(answer, self._asked.time_limit_s)
        try:
            found = codec.decode(answer.output.encode(), HostDiagnosis, where="doctor --here")
        except InputError as error:
            return error.cause
        self.platform = self.platform or found.platform
        self.checks += [each for each in found.checks if each.findings]
        return None

    def _memory(self) -> str | None:
        most_bytes = int(_MEMORY_SHARE * capture.host().memory_available_bytes)
        seconds = min(self._asked.memory_s, max(self._left_s() - 1, 0.2))
        words = ("busbw.rank.screening.copying", f"{seconds:g}", str(most_bytes))
        answer = self._asked_of(words, {}, seconds + _START_S + _GRACE_S)
        if answer.ended != "ok":
            return _why(answer, self._asked.time_limit_s)
        self.readings.append(
            NodeReading(measure="memory_copy", samples=msgspec.json.decode(answer.output, type=tuple[float, ...]))
        )
        return None

    def _noise(self) -> str | None:
        seconds = min(self._asked.noise_s, max(self._left_s() - 1, 0.2))
        (answer,) = ask((noise_command(sys.executable, seconds),), total_s=max(self._left_s(), 0.1))
        if answer.ended != "ok":
            return _why(answer, self._asked.time_limit_s)
        found = codec.decode(answer.output.encode(), NoiseTest, where="the test of noise")
        self.readings.append(NodeReading(measure="noise", samples=tuple(round(each.lost, 6) for each in found.cpus)))
        return None

    def _transfer(self) -> str | None:
        """Send to partners and take from them, until one has reached what is asked for in both directions."""
        here = capture.host().name
        partners = [each for each in self._asked.partners if each.partition(".")[0] != here.partition(".")[0]]
        if not partners:
            self._open("transfer", "no partner is named: --partner HOST, or partners in the profile", absent=True)
            return None
        refused: list[str] = []
        reached = 0
        for partner in _from_here(partners, self._asked.partners, here):
            if reached == self._asked.most_partners or self._is_enough() or self._left_s() < self._asked.transfer_s * 4:
                break
            seconds = f"{self._asked.transfer_s:g}"
            words = ("busbw.rank.screening.transfer", partner, seconds, "--", *self._asked.remote_shell)
            answer = self._asked_of(words, {}, math.inf)
            if answer.ended != "ok":
                refused.append(f"{partner}: {_why(answer, self._asked.time_limit_s)}")
                continue
            reached += 1
            rates = msgspec.json.decode(answer.output, type=dict[str, tuple[float, ...]])
            self.readings += [
                NodeReading(measure="send", samples=rates["send"], partner=partner),
                NodeReading(measure="receive", samples=rates["receive"], partner=partner),
            ]
        return "; ".join(refused[:2]) if refused and not reached else None

    def _is_enough(self) -> bool:
        least = self._asked.enough_Bps
        if least is None:
            return any(each.partner is not None for each in self.readings)
        best = {each.measure: max(each.samples) for each in self.readings if each.partner is not None}
        for each in self.readings:
            if each.partner is not None:
                best[each.measure] = max(best[each.measure], *each.samples)
        return len(best) == 2 and min(best.values()) >= least

    def _pcie(self) -> None:
        self._taken(screen_pcie(self._asked_of, self._why, self._asked.pcie_s, self._left_s()))

    def _gpus(self) -> None:
        self._taken(screen_gpu_pairs(self._asked_of, self._why, self._left_s()))

    def _nics(self) -> None:
        self._taken(screen_nics(self._asked_of, self._why, self._asked.nics_s, self._left_s))

    def _taken(self, found: Screened) -> None:
        self.readings += found.readings
        self.unscreened += found.unscreened
        self.changed += found.changed

    def _why(self, answer: Answer) -> str:
        return _why(answer, self._asked.time_limit_s)


def _from_here(partners: Sequence[str], every: Sequence[str], here: str) -> list[str]:
    """Return the partners, beginning with the next in the list: nodes that check at once do not all ask the first."""
    names = [each.partition(".")[0] for each in every]
    place = names.index(here.partition(".")[0]) if here.partition(".")[0] in names else 0
    place = min(place, len(partners))
    return [*partners[place:], *partners[:place]]


def _why(answer: Answer, limit_s: float) -> str:
    if answer.ended == "timeout":
        return f"it did not end within {limit_s:g} s"
    said = [line.strip() for line in answer.error.splitlines() if line.strip()]
    return said[-1].removeprefix("cannot measure: ")[:200] if said else f"it ended without an answer ({answer.ended})"


def screen_hosts(
    request: Request, asked: Screening, directory: Path, say: Callable[[str], None]
) -> tuple[tuple[str, ...], Callable[[], ScreenedNodes]]:
    """Return the hosts of a request, and what screens them all at once. Raises InputError for hosts there are not."""
    there = on_each_host(request, ("check", "--screen-here", codec.encode(asked).decode()), str(directory))
    for note in there.notes:
        say(note)
    return there.hosts, lambda: _screened(there.hosts, there.jobs, asked)


def _screened(hosts: Sequence[str], jobs: Sequence[tuple[Job, tuple[str, ...]]], asked: Screening) -> ScreenedNodes:
    began_s = time.monotonic()
    done = call(jobs, f"check.{capture.token()}", asked.time_limit_s + _GRACE_S, lambda: False)
    said: dict[str, ScreenedNode] = {}
    silent: dict[str, SilentNode] = {}
    for each in done:
        answers = _answers(each)
        for host in each.hosts:
            answer = answers.get(host.partition(".")[0]) or (
                next(iter(answers.values()), None) if len(each.hosts) == 1 else None
            )
            if answer is not None:
                said[host] = msgspec.structs.replace(answer, host=host)
            else:
                silent[host] = SilentNode(host=host, words=one_line(each.last_words) if each.last_words else None)
    if not said:
        words = next((each.words for each in silent.values() if each.words), None)
        raise RunError(
            f"no host answered, so it is the way to them and not a host: {words or 'nothing was printed'}",
            hint=f"ssh {hosts[0]} true; --launcher or --remote-shell names another way",
        )
    return ScreenedNodes(
        nodes=tuple(said[host] for host in hosts if host in said),
        silent=tuple(silent[host] for host in hosts if host in silent),
        wall_s=round(time.monotonic() - began_s, 2),
    )


def _answers(each: HostCall) -> dict[str, ScreenedNode]:
    """Return what hosts printed, by their own names; a line that is damaged is no answer."""
    found = {}
    for line in bytes(each.out).split(b"\n"):
        _before, marked, document = line.partition(SCREENED_PREFIX.encode())
        if marked:
            try:
                node = codec.decode(document, ScreenedNode, where="a node")
            except InputError:
                continue
            found[node.host.partition(".")[0]] = node
    return found
