"""The constructs of a script that decide what is run: if, case, loops, functions, groups, && lists."""

from dataclasses import dataclass, field

from busbw.env.reading.context import Context
from busbw.env.reading.scope import Changes
from busbw.model.settings import Arm

# Arms deeper than this are not put down with an assignment.
_MOST_ARMS = 30
# What closes what.
CLOSERS = {"fi": "if", "esac": "case", "done": "loop", "}": "group"}


@dataclass
class Construct:
    """One construct that is open."""

    kind: str
    at: int
    # Its number among those of the text, None for one without arms of its own: a group, a loop that is run for certain.
    number: int | None = None
    arm: int = -1
    is_in_arm: bool = False
    # Whether one of its ways is taken for certain.
    is_complete: bool = False
    ways: list[Changes] = field(default_factory=list)
    # The ways of the text around it.
    arms: tuple[Arm, ...] = ()
    # What had been taken down where its arm began, and the arms that end the script, or the function.
    begun: int = 0
    is_ended: bool = False
    ended: dict[int, bool] = field(default_factory=dict)


class Constructs:
    """The open constructs, the innermost last. Keeps the context's arms and variables as they are at each place."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: list[Construct] = []
        self._outer = context.arms

    @property
    def top(self) -> Construct | None:
        """The innermost construct, None where none is open."""
        return self._open[-1] if self._open else None

    def begin(self, kind: str, at: int, *, has_arms: bool) -> Construct:
        """Open a construct."""
        number = None
        if has_arms:
            number = self._context.constructs
            self._context.constructs += 1
        construct = Construct(kind, at, number)
        self._open.append(construct)
        return construct

    def begin_arm(self) -> None:
        """Begin the next way through the innermost construct; the one before it ends."""
        construct = self._open[-1]
        self.end_arm()
        construct.arm += 1
        construct.is_in_arm = True
        construct.arms, construct.begun = self._context.arms, self._context.ledger.count
        self._context.scope.begin()
        if construct.number is not None and len(self._context.arms) < _MOST_ARMS:
            self._context.arms = (*self._context.arms, Arm(construct=construct.number, arm=construct.arm))

    def end_arm(self) -> None:
        """End the way that is open through the innermost construct, if one is."""
        construct = self._open[-1]
        if not construct.is_in_arm:
            return
        construct.is_in_arm = False
        changes = self._context.scope.end()
        if construct.is_ended:
            construct.ended[construct.arm] = self._context.ledger.count > construct.begun
            construct.is_ended = False
        else:
            construct.ways.append(changes)
        self._context.arms = construct.arms

    def end(self, kind: str) -> bool:
        """Close the innermost construct, which is of this kind; False where another one is open."""
        if self.top is None or self.top.kind != kind:
            return False
        self.end_arm()
        construct = self._open.pop()
        self._go_on_behind(construct)
        # What a subshell changes ends with it.
        if construct.kind != "subshell":
            self._context.scope.merge(construct.ways, is_complete=construct.is_complete)
        return True

    def leave(self) -> None:
        """Say that the way that is open ends the script, or the function."""
        if self.top is not None and self.top.kind in {"if", "case"} and self.top.is_in_arm:
            self.top.is_ended = True

    def _go_on_behind(self, construct: Construct) -> None:
        """Put what follows on the one way that goes on, where the others set or started something and then ended."""
        if construct.number is None or not any(construct.ended.values()):
            return
        arms = range(construct.arm + (1 if construct.is_complete else 2))
        live = [arm for arm in arms if arm not in construct.ended]
        if len(live) == 1 and len(self._context.arms) < _MOST_ARMS:
            self._context.arms = (*self._context.arms, Arm(construct=construct.number, arm=live[0]))

    def end_list(self) -> None:
        """Close the && list that ends here, if there is one."""
        while self.top is not None and self.top.kind == "list":
            self.end("list")

    def end_all(self) -> None:
        """Close what the text leaves open, and say so."""
        self.end_list()
        if self.top is not None:
            names = {"if": "`if` without `fi`", "case": "`case` without `esac`", "loop": "a loop without `done`"}
            reason = names.get(self.top.kind, "a bracket that is never closed")
            self._context.ledger.unread(self._open[0].at, f"{reason}: the shell would not run this")
        while self.top is not None:
            self.end(self.top.kind)
        self._context.arms = self._outer
