"""The file map of docs/design.md is true: what it names is there, and every package has its place and its floor."""

from __future__ import annotations

import re
from pathlib import Path

from test_layering import RANK

ROOT = Path(__file__).parent.parent
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
SOURCES = {".py", ".pyi", ".pyx", ".pxi", ".pxd"}


def file_map(text: str) -> dict[str, str]:
    """Text of each path under kclient/; a path begins with the folders that it is indented under."""
    block = re.search(r"^## File map$.*?^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None, "docs/design.md has no file map"
    found: dict[str, str] = {}
    folders: list[str] = []
    for line in block[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, said = line.strip().partition(" ")
        folders[depth:] = [name]
        found["".join(folders)] = said.strip()
    return found


def test_every_path_in_the_file_map_exists_and_something_is_said_of_it() -> None:
    found = file_map(DESIGN)
    assert [path for path in found if not (ROOT / "kclient" / path).exists()] == []
    assert [path for path, said in found.items() if not said] == []


def test_every_package_is_in_the_file_map() -> None:
    folders = {path.parent for path in (ROOT / "kclient").rglob("*") if path.suffix in SOURCES}
    names = {f"{path.relative_to(ROOT / 'kclient')}/" for path in folders if path != ROOT / "kclient"}
    assert names - file_map(DESIGN).keys() == set()


def test_the_file_map_says_the_floors_that_imports_are_held_to() -> None:
    said = {
        path.rstrip("/"): int(floor[1])
        for path, text in file_map(DESIGN).items()
        if (floor := re.match(r"floor (\d+)", text))
    }
    assert said == {package: RANK[package] for package in said}
    assert {path.rstrip("/") for path in file_map(DESIGN) if path.count("/") == 1 and path[-1] == "/"} == set(
        said
    )


def test_every_other_path_that_is_named_exists() -> None:
    """Paths in backticks may begin at the root, at kclient/ or at a package of it; NAME stands for any."""
    named = set(re.findall(r"`([\w./*-]+/[\w.*-]*\.(?:py|pyx|md|json|toml))`", DESIGN))
    assert named
    roots = [ROOT, ROOT / "kclient", *(ROOT / "kclient").glob("*/")]
    assert [
        path for path in sorted(named) if not any(any(root.glob(path.replace("NAME", "*"))) for root in roots)
    ] == []


def test_no_line_but_those_of_tables_is_wider_than_the_code() -> None:
    lines = enumerate(DESIGN.splitlines(), 1)
    assert [number for number, line in lines if len(line) > 120 and not line.startswith("|")] == []
