"""Scripts: values at the head, each within quotes, and below them texts that are the same for everybody.

Nothing is put into the texts themselves, so that no value can mean anything but itself.
"""

import re
from collections.abc import Iterable, Mapping

from busbw import __version__
from busbw.facts.recipes import RecipeFacts, ScriptFacts, recipe_text
from busbw.model.recipe import Machine, RecipeFile

Values = Mapping[str, str | tuple[str, ...]]

# An image takes longer to build than two nodes to be measured.
_BUILD_TIME, _MEASURE_TIME = "00:30:00", "00:10:00"


def script(facts: RecipeFacts, part: ScriptFacts, values: Values, machine: Machine | None) -> RecipeFile:
    """Return one script of a recipe, with the values that its text names."""
    body = "".join(map(recipe_text, part.bodies))
    first = "# shellcheck shell=bash" if part.sourced else "#!/bin/bash"
    lines = [first, *(_directives(facts, part.nodes, machine) if part.nodes is not None else ())]
    of = f" for {machine.id}" if machine is not None else ""
    lines.append(f"# {facts.name}{of}: {part.use}.")
    lines.append(f"# Written by busbw {__version__}.")
    if not part.sourced:
        lines.append("set -euo pipefail")
    given = [assignment(name, value) for name, value in values.items() if _names(body, name)]
    lines += ["", *given] if given else []
    text = "\n".join(lines) + "\n" + ("" if body.startswith("\n") else "\n") + body
    return RecipeFile(name=part.name, use=part.use, text=text, executable=not part.sourced)


def assignment(name: str, value: str | tuple[str, ...]) -> str:
    """Return what sets a variable of bash to a text, or to an array of texts."""
    if isinstance(value, str):
        return f"{name}={_quoted(value)}"
    return f"{name}=({' '.join(map(_quoted, value))})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _names(body: str, name: str) -> bool:
    return re.search(rf"\$\{{?#?{name}\b|\b{name}\+=", body) is not None


def _directives(facts: RecipeFacts, nodes: int, machine: Machine | None) -> Iterable[str]:
    yield f"#SBATCH --job-name={facts.name}"
    yield f"#SBATCH --nodes={nodes}"
    # Other jobs on a node would share its NICs.
    if nodes > 1:
        yield "#SBATCH --exclusive"
    if machine is not None and machine.gpus > 0:
        yield f"#SBATCH --gpus-per-node={machine.gpus if nodes > 1 else 1}"
    yield f"#SBATCH --time={_MEASURE_TIME if nodes > 1 else _BUILD_TIME}"
    yield "#SBATCH --output=%x-%j.out"
