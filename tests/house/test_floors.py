"""A module imports only from its own package or a lower floor, and pure floors do not touch the world."""

import ast
import graphlib
from collections.abc import Iterable

from .tree import Module, imports, modules, outside_imports

FLOORS = (
    ("base",),
    ("model",),
    ("facts", "stats"),
    ("formats", "measure.launchers", "measure.containers"),
    ("topo", "machine.detect", "limits", "measure.backends"),
    ("predict",),
    ("machine.read", "env", "logs", "judge"),
    ("fabric",),
    ("machine.health", "show", "recipes", "check", "train", "tune"),
    ("machine.capture", "measure.execute", "store"),
    ("machine.named",),
    ("measure.plan",),
    ("api",),
    ("cli",),
    ("__main__",),
)
DOORS = ("machine.capture", "measure.execute", "store")
FLOOR_OF = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
# The program a rank runs stands beside the floors: nobody imports it. Rank 0 of a sweep decides its rounds itself.
RANK_MAY_IMPORT = {"rank", "base", "stats", "model", "fabric", "_core", ""}
CORE_IMPORTERS = {"rank", "logs", "fabric", "predict", "train"}
# What a pure module has no use for; `signal` is not here: it also names signals.
WORLD = {"os", "platform", "random", "secrets", "shutil", "socket", "subprocess", "tempfile", "threading", "time"}
FILE_METHODS = {
    "exists", "glob", "is_dir", "is_file", "iterdir", "mkdir", "open", "read_bytes", "read_text", "rename", "rglob",
    "stat", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip
# Above the doors nobody touches the world either, but for these.
ABOVE_THE_DOORS = {
    # Names of runs and seeds are drawn; a budget is a time; a log that is judged is read into a folder that goes again.
    "api.batch": {"secrets"},
    "api.bisections": {"secrets"},
    # A check has a limit of time, and the moment it was made at is of the history.
    "api.nodes.checks": {"secrets", "time"},
    "api.nodes.devices": {"tempfile"},
    "api.nodes.screenings": {"time"},
    "api.comparisons": {"tempfile"},
    "api.importing": {"secrets"},
    "api.sweeping.fabrics": {"random"},
    "api.sweeping.swept": {"random"},
    "api.sweeping.sweeps": {"random"},
    "api.isolations": {"random", "secrets"},
    "api.interleave": {"random", "secrets", "time"},
    "api.verdicts": {"tempfile"},
    "api.reports": {"tempfile"},
    # How often a line is drawn, and how wide the terminal is.
    "cli.progress": {"shutil", "time"},
}


def package_of(name: str) -> str:
    """Return the entry of FLOORS, or the root of the tree, that `name` belongs to."""
    known = [package for package in FLOOR_OF if name == package or name.startswith(package + ".")]
    return max(known, key=len, default=name.split(".", maxsplit=1)[0])


def is_pure(module: Module) -> bool:
    floor = FLOOR_OF.get(package_of(module.name))
    return floor is not None and floor < FLOOR_OF["store"]


def is_above_the_doors(module: Module) -> bool:
    floor = FLOOR_OF.get(package_of(module.name))
    return floor is not None and floor > FLOOR_OF["store"]


def misplaced(module: Module) -> list[str]:
    """Return why the module, or one of its imports, is not where it may be."""
    package = package_of(module.name)
    # Packages of packages hold no code: whoever imports them gets nothing from above.
    if package not in FLOOR_OF and package != "rank" and (imports(module) or not module.is_package):
        return [f"{module.where}: give it a place in FLOORS"]
    found = []
    for target, line in sorted(imports(module)):
        other = package_of(target)
        where = f"{module.where}:{line} imports busbw.{target}"
        if other in {"", package}:
            continue
        if package == "rank":
            allowed = other in RANK_MAY_IMPORT
        elif other == "_core":
            allowed = package in CORE_IMPORTERS
        elif other not in FLOOR_OF:
            found.append(f"{where}: only `python -m` starts it")
            continue
        else:
            allowed = FLOOR_OF[other] < FLOOR_OF[package]
        if not allowed:
            found.append(f"{where}, which is not on a lower floor")
    return found


def worldly(module: Module) -> list[str]:
    """Return where a module touches files, processes, clocks or the environment."""
    touched = [f"{module.where}:{line} imports {name}" for name, line in outside_imports(module) if name in WORLD]
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_file_access = called in FILE_METHODS if isinstance(node.func, ast.Attribute) else called == "open"
        # The catalogue reads the facts that are shipped with it.
        if is_file_access and package_of(module.name) != "facts":
            touched.append(f"{module.where}:{node.lineno} calls {called}")
    return touched


def test_a_module_imports_from_its_own_package_or_a_lower_floor() -> None:
    assert [line for module in modules() for line in misplaced(module)] == []


def circle(found: Iterable[Module]) -> list[str]:
    """Return modules that import each other in a circle, inside of functions and for types too; []: there is none."""
    graph = {module.name: {target for target, _line in imports(module)} - {module.name} for module in found}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(modules()) == []


def test_a_circle_is_found() -> None:
    texts = {
        "model.plan": "from busbw.model import run\n",
        "model.run": "def f():\n    from busbw.model.plan import Plan\n",
    }
    made = [
        Module(name=name, path=modules()[0].path, text=text, tree=ast.parse(text), is_package=False)
        for name, text in texts.items()
    ]
    assert set(circle(made)) == {"model.plan", "model.run"}
    assert circle(made[:1]) == []


def test_a_pure_module_does_not_touch_the_world() -> None:
    assert [line for module in modules() if is_pure(module) for line in worldly(module)] == []


def test_above_the_doors_the_world_is_touched_through_them_alone() -> None:
    found = {
        line
        for module in modules()
        if is_above_the_doors(module)
        for line in worldly(module)
        if line.rsplit(" ", 1)[-1] not in ABOVE_THE_DOORS.get(module.name, ())
    }
    assert found == set()


def test_what_is_allowed_above_the_doors_is_there() -> None:
    touched = {module.name: {line.rsplit(" ", 1)[-1] for line in worldly(module)} for module in modules()}
    assert [name for name, allowed in ABOVE_THE_DOORS.items() if not allowed <= touched.get(name, set())] == []


def test_the_floors_can_fail() -> None:
    text = "import busbw.cli\nfrom busbw.base import units\nfrom . import value\nfrom .codec import decode\n"
    module = Module(name="model.moment", path=modules()[0].path, text=text, tree=ast.parse(text), is_package=False)
    assert {target for target, _ in imports(module)} == {"cli", "base.units", "model", "model.codec"}
    assert [line.rsplit(" ", 1)[-1] for line in misplaced(module)] == ["floor"]
