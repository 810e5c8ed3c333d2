"""A module is one concept, whole: neither so long that it hides a second one, nor a fragment of another module."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from .tree import Module, imports, modules

MOST_LINES_OF_A_MODULE = 600
# Below this a module with one importer belongs into it, unless its docstring says why it stands alone.
LEAST_LINES_OF_A_MODULE = 60
REASON = "Alone because "
MOST_LINES_OF_A_FUNCTION = 60
MOST_MODULES_OF_A_FOLDER = 25


def importers() -> dict[str, set[str]]:
    found = defaultdict(set)
    for module in modules():
        for target, _ in imports(module):
            found[target].add(module.name)
    return found


def long_functions(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[0] if ast.get_docstring(node) is not None else None
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if docstring is not None:
                lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield f"{module.where}:{node.lineno} {node.name}: {lines} lines"


def fragments(found: tuple[Module, ...], by: dict[str, set[str]]) -> list[str]:
    return [
        f"{module.where}: {module.text.count(chr(10))} lines, imported by {next(iter(by[module.name]))} alone"
        for module in found
        if not module.is_package
        and module.text.count("\n") < LEAST_LINES_OF_A_MODULE
        and len(by[module.name]) == 1
        and REASON not in (ast.get_docstring(module.tree) or "")
    ]


def test_no_module_is_so_long_that_it_hides_a_second_concept() -> None:
    lengths = [(module.text.count("\n"), module.where) for module in modules()]
    assert [each for each in lengths if each[0] > MOST_LINES_OF_A_MODULE] == []


def test_no_module_is_a_fragment_of_its_only_importer() -> None:
    assert fragments(modules(), importers()) == []


def test_a_fragment_is_found() -> None:
    text = '"""A part."""\n'
    part = Module(name="show.part", path=modules()[0].path, text=text, tree=ast.parse(text), is_package=False)
    assert fragments((part,), {"show.part": {"show.whole"}}) != []
    reasoned = text.replace("part.", "part. Alone because a rank loads it by itself.")
    alone = Module(name="show.part", path=part.path, text=reasoned, tree=ast.parse(reasoned), is_package=False)
    assert fragments((alone,), {"show.part": {"show.whole"}}) == []


def test_a_folder_can_be_read_at_one_look() -> None:
    folders = Counter(module.path.parent for module in modules())
    assert {str(folder): number for folder, number in folders.items() if number > MOST_MODULES_OF_A_FOLDER} == {}


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{module.where}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_a_function_is_at_most_60_lines_without_its_docstring() -> None:
    assert [each for module in modules() for each in long_functions(module)] == []
