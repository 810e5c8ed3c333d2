"""The programs whose configurations are read. Alone because readers do not know each other."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.model.train.workload import Workload
from busbw.train.configurations import megatron, nemo, torchtitan
from busbw.train.configurations.said import SaidConfiguration, stated, workload_from
from busbw.train.workloads import check_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigurationReader:
    """One program: whether a text is its, and what it says."""

    looks_like: Callable[[str], bool]
    read: Callable[[str, str], SaidConfiguration]


READERS = {
    "torchtitan": ConfigurationReader(looks_like=torchtitan.looks_like, read=torchtitan.read),
    "megatron": ConfigurationReader(looks_like=megatron.looks_like, read=megatron.read),
    "nemo": ConfigurationReader(looks_like=nemo.looks_like, read=nemo.read),
}


def read_configuration(
    text: str, where: str, form: str | None = None, says: tuple[str, ...] = ()
) -> tuple[Workload, tuple[str, ...]]:
    """Return the workload that a configuration makes, and what to know of it.

    Raises InputError for a text of none of the programs, and, by name, for what it does not say.
    """
    check_bounds(text, where)
    if form is not None and form not in READERS:
        raise InputError(f"{form[:40]!r} is no form", hint=f"one of: {', '.join(READERS)}")
    chosen = form or next((name for name, each in READERS.items() if each.looks_like(text)), None)
    if chosen is None:
        raise InputError(
            "neither arguments of Megatron-LM, nor values of NeMo, nor a file of torchtitan's",
            where=where,
            hint=f"say what it is: --form {'|'.join(READERS)}",
        )
    return workload_from(READERS[chosen].read(text, where), stated(says), where)
