"""Texts, lists and commands that a Python program puts together, followed through its names without running it.

By `ast`: literals, f-strings, `+`, `%`, `format`, `join`, and the names that hold them. A text or a list that is handed
to something, and looks like a command or like settings, is read as one. Each way of an `if` counts by itself.
"""

import ast
import re
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise

import msgspec

from busbw.env.reading import commands
from busbw.env.reading.commands import FAMILY_NAME, LAUNCHERS
from busbw.env.reading.context import Context
from busbw.env.reading.in_force import acts, children, is_applied
from busbw.env.reading.python_trees import tree_of, undivided
from busbw.env.reading.spelled import (
    FILLED,
    HOLE,
    LONGEST_TEXT,
    Field,
    Spelled,
    Value,
    added,
    aligned,
    joined,
    merged,
    separated,
    words_of,
)
from busbw.model.settings import Arm, LaunchCommand


class Deed(msgspec.Struct, frozen=True):
    """What is taken down, and where it stands: all is done in the order of the file."""

    at: int
    do: Callable[[], object]
    # The name that is set, None for a command.
    name: str | None = None
    # Where it ends, if nothing shows that it is in force.
    spoken_to: int | None = None


_DEEPEST = 40
_MOST_STATEMENTS = 20_000
_MOST_TURNS = 8
_MOST_ITEMS = 1_000
_LONGEST_NUMBER = 10**18
_PERCENT = re.compile(r"%%|%(?:\((?P<key>\w+)\))?[-#0 +]*\d*(?:\.\d+)?[sdrifgxX]")
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<key>\w*)[^{}]*\}")
# Names of machines have a number and several parts: BM.GPU.H100.8, p5.48xlarge, ndv5-h100.
_MACHINE = re.compile(r"(?=.*\d)[\w-]+(?:[._-][\w-]+)+", re.ASCII)
_DEVICE = re.compile(r"=?(?:mlx\d_|bnxt_re|rocep|rdmap|irdma)[\w:,=]*", re.ASCII)
# Calls that show a text and start nothing with it, and methods that set a variable: `monkeypatch.setenv`, `add_env`.
_SHOWING = re.compile(r"print\w*|debug|info|warn\w*|error|critical|exception|log\w*|echo|getLogger|help|add_argument")
_SETTING = re.compile(r"(?:set|put|add|with|export|append)\w*|\w*env(?:iron\w*|_?vars?|s)?", re.IGNORECASE)
# Dictionaries of what was measured and read, whose keys may be called after a test of NCCL; and patterns for texts.
_RESULTS = re.compile(
    r"(?:\w*_)?(?:results?|metrics?|records?|rows?|stats?|measured|summary|parsed|report)", re.IGNORECASE
)
_PATTERN = re.compile(r"\[\^[^\]\n]{1,20}\][+*]|\.[*+]\??\)|\(\?[:P=!<]|\\[dws][+*]")
_READING = {"getenv", "get_env", "get", "getvar", "has_env", "getenvb", "add_argument", "addoption"}


class _Names(msgspec.Struct):
    """What the names of a module, a class or a function hold; None: not known."""

    number: int
    held: dict[str, Value | None] = {}


class PythonTexts:
    """One program. `deeds` are what is to be taken down, `values` what is known of what begins at a place."""

    def __init__(self, piece: Spelled, context: Context) -> None:
        """Go through the program; `refusal` says why it is none, where it is not."""
        self.deeds: list[Deed] = []
        self.values: dict[int, list[Spelled | None]] = {}
        # Where the longest expression ends that begins at a place: `", ".join(...)` begins where its text does.
        self._ends: dict[int, int] = {}
        self.refusal: str | None = None
        self.refused_at = 0
        self._piece = piece
        self._context = context
        # What a line feed alone ends is a line here, so that places are those of the file.
        self._text = piece.text.replace("\r", " ").replace("\f", " ")
        self._lines = self._text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        # The names of the functions around a place, innermost last; attributes by their own name.
        self._scopes = [_Names(0)]
        self._count = 0
        self._attributes: dict[str, Value | None] = {}
        # What names hold that nothing used so far, by the number of their scope; -1 for attributes.
        self._pending: dict[tuple[int, str], Value] = {}
        # What a name holds after some of the ways through branches and not after others; names that more is added to.
        self._ways: list[tuple[tuple[int, str], Value]] = []
        self._added_to: set[tuple[int, str]] = set()
        self._later: list[tuple[list[ast.stmt], list[_Names]]] = []
        self._told: set[object] = set()
        self._left = _MOST_STATEMENTS
        # The names that what is gone through at the moment is given to.
        self._given_to: tuple[str, ...] = ()
        self._go_through()

    def _go_through(self) -> None:
        tree, self.refusal, line = tree_of(self._text)
        self.refused_at = self._piece.origin(self._starts[line - 1])
        if tree is None:
            return
        for text, launcher in undivided(tree):
            self._context.ledger.slip("no_blank", self._offset(text), launcher, name=launcher)
        self._body(tree.body)
        for body, scopes in self._later:
            self._scopes = [*scopes, self._new_names()]
            self._body(body)
        # What names hold that nothing used is taken for what it looks like.
        for (_scope, held_by), value in self._pending.items():
            self._given_to = (held_by,)
            self._tell(value)
        self._given_to = ()
        for name, value in self._ways:
            if name not in self._added_to:
                self._tell(value)

    def _new_names(self) -> _Names:
        self._count += 1
        return _Names(self._count)

    # Statements.

    def _body(self, body: list[ast.stmt], depth: int = 0) -> None:
        for statement in body:
            self._left -= 1
            if self._left < 0 or depth > _DEEPEST:
                return
            self._statement(statement, depth)

    def _statement(self, node: ast.stmt, depth: int) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._later.append((node.body, list(self._scopes)))
            case ast.ClassDef():
                self._class(node, depth)
            case ast.If():
                self._branches(node, depth)
            case ast.For() | ast.AsyncFor():
                self._loop(node, depth)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node)
            case ast.Expr(value=ast.Constant()) | ast.Raise() | ast.Assert():
                return
            case ast.Expr():
                self._call(node.value)
            case _:
                self._others(node, depth)

    def _class(self, node: ast.ClassDef, depth: int) -> None:
        self._scopes.append(self._new_names())
        self._body(node.body, depth + 1)
        scope = self._scopes.pop()
        for name, value in scope.held.items():
            self._keep_attribute(name, value)
            if (held := self._pending.pop((scope.number, name), None)) is not None:
                self._pending[-1, name] = held

    def _others(self, node: ast.stmt, depth: int) -> None:
        """Go through the expressions of a statement, and then through those that stand in it."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._consume(child)
            elif isinstance(child, ast.withitem):
                self._consume(child.context_expr)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                self._body(child.body, depth + 1)
        self._body([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)], depth + 1)

    def _branches(self, node: ast.If, depth: int) -> None:
        number, self._context.constructs = self._context.constructs, self._context.constructs + 1
        before = dict(self._scopes[-1].held)
        ends: list[dict[str, Value | None]] = []
        bodies: list[list[ast.stmt]] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(branch := rest[0], ast.If):
            self._consume(branch.test)
            bodies.append(branch.body)
            rest = branch.orelse
        for arm, body in enumerate([*bodies, rest]):
            if body:
                start, end = self._place(body[0].lineno, 0), self._end(body[-1])
                self._context.ledger.conditional.add(
                    self._piece.origin(start), self._piece.origin(end), (Arm(construct=number, arm=arm),)
                )
            self._scopes[-1].held = dict(before)
            self._body(body, depth + 1)
            ends.append(self._scopes[-1].held)
        scope = self._scopes[-1]
        scope.held = merged(before, ends)
        for name in (name for name, value in scope.held.items() if value is None):
            values = (end.get(name) for end in ends)
            self._ways += [((scope.number, name), each) for each in values if each not in (None, before.get(name))]

    def _loop(self, node: ast.For | ast.AsyncFor, depth: int) -> None:
        values = self._value(node.iter) if isinstance(node.target, ast.Name) else None
        target = node.target.id if isinstance(node.target, ast.Name) else None
        self._consume(node.iter)
        turns: list[Spelled | None] = [None]
        if isinstance(values, tuple) and 0 < len(values) <= _MOST_TURNS and all(value.is_known for value in values):
            turns = list(values)
        for turn in turns:
            if target is not None:
                self._scopes[-1].held[target] = turn
            self._body(node.body, depth + 1)
        self._body(node.orelse, depth + 1)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if node.value is None:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = self._known(node.value)
        self._given_to = tuple(_name_of(target) for target in targets)
        if value is None or any(isinstance(target, ast.Subscript) for target in targets):
            self._consume(node.value)
        elif isinstance(node.value, ast.List | ast.Tuple):
            for item in node.value.elts:
                if isinstance(item, ast.Tuple | ast.Dict):
                    self._consume(item)
        for target in targets:
            if isinstance(node, ast.AugAssign):
                held = added([self._value(target), value], self._offset(node.value))
                self._assign(target, node.value, held, is_new=True)
                if isinstance(target, ast.Name):
                    self._added_to.add((self._scopes[-1].number, target.id))
            else:
                self._assign(target, node.value, value)
        self._given_to = ()

    def _assign(self, target: ast.expr, given: ast.expr, held: Value | None, *, is_new: bool = False) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, held)
        elif isinstance(target, ast.Attribute):
            self._keep_attribute(target.attr, held, is_new=is_new)
        elif isinstance(target, ast.Subscript) and _RESULTS.fullmatch(_name_of(target.value)) is None:
            self._put(target.slice, given)

    def _set(self, name: str, value: Value | None) -> None:
        scope = self._scopes[-1]
        scope.held[name] = value
        self._pending.pop((scope.number, name), None)
        if value is not None:
            self._pending[scope.number, name] = value

    def _keep_attribute(self, name: str, value: Value | None, *, is_new: bool = False) -> None:
        is_other = name in self._attributes and self._attributes[name] != value and not is_new
        self._attributes[name] = None if is_other else value

    def _call(self, node: ast.expr) -> None:
        """Go through an expression that stands alone: a method that changes a list, or a call that is given values."""
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            name, held = function.value.id, self._lookup(function.value.id)
            if isinstance(held, tuple) and function.attr in {"append", "extend", "insert"} and node.args:
                more = self._known(node.args[-1])
                if function.attr != "extend":
                    more = (more if isinstance(more, Spelled) else self._unknown(node.args[-1], FILLED),)
                first = [more, held] if function.attr == "insert" else [held, more]
                self._set(name, added(first, self._offset(node)))
                return
        self._consume(node)

    # Expressions that are handed to something.

    def _consume(self, node: ast.expr, depth: int = 0) -> None:
        """Take down what an expression sets or starts, and what stands in it."""
        if depth > _DEEPEST:
            return
        if isinstance(node, ast.Call) and _SHOWING.fullmatch(_called(node)) is not None:
            return
        if isinstance(node, ast.Dict):
            self._dictionary(node)
        elif isinstance(node, ast.Call):
            self._setting(node)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant):
            self._put(node.elts[0], node.elts[1])
        value = self._known(node)
        if value is not None:
            self._tell(value)
        if value is None or isinstance(node, ast.List | ast.Tuple):
            for child in children(node):
                self._consume(child, depth + 1)

    def _dictionary(self, node: ast.Dict) -> None:
        # Its settings hold together, for whatever it is given to.
        line, column = self._context.ledger.place(self._piece.origin(self._offset(node)))
        launch = LaunchCommand(
            kind="other", family="dictionary", argv=(), file=self._context.ledger.file, line=line, column=column
        )
        for key, value in zip(node.keys, node.values, strict=True):
            self._known(value)
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                continue
            self._put(key, value, launch)
            # A list of NICs by machine, or a table of several values by machine with such a list among them.
            inner = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ((None, value),)
            for name, listed in inner:
                is_of_nics = name is None or (isinstance(name, ast.Constant) and "IB_HCA" in str(name.value))
                devices = self._value(listed) if is_of_nics else None
                if devices is not None:
                    self._table(key.value, devices)

    def _table(self, machine: str, devices: Value) -> None:
        """Take a list of NICs down that stands under the name of a machine."""
        items = devices if isinstance(devices, tuple) else (devices,)
        texts = [item.text for item in items]
        if _MACHINE.fullmatch(machine) is None or not texts or not all(_DEVICE.fullmatch(text) for text in texts):
            return
        start = items[0].origin(0)
        names = ",".join(texts).lstrip("=")
        listed = Spelled(f"={names}", ((0, start),))
        inner = self._context.inner(target=machine)
        self.deeds.append(Deed(start, lambda: inner.put("NCCL_IB_HCA", listed, "table", at=start)))

    def _setting(self, node: ast.Call) -> None:
        given = self._given_to
        for keyword in node.keywords:
            self._known(keyword.value)
            self._given_to = (*given, _called(node))
            if keyword.arg is not None and FAMILY_NAME.fullmatch(keyword.arg) is not None:
                at = self._place(keyword.lineno, keyword.col_offset)
                self._take(keyword.arg, at, keyword.value)
        called = _called(node)
        sets = called not in _READING and _SETTING.fullmatch(called) is not None
        if sets and len(node.args) >= 2 and isinstance(node.args[0], ast.Constant):
            self._given_to = (*given, called)
            self._put(node.args[0], node.args[1])
        self._given_to = given
        for argument in node.args:
            self._known(argument)

    def _put(self, key: ast.expr, value: ast.expr, launch: LaunchCommand | None = None) -> None:
        if (
            isinstance(key, ast.Constant)
            and isinstance(key.value, str)
            and FAMILY_NAME.fullmatch(key.value) is not None
        ):
            self._take(key.value, self._offset(key), value, launch)

    def _take(self, name: str, at: int, node: ast.expr, launch: LaunchCommand | None = None) -> None:
        """Take down that a variable gets a value, or one of the values of a list; a sentence describes it."""
        if isinstance(node, ast.Dict) or (isinstance(node, ast.Constant) and node.value is None):
            return
        held = self._value(node)
        values = held if isinstance(held, tuple) else (held or self._text_of(node),)
        if isinstance(held, Spelled) and " " in held.text.strip():
            return
        origin = self._piece.origin(at)
        spoken_to = None if is_applied(self._given_to, self._text) else self._piece.origin(self._end(node))
        for value in values[:_MOST_TURNS]:
            put = self._context.putting(name, value, origin, self._written(node, value), launch=launch)
            self.deeds.append(Deed(origin, put, name, spoken_to))

    def _written(self, node: ast.expr, value: Spelled) -> tuple[int, int] | None:
        is_plain = isinstance(node, ast.Constant) and value.is_known and len(value.runs) == 1
        return (value.origin(0), value.end()) if is_plain else None

    def _tell(self, value: Value) -> None:
        """Read a text or a list as a command or settings, where it looks like some."""
        if value in self._told or any(
            _PATTERN.search(each.text) for each in (value if isinstance(value, tuple) else (value,))
        ):
            return
        if isinstance(value, tuple):
            self._tell_list(value)
        elif (script := commands.as_script(value)) is not None:
            self._told.add(value)
            spoken_to = None if acts(script.text) or is_applied(self._given_to, self._text) else value.end()
            read = partial(self._context.read, "shell", script, self._context.inner())
            self.deeds.append(Deed(value.origin(0), read, spoken_to=spoken_to))

    def _tell_list(self, items: tuple[Spelled, ...]) -> None:
        words = [item.text.rpartition("/")[2] for item in items]
        first = next((at for at, word in enumerate(words) if re.fullmatch(LAUNCHERS, word)), None)
        is_options = any(one == "-x" and FAMILY_NAME.match(other) for one, other in pairwise(words))
        fields = [
            Field(item, item.origin(0), item.end(), is_quoted=True, is_whole=len(item.runs) == 1) for item in items
        ]
        if first is None and is_options:
            fields = [Field(Spelled("mpirun", items[0].runs[:1]), fields[0].start, fields[0].start), *fields]
        elif first is None:
            is_shown = is_applied(self._given_to, self._text)
            for field in filter(commands.sets_family_name, fields):
                spoken_to = None if is_shown else field.end
                self.deeds.append(
                    Deed(field.start, partial(self._context.assign, field, "export"), spoken_to=spoken_to)
                )
            return
        self._told.add(items)
        commands.check_divided(fields[(first or 0) + 1 :], self._text, self._context)
        given = [
            field if field.text != FILLED else Field(Spelled(HOLE, field.spelled.runs), field.start, field.end)
            for field in fields
        ]
        self.deeds.append(Deed(fields[0].start, lambda: commands.run(given, self._context.inner())))

    # Values.

    def _known(self, node: ast.expr) -> Value | None:
        """Return the value of an expression that is given to something, and remember it by its place."""
        value = self._value(node)
        start, end = self._offset(node), self._end(node)
        if end < self._ends.get(start, end):
            return value
        if end > self._ends.get(start, end):
            self.values.pop(start, None)
        self._ends[start] = end
        known = self.values.setdefault(start, [])
        given = value if isinstance(value, tuple) else (value or self._text_of(node),)
        is_known = bool(given) and all(each.is_known for each in given)
        for each in given if is_known else (None,):
            if each not in known and len(known) < _MOST_TURNS:
                known.append(each)
        return value

    def _value(self, node: ast.expr, depth: int = 0) -> Value | None:
        if depth > _DEEPEST:
            return None
        match node:
            case ast.Constant(value=str(text)):
                found: Value | None = self._literal(node, text)
            case ast.JoinedStr():
                found = self._joined(node, depth)
            case ast.BinOp(op=ast.Mod()):
                found = self._formatted(node, depth)
            case ast.BinOp(op=ast.Add()):
                found = self._sum(node, depth)
            case ast.Name():
                found = self._counted(self._lookup(node.id))
            case ast.Attribute():
                self._pending.pop((-1, node.attr), None)
                found = self._counted(self._attributes.get(node.attr))
            case ast.List() | ast.Tuple():
                found = self._items(node, depth)
            case ast.Call():
                found = self._of_call(node, depth)
            case _:
                found = None
        return found

    def _lookup(self, name: str) -> Value | None:
        """Return what a name holds, which is used thereby."""
        scope = next((scope for scope in reversed(self._scopes) if name in scope.held), None)
        if scope is None:
            return None
        self._pending.pop((scope.number, name), None)
        return scope.held[name]

    def _counted(self, value: Value | None) -> Value | None:
        """Return what a name holds, as long as not too much came out of names."""
        length = len(value.text) if isinstance(value, Spelled) else sum(len(item.text) for item in value or ())
        return value if length <= LONGEST_TEXT and self._context.ledger.may_resolve(length) else None

    def _text_of(self, node: ast.expr, depth: int = 0) -> Spelled:
        """Return an expression as a text; what is not known stands for a part of one."""
        number = node.value if isinstance(node, ast.Constant) else None
        if isinstance(number, float) or (type(number) is int and abs(number) < _LONGEST_NUMBER):
            return Spelled(str(number), ((0, self._piece.origin(self._offset(node))),))
        value = self._value(node, depth + 1)
        return value if isinstance(value, Spelled) else self._unknown(node, FILLED)

    def _unknown(self, node: ast.expr, sign: str) -> Spelled:
        return Spelled(sign, ((0, self._piece.origin(self._offset(node))),))

    def _literal(self, node: ast.Constant, text: str) -> Spelled | None:
        start, end = self._offset(node), self._end(node)
        if len(text) > LONGEST_TEXT:
            return None
        raw = self._text[start:end]
        quotes = re.match(r"[rRuU]?(\"\"\"|'''|\"|')", raw)
        if quotes is not None and raw[quotes.end() : len(raw) - len(quotes[1])] == text:
            return self._piece.part(start + quotes.end(), start + quotes.end() + len(text))
        return self._aligned(text, start, end, 0)

    def _aligned(self, value: str, start: int, end: int, at: int) -> Spelled:
        return aligned(value, self._text[start:end], self._piece.part(start, end), at)

    def _joined(self, node: ast.JoinedStr, depth: int) -> Spelled:
        start, end = self._offset(node), self._end(node)
        parts: list[Spelled] = []
        at = 0
        for part in node.values:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                found = self._text.find(part.value.split("\n", 1)[0][:80], start + at, end)
                at = max(at, found - start)
                parts.append(self._aligned(part.value, start, end, at))
                at = min(end - start, max(at, parts[-1].end() - self._piece.origin(start)))
            elif isinstance(part, ast.FormattedValue):
                parts.append(self._text_of(part.value, depth))
                closing = self._text.find("}", start + at, end)
                at = at if closing < 0 else closing + 1 - start
        return joined(parts, at=self._piece.origin(start))

    def _formatted(self, node: ast.BinOp, depth: int) -> Spelled | None:
        form = self._value(node.left, depth + 1)
        if not isinstance(form, Spelled):
            return None
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return self._filled(form, _PERCENT, [self._text_of(each, depth) for each in given], {})

    def _sum(self, node: ast.BinOp, depth: int) -> Value | None:
        parts: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
            parts.append(left.right)
            left = left.left
        values = [self._value(each, depth + 1) for each in (left, *reversed(parts))]
        return added(values, self._piece.origin(self._offset(node)))

    def _filled(
        self, form: Spelled, pattern: re.Pattern[str], given: list[Spelled], named: dict[str, Spelled]
    ) -> Spelled:
        """Return a text with what is given in its fields."""
        parts: list[Spelled] = []
        done = place = 0
        for found in pattern.finditer(form.text):
            parts.append(form.part(done, found.start()))
            done = found.end()
            if found.group() in {"%%", "{{", "}}"}:
                parts.append(form.part(found.start(), found.start() + 1))
                continue
            key = found["key"] or ""
            number = int(key) if key.isdecimal() and len(key) < 4 else place
            place += not key
            known = named.get(key) or (given[number] if number < len(given) and (not key or key.isdecimal()) else None)
            parts.append(known or Spelled(FILLED, ((0, form.origin(found.start())),)))
        return joined([*parts, form.part(done)], at=form.origin(0))

    def _items(self, node: ast.List | ast.Tuple, depth: int) -> tuple[Spelled, ...]:
        items: list[Spelled] = []
        for each in node.elts[:_MOST_ITEMS]:
            if isinstance(each, ast.Starred):
                more = self._value(each.value, depth + 1)
                items += more if isinstance(more, tuple) else [self._unknown(each, HOLE)]
            else:
                items.append(self._text_of(each, depth))
        return tuple(items)

    def _of_call(self, node: ast.Call, depth: int) -> Value | None:
        name = _called(node)
        base = self._value(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else None
        if isinstance(base, Spelled):
            return self._of_method(node, name, base, depth)
        first = self._value(node.args[0], depth + 1) if node.args else None
        if name == "str" and len(node.args) == 1:
            text = self._text_of(node.args[0], depth)
            return text if text.is_known else None
        if isinstance(first, Spelled):
            return first if name in {"dedent", "quote", "text"} else words_of(first) if name == "split" else None
        return first if name in {"list", "tuple"} else None

    def _of_method(self, node: ast.Call, name: str, base: Spelled, depth: int) -> Value | None:
        """Return what a method of a text returns."""
        found: Value | None = None
        if name == "format":
            named = {each.arg: self._text_of(each.value, depth) for each in node.keywords if each.arg is not None}
            found = self._filled(base, _BRACES, [self._text_of(each, depth) for each in node.args], named)
        elif name == "join" and node.args:
            items = self._value(node.args[0], depth + 1)
            found = joined(separated(items, base), at=base.origin(0)) if isinstance(items, tuple) else None
        elif name in {"strip", "rstrip", "lstrip"} and not node.args:
            start = len(base.text) - len(base.text.lstrip()) if name != "rstrip" else 0
            found = base.part(start, len(base.text.rstrip()) if name != "lstrip" else None)
        elif name == "split" and not node.args:
            found = words_of(base)
        return found

    # Places: offsets in the text of the program.

    def _offset(self, node: ast.expr) -> int:
        return self._place(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _place(self, number: int, column: int) -> int:
        """Return the place of a line and a column that counts bytes."""
        line = self._lines[min(number, len(self._lines)) - 1]
        if not line.isascii():
            column = len(line.encode("utf-8", "replace")[:column].decode("utf-8", "ignore"))
        return self._starts[min(number, len(self._lines)) - 1] + min(column, len(line))


def _called(node: ast.Call) -> str:
    return _name_of(node.func)


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
