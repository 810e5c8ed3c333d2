"""Workloads by name or file, read strictly and written again, and the configuration for a number of GPUs."""

import re
from typing import Any

import msgspec
from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.base.toml import check_key_lengths
from busbw.facts.workloads import shipped_workloads
from busbw.model.train.workload import (
    Configuration,
    Experts,
    LatentAttention,
    ModelShape,
    Parallelism,
    Printed,
    PrintedWords,
    PublishedLaunch,
    PublishedStep,
    Workload,
    WorkloadSource,
)

MOST_BYTES = 2**20
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PLACE = re.compile(r"[a-z_]+")
_TABLES: dict[str, type[msgspec.Struct]] = {
    "model": ModelShape, "experts": Experts, "latent": LatentAttention, "configuration": Configuration,
    "parallelism": Parallelism, "printed": Printed, "source": WorkloadSource, "printed_words": PrintedWords,
    "published": PublishedStep, "launch": PublishedLaunch,
}  # fmt: skip


def workload_named(name: str) -> Workload:
    """Return a shipped workload. Raises InputError for a name that there is not."""
    known = shipped_workloads()
    if name not in known:
        raise InputError(
            f"{name[:60]!r} is no workload{maybe(name, known)}",
            hint=f"one of: {', '.join(known)}; or a file of yours: ./NAME.toml",
        )
    return read_workload(known[name], f"workloads/{name}.toml")


def read_workload(text: str, where: str) -> Workload:
    """Return what a workload file says. Raises InputError, with the line where it is known, for what it may not say."""
    check_bounds(text, where)
    try:
        found = msgspec.toml.decode(text.encode("utf-8", "replace"), type=Workload)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), text, where) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", where=where) from error
    _check(found, where)
    return found


def check_bounds(text: str, where: str) -> None:
    """Raise InputError for a text that a reader of TOML or YAML might take minutes for."""
    if len(text) > MOST_BYTES:
        raise InputError(f"{len(text)} characters; such a file has at most {MOST_BYTES}", where=where)
    check_key_lengths(text, where)


def _invalid(said: str, text: str, where: str) -> InputError:
    """Return what the schema refuses: the table, the line, and the name that may have been meant."""
    cause, _, path = said.partition(" - at `$")
    names = _PLACE.findall(path)
    table = next((name for name in reversed(names) if name in _TABLES), "")
    known = [each.name for each in structs.fields(_TABLES.get(table, Workload))]
    unknown = _UNKNOWN.search(cause)
    key = unknown[1][:80] if unknown is not None else names[-1] if names else ""
    inside = f" in [{table}]" if table else ""
    if unknown is not None:
        said_shortly = f"unknown key {key!r}{inside}{maybe(key, known)}"
    else:
        said_shortly = f"{cause[:1].lower()}{cause[1:]}" + (f" in {'.'.join(names)}" if names else "")
    return InputError(said_shortly, where=_line(where, text, key), hint=f"keys{inside}: {', '.join(known)}")


def _line(where: str, text: str, key: str) -> str:
    if key:
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(rf"(?:^|[\s{{,\[]){re.escape(key)}\s*[=\]]", line):
                return f"{where}:{number}"
    return where


def _check(found: Workload, where: str) -> None:
    """Raise InputError for values that fit the schema and contradict each other."""
    model = found.model
    if not found.configuration:
        raise InputError("no configuration", where=where, hint="[[configuration]] with gpus, sequence, batches")
    if not found.dtypes:
        raise InputError("no data type", where=where, hint='dtypes = ["bf16"]')
    counts = [each.gpus for each in found.configuration]
    twice = next((each for each in counts if counts.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"two configurations of {twice} GPUs", where=where, hint="one for each number of GPUs")
    if model.head_width is None and model.hidden % model.heads:
        raise InputError(
            f"hidden {model.hidden} does not divide by {model.heads} heads", where=where, hint="say head_width"
        )
    if model.heads % model.key_value_heads:
        raise InputError(f"{model.heads} heads do not divide by {model.key_value_heads} key_value_heads", where=where)
    experts = model.experts
    if experts is not None and experts.top_k > experts.number:
        raise InputError(f"top_k {experts.top_k} of {experts.number} experts", where=where)
    if experts is not None and experts.dense_layers > model.layers:
        raise InputError(f"{experts.dense_layers} dense layers of {model.layers}", where=where)
    _check_sources(found, where)


def _check_sources(found: Workload, where: str) -> None:
    known = {each.id for each in found.source}
    named = [name for each in found.configuration for name in each.source]
    named += [each.source for each in found.published]
    named += [each.source for each in found.printed_words]
    named += [found.launch.source] if found.launch is not None else []
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"no [[source]] has the id {unknown!r}", where=where, hint=f"known: {', '.join(sorted(known))}"
        )


def configuration_for(found: Workload, gpus: int | None) -> tuple[Configuration, tuple[str, ...]]:
    """Return how to train on so many GPUs, and what had to be assumed; without a number the smallest configuration.

    Where nobody published so many GPUs, the nearest smaller configuration is taken with more data parallelism and a
    global batch that grows with it.
    """
    ordered = sorted(found.configuration, key=lambda each: each.gpus)
    if gpus is None:
        return ordered[0], ()
    exact = next((each for each in ordered if each.gpus == gpus), None)
    if exact is not None:
        return exact, ()
    base = next((each for each in reversed(ordered) if each.gpus < gpus), ordered[0])
    scaled, rest = divmod(base.global_batch * gpus, base.gpus)
    if rest or scaled < 1:
        raise InputError(
            f"{gpus} GPUs: a global batch of {base.global_batch} on {base.gpus} does not scale to them",
            hint=f"published: {', '.join(str(each.gpus) for each in ordered)}; or write the configuration into a file",
        )
    said = (
        f"no configuration of {gpus} GPUs is published: that of {base.gpus}, with a global batch of {scaled} in place "
        f"of {base.global_batch} (the same work for each GPU)"
    )
    return structs.replace(base, gpus=gpus, global_batch=scaled, printed=None), (said,)


def workload_toml(workload: Workload, notes: tuple[str, ...] = ()) -> str:
    """Return the file of a workload; what is not said is left out. `notes` stand above it as comments."""
    raw = _without_nothing(msgspec.json.decode(msgspec.json.encode(workload)))
    model, configurations = raw.pop("model"), raw.pop("configuration")
    lines = [f"# {line}" for note in notes for line in note.split("\n")]
    lines += [f"{key} = {_value(value)}" for key, value in raw.items()]
    lines += ["", "[model]", *(f"{key} = {_value(value)}" for key, value in model.items())]
    for each in configurations:
        lines += ["", "[[configuration]]", *(f"{key} = {_value(value)}" for key, value in each.items())]
    return "\n".join(lines) + "\n"


def _without_nothing(value: Any) -> Any:  # noqa: ANN401 - plain values of any kind
    if isinstance(value, dict):
        return {key: _without_nothing(each) for key, each in value.items() if each is not None and each != []}
    return [_without_nothing(each) for each in value] if isinstance(value, list) else value


def _value(value: Any) -> str:  # noqa: ANN401 - plain values of any kind
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a basic string of TOML, but for the delete character.
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    return str(value)
