"""`.ci/with_progress.py` says that a silent command goes on, and ends with its code."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "with_progress.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("with_progress", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_silent_command_is_told_of_until_it_ends(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "_SILENCE_S", 0.05)
    program = "import time; print('Building wheel', flush=True); time.sleep(0.5); print('done'); raise SystemExit(3)"
    assert script.main([sys.executable, "-c", program]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "    0 s, still at: Building wheel" in lines
    assert lines[-1] == "done"
