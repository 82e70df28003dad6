"""Names of a package that are imported when they are first used, on a package made for the test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = "package_with_lazy_names"
INIT = f"""
from kclient.utils.lazy import names

here = 1
__getattr__, __dir__ = names(__name__, {{
    "{PACKAGE}.home": ("Thing", "other"), "{PACKAGE}.broken": ("Lost",), "{PACKAGE}.empty": ("absent",)
}})
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    root = tmp_path / PACKAGE
    root.mkdir()
    (root / "__init__.py").write_text(INIT)
    (root / "home.py").write_text("class Thing: pass\nother = []\n")
    (root / "broken.py").write_text("import no_such_module_anywhere\n")
    (root / "empty.py").write_text("")
    (root / "__main__.py").write_text("raise AssertionError('this is a program')")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(PACKAGE)
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_nothing_is_imported_before_it_is_used(package: ModuleType) -> None:
    assert f"{PACKAGE}.home" not in sys.modules
    assert package.Thing.__module__ == f"{PACKAGE}.home"
    assert f"{PACKAGE}.home" in sys.modules
    assert f"{PACKAGE}.broken" not in sys.modules


def test_a_name_that_was_used_is_one_of_the_package_from_then_on(package: ModuleType) -> None:
    thing = package.Thing
    assert vars(package)["Thing"] is thing
    assert "other" not in vars(package)


def test_names_are_listed_once_whether_they_were_used_or_not(package: ModuleType) -> None:
    before = dir(package)
    assert {"Thing", "other", "here"} <= set(before)
    _ = package.Thing
    assert dir(package).count("Thing") == 1


def test_a_submodule_is_an_attribute_without_being_imported_first(package: ModuleType) -> None:
    assert package.home is importlib.import_module(f"{PACKAGE}.home")


def test_a_module_that_cannot_be_imported_says_why(package: ModuleType) -> None:
    for name in ("Lost", "broken"):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
            getattr(package, name)


def test_a_name_that_its_home_does_not_have_is_missed_there(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"'{PACKAGE}\.empty' has no attribute 'absent'"):
        _ = package.absent


@pytest.mark.parametrize("name", ["unknown", "__main__", "__wrapped__", ""])
def test_an_unknown_name_is_an_attribute_error(package: ModuleType, name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{PACKAGE}' has no attribute '{name}'"):
        getattr(package, name)


@pytest.mark.parametrize("name", ["no.such", "home.Thing", "home.", ".home"])
def test_a_name_with_dots_is_no_attribute(package: ModuleType, name: str) -> None:
    assert not hasattr(package, name)
