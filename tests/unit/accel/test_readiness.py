"""The choice between selectors2 and the standard library's selectors, and what it leaves behind."""

from __future__ import annotations

import collections
import importlib.util
import selectors
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kclient._accel.shared import readiness


def loaded_anew() -> Any:
    """The module as a process has it that imports it now; nobody else gets to see that."""
    spec = importlib.util.spec_from_file_location("readiness_anew", readiness.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def replaced(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> None:
    monkeypatch.setitem(sys.modules, "selectors2", module)  # type: ignore[arg-type]


def test_without_selectors2_the_standard_library_selects(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, None)
    found = loaded_anew()
    assert found.DefaultSelector is selectors.DefaultSelector
    assert (found.EVENT_READ, found.EVENT_WRITE) == (selectors.EVENT_READ, selectors.EVENT_WRITE)


def test_a_selectors2_that_lacks_something_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, ModuleType("selectors2"))
    assert loaded_anew().DefaultSelector is selectors.DefaultSelector


@pytest.mark.parametrize(
    ("line", "outcome"), [("collections.NoSuchName", "passed over"), ("1 / 0", ZeroDivisionError)]
)
def test_a_selectors2_that_this_python_is_too_new_for_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, outcome: Any
) -> None:
    (tmp_path / "selectors2.py").write_text(f"import collections\n{line}\n")
    monkeypatch.delitem(sys.modules, "selectors2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    if outcome == "passed over":
        assert loaded_anew().DefaultSelector is selectors.DefaultSelector
    else:
        with pytest.raises(outcome):
            loaded_anew()
    assert not hasattr(collections, "Mapping")


def test_mapping_is_lent_to_collections_while_selectors2_is_imported_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []

    class Asking(ModuleType):
        def __getattr__(self, name: str) -> object:
            seen.append(collections.Mapping)  # type: ignore[attr-defined]
            return getattr(selectors, name)

    replaced(monkeypatch, Asking("selectors2"))
    loaded_anew()
    assert set(seen) == {Mapping}
    assert not hasattr(collections, "Mapping")


def test_a_mapping_that_is_there_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = object()
    monkeypatch.setattr(collections, "Mapping", own, raising=False)
    replaced(monkeypatch, None)
    loaded_anew()
    assert collections.Mapping is own  # type: ignore[attr-defined]
