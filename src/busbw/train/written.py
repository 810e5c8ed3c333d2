"""A workload as the text of its file. Alone because it is the counterpart of `train.workloads`, which reads it back."""

from typing import Any

import msgspec

from busbw.model.train.workload import Workload


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
