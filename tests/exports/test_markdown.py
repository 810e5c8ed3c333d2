"""The summary says the verdict first, and no word from outside becomes markup of GitHub's Markdown."""

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from busbw.base.text import one_line
from busbw.model.finding import Finding, Verdict
from busbw.show.exports.markdown import escaped, markdown_text
from busbw.show.exports.rows import Export, export_of_run

from .factories import HOSTILE, make_right_run, make_run

REFERENCE = re.compile(r"&#(\d+);")


def lines_of(export: Export) -> list[str]:
    return markdown_text(export).splitlines()


def test_the_verdict_stands_first_and_each_point_has_a_line():
    lines = lines_of(export_of_run(make_run()))
    assert lines[0].startswith("### busbw: all_reduce, broadcast, latency")
    assert lines[2] == "❌ wrong: a sentence."
    cells = [line.split(" | ") for line in lines if line.startswith("| ") and "KiB" in line]
    assert len(cells) == 9
    assert [line[0] for line in cells].count("| ❌") == 1
    assert all(len(line) == 6 for line in cells)


def test_a_finding_has_its_code_and_its_fix():
    finding = Finding(code="PERF001", severity="warn", title="slower", evidence="than <it> was", fix="try `this`")
    lines = lines_of(export_of_run(make_right_run(findings=(finding,))))
    assert "- **PERF001** slower: than &#60;it&#62; was; try &#96;this&#96;" in lines


def test_of_very_many_points_those_that_are_not_right_are_shown():
    export = export_of_run(make_right_run())
    rows = tuple(replace(export.rows[0], repeat=number, wrong=int(number == 149)) for number in range(150))
    lines = lines_of(replace(export, rows=rows))
    assert sum(line.startswith("| ✅") for line in lines) == 99
    assert sum(line.startswith("| ❌") for line in lines) == 1
    assert "50 more points are left out here." in lines


def test_words_that_mean_harm_stay_words():
    run = make_run(tag=HOSTILE, verdict=Verdict(outcome="slow", sentence=f"</sub><script>x</script> {HOSTILE}\n# head"))
    text = markdown_text(export_of_run(run))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not [line for line in text.splitlines() if line.startswith("# ")]


def test_mentions_references_addresses_and_emoji_are_escaped_and_plain_words_stay_readable():
    assert escaped("@team #12 https://x www.x.org a|b :tada: __init__") == (
        "&#64;team &#35;12 https&#58;//x www&#46;x.org a&#124;b &#58;tada: &#95;&#95;init&#95;&#95;"
    )
    assert escaped("cannot tell: all_reduce 4 MiB, 8.60 GB/s") == "cannot tell: all_reduce 4 MiB, 8.60 GB/s"


def tokens_of(text: str) -> list[Token]:
    """Return what a reader of CommonMark with tables and HTML makes of a text, the parts of its lines too."""
    found = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    return [each for token in found for each in (token, *(token.children or ()))]


@given(st.text())
def test_any_text_is_read_back_as_itself_and_as_nothing_else(text: str):
    tokens = tokens_of(f"❔ {escaped(text)}\n")
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "text", "paragraph_close"}
    read = "".join(token.content for token in tokens if token.type == "text")
    assert read.split() == f"❔ {one_line(text.replace(chr(10), ' '))}".split()


@given(st.text(min_size=1))
def test_any_host_tag_and_sentence_leave_the_summary_what_it_is(text: str):
    def kinds(word: str) -> list[str]:
        finding = Finding(code="PERF001", severity="warn", title=word, evidence=word, fix=word)
        verdict = Verdict(outcome="slow", sentence=word)
        run = make_right_run(verdict=verdict, findings=(finding,))
        run = replace(run, plan=replace(run.plan, tag=word, placement=replace(run.plan.placement, hosts=(word,))))
        return [token.type for token in tokens_of(markdown_text(export_of_run(run)))]

    assert kinds(text) == kinds("word")


@given(st.text())
def test_no_text_leaves_its_line_its_cell_or_its_place(text: str):
    written = escaped(text)
    assert len(written.splitlines()) <= 1
    bare = REFERENCE.sub("", written)
    assert not set(bare) & set("\\`*{}[]()#!|<>&~$@")
    assert REFERENCE.sub(lambda found: chr(int(found[1])), written).replace("\\n", "") is not None
