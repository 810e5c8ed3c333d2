"""Visits to the hosts of a run: what is there of it, and its end, through the launcher that started it."""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError, RunError
from busbw.measure.execute import launch, processes
from busbw.model import codec
from busbw.model.plan import Job, Plan
from busbw.model.visit import VISIT_PREFIX, Answer, Heard, Silent, Visit

# Launchers at once; each may be an ssh and a daemon.
_AT_ONCE = 16
_TICK_S = 0.1
# What a visit may take on its host, with the start of a launcher and of Python on a busy machine.
LOOK_S = 30.0
END_S = 15.0
_TERM_GRACE_S = 1.0
_MOST_BYTES = 16 * 2**20
_MOST_WORDS = 300
Asked = Literal["look", "end"]


@dataclass(slots=True)
class _Going:
    """One launcher under way to one host, or to all of them."""

    process: "subprocess.Popen[bytes]"
    hosts: tuple[str, ...]
    began_s: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    open: int = 2


def has_visits(plan: Plan) -> bool:
    """Whether hosts of this run can be visited."""
    return bool(plan.visit_each) or plan.visit is not None


def visit(plan: Plan, directory: Path, attempt: int, asked: Asked, give_up: Callable[[], bool]) -> tuple[Answer, ...]:
    """Visit every host and return what each says, in the order of the hosts; nothing of a visit is left here.

    Those that do not answer in time, or before `give_up` says so, are told as silent. What they say is kept in the
    run directory too, as far as it can be written.
    """
    limit_s = LOOK_S if asked == "look" else END_S
    waiting = _jobs(plan)
    going: list[_Going] = []
    done: list[_Going] = []
    unstarted: list[Answer] = []
    tag = f"{plan.run_id}.{attempt}.visit"
    with selectors.DefaultSelector() as selector:
        while (waiting or going) and not give_up():
            while waiting and len(going) < _AT_ONCE:
                job, hosts = waiting.pop(0)
                try:
                    going.append(_start(job, hosts, asked, tag, selector))
                except RunError as error:
                    unstarted += [_silent(host, asked, 0.0, error.cause) for host in hosts]
            _read(selector)
            now_s = time.monotonic()
            over = [each for each in going if _is_over(each) or now_s - each.began_s > limit_s]
            done += over
            going = [each for each in going if each not in over]
    done += going
    answers = [*unstarted, *(answer for each in done for answer in _answers(each, asked))]
    answers += [_silent(host, asked, 0.0, None) for _job, hosts in waiting for host in hosts]
    _end(done, tag)
    order = {host: number for number, host in enumerate(plan.placement.hosts)}
    answers.sort(key=lambda answer: order.get(answer.host, len(order)))
    _keep(directory, attempt, answers, done)
    return tuple(answers)


def left_words(answers: Sequence[Answer]) -> tuple[str, ...]:
    """Return, in words, where processes of a run are left, and where that cannot be told."""
    silent = [answer.host for answer in answers if isinstance(answer, Silent)]
    left = [answer for answer in answers if not isinstance(answer, Silent) and answer.left]
    return (
        *((f"cannot tell whether processes are left on {', '.join(silent)}",) if silent else ()),
        *(f"processes {', '.join(map(str, one.left))} on {one.host} do not end, even by SIGKILL" for one in left),
    )


def keep_words(directory: Path, attempt: int, text: str) -> Heard:
    """Keep what the launcher had printed by now beside what the hosts say, and return it."""
    heard = Heard(text=text)
    _append(directory / layout.RAW_DIRECTORY / layout.visit_name(attempt), codec.encode(heard) + b"\n")
    return heard


def _jobs(plan: Plan) -> list[tuple[Job, tuple[str, ...]]]:
    if plan.visit_each:
        return [(job, (host,)) for job, host in zip(plan.visit_each, plan.placement.hosts, strict=True)]
    return [(plan.visit, plan.placement.hosts)] if plan.visit is not None else []


def _start(job: Job, hosts: tuple[str, ...], asked: Asked, tag: str, selector: selectors.BaseSelector) -> _Going:
    # The visit has a mark of its own: the end of a run must not end what ends it.
    process = launch.start((*job.argv, tag.removesuffix(".visit"), asked), job, tag)
    made = _Going(process=process, hosts=hosts, began_s=time.monotonic())
    for pipe, into in ((process.stdout, made.out), (process.stderr, made.err)):
        assert pipe is not None
        selector.register(pipe, selectors.EVENT_READ, (made, into))
    return made


def _read(selector: selectors.BaseSelector) -> None:
    """Take what the launchers have printed, or wait a moment."""
    ready = selector.select(_TICK_S)
    for key, _mask in ready:
        going, into = key.data
        chunk = os.read(key.fd, 2**16)
        if not chunk or len(into) > _MOST_BYTES:
            selector.unregister(key.fileobj)
            going.open -= 1
        into += chunk
    if not ready and not selector.get_map():
        time.sleep(_TICK_S)


def _is_over(going: _Going) -> bool:
    return going.process.poll() is not None and going.open == 0


def _answers(going: _Going, asked: Asked) -> list[Answer]:
    """Return what the hosts of one launcher said, and which said nothing."""
    said: dict[str, Visit] = {}
    for line in bytes(going.out).split(b"\n"):
        _before, found, document = line.partition(VISIT_PREFIX.encode())
        if found:
            with contextlib.suppress(InputError):
                visited = codec.decode(document, Visit, where="a visit")
                if (host := _planned(visited.host, going.hosts)) is not None:
                    said[host] = msgspec.structs.replace(visited, host=host)
    waited_s = time.monotonic() - going.began_s
    words = _last_words(going)
    return [said[host] if host in said else _silent(host, asked, waited_s, words) for host in going.hosts]


def _planned(name: str, hosts: tuple[str, ...]) -> str | None:
    """Return the host of the plan that calls itself `name`; the only one needs no likeness."""
    if len(hosts) == 1:
        return hosts[0]
    return next((host for host in hosts if name == host or name.split(".", maxsplit=1)[0] == host.split(".")[0]), None)


def _silent(host: str, asked: Asked, waited_s: float, words: str | None) -> Silent:
    return Silent(host=host, asked=asked, unix_s=time.time(), waited_s=round(waited_s, 1), words=words)


def _last_words(going: _Going) -> str | None:
    text = (going.err or going.out).decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=*")]
    return lines[-1][:_MOST_WORDS] if lines else None


def _end(done: Sequence[_Going], tag: str) -> None:
    """End what is left of the launchers here."""
    launch.ask_to_end([each.process for each in done], _TERM_GRACE_S)
    processes.end_all(tag)
    for each in done:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()
        for pipe in (each.process.stdout, each.process.stderr):
            assert pipe is not None
            pipe.close()


def _keep(directory: Path, attempt: int, answers: Sequence[Answer], done: Sequence[_Going]) -> None:
    raw = directory / layout.RAW_DIRECTORY
    _append(raw / layout.visit_name(attempt), b"".join(codec.encode(answer) + b"\n" for answer in answers))
    for stream, texts in (("stdout", [each.out for each in done]), ("stderr", [each.err for each in done])):
        _append(raw / layout.visit_output_name(stream, attempt), b"".join(map(bytes, texts)))


def _append(path: Path, content: bytes) -> None:
    """Add to a file; a full disk must not keep the processes of a run alive."""
    if content:
        with contextlib.suppress(OSError), path.open("ab") as file:
            file.write(content)
