"""Visits to the hosts of a run: what is there of it, and its end, through the launcher that started it."""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.measure.execute import calling
from busbw.measure.execute.calling import HostCall
from busbw.model import codec
from busbw.model.plan import Job, Plan
from busbw.model.visit import VISIT_PREFIX, Answer, Heard, Silent, Visit

# What a visit may take on its host, with the start of a launcher and of Python on a busy machine.
LOOK_S = 30.0
END_S = 15.0
Asked = Literal["look", "end"]


def has_visits(plan: Plan) -> bool:
    """Whether hosts of this run can be visited."""
    return bool(plan.visit_each) or plan.visit is not None


def visit(plan: Plan, directory: Path, attempt: int, asked: Asked, give_up: Callable[[], bool]) -> tuple[Answer, ...]:
    """Visit every host and return what each says, in the order of the hosts; nothing of a visit is left here.

    Those that do not answer in time, or before `give_up` says so, are told as silent. What they say is kept in the
    run directory too, as far as it can be written.
    """
    limit_s = LOOK_S if asked == "look" else END_S
    # The visit has a mark of its own: the end of a run must not end what ends it.
    tag = f"{plan.run_id}.{attempt}"
    done = calling.call(_jobs(plan), f"{tag}.visit", limit_s, give_up, (tag, asked))
    answers = [answer for each in done for answer in _answers(each, asked)]
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


def _answers(going: HostCall, asked: Asked) -> list[Answer]:
    """Return what the hosts of one launcher said, and which said nothing."""
    said: dict[str, Visit] = {}
    for line in bytes(going.out).split(b"\n"):
        _before, found, document = line.partition(VISIT_PREFIX.encode())
        if found:
            with contextlib.suppress(InputError):
                visited = codec.decode(document, Visit, where="a visit")
                if (host := _planned(visited.host, going.hosts)) is not None:
                    said[host] = msgspec.structs.replace(visited, host=host)
    return [
        said[host] if host in said else _silent(host, asked, going.waited_s, going.last_words) for host in going.hosts
    ]


def _planned(name: str, hosts: tuple[str, ...]) -> str | None:
    """Return the host of the plan that calls itself `name`; the only one needs no likeness."""
    if len(hosts) == 1:
        return hosts[0]
    return next((host for host in hosts if name == host or name.split(".", maxsplit=1)[0] == host.split(".")[0]), None)


def _silent(host: str, asked: Asked, waited_s: float, words: str | None) -> Silent:
    return Silent(host=host, asked=asked, unix_s=time.time(), waited_s=round(waited_s, 1), words=words)


def _keep(directory: Path, attempt: int, answers: Sequence[Answer], done: Sequence[HostCall]) -> None:
    raw = directory / layout.RAW_DIRECTORY
    _append(raw / layout.visit_name(attempt), b"".join(codec.encode(answer) + b"\n" for answer in answers))
    for stream, texts in (("stdout", [each.out for each in done]), ("stderr", [each.err for each in done])):
        _append(raw / layout.visit_output_name(stream, attempt), b"".join(map(bytes, texts)))


def _append(path: Path, content: bytes) -> None:
    """Add to a file; a full disk must not keep the processes of a run alive."""
    if content:
        with contextlib.suppress(OSError), path.open("ab") as file:
            file.write(content)
