"""What the reader of a variable makes of a text: NCCL, UCX, libfabric, plug-ins, CUDA and MPI each have their rules."""

from collections.abc import Callable

import msgspec

from busbw.env.given import Given
from busbw.env.values_c import read_c_number
from busbw.env.values_cuda import read_cuda
from busbw.env.values_libfabric import read_libfabric
from busbw.env.values_mpi import read_mpi
from busbw.env.values_nccl import read_nccl
from busbw.env.values_ofi_nccl import read_ofi_nccl
from busbw.env.values_ucx import read_ucx
from busbw.model.envvar import EnvVar
from busbw.model.understood import Understood

# What is longer is no setting; looking at it would only take time.
LONGEST = 32_768
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u201e": "\u201c", "`": "`"}
_Reader = Callable[[Given], Understood]
_READERS: dict[str, _Reader] = {
    "NCCL": read_nccl,
    "HPC-X plug-in": read_c_number,
    "UCX": read_ucx,
    "UCC": read_ucx,
    "libfabric": read_libfabric,
    "libfabric CXI": read_libfabric,
    "libfabric EFA": read_libfabric,
    "aws-ofi-nccl": read_ofi_nccl,
    "CUDA": read_cuda,
    "Open MPI": read_mpi,
    "PRRTE": read_mpi,
}


def read_value(var: EnvVar, text: str, version: tuple[int, ...] | None = None) -> Understood:
    """Return what the reader of `var` makes of `text`.

    `version` is that of the variable's owner, and matters for NCCL only; None: the newest that is known. A reader whose
    rules are not known takes the text as it is.
    """
    if len(text) > LONGEST:
        return Understood(value=None, problem=f"it has {len(text)} characters, which no setting has", kind="odd")
    reader = _READERS.get(var.owner, _as_it_is)
    understood = reader(Given(var, text, version))
    bare = _unquoted(text)
    if bare is not None:
        return _flawed(understood, "the quotation marks are part of the value", bare)
    stripped = text.strip()
    if stripped != text and stripped and (understood.problem is not None or var.kind in ("list", "text", "path")):
        what = "the carriage return" if text.endswith("\r") else "the space around it"
        return _flawed(understood, f"{what} is part of the value", stripped)
    return understood


def _as_it_is(given: Given) -> Understood:
    return Understood(value=given.text)


def _unquoted(text: str) -> str | None:
    """Return what stands between the quotation marks that `text` begins and ends with; None: it does not."""
    if len(text) >= 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1]
    return None


def _flawed(understood: Understood, flaw: str, meant: str) -> Understood:
    problem = flaw if understood.problem is None else f"{flaw}: {understood.problem}"
    kind = understood.kind or "other value"
    return msgspec.structs.replace(understood, problem=problem, kind=kind, instead=meant)
