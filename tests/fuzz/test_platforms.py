"""A site's platform files may hold anything: a platform comes out, or an error that names the file."""

import contextlib
import itertools
import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform
from busbw.model import codec
from busbw.model.platform import Platform, ResolvedPlatform, SiteFile

from .machine_seeds import SITE_FAMILY as FAMILY
from .machine_seeds import SITE_PLATFORM as VALID

FRAGMENTS = (
    "=", "[", "]", "[[", "]]", '"', "'", "\n", "{", "}", ".", ",", "nan", "-inf", "1e999", "0x" + "f" * 20, "true",
    "2026-01-01T00:00:00Z", "a.b.c", "extends", "unknown", 'unknown = ["gpus[0].gpu"]\n', '["ours"]', "\x00", "\ud800",
    "numa", "sources", "[[gpus]]\ngpu = 0\n", "[gpu.x.y.z]\n", "unset = 1\n", "checked = 1\n", "source = [1]\n",
)  # fmt: skip
HEAD = {"names": [], "provider": "us", "kind": "gpu"}
FIELDS = [field.name for field in msgspec.structs.fields(Platform)]
ANYTHING = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "id", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def spelled(value: object) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {spelled(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def read(text: str) -> ResolvedPlatform | None:
    with contextlib.suppress(InputError):
        return find_platform("ours", (FAMILY, SiteFile(path="/etc/busbw/platforms/ours.toml", text=text)))
    return None


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = VALID
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + draw(st.sampled_from(FRAGMENTS) | st.text(max_size=4)) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def test_the_seed_is_a_platform() -> None:
    resolved = read(VALID)
    assert resolved is not None
    assert resolved.platform.gpu.sm is None


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(damaged() | st.text(max_size=100))
def test_only_an_input_error_comes_out_of_a_damaged_file(text: str) -> None:
    resolved = read(text)
    if resolved is not None:
        assert codec.decode(codec.encode(resolved), ResolvedPlatform, where="again") == resolved


@settings(max_examples=133, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from([*FIELDS, "extends", "unknown"]), ANYTHING, max_size=4))
def test_only_an_input_error_comes_out_of_any_toml(raw: dict[str, object]) -> None:
    read("".join(f"{name} = {spelled(value)}\n" for name, value in {**HEAD, **raw}.items()))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_only_an_input_error_comes_out_of_a_name(name: str) -> None:
    with contextlib.suppress(InputError):
        find_platform(name, (FAMILY, SiteFile(path="/etc/busbw/platforms/ours.toml", text=VALID)))


PATTERNS = (
    "a.", "[", "[[numa]]\n", "[[numa]]\nid=1\n", "x=[", "a={", "'", '"', "#", "\n", "traps=['a']\n", "a.b=1\n",
    "[a.b]\n", "'a',", "1,", "[[nics]]\nbus_id='a'\n",
)  # fmt: skip
COUNTED = (
    "[[numa]]\nid={0}\n",
    "[[numa]]\nid={0}\n[[nics]]\nname='n{0}'\nnuma={0}\n",
    "[[nics]]\nname='n{0}'\n[[variants]]\nsku='s'\ngpus=99999\n[[gpus]]\ngpu={0}\nnics=['n{0}']\n",
    "[[published]]\ntest='{0}'\nmetric='a'\nvalue=1\nunit='a'\nkind='measured'\n",
    "[[sweeps]]\ntest='all_reduce'\nnodes=1\ngpus=8\npoints=[[1, 1], [2, 2]]\ndocument='{0}'\n",
    "[[switches]]\nbus_id='0000:00:00.0'\nnuma={0}\nparent='x{0}'\n",
    "[fabric.x{0}]\n",
    "a{0} = 1\n",
)


@pytest.mark.parametrize("pattern", [*PATTERNS, *COUNTED])
def test_the_largest_file_takes_no_longer_than_its_length_explains(pattern: str) -> None:
    head = "".join(f"{name} = {spelled(value)}\n" for name, value in HEAD.items())

    def long(length: int) -> str:
        count = length // len(pattern)
        body = "".join(pattern.format(place) for place in range(count)) if pattern in COUNTED else pattern * count
        return head + body

    # A file that was read once is remembered by its text.
    numbers = itertools.count()
    check_growth(lambda text: read(f"{text}\n# {next(numbers)}"), long(2**14), long(2**17), most=24, negligible_s=1)
