"""Options of `busbw run` are declared once: what is parsed, stored and given again is the same request."""

from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.cli.options import GroupedOption
from busbw.cli.request import directory_of, request_of
from busbw.cli.run import run
from busbw.model import codec
from busbw.model.request import Goal, Request, RunOption, RuntimeName, command_of, defaults, options, words_of

# What a user may type as a word: anything but a letter that ends a C string.
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
# Values that only some words stand for.
KNOWN = {
    "backend": ("native-mpi", "native-nccl", "nccl-tests", "osu"),
    "mode": (None, "isolated", "stream", "graph", "loaded"),
    "placement": ("out", "in", "both"),
    "buffers": ("plain", "registered", "symmetric"),
    "memory": (None, "nccl", "cuda"),
    "cache": ("cold", "warm"),
    "binding": (None, "core", "numa", "masks", "none", "default"),
    "goal": (None, *get_args(Goal)),
    "root": (0, 3, None),
    "runtime": (None, *get_args(RuntimeName)),
}
FORMS: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS,
    "number": st.integers(1, 10**6),
    "seconds": st.integers(1, 10**5).map(float),
    "size": st.integers(1, 2**50),
    "flag": st.booleans(),
    "yes": st.booleans(),
    "many": st.lists(WORDS, max_size=3).map(tuple),
    "command": st.lists(WORDS, min_size=1, max_size=3).map(tuple),
}


def values(field: str, option: RunOption) -> st.SearchStrategy[Any]:
    if field in KNOWN:
        return st.sampled_from(KNOWN[field])
    if field in ("image", "mounts", "container_options", "graphs", "matrix_file"):
        # Each of them means nothing, or another thing, without a second one.
        return st.just(defaults()[field])
    return FORMS[option.form]


REQUESTS = st.fixed_dictionaries(
    {"collectives": st.lists(st.sampled_from(["all_reduce", "latency"]), max_size=2).map(tuple)},
    optional={field: values(field, option) for field, option in options().items()},
).map(lambda fields: Request(**fields | ({"image": "image.sif"} if fields.get("runtime") else {})))


def parsed(*words: str) -> dict[str, Any]:
    return run.make_context("run", list(words)).params


@given(REQUESTS)
def test_the_command_of_a_request_asks_for_it_again(request: Request):
    command = command_of(request)

    assert command[:2] == ("busbw", "run")
    assert request_of(parsed(*command[2:])) == request


@given(REQUESTS)
def test_a_request_is_stored_and_read_again(request: Request):
    assert codec.decode(codec.encode_pretty(request), Request, where="plan.json") == request


def test_every_field_of_a_request_is_an_option():
    # Collectives are arguments, a matrix is read from its file, and a sweep and a step have options of their own.
    assert set(Request.__struct_fields__) - set(options()) == {"collectives", "matrix", "fabric", "step"}


def test_a_letter_means_one_option():
    names = [name for each in run.params if isinstance(each, click.Option) for name in each.opts]

    assert len(names) == len(set(names))


def test_what_is_usual_is_left_out():
    assert words_of(Request()) == ()
    assert words_of(Request(smallest_bytes=65536, largest_bytes=2**30, step_bytes=1000), {"step_bytes"}) == (
        ("-b", "64K"),
        ("-e", "1G"),
    )


def test_a_value_that_begins_with_a_dash_is_joined_to_its_option():
    assert words_of(Request(launcher_options=("--mpi=pmix", "x"))) == (
        ("--launcher-option=--mpi=pmix", "--launcher-option", "x"),
    )


@pytest.mark.parametrize("backend", ["mpi", "nccl", "nccl-tests", "osu"])
def test_o_takes_an_operation_or_a_folder_with_every_backend(backend: str):
    for word in ("max", "all", "sum,avg"):
        asked = parsed("--backend", backend, "-o", word)
        assert (request_of(asked).op, directory_of(asked)) == (word, None)
    for word in ("runs/a", "./max", "maximum"):
        asked = parsed("--backend", backend, "-o", word)
        assert (request_of(asked).op, directory_of(asked)) == ("sum", Path(word))


def test_n_is_ranks_over_mpi_and_calls_over_nccl():
    assert request_of(parsed("-n", "4")).ranks == 4
    assert request_of(parsed("-n", "4", "--backend", "osu")).ranks == 4
    assert request_of(parsed("-n", "4", "--backend", "nccl")).calls == 4
    assert request_of(parsed("-n", "4", "--backend", "nccl-tests")).calls == 4


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("-n", "2", "--ranks", "2"), "--ranks and -n say the same thing here"),
        (("-o", "a", "--out", "b"), "--out and -o say the same thing here"),
        (("-o", "max", "--op", "min"), "--op and -o say the same thing here"),
        (("-G", "1", "--mode", "stream"), "-G asks for graphs, and --mode for stream"),
        (("--calls", "0"), "--calls must be at least 1"),
        (("-r", "first"), "'first' is not a rank"),
        (("--remote-shell", "ssh 'x"), "this command cannot be read: No closing quotation"),
        (("--image", "a.sif"), "an image needs a runtime"),
        (("--container", "podman"), "no image is named"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], cause: str):
    def asked() -> None:
        values_given = parsed(*words)
        request_of(values_given)
        directory_of(values_given)

    with pytest.raises(InputError) as error:
        asked()

    assert error.value.cause == cause


def test_help_has_headings_and_leaves_out_what_few_need():
    usual, everything = (CliRunner().invoke(run, [word]).output for word in ("--help", "--help-all"))

    for heading in ("What is measured:", "Sizes:", "Where, and by whom ranks are started:", "Result:"):
        assert heading in usual
    rare = [each for each in run.params if isinstance(each, GroupedOption) and each.rare]
    assert len(rare) >= 15
    for option in rare:
        assert option.opts[-1] in everything
        assert f" {option.opts[-1]} " not in usual
    assert "--help-all" in usual
