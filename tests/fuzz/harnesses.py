"""One harness per parser: it takes any bytes, and nothing but InputError may come out."""

import contextlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import get_args

from busbw.api import loading
from busbw.base import layout, units
from busbw.base.errors import InputError
from busbw.check.profiles import read_profile
from busbw.fabric.groups.reading import read_result, read_rule
from busbw.fabric.slurm_topology import read_tree
from busbw.fabric.table import read_pairs
from busbw.formats.lines.driver import Reader
from busbw.formats.registry import FORMATS
from busbw.judge.autopsy import autopsy
from busbw.judge.gates.expression import format_gate, parse_gate, parse_gates_file
from busbw.machine.read import kernel
from busbw.measure.containers import inside
from busbw.measure.execute import watch
from busbw.measure.launchers import notices
from busbw.model import codec
from busbw.model.gates import Requirement
from busbw.model.imported import Imported, Reading, UnreadLine
from busbw.model.plan import Plan
from busbw.model.record import AnyEvent, AnyRecord
from busbw.model.run import Outcome, Run
from busbw.model.visit import VisitLine
from busbw.rank import visit_processes
from busbw.show.text.autopsy import autopsy_lines
from busbw.store import directory, imports, isolations, outcome, raw

from . import seeds
from .allocation_harnesses import ALLOCATION_HARNESSES, ALLOCATION_SEEDS
from .fabric_harnesses import FABRIC_HARNESSES, FABRIC_SEEDS
from .in_memory import fresh_folder
from .machine_harnesses import MACHINE_HARNESSES
from .machine_seeds import machine_seeds
from .prediction_harnesses import PREDICTION_HARNESSES, PREDICTION_SEEDS
from .settings_harnesses import SETTINGS_HARNESSES, SETTINGS_SEEDS
from .training_log_harnesses import TRAINING_LOG_HARNESSES, TRAINING_LOG_SEEDS
from .workload_harnesses import WORKLOAD_HARNESSES, WORKLOAD_SEEDS

Harness = Callable[[bytes], object]
PLAN = json.dumps(seeds.plan_of_two_ranks()).encode()
STEP_PLAN = json.dumps(seeds.plan_of_a_step()).encode()
DOCUMENTS = {
    "plan": Plan,
    "run": Run,
    "outcome": Outcome,
    "record": AnyRecord,
    "event": AnyEvent,
    "visit": VisitLine,
    "imported": Imported,
    "reading": Reading,
    "unread": UnreadLine,
}
# One output of each form that importing reads; together they hold every kind of line.
_OUTPUTS = (
    "nccl-tests-2.9-alltoall.log",
    "nccl-tests-2.19.6-torn.log",
    "nccl-tests-json-2.json",
    "rccl-tests.jsonl",
    "osu-7.5-cuda.log",
    "nccl-tests-2.4-reduce_scatter-zeros.log",
    "gpcnet_network_load_test.txt",
    "ucx_perftest_server.txt",
    "nvshmem_reduction.txt",
    "nvshmem_2_box.txt",
    "rocm_bandwidth_test_all.txt",
    "rocm_bandwidth_test_sizes.txt",
    "cuda_bandwidthTest.txt",
    "cuda_bandwidthTest_csv.txt",
)
_SAMPLES = Path(__file__).parents[1] / "formats" / "samples"


def feed(harness: Harness, data: bytes) -> None:
    """Give `data` to a harness; return when the parser takes it or refuses it politely."""
    with contextlib.suppress(InputError):
        harness(data)


def as_text(data: bytes) -> str:
    """Return `data` as Python gives arguments and files to a program: undecodable bytes as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _decoder(kind: type) -> Harness:
    return lambda data: codec.decode(data, kind, where="fuzz")


def _in_run_directory(name: str, reader: Callable[[Path], object]) -> Harness:
    def harness(data: bytes) -> object:
        with fresh_folder() as folder:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            return reader(Path(folder))

    return harness


def _found(data: bytes) -> Path:
    with fresh_folder() as base:
        return directory.find(as_text(data), Path(base))


def _load(plan: bytes, records: bytes) -> object:
    """Judge a run directory from its plan and the records of two ranks that wrote the same."""
    with fresh_folder() as name:
        folder = Path(name)
        (folder / layout.RAW_DIRECTORY).mkdir()
        (folder / layout.PLAN_FILE).write_bytes(plan)
        for rank in range(2):
            (folder / layout.RAW_DIRECTORY / layout.records_name(rank, 0)).write_bytes(records)
        return loading.load(folder)


def _heartbeat(data: bytes) -> str:
    with fresh_folder() as folder:
        Path(folder, layout.heartbeat_name(0)).write_bytes(data)
        beat = watch.read(Path(folder), 0)
        return watch.describe(beat, codec.decode(PLAN, Plan, where="seed"))


def _imported_lines(data: bytes) -> int:
    """Read a source in small blocks. Raises AssertionError when a line of it is not accounted for, or twice."""
    reader = Reader(FORMATS, source=0, first_table=0, copy=lambda _copied: None)
    for at in range(0, len(data), 97):
        reader.feed(data[at : at + 97])
    reader.finish()
    ledger = reader.ledger
    accounted = ledger.reading_lines + ledger.known_lines + ledger.unread_lines
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert accounted == reader.lines == lines, f"{accounted} of {lines} lines are accounted for"
    return accounted


def _argument(annotation: object, text: str) -> object:
    """Return an argument of a reader of captured text: the text itself, or a plausible number beside it."""
    known = {str: text, int: 100, tuple[int, ...]: (0, 1), Mapping[int, str]: {0: text}}
    return known[annotation]  # type: ignore[index]


def _readers() -> Iterator[tuple[str, Harness]]:
    """Yield every public function of probe.read.kernel that takes text."""
    for name, function in inspect.getmembers(kernel, inspect.isfunction):
        annotations = [parameter.annotation for parameter in inspect.signature(function).parameters.values()]
        takes_text = str in annotations or Mapping[int, str] in annotations
        if function.__module__ != kernel.__name__ or name.startswith("_") or not takes_text:
            continue

        def harness(data: bytes, function=function, annotations=annotations) -> object:
            return function(*(_argument(annotation, as_text(data)) for annotation in annotations))

        yield f"read_{name}", harness


def _gate(data: bytes) -> object:
    """Read a text as each kind of gate. Raises AssertionError for one that is not read back as it was."""
    for requirement in get_args(Requirement):
        with contextlib.suppress(InputError):
            gate = parse_gate(as_text(data), requirement)
            assert parse_gate(format_gate(gate), requirement) == gate
    return None


def _read_of_groups(data: bytes) -> None:
    for rule in (r"bw[=:] *(\S+)", "last-number"):
        found = read_result(read_rule(rule, higher_is_better=True), as_text(data))
        assert (found.value is None) != (found.failure is None)


TEXT_HARNESSES: dict[str, Harness] = {
    "parse_size": lambda data: units.parse_size(as_text(data)),
    "find_run": _found,
    "container_check": lambda data: inside.compare(
        as_text(data), 0, version="0.1.0", family="Open MPI", image="image.sif"
    ),
    "launcher_notice": lambda data: notices.first_death(as_text(data)),
    "launcher_lost": lambda data: (notices.lost_host(as_text(data)), notices.peer_lost(as_text(data))),
    "slurm_ended": lambda data: notices.batch_end(as_text(data)),
    "gate": _gate,
    "gates_file": lambda data: [format_gate(each) for each in parse_gates_file(data, where="gates.toml").gates],
    "check_profile": lambda data: read_profile(as_text(data), "site.toml"),
    "fabric_pairs": lambda data: read_pairs([data[: len(data) // 2], data[len(data) // 2 :]], "bandwidth", "pairs.csv"),
    "fabric_topology": lambda data: read_tree(as_text(data), "topology.conf"),
    "isolate_output": _read_of_groups,
    "python_stack": lambda data: visit_processes.parse(as_text(data)),
    **dict(_readers()),
}


def _autopsy(folder: Path) -> object:
    lines, _unreadable = raw.read_visits(folder)
    found = autopsy(codec.decode(PLAN, Plan, where="seed"), lines)
    return autopsy_lines(found) if found is not None else None


DOCUMENT_HARNESSES: dict[str, Harness] = {
    **{f"decode_{name}": _decoder(kind) for name, kind in DOCUMENTS.items()},
    "stored_plan": _in_run_directory(layout.PLAN_FILE, directory.read_plan),
    "stored_run": _in_run_directory(layout.RUN_FILE, outcome.read_run),
    "stored_outcome": _in_run_directory(layout.OUTCOME_FILE, outcome.read),
    "stored_records": _in_run_directory(f"{layout.RAW_DIRECTORY}/{layout.records_name(0, 0)}", raw.read_records),
    "loaded_plan": lambda data: _load(data, b"".join(seeds.records_of_a_rank())),
    "loaded_records": lambda data: _load(PLAN, data),
    "heartbeat": _heartbeat,
    "stored_visits": _in_run_directory(f"{layout.RAW_DIRECTORY}/{layout.visit_name(0)}", _autopsy),
    "stored_isolation": _in_run_directory(isolations.PLAN_FILE, isolations.read_plan),
    "stored_group_runs": _in_run_directory(isolations.RUNS_FILE, isolations.read_runs),
    "stored_import": _in_run_directory(imports.IMPORT_FILE, imports.read),
    "stored_readings": _in_run_directory(imports.READINGS_FILE, lambda folder: list(imports.readings(folder))),
}
OUTPUT_HARNESSES: dict[str, Harness] = {"imported_lines": _imported_lines}
# Those of a run: tests/fuzz/test_parsers.py feeds them; those of machines, settings and hosts have their own.
RUN_HARNESSES = TEXT_HARNESSES | DOCUMENT_HARNESSES | OUTPUT_HARNESSES
OTHERS = ALLOCATION_HARNESSES | FABRIC_HARNESSES | WORKLOAD_HARNESSES | TRAINING_LOG_HARNESSES | PREDICTION_HARNESSES
HARNESSES = RUN_HARNESSES | MACHINE_HARNESSES | SETTINGS_HARNESSES | OTHERS
OWN_SEEDS = {
    **dict.fromkeys(ALLOCATION_HARNESSES, ALLOCATION_SEEDS),
    **dict.fromkeys(FABRIC_HARNESSES, FABRIC_SEEDS),
    **dict.fromkeys(WORKLOAD_HARNESSES, WORKLOAD_SEEDS),
    **dict.fromkeys(PREDICTION_HARNESSES, PREDICTION_SEEDS),
    **TRAINING_LOG_SEEDS,
}


def seeds_of(name: str) -> tuple[bytes, ...]:
    """Return valid inputs of a harness."""
    if name in MACHINE_HARNESSES:
        return machine_seeds(name)
    if name in SETTINGS_HARNESSES:
        return SETTINGS_SEEDS[name]
    if name in OWN_SEEDS:
        return OWN_SEEDS[name]
    if name in TEXT_HARNESSES:
        return tuple(text.encode() for text in seeds.TEXTS)
    if name in OUTPUT_HARNESSES:
        return (*((_SAMPLES / output).read_bytes() for output in _OUTPUTS), *seeds.OLD_OUTPUTS)
    documents = tuple(seeds.document(kind) for kind in DOCUMENTS.values())
    records = seeds.records_of_a_rank()
    return (PLAN, STEP_PLAN, b"".join(records), *documents, *records, bytes(range(64)), bytes(64))
