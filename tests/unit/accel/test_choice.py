"""The choice of the body that runs the hot path, and what it does without hooks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kclient._accel as accel
from kclient._accel.shared.hooks import Hooks


def choose(wanted: str | None, before: str = "pass") -> subprocess.CompletedProcess[str]:
    """A process that imports the package with KCLIENT_IMPL set to `wanted`, and says which body runs."""
    environment = {name: value for name, value in os.environ.items() if name != "KCLIENT_IMPL"}
    if wanted is not None:
        environment["KCLIENT_IMPL"] = wanted
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; {before}; import kclient._accel as a; print(a.IMPL, a.Future.__module__)",
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


_WITHOUT_NATIVE = "sys.modules['kclient._accel.native'] = None"


def test_the_reference_body_is_there_for_the_asking() -> None:
    assert choose("python").stdout.split() == ["python", "kclient._accel.reference.future"]


def test_asking_for_a_body_that_is_missing_says_so() -> None:
    run = choose("c", _WITHOUT_NATIVE)
    assert run.returncode != 0
    assert "ImportError: KCLIENT_IMPL=c asks for the native body of kclient, but this build" in run.stderr


def test_asking_for_a_body_that_does_not_exist_says_so() -> None:
    run = choose("rust")
    assert run.returncode != 0
    assert "ImportError: KCLIENT_IMPL='rust': the bodies of kclient are named python and c" in run.stderr


def test_the_native_body_is_there_for_the_asking() -> None:
    pytest.importorskip("kclient._accel.native", reason="the native body is not built")
    assert choose("c").stdout.split() == ["c", "kclient._accel.native.batch"]
    assert choose(None).stdout.split() == ["c", "kclient._accel.native.batch"]


def test_where_the_native_body_is_missing_the_other_one_runs_if_none_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "kclient._accel.native", None)
    monkeypatch.setattr(accel, "_extensions", list)
    assert accel._choose(None) == accel._choose("") == "python"


def test_a_native_body_that_was_built_and_cannot_be_imported_is_warned_of_once() -> None:
    pytest.importorskip("kclient._accel.native", reason="the native body is not built")
    run = choose(None, "sys.modules['kclient._accel.native.poller'] = None")
    assert run.stdout.split() == ["python", "kclient._accel.reference.future"], run.stderr
    [warning] = [line for line in run.stderr.splitlines() if "Warning" in line]
    assert (
        "RuntimeWarning: kclient runs in Python alone, which is slower: its native body was built" in warning
    )
    assert "poller." in warning
    assert "cannot be imported: import of kclient._accel.native.poller halted" in warning
    assert choose("python", _WITHOUT_NATIVE).stderr == ""


def test_without_the_interpreter_lock_the_reference_body_runs() -> None:
    without_lock = "sys._is_gil_enabled = lambda: False"
    run = choose(None, without_lock)
    assert run.stdout.split() == ["python", "kclient._accel.reference.future"], run.stderr
    assert run.stderr == ""
    asked = choose("c", without_lock)
    assert asked.returncode != 0
    assert "ImportError: KCLIENT_IMPL=c asks for the native body of kclient, which needs the" in asked.stderr


def test_with_the_interpreter_lock_the_native_body_runs() -> None:
    pytest.importorskip("kclient._accel.native", reason="the native body is not built")
    run = choose(None, "sys._is_gil_enabled = lambda: True")
    assert run.stdout.split() == ["c", "kclient._accel.native.batch"], run.stderr


def test_without_hooks_it_raises_builtin_errors_and_knows_neither_codecs_nor_old_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in Hooks.__slots__:
        monkeypatch.setattr(accel.hooks, name, getattr(Hooks(), name))
    result = accel.BatchResult("t", 0)
    builder = accel.BatchBuilder("t", 0, 1000, result, 0)
    future = builder.append(1, None, b"v", None)
    assert future is not None
    with pytest.raises(TimeoutError) as timeout:
        future.result(0)
    assert type(timeout.value) is TimeoutError
    builder.close(-1, -1, -1, 1)
    compressed = b"".join(builder.views())
    legacy = compressed[:16] + b"\1" + compressed[17:]
    for data, what in ((compressed, "codec 1"), (legacy, "magic 0 and 1")):
        reader = accel.RecordReader(data, 0, len(data), "t", 0, 0, False, object)
        with pytest.raises(ValueError, match=what):
            reader.read(1)


def test_every_hook_has_a_default() -> None:
    hooks = Hooks()
    functions = [name for name in Hooks.__slots__ if name != "data_errors"]
    assert all(callable(getattr(hooks, name)) for name in functions)
    assert ValueError in hooks.data_errors
    error = hooks.undecodable_error("t", 0, 7, "key", 1, 0, b"", b"", ())
    assert "key" in str(error)
    assert "7" in str(error)


def test_the_exported_names_are_there() -> None:
    assert all(hasattr(accel, name) for name in accel.__all__)
