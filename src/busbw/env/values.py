"""What the reader of a variable makes of a text: NCCL, UCX, libfabric, plug-ins, CUDA and MPI each have their rules."""

import re
from collections.abc import Callable

import msgspec

from busbw.env.values_c import (
    OFF_WORDS,
    ON_WORDS,
    Given,
    Numeral,
    default_of,
    in_bounds,
    judged_number,
    leading_integer,
    meant_bytes,
    read_c_number,
    suffixed_bytes,
    without_number,
)
from busbw.env.values_described import read_described
from busbw.env.values_nccl import read_nccl
from busbw.model.envvar import EnvVar, ValueReading

_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F/-]+", re.ASCII)


def read_cuda(given: Given) -> ValueReading:
    """Return what CUDA makes of a text."""
    if given.var.name == "CUDA_VISIBLE_DEVICES":
        return _visible(given.text)
    if given.var.name == "CUDA_LAUNCH_BLOCKING":
        return ValueReading(value="0" if given.text in ("", "0") else "1")
    if given.var.kind == "enum" and given.var.choices:
        return _word(given.var, given.text)
    return read_described(given) if given.var.kind == "float" else read_c_number(given)


def _visible(text: str) -> ValueReading:
    if text in ("", "-1", "NoDevFiles"):
        return ValueReading(value="no GPU")
    items = [item.strip() for item in text.split(",")]
    taken: list[str] = []
    for item in items:
        if not re.fullmatch(r"\d{1,4}", item, re.ASCII) and not _UUID.fullmatch(item):
            break
        if item in taken:
            problem = f"GPU {item} is named twice: CUDA then shows no GPU at all"
            return ValueReading(value="no GPU", problem=problem, kind="other value")
        taken.append(item)
    if len(taken) == len(items):
        return ValueReading(value=",".join(taken))
    shown = ",".join(taken) or "no GPU"
    wrong = items[len(taken)]
    if wrong == "-1" or (wrong == "" and len(taken) == len(items) - 1):
        return ValueReading(value=shown)
    problem = f"{wrong[:40]!r} names no GPU: it and all behind it are hidden"
    return ValueReading(value=shown, problem=problem, kind="other value")


def _word(var: EnvVar, text: str) -> ValueReading:
    if text in var.choices or not text:
        return ValueReading(value=text or var.default)
    meant = text.strip().upper()
    return ValueReading(
        value=var.default,
        problem=f"CUDA knows {', '.join(var.choices)}: {text[:40]!r} is ignored",
        kind="ignored",
        instead=meant if meant in var.choices else None,
    )


_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")
_MEANT = {"y": "1", "t": "1", "enable": "1", "enabled": "1", "n": "0", "f": "0", "disable": "0", "disabled": "0"}
_ABORTS = ("FI_EFA_MTU_SIZE", "FI_EFA_TX_IOV_LIMIT", "FI_EFA_RX_IOV_LIMIT")


def read_libfabric(given: Given) -> ValueReading:
    """Return what libfabric makes of a text."""
    if given.var.name in _ABORTS:
        return _aborts("current libfabric ends the process when it is set at all, whatever the value")
    if given.var.name == "FI_EFA_IFACE" and not given.text:
        return _aborts("an empty value ends the process")
    if given.var.kind == "bool":
        return _switch(given.var, given.text)
    if given.var.kind == "enum" and given.var.choices:
        return _libfabric_word(given.var, given.text)
    value_read = read_c_number(given)
    if given.var.name == "FI_EFA_TX_MIN_CREDITS" and (value_read.value or "").startswith(("0", "-")):
        return _aborts(f"it is read as {value_read.value}, and 0 or less ends the process")
    return value_read


def _aborts(problem: str) -> ValueReading:
    return ValueReading(value=None, problem=problem, kind="fails")


def _switch(var: EnvVar, text: str) -> ValueReading:
    word = text.lower()
    if word in _ON or word in _OFF:
        return ValueReading(value="1" if word in _ON else "0")
    known = "0, 1, true, false, yes, no, on and off"
    problem = f"libfabric takes {known}: {text[:40]!r} is ignored, with a warning in its log"
    meant = word.strip()
    instead = meant if meant in (*_ON, *_OFF) else _MEANT.get(meant)
    return ValueReading(value=default_of(var), problem=problem, kind="ignored", instead=instead)


def _libfabric_word(var: EnvVar, text: str) -> ValueReading:
    folded = {choice.lower(): choice for choice in var.choices}
    exact = var.owner != "libfabric" or var.name == "FI_MR_CACHE_MONITOR"
    if text in var.choices or (not exact and text.lower() in folded):
        return ValueReading(value=text)
    known = f"libfabric knows {', '.join(var.choices)}: {text[:40]!r}"
    if var.name == "FI_LOG_LEVEL":
        # fi_convert_log_str of src/log.c.
        return ValueReading(value=var.choices[0], problem=f"{known} is taken for {var.choices[0]}", kind="other value")
    problem = f"{known} is ignored"
    found = ValueReading(value=default_of(var), problem=problem, kind="ignored")
    return msgspec.structs.replace(found, instead=folded.get(text.strip().lower()))


_MPI_ON = ("1", "true", "t", "yes", "y", "enabled", "on")
_MPI_OFF = ("0", "false", "f", "no", "n", "disabled", "off")


def read_mpi(given: Given) -> ValueReading:
    """Return what Open MPI makes of a text."""
    if given.var.kind == "bool":
        return _mpi_switch(given.text)
    if given.var.kind == "list":
        return _components(given.text)
    return read_described(given)


def _mpi_switch(text: str) -> ValueReading:
    word = text.strip().lower()
    if word in _MPI_ON or word in _MPI_OFF:
        return ValueReading(value="1" if word in _MPI_ON else "0")
    number = leading_integer(text)
    if number is not None and number.value is not None and not number.rest.strip():
        return ValueReading(value="1" if number.value else "0")
    return ValueReading(value=None, problem=f"{text[:40]!r} is neither a number nor true or false", kind="fails")


def _components(text: str) -> ValueReading:
    """Return a list of components; a `^` excludes all of them, and only at the beginning of the list."""
    items = text.split(",")
    if any(item.strip().startswith("^") for item in items[1:]):
        problem = "`^` counts once, at the beginning, for the whole list: mixed lists are refused"
        return ValueReading(value=None, problem=problem, kind="fails")
    return ValueReading(value=text)


_FLOAT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_EFFECT = "the plug-in does not start, and NCCL goes on over sockets"
_REMOVED = ("OFI_NCCL_RDMA_MIN_POSTED_BOUNCE_BUFFERS", "OFI_NCCL_RDMA_MAX_POSTED_BOUNCE_BUFFERS")


def read_ofi_nccl(given: Given) -> ValueReading:
    """Return what aws-ofi-nccl makes of a text."""
    if given.var.name in _REMOVED:
        return _refused(f"it was removed; set at all, {_EFFECT}")
    if given.var.kind == "bool":
        return _ofi_nccl_switch(given.text)
    if given.var.kind == "enum" and given.var.choices:
        return _ofi_nccl_word(given.var, given.text)
    if given.var.kind in ("int", "size"):
        return _integer(given.var, given.text)
    if given.var.kind == "float" and not _FLOAT.fullmatch(given.text):
        return _refused(f"{given.shown} is not a number: {_EFFECT}")
    return ValueReading(value=given.text)


def _refused(problem: str, *, instead: str | None = None) -> ValueReading:
    return ValueReading(value=None, problem=problem, kind="fails", instead=instead)


def _ofi_nccl_switch(text: str) -> ValueReading:
    word = text.lower()
    if word in ("true", "false"):
        return ValueReading(value="1" if word == "true" else "0")
    if re.fullmatch(r"\s*[+-]?\d{1,9}", text, re.ASCII):
        return ValueReading(value="1" if int(text) else "0")
    meant = word.strip()
    instead = "1" if meant in ON_WORDS else "0" if meant in OFF_WORDS else None
    return _refused(f"it takes 0, 1, true and false: with {text[:40]!r} {_EFFECT}", instead=instead)


def _ofi_nccl_word(var: EnvVar, text: str) -> ValueReading:
    folded = {choice.lower(): choice for choice in var.choices}
    if text.lower() in folded:
        return ValueReading(value=folded[text.lower()])
    known = ", ".join(var.choices)
    return _refused(f"it takes {known}: with {text[:40]!r} {_EFFECT}", instead=folded.get(text.strip().lower()))


def _integer(var: EnvVar, text: str) -> ValueReading:
    if not re.fullmatch(r"\s*[+-]?\d{1,18}", text, re.ASCII):
        meant = meant_bytes(text)
        problem = f"it takes a plain decimal number: with {text[:40]!r} {_EFFECT}"
        return _refused(problem, instead=None if meant is None else str(meant))
    value = int(text)
    if value < 0 and var.least is not None and var.least >= 0:
        return _refused(f"it takes no negative number: with {value} {_EFFECT}")
    return in_bounds(var, value)


_UCX_ON = ("y", "yes", "on", "1")
_UCX_OFF = ("n", "no", "off", "0")
_TRY = ("try", "maybe")
_UCX_MEANT = {
    "true": "y",
    "t": "y",
    "enable": "y",
    "enabled": "y",
    "false": "n",
    "f": "n",
    "disable": "n",
    "disabled": "n",
}


def read_ucx(given: Given) -> ValueReading:
    """Return what UCX makes of a text."""
    if given.var.kind == "bool":
        return _ucx_word(given.text, ("y", "n"))
    if given.var.kind == "enum" and given.var.choices:
        return _ucx_word(given.text, given.var.choices)
    if given.var.kind == "size":
        return _size(given.text)
    return _ucx_integer(given.var, given.text) if given.var.kind == "int" else ValueReading(value=given.text)


def _ucx_word(text: str, choices: tuple[str, ...]) -> ValueReading:
    word = text.lower()
    same = {choice.lower(): choice for choice in choices}
    if word in same:
        return ValueReading(value=same[word])
    switch = next((mark for mark in ("y", "on") if mark in choices), None)
    if switch is not None:
        off = "n" if switch == "y" else "off"
        if word in _UCX_ON or word in _UCX_OFF:
            return ValueReading(value=switch if word in _UCX_ON else off)
        if word in _TRY and ("try" in choices or "auto" in choices):
            return ValueReading(value="try" if "try" in choices else "auto")
        meant = {"y": switch, "n": off}.get(_UCX_MEANT.get(word.strip(), ""))
        return _ucx_refused(text, ", ".join(choices), instead=meant)
    return _ucx_refused(text, ", ".join(choices))


def _ucx_refused(text: str, known: str, *, instead: str | None = None) -> ValueReading:
    problem = f"UCX takes {known}: it does not start with {text[:40]!r}"
    return ValueReading(value=None, problem=problem, kind="fails", instead=instead)


def _size(text: str) -> ValueReading:
    if text.lower() in ("inf", "auto"):
        return ValueReading(value=text.lower())
    size_bytes = suffixed_bytes(text)
    if size_bytes is not None:
        return ValueReading(value=str(size_bytes))
    match = re.match(r"-?\d{1,18}", text, re.ASCII)
    bare = suffixed_bytes(re.sub(r"i?[bB]$", "", "".join(text.split())))
    if match is None or bare is not None or not re.fullmatch(r"\d+[kmgtKMGT][bB].+", text, re.ASCII):
        return _ucx_refused(text, "bytes, or a number with k, m, g or t", instead=None if bare is None else str(bare))
    return ValueReading(value=str(suffixed_bytes(text[: match.end() + 2])), problem="the rest is not read", kind="odd")


def _ucx_integer(var: EnvVar, text: str) -> ValueReading:
    if text.lower() in ("inf", "auto"):
        return ValueReading(value=text.lower())
    number = leading_integer(text)
    if number is None or number.value is None:
        return _ucx_refused(text, "a number")
    if number.rest:
        problem = f"only the number at its beginning counts: {text[:40]!r} is read as {number.value}"
        return ValueReading(value=str(number.value), problem=problem, kind="other value")
    return in_bounds(var, number.value)


_SUFFIXED = re.compile(r"\s*[+-]?(\d{1,15})([A-Za-z]?)", re.ASCII)
_ATOI = re.compile(r"\s*([+-]?\d{1,18})", re.ASCII)
_NO_START = "MPI_Init fails"


def read_mvapich2(given: Given) -> ValueReading:
    """Return what MVAPICH2 makes of a text: numbers by atoi, sizes with one letter behind, words in one case."""
    if given.var.kind == "enum":
        return _mvapich2_word(given.var, given.text)
    if given.var.kind == "size":
        return _mvapich2_size(given)
    if given.var.kind not in ("int", "bool"):
        return ValueReading(value=given.text)
    number = _ATOI.match(given.text)
    if number is None:
        return without_number(given.var, given.text, taken="0")
    if given.text[number.end() :].strip():
        problem = f"{given.var.owner} reads {int(number[1])}: only the number at the beginning counts"
        meant = meant_bytes(given.text)
        instead = None if meant is None else str(meant)
        return ValueReading(value=str(int(number[1])), problem=problem, kind="other value", instead=instead)
    return in_bounds(given.var, int(number[1]))


def _mvapich2_word(var: EnvVar, text: str) -> ValueReading:
    # Binding policies are compared in small letters and in capitals, and end the job; rails fall back to one word.
    ends = "binding" in var.name.lower()
    both = {case: choice for choice in var.choices for case in (choice, *((choice.upper(),) if ends else ()))}
    if text in both:
        return ValueReading(value=both[text])
    meant = {choice.lower(): choice for choice in var.choices}.get(text.strip().lower())
    known = f"{var.owner} knows {', '.join(var.choices)}"
    if ends and var.name != "MV2_HYBRID_BINDING_POLICY":
        return ValueReading(value=None, problem=f"{known}: with {text[:40]!r} {_NO_START}", kind="fails", instead=meant)
    return ValueReading(value=var.default, problem=f"{known}: {text[:40]!r} is ignored", kind="ignored", instead=meant)


def _mvapich2_size(given: Given) -> ValueReading:
    found = _SUFFIXED.fullmatch(given.text.strip())
    if found is not None and found[2].lower() in ("", "k", "m", "g"):
        scale = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[found[2].lower()]
        return in_bounds(given.var, int(found[1]) * scale)
    meant = meant_bytes(given.text)
    number = _ATOI.match(given.text)
    return ValueReading(
        value=str(int(number[1])) if number is not None else "0",
        problem=f"{given.var.owner} takes bytes, or a number with K, M or G: {given.shown} is read otherwise",
        kind="other value",
        instead=None if meant is None else str(meant),
    )


_MPL_ON = ("YES", "yes", "TRUE", "true", "ON", "on", "1")
_MPL_OFF = ("NO", "no", "FALSE", "false", "OFF", "off", "0")


def read_mpich(given: Given) -> ValueReading:
    """Return what MPICH 4 and MVAPICH 4 make of a text: a parameter that cannot be read ends MPI_Init."""
    if given.var.kind == "bool":
        if given.text in (*_MPL_ON, *_MPL_OFF):
            return ValueReading(value="1" if given.text in _MPL_ON else "0")
        problem = f"{given.var.owner} takes 0, 1, yes, no, true, false, on and off: with {given.shown} {_NO_START}"
        word = given.text.strip().lower()
        instead = "1" if word in ON_WORDS else "0" if word in OFF_WORDS else None
        return ValueReading(value=None, problem=problem, kind="fails", instead=instead)
    if given.var.kind in ("int", "size"):
        if re.fullmatch(r"\s*-?\+?\d{1,18}", given.text, re.ASCII):
            return in_bounds(given.var, int(given.text))
        meant = meant_bytes(given.text)
        problem = f"{given.var.owner} takes a plain decimal number: with {given.shown} {_NO_START}"
        instead = None if meant is None else str(meant)
        return ValueReading(value=None, problem=problem, kind="fails", instead=instead)
    if given.var.kind == "enum" and given.text not in given.var.choices:
        known = f"{given.var.owner} knows {', '.join(given.var.choices)}"
        folded = {choice.lower(): choice for choice in given.var.choices}
        meant_word = folded.get(given.text.strip().lower())
        problem = f"{known}: with {given.shown} {_NO_START}"
        return ValueReading(value=None, problem=problem, kind="fails", instead=meant_word)
    return ValueReading(value=given.text)


def read_plugin(given: Given) -> ValueReading:
    """Return what the plug-in of HPC-X makes of a text: numbers by strtol, words as its manual has them."""
    return read_described(given) if given.var.choices else read_c_number(given)


_TORCH_ON = ("y", "yes", "1", "t", "true")
_TORCH_OFF = ("n", "no", "0", "f", "false")
_STOI = re.compile(r"\s*[+-]?\d{1,10}", re.ASCII)


def read_pytorch(given: Given) -> ValueReading:
    """Return what PyTorch makes of a text: getCvarInt and getCvarBool of torch/csrc/distributed/c10d/Utils.hpp."""
    if not given.var.name.startswith(("TORCH_NCCL_", "TORCH_FR_")) or given.var.kind not in ("int", "bool"):
        return read_described(given)
    if given.var.kind == "int":
        number = _STOI.match(given.text)
        if number is not None:
            return judged_number(
                given.var,
                given.text,
                Numeral(value=int(number[0]), base=10, digits=number[0].strip(), rest=given.text[number.end() :]),
            )
        word = given.text.strip().lower()
        instead = "1" if word in ON_WORDS else "0" if word in OFF_WORDS else None
        return _stopped(given, "a number", instead)
    word = given.text.lower()
    if word in (*_TORCH_ON, *_TORCH_OFF):
        return ValueReading(value="1" if word in _TORCH_ON else "0")
    meant = word.strip()
    return _stopped(
        given, "0, 1, yes, no, true and false", "1" if meant in ON_WORDS else "0" if meant in OFF_WORDS else None
    )


def _stopped(given: Given, known: str, instead: str | None) -> ValueReading:
    problem = f"PyTorch takes {known}: with {given.shown} the process group is not made"
    return ValueReading(value=None, problem=problem, kind="fails", instead=instead)


# What is longer is not a setting; looking at it would only take time.
LONGEST = 32_768
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u201e": "\u201c", "`": "`"}
_Reader = Callable[[Given], ValueReading]
_READERS: dict[str, _Reader] = {
    "NCCL": read_nccl,
    "HPC-X plug-in": read_plugin,
    "UCX": read_ucx,
    "UCC": read_ucx,
    "libfabric": read_libfabric,
    "libfabric CXI": read_libfabric,
    "libfabric EFA": read_libfabric,
    "aws-ofi-nccl": read_ofi_nccl,
    "CUDA": read_cuda,
    "Open MPI": read_mpi,
    "PRRTE": read_mpi,
    "MVAPICH2": read_mvapich2,
    "MVAPICH2-GDR": read_mvapich2,
    "MVAPICH 4": read_mpich,
    "PyTorch": read_pytorch,
}


def read_value(var: EnvVar, text: str, version: tuple[int, ...] | None = None) -> ValueReading:
    """Return what the reader of `var` makes of `text`.

    `version` is that of the variable's owner, and matters for NCCL only; None: the newest that is known. Of a reader
    whose code is not known only its manual is.
    """
    if len(text) > LONGEST:
        return ValueReading(value=None, problem=f"it has {len(text)} characters, which no setting has", kind="odd")
    reader = _READERS.get(var.owner, read_described)
    value_read = reader(Given(var, text, version))
    bare = _unquoted(text)
    if bare is not None:
        return _flawed(value_read, "the quotation marks are part of the value", bare)
    stripped = text.strip()
    if stripped != text and stripped and (value_read.problem is not None or var.kind in ("list", "text", "path")):
        what = "the carriage return" if text.endswith("\r") else "the space around it"
        return _flawed(value_read, f"{what} is part of the value", stripped)
    return value_read


def _unquoted(text: str) -> str | None:
    """Return what stands between the quotation marks that `text` begins and ends with; None: it does not."""
    if len(text) >= 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1]
    return None


def _flawed(value_read: ValueReading, flaw: str, meant: str) -> ValueReading:
    problem = flaw if value_read.problem is None else f"{flaw}: {value_read.problem}"
    kind = value_read.kind or "other value"
    return msgspec.structs.replace(value_read, problem=problem, kind=kind, instead=meant)
