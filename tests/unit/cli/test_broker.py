"""`kclient broker`: settings, its directory, and the signals that end it."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.broker.requests import topics
from harness.broker.wire import Wire
from harness.leaks import nothing_left_behind
from kclient.cli import broker
from kclient.errors import ConfigError

METADATA_LOG = "__cluster_metadata-0"
STOP = {signal.SIGTERM, signal.SIGINT}


class Listening(io.StringIO):
    """A standard output that calls `then` with the address, on the thread that serves, once it has been told."""

    def __init__(self, then: Callable[[str], object]) -> None:
        super().__init__()
        self.then = then

    def flush(self) -> None:
        self.then(self.getvalue().removeprefix("listening on ").strip())


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    return parser.parse_args(["--port", "0", *words])


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def run(then: Callable[[str], object], *words: str) -> int:
        monkeypatch.setattr(sys, "stdout", Listening(then))
        return broker.run(options(*words))

    return run


@pytest.fixture(autouse=True)
def _signals_stay() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert not signal.sigpending() & STOP


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGTERM]])
def test_it_serves_until_a_signal_and_takes_all_that_came(
    serve: Callable[..., int], tmp_path: Path, numbers: list[signal.Signals]
) -> None:
    seen: list[Any] = []

    def then(address: str) -> None:
        with Wire(address) as wire:
            seen.append(topics(wire))
        for number in numbers:
            signal.raise_signal(number)

    with nothing_left_behind():
        assert serve(then, "--data-dir", str(tmp_path / "data")) == 0
    assert seen == [{}]
    assert (tmp_path / "data" / METADATA_LOG).exists(), "a directory that was given stays"


def test_without_a_directory_there_is_one_for_as_long_as_it_serves(
    serve: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[Path] = []

    def then(_address: str) -> None:
        seen.extend(path / METADATA_LOG for path in tmp_path.iterdir() if (path / METADATA_LOG).exists())
        signal.raise_signal(signal.SIGTERM)

    assert serve(then) == 0
    assert [path.parent.name.startswith("kclient-broker-") for path in seen] == [True]
    assert list(tmp_path.iterdir()) == []
    assert "everything is gone when this broker stops" in capsys.readouterr().err


def test_settings_win_over_the_options_for_address_and_directory(
    serve: Callable[..., int], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'of-file'}\nnum.partitions=7\n")
    words = ["--host", "no.such.host.invalid", "--data-dir", str(tmp_path / "of-option")]
    assert serve(lambda _: signal.raise_signal(signal.SIGTERM), *words, "--command-config", str(file)) == 0
    assert (tmp_path / "of-file" / METADATA_LOG).exists()
    assert not (tmp_path / "of-option").exists()


def test_settings_of_one_listener_keep_its_name(serve: Callable[..., int], tmp_path: Path) -> None:
    jaas = 'listener.name.sasl_plaintext.plain.sasl.jaas.config=PlainLoginModule required user_a="b";'
    words = ["listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl_enabled_mechanisms=PLAIN", jaas]
    given = [word for setting in words for word in ("-X", setting)]
    stop = signal.raise_signal
    assert serve(lambda _: stop(signal.SIGTERM), "--data-dir", str(tmp_path / "d"), *given) == 0


@pytest.mark.parametrize("port", ["70000", "65536"])
def test_a_port_that_there_cannot_be_is_refused_and_signals_are_as_before(tmp_path: Path, port: str) -> None:
    with pytest.raises(ConfigError, match="listeners"):
        broker.run(options("--port", port, "--data-dir", str(tmp_path / "data")))
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_an_error_and_signals_are_as_before(
    serve: Callable[..., int], tmp_path: Path
) -> None:
    errors: list[str] = []

    def then(address: str) -> None:
        with pytest.raises(ConfigError, match=r"cannot be bound.*in use") as taken:
            broker.run(options("--port", address.rpartition(":")[2], "--data-dir", str(tmp_path / "second")))
        errors.append(str(taken.value))
        signal.raise_signal(signal.SIGTERM)

    assert serve(then, "--data-dir", str(tmp_path / "first")) == 0
    assert len(errors) == 1


def test_a_directory_that_is_in_use_is_an_error_and_its_owner_goes_on(
    serve: Callable[..., int], tmp_path: Path
) -> None:
    def then(address: str) -> None:
        with pytest.raises(Exception, match="in use by another broker"):
            broker.run(options("--data-dir", str(tmp_path)))
        with Wire(address) as wire:
            assert topics(wire) == {}
        signal.raise_signal(signal.SIGTERM)

    assert serve(then, "--data-dir", str(tmp_path)) == 0


def test_an_output_that_is_gone_stops_the_broker(serve: Callable[..., int], tmp_path: Path) -> None:
    def then(_address: str) -> None:
        raise BrokenPipeError

    with nothing_left_behind(), pytest.raises(BrokenPipeError):
        serve(then, "--data-dir", str(tmp_path))
