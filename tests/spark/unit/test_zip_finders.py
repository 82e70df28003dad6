"""Finders of zip files, dropped from Python's cache."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from kclient.spark.zip_finders import forget_zip_finders


def test_zip_files_are_not_read_again_and_can_still_be_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("zipped_first/__init__.py", "from zipped_first import inner")
        made.writestr("zipped_first/inner.py", "")
        made.writestr("zipped_first/later.py", "here = True")
    monkeypatch.syspath_prepend(str(archive))
    first = importlib.import_module("zipped_first")
    read_again: list[str] = []
    monkeypatch.setattr(zipimporter, "invalidate_caches", lambda self: read_again.append(self.archive))
    importlib.invalidate_caches()
    assert read_again.count(str(archive)) == 2
    read_again.clear()
    forget_zip_finders()
    importlib.invalidate_caches()
    assert read_again == []
    assert sys.modules["zipped_first"] is first
    assert importlib.import_module("zipped_first.later").here
