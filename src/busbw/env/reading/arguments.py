"""The options of a command line, told from the program it starts."""

from collections.abc import Iterator

import msgspec

from busbw.env.reading.expansion import Field


class Grammar(msgspec.Struct, frozen=True):
    """Which options of a command take what."""

    valued: frozenset[str] = frozenset()
    # Options of two values.
    paired: frozenset[str] = frozenset()
    # Where this is not empty, an option of two dashes that is not among these takes a value.
    flags: frozenset[str] = frozenset()
    # Options of one letter whose value may follow without a space.
    glued: str = ""


class Option(msgspec.Struct, frozen=True):
    """One option with its values; `name` is as written, without `=VALUE`."""

    name: str
    at: int
    values: tuple[Field, ...] = ()


class Arguments:
    """Goes through a command's options; `at` is the place of the next argument, and of the program in the end."""

    def __init__(self, fields: list[Field], start: int, grammar: Grammar) -> None:
        self.fields = fields
        self.at = start
        self._grammar = grammar
        # Whether some of the options are not known.
        self.is_open = False

    @property
    def rest(self) -> list[Field]:
        """What has not been gone through."""
        return self.fields[self.at :]

    def options(self) -> Iterator[Option]:
        """Yield the options up to the first argument that is none."""
        while self.at < len(self.fields):
            field = self.fields[self.at]
            if field.is_open:
                self.is_open = True
                self.at += 1
                continue
            if field.text == "--":
                self.at += 1
                return
            if not field.text.startswith("-") or field.text == "-":
                return
            yield self._option(field)

    def _option(self, field: Field) -> Option:
        at = field.start
        self.at += 1
        grammar = self._grammar
        name, equals, _ = field.text.partition("=")
        if field.text in grammar.paired:
            return Option(field.text, at, self._take(2))
        if field.text in grammar.valued:
            return Option(field.text, at, self._take(1))
        short = field.text[:2]
        if not field.text.startswith("--") and len(field.text) > 2 and short[1] in grammar.glued:
            return Option(short, at, (field.behind(2),))
        if equals:
            return Option(name, at, (field.behind(len(name) + 1),))
        if grammar.flags and field.text.startswith("--") and field.text not in grammar.flags:
            return Option(field.text, at, self._take(1))
        return Option(field.text, at)

    def _take(self, count: int) -> tuple[Field, ...]:
        values = tuple(self.fields[self.at : self.at + count])
        self.at += len(values)
        return values
