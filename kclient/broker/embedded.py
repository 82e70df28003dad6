"""EmbeddedKafka: a broker inside the program, for tests, examples and trying things out.

    with EmbeddedKafka() as kafka:
        producer = KafkaProducer({"bootstrap.servers": kafka.bootstrap_servers})

Clients can also name one: `bootstrap.servers=embedded://NAME` starts a broker at its first use, once in a
process for each name, and stops it at exit. `embedded:///path` does the same with the data kept in a
directory.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kclient._accel import in_forked_children
from kclient.broker.config import BrokerConfig
from kclient.broker.embedded_security import EmbeddedSecurity
from kclient.broker.kafka_broker import KafkaBroker
from kclient.errors import ConfigError, IllegalStateError
from kclient.metrics import Measurement, MetricValues
from kclient.utils.exit_order import ExitStage, at_exit
from kclient.utils.fork import ForkGuard

_SCHEME = "embedded://"
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,100}")
_DEFAULTS: Mapping[str, object] = {
    # A program that starts its own broker starts the members of its groups as well, and waits for them.
    "group.initial.rebalance.delay.ms": 0,
}


class EmbeddedKafka:
    """A broker on a free port of the loopback interface.

    Its data is in a temporary directory, removed by `close`, or in `data_dir`, which stays. Settings are
    those of `BrokerConfig`, dotted in the mapping or underscored as keywords. Thread-safe. In a forked child
    it cannot be used, and `stop` and `close` do nothing. With `read_only` the data in `data_dir`, which a Kafka may
    have written, is served as it is, and nothing of it is changed.

    With `security`, a security protocol such as "SASL_SSL", it asks its clients who they are: by SASL (PLAIN) for
    one of the `users` with their passwords, by TLS with certificates that it makes (with the package cryptography, of
    the extra `testing`). `client_settings` has what clients need for that.

    With `super_users`, users as they are named for `client_settings`, these may do everything, and all others what
    access rules (ACLs) allow. Without it everybody may do everything.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        data_dir: str | Path | None = None,
        read_only: bool = False,
        security: str = "PLAINTEXT",
        users: Mapping[str, str] | None = None,
        super_users: Collection[str] | None = None,
        **settings: object,
    ) -> None:
        self._settings = _merged(config or {}, settings)
        if read_only:
            if data_dir is None and "log.dirs" not in self._settings:
                raise ConfigError("read_only needs a data_dir that is there", name="data_dir")
            self._settings["kclient.read.only"] = True
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._lock = threading.RLock()
        self._fork_guard = ForkGuard("The embedded broker")
        self._broker: KafkaBroker | None = None
        self._port = 0
        self._remove: weakref.finalize[[Path, int], EmbeddedKafka] | None = None
        self._security = EmbeddedSecurity(security, users or {}, super_users)
        if security != "PLAINTEXT" and "listeners" in self._settings:
            raise ConfigError("security and listeners say the same; give one of them", name="listeners")
        if super_users is not None:
            for name in ("authorizer.class.name", "super.users"):
                if name in self._settings:
                    raise ConfigError(f"super_users and {name} say the same; give one of them", name=name)
        if data_dir is not None and "log.dirs" in self._settings:
            raise ConfigError("data_dir and log.dirs say the same; give one of them", name="log.dirs")

    @property
    def bootstrap_servers(self) -> str:
        """Value of clients' `bootstrap.servers`. Raises IllegalStateError while the broker does not run."""
        self._fork_guard.check()
        broker = self._broker
        if broker is None:
            raise IllegalStateError(
                "The embedded broker is not running: use it in a with block, or call start()"
            )
        return broker.bootstrap_servers

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings of a client of the broker, `bootstrap.servers` among them.

        It comes as `user`: with SASL one of the users, the first if none is given; with TLS alone whoever a
        certificate is made for. Raises ConfigError for a user that is not known, and IllegalStateError while the broker
        does not run.
        """
        with self._lock:
            return {"bootstrap.servers": self.bootstrap_servers, **self._security.client_settings(user)}

    @property
    def data_dir(self) -> Path | None:
        """The directory of the data; None before the first `start` of one with a temporary directory."""
        return self._data_dir

    @property
    def running(self) -> bool:
        """True between `start` and `stop`."""
        return self._broker is not None

    def start(self) -> Self:
        """Start the broker; after a `stop` on the same port and with the same data. Does nothing if it runs.

        Raises ConfigError for settings that are not valid, and as `KafkaBroker.start` does.
        """
        self._fork_guard.check()
        with self._lock:
            if self._broker is None:
                broker = KafkaBroker(BrokerConfig.parse(self._with_place()))
                broker.start()
                self._port = broker.endpoints[0].port
                self._broker = broker
        return self

    def stop(self) -> None:
        """Stop the broker; its data stays until `close`. Idempotent."""
        if self._fork_guard.forked:
            return
        with self._lock:
            broker, self._broker = self._broker, None
            if broker is not None:
                broker.stop()

    def restart(self) -> None:
        """Stop and start again."""
        with self._lock:
            self.stop()
            self.start()

    def close(self) -> None:
        """Stop the broker and remove its temporary directory. Idempotent."""
        if self._fork_guard.forked:
            return
        with self._lock:
            self.stop()
            self._security.close()
            if self._remove is not None:
                self._remove()
                self._remove = None
                self._data_dir = None

    def metrics(self) -> MetricValues:
        """Return the metrics of the broker, under the names of Kafka's JMX; nothing while it does not run."""
        return MetricValues.of(self.measurements())

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now, as the exporters of `kclient.observability` want them."""
        broker = self._broker
        return [] if broker is None else broker.measurements()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _with_place(self) -> dict[str, object]:
        settings = {**_DEFAULTS, **self._security.broker_settings(), **self._settings}
        if "log.dirs" not in settings:
            if self._data_dir is None:
                self._data_dir = Path(tempfile.mkdtemp(prefix="kclient-broker-"))
                self._remove = weakref.finalize(self, _remove_directory, self._data_dir, os.getpid())
            settings["log.dirs"] = [str(self._data_dir)]
        if "listeners" not in self._settings:
            settings["listeners"] = f"{self._security.protocol}://127.0.0.1:{self._port}"
        return settings


def resolve(url: str) -> list[str]:
    """The addresses of the broker that `url` names, started if it does not run. Thread-safe.

    `embedded://NAME` is a broker with temporary storage, `embedded:///path` one with its data in that
    directory. Raises ConfigError for any other form, and as `EmbeddedKafka.start` does.
    """
    name, data_dir = _parse(url)
    key = name if data_dir is None else str(data_dir)
    with _registry.lock:
        kafka = _registry.brokers.get(key)
        if kafka is None:
            kafka = EmbeddedKafka(data_dir=data_dir).start()
            _registry.brokers[key] = kafka
        return kafka.bootstrap_servers.split(",")


class _Registry:
    """The brokers of this process that were started by name."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.brokers: dict[str, EmbeddedKafka] = {}


_registry = _Registry()


def _forget_in_child() -> None:
    # The parent's brokers are not ours, and its lock may have been held by a thread that is not here.
    global _registry
    _registry = _Registry()


def _close_all() -> None:
    for kafka in list(_registry.brokers.values()):
        kafka.close()


in_forked_children(_forget_in_child)
at_exit(ExitStage.BROKERS, _close_all)


def _parse(url: str) -> tuple[str, Path | None]:
    rest = url.removeprefix(_SCHEME)
    if url.startswith(_SCHEME) and rest.startswith("/") and rest.strip("/"):
        return "", Path(rest).resolve()
    if url.startswith(_SCHEME) and _NAME.fullmatch(rest):
        return rest, None
    raise ConfigError(
        f"bootstrap.servers: {url!r} names no embedded broker: write embedded://NAME or embedded:///PATH",
        name="bootstrap.servers",
    )


def _merged(config: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for source in (config, settings):
        for given, value in source.items():
            name = given if "." in given else given.replace("_", ".")
            if name in merged:
                raise ConfigError(f"{name} is given twice; remove one of the two", name=name)
            merged[name] = value
    return merged


def _remove_directory(path: Path, owner_pid: int) -> None:
    # A forked child runs this at its exit, too.
    if os.getpid() == owner_pid:
        shutil.rmtree(path, ignore_errors=True)
