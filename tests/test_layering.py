"""Imports only go down (the Python answer to Kafka's checkstyle/import-control.xml).

FLOORS is the whole rule: a package may import floors strictly below its own; never a sibling on its own floor.
`if TYPE_CHECKING:` imports are not run-time edges; imports inside functions are (a lazy upward edge must be a
dotted string).
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "kclient"
FLOORS = [
    {"errors", "_accel"},
    {"utils"},
    {"common"},
    {"config", "metrics", "serialization", "compress"},
    {"record"},
    {"protocol"},
    {"security"},
    {"network"},
    {"client"},
    {"producer", "consumer", "admin"},
    {"aio", "broker", "observability", "processing"},
    {"spark", "legacy"},
    {"cli"},
]
RANK = {pkg: n for n, floor in enumerate(FLOORS) for pkg in floor}


def edges(root: Path):
    """Yield (importing module, line, imported top package) for every run-time import of our own package."""
    name = root.name
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        pkg = parts if path.name == "__init__.py" else parts[:-1]
        skip: set[int] = set()
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                skip |= {id(n) for b in node.body for n in ast.walk(b)}
        for node in ast.walk(tree):
            if id(node) in skip:
                continue
            if isinstance(node, ast.Import):
                targets = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = ".".join(pkg[: len(pkg) - node.level + 1]) if node.level else ""
                base = ".".join(filter(None, [base, node.module]))
                targets = [base] if base != name else [f"{base}.{a.name}" for a in node.names]
            else:
                continue
            for t in targets:
                seg = t.split(".")
                if seg[0] == name and len(seg) > 1:
                    yield parts, node.lineno, seg[1]


def violations(root: Path, rank: dict[str, int]):
    for parts, line, to in edges(root):
        frm = parts[1] if len(parts) > 1 else None
        if frm in rank and to in rank and frm != to and rank[to] >= rank[frm]:
            yield f"{'.'.join(parts)}:{line} (floor {rank[frm]} {frm}) imports {to} (floor {rank[to]})"


def test_imports_only_go_down():
    assert list(violations(ROOT, RANK)) == []


def test_every_package_has_a_floor():
    assert {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()} <= set(RANK)


def deep_imports(root: Path, package: str):
    """Yield imports from inside `package` by modules outside it, those under TYPE_CHECKING included."""
    inside = root / package
    for path in sorted(root.rglob("*.py")):
        if inside in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith(f"{root.name}.{package}."):
                    yield f"{path.relative_to(root.parent)}:{node.lineno} imports {name}"


def test_nothing_outside_imports_deeper_than_accel():
    assert list(deep_imports(ROOT, "_accel")) == []


ROOMS = {"shared": set(), "reference": {"shared"}, "native": {"shared", "reference"}}
"""The other rooms that each room of _accel may import; native takes from reference what is not worth a native form."""


def test_the_rooms_of_accel_import_in_one_direction():
    found = [
        f"{path.name}: {line.strip()}"
        for room, allowed in ROOMS.items()
        for path in sorted((ROOT / "_accel" / room).rglob("*.p*"))
        if path.suffix in {".py", ".pyi", ".pyx", ".pxi", ".pxd"}
        for line in path.read_text().splitlines()
        for other in ROOMS.keys() - allowed - {room}
        if "import" in line and f"kclient._accel.{other}" in line
    ]
    assert found == []
