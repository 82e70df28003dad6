"""Files that can be read in one sitting: one idea each, of 500 lines at most."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST = 500
SUFFIXES = {".py", ".pyx", ".pxi", ".pxd", ".pyi", ".h"}


def is_generated(path: Path) -> bool:
    """Messages are as long as Kafka's schemas, and the keywords of the constructors as many as the settings."""
    return path.name == "settings.py" or "kclient/protocol/messages" in path.parent.as_posix()


def test_no_file_is_longer_than_one_idea() -> None:
    files = [
        path
        for folder in ("kclient", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES
        and not is_generated(path.relative_to(ROOT))
        # Caches and such lie beside the sources.
        and not any(part.startswith(".") or part == "node_modules" for part in path.relative_to(ROOT).parts)
    ]
    assert len(files) > 500
    lengths = {str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > MOST} == {}
