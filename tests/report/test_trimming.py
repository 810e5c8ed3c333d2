"""Nothing that is printed ends in blanks, and nothing else is lost."""

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.show.text.terminal import TrimmedLines


def shown(*things: Table | Text, colour: bool = False, soft_wrap: bool = False) -> str:
    out = Console(file=io.StringIO(), width=20, force_terminal=colour, color_system="standard" if colour else None)
    out.push_render_hook(TrimmedLines())
    for each in things:
        out.print(each, soft_wrap=soft_wrap)
    return out.file.getvalue()


def table() -> Table:
    made = Table(box=None, pad_edge=False)
    made.add_column("id")
    made.add_column("what it is")
    made.add_row("a", "short")
    made.add_row("bb", "")
    return made


def test_rows_of_a_table_end_with_their_last_word() -> None:
    assert shown(table()).splitlines() == ["id  what it is", "a   short", "bb"]


def test_wrapped_lines_end_with_their_last_word() -> None:
    assert shown(Text("one two three four five six")).splitlines() == ["one two three four", "five six"]


def test_a_line_that_is_not_to_be_wrapped_stays_whole() -> None:
    assert shown(Text("x" * 50 + " end"), soft_wrap=True) == "x" * 50 + " end\n"


def test_blank_lines_and_blanks_at_the_start_stay() -> None:
    assert shown(Text("\n  a\n\nb  ")) == "\n  a\n\nb\n"


def test_colours_stay() -> None:
    text = Text("red", style="red")
    text.append("   ")

    assert shown(text, colour=True) == "\x1b[31mred\x1b[0m\n"
