"""Modules and functions stay small enough to be read at once."""

import ast

import pytest

from .tree import Module, modules

MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 60


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.where)
def test_a_module_is_at_most_400_lines(module: Module) -> None:
    assert module.text.count("\n") <= MOST_LINES_OF_A_MODULE


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.where)
def test_a_function_is_at_most_60_lines_without_its_docstring(module: Module) -> None:
    long = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[0] if ast.get_docstring(node) is not None else None
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if docstring is not None:
                lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                long.append(f"{module.where}:{node.lineno} {node.name}: {lines} lines")
    assert not long
