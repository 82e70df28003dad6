"""A docstring begins with a verb or a noun: it says what the thing is or does, and never asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REFUSED = ("how", "what", "whatever", "when", "where", "whether", "which", "who", "whoever", "whose", "why")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every string that stands alone: those of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, text


def first_word(text: str) -> str:
    """The first word in lower case. A name in backticks keeps them: an argument may be called `what`."""
    words = text.split(maxsplit=1)
    return words[0].strip(".,:;'\"()").lower() if words else ""


def asking(source: str) -> list[tuple[int, str]]:
    """Line and text of the docstrings that begin with a word of a question."""
    return [(line, text) for line, text in docstrings(ast.parse(source)) if first_word(text) in REFUSED]


def asking_in_cython(source: str) -> list[tuple[int, str]]:
    """The same for Cython, which Python cannot parse: every text in triple quotes counts as a docstring."""
    found = [(m.start(), m[1]) for m in re.finditer(r'"""(.*?)"""', source, re.DOTALL)]
    return [(source.count("\n", 0, at) + 1, text) for at, text in found if first_word(text) in REFUSED]


READERS = {
    **dict.fromkeys((".py", ".pyi"), asking),
    **dict.fromkeys((".pyx", ".pxi", ".pxd"), asking_in_cython),
}


@pytest.mark.parametrize("folder", ["kclient", "benchmarks", "tests", "examples"])
def test_docstrings_begin_with_a_verb_or_a_noun(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*.p*")) if path.suffix in READERS]
    assert paths, f"{folder} has no modules"
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip().splitlines()[0]}"
        for path in paths
        for line, text in READERS[path.suffix](path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        '"""What this does."""',
        'class A:\n    """Who calls."""',
        'def f():\n    """Whether it is."""',
        'async def f():\n    """\n    How many.\n    """',
        'LIMIT = 1\n"""Why."""',
        'class A:\n    limit: int\n    """When it ends."""',
        'class A:\n    def __init__(self):\n        self.limit = 1\n        """Which one."""',
        'if True:\n    LIMIT = 1\n    """Where: here."""',
    ],
    ids=[
        "module",
        "class",
        "function",
        "coroutine",
        "constant",
        "field",
        "instance attribute",
        "in a branch",
    ],
)
def test_every_kind_of_docstring_is_looked_at(source):
    assert len(asking(source)) == 1


@pytest.mark.parametrize(
    "text", ["Return what is left.", "The size.", "`what` in red.", "Whole frames.", "Whereabouts.", ""]
)
def test_other_beginnings_are_fine(text):
    assert asking(f'"""{text}"""') == []


def test_docstrings_of_cython_are_looked_at():
    source = (
        'cdef int a():\n    """Return a."""\n\ncdef object b(bint c):\n    """\n    Whether c.\n    """\n'
    )
    assert [line for line, _ in asking_in_cython(source)] == [5]
