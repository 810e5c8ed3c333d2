"""What each version of nccl-tests is asked, word for word, from its own usage text."""

from pathlib import Path
from typing import Any

import pytest

from busbw.base.errors import InputError
from busbw.measure.backends import nccl_tests
from busbw.measure.backends.backend import Usage
from busbw.measure.backends.foreign import read_usage
from busbw.measure.backends.nccl_tests import NcclTestsSettings, is_rccl, nccl_tests_version, operations

from .records import make_sweep

USAGES = Path(__file__).parent / "usage"
VERSIONS = ("nccl-tests-2.0", "nccl-tests-2.13", "nccl-tests-2.17", "nccl-tests-2.19.6", "rccl-tests")


def usage_of(version: str) -> Usage:
    found = read_usage((USAGES / f"{version}.txt").read_text(encoding="utf-8"))
    assert found is not None
    return found


def arguments(version: str, **changes: Any) -> tuple[str, int]:
    values: dict[str, Any] = {
        "smallest_bytes": 8, "largest_bytes": 1024, "factor": 2, "step_bytes": None, "iterations": None,
        "warmup": None, "verify": True, "graphs": 0, "register": 0, "per_process": 1, "samples": 30,
    }  # fmt: skip
    argv, samples = nccl_tests.arguments(
        make_sweep(), usage_of(version), NcclTestsSettings(**(values | changes)), "/r/s.json"
    )
    return " ".join(argv), samples


COMMON = "-b 8 -e 1024 -f 2 -g 1 -d float -o sum -r 0 -c 1"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("nccl-tests-2.0", (f"{COMMON} -n 20", 1)),
        ("nccl-tests-2.13", (f"{COMMON} -a 1 -n 20", 1)),
        ("nccl-tests-2.17", (f"{COMMON} -a 1 -n 20 -N 30", 30)),
        ("nccl-tests-2.19.6", (f"{COMMON} -a 1 -n 30 -I 1 -J /r/s.json", 30)),
        ("rccl-tests", (f"{COMMON} -a 1 -n 20", 1)),
    ],
)
def test_a_default_sweep_is_asked_as_each_version_understands_it(version: str, expected: tuple[str, int]):
    assert arguments(version) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"warmup": 3, "iterations": 7}, {"verify": False, "samples": 1}, {"factor": None, "step_bytes": 64}],
)
def test_no_version_is_given_an_option_that_its_usage_text_does_not_name(version: str, changes: dict[str, Any]):
    argv = arguments(version, **changes)[0].split()

    assert {option[1:] for option in argv[::2]} <= set(usage_of(version).options)
    assert int(argv[argv.index("-b") + 1]) >= 1


def test_steps_graphs_registration_and_checks_are_passed_on():
    line, samples = arguments("nccl-tests-2.19.6", factor=None, step_bytes=4096, graphs=3, register=2, verify=False)

    assert line == (
        "-b 8 -e 1024 -i 4096 -g 1 -d float -o sum -r 0 -c 0 -R 2 -a 1 -G 3 -n 20 -N 30"
    )  # single calls cannot be timed inside a graph
    assert samples == 30


@pytest.mark.parametrize(
    ("version", "changes", "says"),
    [
        ("nccl-tests-2.0", {"graphs": 1}, "CUDA graphs"),
        ("nccl-tests-2.13", {"register": 1}, "registers no buffers"),
        ("rccl-tests", {"register": 2}, "symmetric"),
    ],
)
def test_what_a_version_cannot_do_is_refused(version: str, changes: dict[str, Any], says: str):
    with pytest.raises(InputError, match=says):
        arguments(version, **changes)


def test_the_usage_text_tells_versions_and_operations():
    assert [nccl_tests_version(usage_of(version)) for version in VERSIONS] == [
        "2.0.0 to 2.9.0", "2.10.0 to 2.13.3", "2.17.0 to 2.17.2", "2.19.6 or later", None,
    ]  # fmt: skip
    assert [is_rccl(usage_of(version)) for version in VERSIONS] == [False, False, False, False, True]
    assert operations(usage_of("nccl-tests-2.0")) == ("sum", "prod", "min", "max")
    assert operations(usage_of("nccl-tests-2.19.6")) == ("sum", "prod", "min", "max", "avg", "mulsum")


def test_what_is_no_usage_text_is_none():
    assert read_usage("error while loading shared libraries: libnccl.so.2: cannot open shared object file") is None
