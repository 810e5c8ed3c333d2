"""Tables, templates and logs for scaling figures: read, or refused with InputError, whatever they hold."""

import contextlib
import io

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.formats.application_log import LogLines, read_log
from busbw.formats.scaling_table import is_table, match, read_table, template
from busbw.judge.scaling.application import application_view
from busbw.judge.scaling.collective import collective_view
from busbw.judge.scaling.conclusion import findings_of, verdict_of
from busbw.judge.scaling.lines import selected, sizes_of
from busbw.judge.scaling.places import axis_of
from busbw.model.scaling import Observation, ScalingReport
from busbw.show.text.scaling import scaling_text

HEADERS = (
    "nodes,time_s", "gpus;tokens_per_s;series", "ranks\tbusbw_GBps\tcollective\tsize", "nodes,gpus,busbw_Gbps,tag",
    "cores,s_per_step,layers", "nodes,time_s,system", "nodes,busbw_GBps,system,dtype",
    "nodes,time_s,time_ms", "nodes,nodes,time_s", "time_s", "", "\ufeffnodes,time_s",
)  # fmt: skip
CELLS = st.sampled_from([
    "1", "2", "4", "0", "-1", "1e3", "1e400", "1e-300", "8.", "nan", "99999999", "all_reduce", "16G",
    '"', "'", "x" * 300, "\x1b[31m", "",
    "\u202e", "\u0661", "1e30", "9" * 50,
])  # fmt: skip
LINES = st.lists(st.lists(CELLS, min_size=1, max_size=4).map(",".join), max_size=8)
PIECES = [
    "{time_s}",
    "{nodes}",
    "{*}",
    "{",
    "}",
    " ",
    "a",
    "time: ",
    " s",
    "{s_per_step}",
    "{layers}",
    "{{}}",
    "\t",
    "1",
]
EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def draw(observations: tuple[Observation, ...]) -> None:
    """Go the whole way to the text with what was read."""
    rates = [each for each in observations if each.busbw_Bps is not None]
    with contextlib.suppress(InputError):
        if rates:
            kept, _ = selected(rates, {})
            axis = axis_of(kept, None)
            sizes, _ = sizes_of(kept, (), axis)
            views = tuple(collective_view(kept, axis=axis, size_bytes=size_bytes) for size_bytes in sizes)
        else:
            axis = axis_of(observations, None)
            views = (application_view(observations, axis=axis, kind="strong", at=(64,)),)
        with contextlib.redirect_stdout(io.StringIO()):
            findings = tuple(each for view in views for each in findings_of(view))
            scaling_text(ScalingReport(verdict=verdict_of(views, findings), views=views, findings=findings))


@EXAMPLES
@given(header=st.sampled_from(HEADERS), lines=LINES, separator=st.sampled_from([",", ";", "\t"]))
def test_a_table_is_read_and_drawn_or_refused(header: str, lines: list[str], separator: str) -> None:
    text = "\n".join([header, *(line.replace(",", separator) for line in lines)])
    try:
        rows = read_table(text, "t.csv")
    except InputError:
        return
    assert is_table(text)
    draw(rows)


NUMBERS = st.sampled_from(["1", "2.0", "0.5", "1e-300", "1e300", "1e-9", "99999999", "8."])


@EXAMPLES
@given(
    numbers=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5),
    result=st.sampled_from(["time_s", "busbw_GBps", "tokens_per_s"]),
)
def test_two_systems_are_compared_or_refused_whatever_their_numbers(
    numbers: list[tuple[str, str]], result: str
) -> None:
    rows = [
        f"{2**step},{value},{name}" for step, pair in enumerate(numbers) for name, value in zip("ab", pair, strict=True)
    ]
    try:
        read = read_table("\n".join([f"nodes,{result},system", *rows]), "t.csv")
    except InputError:
        return
    draw(read)


@EXAMPLES
@given(lines=st.lists(st.lists(CELLS, min_size=3, max_size=3).map(",".join), max_size=8))
def test_rates_beside_times_are_read_or_refused_and_never_more_exact_than_printed(lines: list[str]) -> None:
    with contextlib.suppress(InputError):
        for row in read_table("\n".join(["gpus,step_s,tokens_per_s", *lines]), "t.csv", wanted="tokens_per_s"):
            assert row.rate is not None
            assert row.rate.low is not None
            assert row.rate.high is not None
            assert row.rate.low <= row.rate.value <= row.rate.high


@EXAMPLES
@given(text=st.text(max_size=200))
def test_any_text_is_a_table_or_none(text: str) -> None:
    is_table(text)
    with contextlib.suppress(InputError):
        read_table(text, "t.csv")


@EXAMPLES
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=10),
    lines=st.lists(st.text("a1 s:time.e-\t\x00", max_size=60), max_size=6),
)
def test_a_template_is_matched_or_refused(pieces: list[str], lines: list[str]) -> None:
    try:
        pattern = template("".join(pieces))
    except InputError:
        return
    for line in lines:
        match(pattern, line)
    with contextlib.suppress(InputError):
        draw(read_log(lines, "x.log", LogLines(templates=(pattern,), known=(("nodes", 1),))))
