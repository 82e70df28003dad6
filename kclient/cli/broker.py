"""`kclient broker`: the embedded broker as a program of its own."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from pathlib import Path

from kclient.broker import BrokerConfig, KafkaBroker
from kclient.cli.common import add_settings_arguments, error_console, given_settings, natural
from kclient.errors import ConfigError
from kclient.utils.threads import KafkaThread

_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=natural, default=9092, help="port to listen on; 0 takes a free one (default 9092)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where topics are kept (default: a temporary directory, removed at the end)",
    )
    opening = parser.add_mutually_exclusive_group()
    opening.add_argument(
        "--read-only",
        action="store_true",
        help="serve what is in DIR, which a Kafka may have written, and change nothing of it",
    )
    opening.add_argument(
        "--adopt",
        action="store_true",
        help="take over what a Kafka left in DIR: topics with their settings, groups, quotas, access rules, passwords",
    )
    add_settings_arguments(parser, "broker", "(server.properties)")


def run(options: argparse.Namespace) -> int:
    # Blocked before any thread is started, so that the signal waits until the main thread takes it. With a handler
    # the kernel may give it to another thread, and the main thread would sleep on.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        if options.data_dir is not None:
            return _serve(options, options.data_dir)
        if options.read_only or options.adopt:
            raise ConfigError(
                "--read-only and --adopt need --data-dir, the directory to open", name="--data-dir"
            )
        with tempfile.TemporaryDirectory(prefix="kclient-broker-") as directory:
            error_console().print("no --data-dir: everything is gone when this broker stops", highlight=False)
            return _serve(options, Path(directory))
    finally:
        # Asked to stop more than once: it is stopping.
        while signal.sigtimedwait(_STOP_SIGNALS, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(options: argparse.Namespace, directory: Path) -> int:
    settings = given_settings(options)
    settings.setdefault("listeners", f"PLAINTEXT://{options.host}:{options.port}")
    settings.setdefault("log.dirs", str(directory))
    if options.read_only:
        settings["kclient.read.only"] = "true"
    if options.adopt:
        settings["kclient.adopt.topics"] = "true"
    broker = KafkaBroker(BrokerConfig.parse(settings))

    def tell_where() -> None:
        host, port = broker.address
        print(f"listening on {host}:{port}", flush=True)

    broker.start(tell_where)
    if broker.adoption is not None:
        error_console().print(str(broker.adoption), highlight=False, markup=False)

    def end_with_it() -> None:
        broker.await_shutdown()
        if broker.failure is not None:
            os.kill(os.getpid(), signal.SIGTERM)

    watch = KafkaThread("watch", end_with_it)
    watch.start()
    try:
        signal.sigwait(_STOP_SIGNALS)
    finally:
        broker.stop()
        watch.join()
    if broker.failure is not None:
        raise broker.failure
    return 0
