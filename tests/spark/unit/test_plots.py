"""Pictures of pipelines: PNG files with what they were given, or a line about why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.spark.pipelines import plots
from kclient.spark.pipelines.plots import Picture

NOON_MS = 1_735_732_800_000
WINDOWS = [
    (NOON_MS + 300_000 * number, name, number + 1) for number in range(4) for name in ("bread", "eggs")
]


def picture() -> Picture:
    made = Picture("Orders")
    made.over_time("orders in windows", "orders", 300_000, WINDOWS)
    made.lines("lag", "records behind", [(NOON_MS + 1000, "events", 0), (NOON_MS, "events", 700)])
    made.bars("dead letters", "records", [(f"reason {number}" * 9, number) for number in range(15)])
    return made


def test_a_picture_is_a_png_in_a_folder_that_is_made(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[plot]')")
    path = tmp_path / "new" / "orders.png"
    assert picture().save(path) == f"picture: {path}"
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(data) > 10_000


def test_nothing_to_show_makes_a_picture_too(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[plot]')")
    empty = Picture("Orders").over_time("o", "o", 1, []).lines("l", "l", []).bars("b", "b", [])
    assert empty.save(tmp_path / "empty.png").startswith("picture: ")


def test_without_matplotlib_a_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda _name: None)
    assert "pip install 'kclient-kafka[plot]'" in picture().save(tmp_path / "orders.png")
    assert not list(tmp_path.iterdir())


def test_no_file_is_written_where_the_output_is_not_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: name)
    assert picture().save("s3a://bucket/orders.png") == "no picture: s3a://bucket/orders.png is no local file"
