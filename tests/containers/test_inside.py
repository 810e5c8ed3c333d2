"""The check of an image before a run: what it says of images where ranks would not be part of the run."""

import contextlib
import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import busbw
from busbw.base.errors import InputError
from busbw.measure.containers import inside

OPEN_MPI = "Open MPI v5.0.11, package: Open MPI root@host Distribution, ident: 5.0.11"


PIECES = ('{"busbw": ', '"', "null", ", ", '"mpi": ', '"error": ', "}", "[", "\n", "Open MPI", "\0", "1e999")


def answer(**fields: object) -> str:
    return json.dumps({"busbw": busbw.__version__, "mpi": OPEN_MPI, **fields})


def compare(output: str, exit_code: int = 0, family: str | None = "Open MPI") -> None:
    inside.compare(output, exit_code, version=busbw.__version__, family=family, image="image.sif")


def test_the_check_tells_of_this_very_environment() -> None:
    program = inside.check(sys.executable)
    done = subprocess.run(program.argv, capture_output=True, text=True, check=True)
    compare(f"a banner\n{done.stdout}{done.stderr}")


def test_images_that_fit_are_let_through() -> None:
    compare(answer())
    compare(answer(mpi=None), family=None)
    for library in ("MPICH Version:      4.2.0", "MVAPICH Version :  4.0", "Intel(R) MPI Library 2021.18"):
        compare(answer(mpi=library), family="MPICH")


@pytest.mark.parametrize(
    ("output", "exit_code", "said"),
    [
        ("sh: 1: python3: not found", 127, "does not start in the image: sh: 1: python3: not found"),
        ("", 0, "does not start in the image: nothing"),
        ('{"busbw": ', 0, "does not start"),
        ('{"busbw": 3}', 0, "does not start"),
        (answer(busbw="0.0.9"), 0, "the image has busbw 0.0.9"),
        (answer(mpi=None, error="cannot load MPI library"), 0, "no MPI loads in the image: cannot load MPI library"),
        (
            answer(mpi="MPICH Version: 4.2.0\nmore"),
            0,
            "the image has MPICH Version: 4.2.0, and the ranks are started by",
        ),
        (answer(mpi=""), 0, "the image has an MPI without a name"),
        (answer(mpi="\x1b[2J"), 0, "the image has ?[2J"),
        (answer(mpi="CRAY something"), 0, "each of them would be a job of its own"),
    ],
)
def test_an_image_that_does_not_fit_is_refused(output: str, exit_code: int, said: str) -> None:
    with pytest.raises(InputError) as caught:
        compare(output, exit_code)
    assert said in caught.value.cause
    assert caught.value.where == "image.sif"
    assert caught.value.hint


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join))
@example('{"busbw": ' + "[" * 100_000)
@example('{"busbw": "\ud800"}')
def test_whatever_the_image_prints_is_an_answer_or_refused(output: str) -> None:
    with contextlib.suppress(InputError):
        compare(output)
