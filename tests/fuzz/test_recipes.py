"""What is asked of a recipe: taken in a spelling that is safe in scripts, directives and definitions, or refused."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from busbw.api.recipes import question
from busbw.base.errors import InputError

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/:@-]*", re.ASCII)
TEXT = st.one_of(
    st.text(max_size=40),
    st.text("0123456789.v-+sm_", max_size=12),
    st.from_regex(r"\A2\.\d\d\.\d.{0,8}\Z"),
)


@settings(max_examples=100, derandomize=True)
@given(field=st.sampled_from(["nccl", "cuda", "cuda_arch", "image", "release", "modules"]), text=TEXT)
@example(field="nccl", text="2.27.7;rm -rf /")
@example(field="nccl", text="2.27.7\n")
@example(field="nccl", text="$(id)")
@example(field="image", text="-x")
@example(field="image", text="a\nFrom: b")
@example(field="modules", text="--help")
@example(field="cuda_arch", text="9" * 400)
@example(field="nccl", text="\u0662.\u0662\u0667.\u0667")
def test_a_text_is_taken_as_a_safe_word_or_refused(field: str, text: str) -> None:
    try:
        asked = question(**{field: (text,) if field == "modules" else text})
    except InputError:
        return
    taken = getattr(asked, field)
    word = taken[0] if field == "modules" else str(taken)
    assert SAFE.fullmatch(word)
