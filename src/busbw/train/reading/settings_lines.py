"""What a training program prints of its own settings: sequence length, global batch, GPUs, peak.

Megatron-LM and DeepSpeed print `name ...... value`, MaxText `Config param name: value`, NeMo its configuration as YAML,
torchtitan and the Trainer of Hugging Face sentences, MLPerf's programs keys of `:::MLLOG` (`mllog`).
"""

import re
from dataclasses import dataclass, field

from busbw.model.train.reading import StepWork
from busbw.train.reading.lines import marked

_DOTS = rb"\s*\.{2,}\s*"
_END = rb"\s*$"
_NEXT = rb"(?=,|\s)"
_INTEGER = rb"(?P<value>\d{1,3}(?:,\d{3}){1,4}|\d{1,12})"


@dataclass(frozen=True, kw_only=True, slots=True)
class _SettingForm:
    name: str
    mark: bytes
    pattern: re.Pattern[bytes]


def _form(name: str, mark: bytes, pattern: bytes) -> _SettingForm:
    return _SettingForm(name=name, mark=mark, pattern=re.compile(pattern))


# By the text that is looked for: each costs a pass over the log.
_FORMS = (
    # Megatron-LM and DeepSpeed; the configuration that NeMo 1.x prints.
    _form("sequence_length", b"seq_length", rb"(?:^|[\s_])seq_length(?:" + _DOTS + rb"|: )" + _INTEGER + _END),
    _form("global_batch", b"batch_size", rb"(?:^|\s)global_batch_size(?:" + _DOTS + rb"|: )" + _INTEGER + _END),
    _form("global_batch", b"batch_size", rb"(?:^|\s)train_batch_size" + _DOTS + _INTEGER + _END),
    # Not that of the configuration DeepSpeed prints, which is the size of its data parallelism.
    _form("gpus", b"world_size", rb"^(?![^\n]{0,80}config\.py:)(?:.{0,200}\s)?world_size" + _DOTS + _INTEGER + _END),
    # NeMo 1.x: GPUs are those of a node times the nodes.
    _form("devices", b"devices: ", rb"^\s{2,12}devices: " + _INTEGER + _END),
    _form("nodes", b"num_nodes: ", rb"^\s{2,12}num_nodes: " + _INTEGER + _END),
    # MaxText.
    _form("sequence_length", b"max_target_length", rb"Config param max_target_length: " + _INTEGER + _END),
    _form("global_batch", b"batch_size", rb"Config param global_batch_size_to_train_on: " + _INTEGER + _END),
    _form("gpus", b"devices: ", rb"Num_devices: " + _INTEGER + rb", shape"),
    # torchtitan, where it says it.
    _form("sequence_length", b"batch size ", rb"global batch size [^\n]{1,80}?sequence length " + _INTEGER + _NEXT),
    _form("global_batch", b"batch size ", rb"local batch size \d{1,9}, global batch size " + _INTEGER + _NEXT),
    _form("peak_flops", b"computing MFU: ", rb"computing MFU: (?P<value>\d(?:\.\d{1,6})?e\+\d\d)(?=\s|$)"),
    # The Trainer of Hugging Face.
    _form("global_batch", b"batch size ", rb"Total train batch size \(w\. parallel[^)]{0,80}\) = " + _INTEGER + _END),
    # PyTorch Lightning, a process a device.
    _form("gpus", b"processes registered", rb"processes registered\. Starting with " + _INTEGER + rb" processes"),
)  # fmt: skip
MARKS = tuple(dict.fromkeys(form.mark for form in _FORMS))
_MOST_VALUES = 8
_AS_GPUS = {"devices": "gpus", "nodes": "gpus"}
_LARGEST = 10**12


@dataclass(slots=True)
class PrintedSettings:
    """The settings found so far: each value of each name with the line it was first seen on."""

    found: dict[str, dict[float, int]] = field(default_factory=dict)

    def look(self, block: bytes, first_line: int) -> None:
        """Take what a block of whole lines says."""
        for mark in MARKS:
            for start, line in marked(block, mark):
                for form in _FORMS:
                    match = form.pattern.search(line) if form.mark == mark else None
                    if match is not None:
                        self.add(form.name, float(match["value"].replace(b",", b"")), first_line, block, start)

    @staticmethod
    def says(line: bytes) -> bool:
        """Whether a line says a setting."""
        return any(form.mark in line and form.pattern.search(line) for form in _FORMS)

    def add(self, name: str, value: float, first_line: int, block: bytes = b"", start: int = 0) -> None:
        """Keep a value above zero; `first_line` is that of the block, `start` where in it the line begins."""
        values = self.found.setdefault(name, {})
        if 0 < value < (_LARGEST if name != "peak_flops" else 1e18) and len(values) < _MOST_VALUES:
            # The last of several is what the steps after it had.
            line = values.pop(value, None)
            values[value] = line if line is not None else first_line + block.count(b"\n", 0, start)

    def work(self, source: str) -> StepWork:
        """Return the last value of each."""
        last = {name: list(values.items())[-1] for name, values in self.found.items() if values}
        whole = {name: int(value) for name, (value, _) in last.items() if name != "peak_flops"}
        return StepWork(
            sequence_length=whole.get("sequence_length"),
            global_batch=whole.get("global_batch"),
            gpus=whole["devices"] * whole["nodes"]
            if "gpus" not in whole and {"devices", "nodes"} <= whole.keys()
            else whole.get("gpus"),
            peak_flops=last["peak_flops"][0] if "peak_flops" in last else None,
            sources=tuple((_AS_GPUS.get(name, name), f"{source}:{line}") for name, (_, line) in last.items()),
        )

    def contradictions(self) -> tuple[str, ...]:
        """Return what was printed with more than one value."""
        return tuple(
            f"{name.replace('_', ' ')}: {' and '.join(f'{value:.0f} (line {line})' for value, line in values.items())}"
            for name, values in self.found.items()
            if len(values) > 1
        )
