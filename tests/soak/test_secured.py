"""A broker that clients reach over SASL_SSL alone, with tokens that end, certificates that change, and restarts."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from harness.checker.history import Place
from harness.checker.loader import load as load_history
from harness.checker.log import ConsumerLog, HistoryLog
from harness.checker.report import check
from harness.network.certificates import Authority
from harness.network.identity_provider import IdentityProvider, identity_provider
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import SHORT_LIVED, missing
from harness.requirements import skip_if
from harness.soak.load import Load
from harness.soak.recorded import RecordingListener, end_of, read_to_end, write_poll
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.consumer import KafkaConsumer

_JAVA = "org.apache.kafka.common.security.oauthbearer"
_TOKEN_S = 30
_PARTITIONS = 3
_GROUP = "readers"


@attrs.define(eq=False)
class Certificates:
    """The files of broker and clients, which are written anew when an authority is followed by another one."""

    directory: Path
    trusted: Path = attrs.field(init=False)
    broker: Path = attrs.field(init=False)
    client: Path = attrs.field(init=False)
    _last: Authority | None = None
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        self.trusted, self.broker, self.client = (
            self.directory / f"{name}.pem" for name in ("trusted", "broker", "client")
        )
        self.renew(lambda: None)

    def renew(self, restart: Callable[[], None]) -> None:
        """Trust one more authority, have the broker show what that has signed, and after it the clients."""
        self._count += 1
        home = self.directory / f"authority-{self._count}"
        home.mkdir()
        new = Authority(home)
        _replace(self.trusted, new.pem + ("" if self._last is None else self._last.pem))
        _replace(self.broker, new.issue("127.0.0.1").read_text())
        restart()
        _replace(self.client, new.issue("client").read_text())
        self._last = new


class Reader(threading.Thread):
    """A group's only member; writes down what it reads."""

    def __init__(self, topic: str, log: ConsumerLog, settings: dict[str, object]) -> None:
        super().__init__(name="reader", daemon=True)
        self.ends: dict[Place, int] = {}
        """Partition -> the offset after the last record that was read."""
        self.error: BaseException | None = None
        self._topic = topic
        self._log = log
        self._settings = settings
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings, group_id=_GROUP, auto_offset_reset="earliest") as consumer:
                consumer.subscribe([self._topic], listener=RecordingListener(self._log))
                while not self._stopping.is_set():
                    records = consumer.poll(200)
                    write_poll(self._log, records)
                    for tp, batch in records.by_partition().items():
                        self.ends[Place(*tp)] = batch[-1].offset + 1
            self._log.closed()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)


@pytest.mark.soak(seconds=3600)
def test_nothing_is_lost_where_tokens_end_certificates_change_and_the_broker_restarts(
    seconds: float,
    rng: random.Random,
    verdict: Callable[[list[str]], None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    skip_if(missing())
    token_s = _TOKEN_S if seconds > 4 * _TOKEN_S else max(int(seconds / 3), 4)
    certificates = Certificates(tmp_path)
    path = tmp_path / "history.jsonl"
    history = HistoryLog.at(path)
    caplog.set_level(logging.DEBUG, "kclient.client.node_connections")
    with (
        identity_provider(lifetime_s=token_s) as provider,
        secured_broker(provider, certificates) as broker,
    ):
        topic = new_topic(broker.bootstrap_servers, _PARTITIONS)
        settings = _client_settings(broker, provider, certificates)
        servers = str(settings["bootstrap.servers"])
        loads = [
            Load(servers, topic, name, history, per_s=100, alone=name == "alone", **settings)
            for name in ("one", "two", "alone")
        ]
        reader = Reader(topic, history.consumer("reader", group=_GROUP, auto_commit=True), settings)
        restarts = 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            # Time for several sessions, so that they are renewed in peace, too.
            _pause(min(rng.uniform(1, 4) * token_s, ends - time.monotonic()))
            certificates.renew(lambda: _restart(broker, rng))
            restarts += 1
        for load in loads:
            load.stop()
        ended, there = history.now(), end_of(broker.bootstrap_servers, topic)
        wait_until(lambda: reader.error or reader.ends == there, 120, "everything read")
        history.at_end(_GROUP, list(there), at=ended)
        reader.stop()
        read_to_end(broker.bootstrap_servers, topic, history)
    renewed = sum("Authenticated again" in record.getMessage() for record in caplog.records)
    print(
        f"{sum(load.acked for load in loads)} records, {restarts} restarts, {len(provider.requests)} tokens, "
        f"{renewed} sessions renewed"
    )
    problems = [f"thread: {each.error!r}" for each in (*loads, reader) if each.error is not None]
    problems += [problem for load in loads for problem in load.recorded.problems]
    told = load_history(path)
    problems += [f"failed: {send}" for send in told.sends if send.outcome != "ok"]
    problems += [str(anomaly) for anomaly in check(told)]
    if not renewed:
        problems.append("renewed: no session was")
    verdict(problems)


@contextmanager
def secured_broker(provider: IdentityProvider, certificates: Certificates) -> Iterator[RealKafka]:
    """A broker whose listener SECURED wants a certificate and a token of the provider."""
    listener = "listener.name.secured."
    oauth = f"{listener}oauthbearer.sasl."
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{oauth}jaas.config": f"{_JAVA}.OAuthBearerLoginModule required;",
        f"{oauth}server.callback.handler.class": f"{_JAVA}.OAuthBearerValidatorCallbackHandler",
        f"{oauth}oauthbearer.jwks.endpoint.url": provider.jwks_url,
        f"{oauth}oauthbearer.expected.audience": provider.audience,
        f"{oauth}oauthbearer.expected.issuer": provider.issuer,
        f"{oauth}oauthbearer.clock.skew.seconds": "0",
        f"{listener}ssl.keystore.type": "PEM",
        f"{listener}ssl.keystore.location": str(certificates.broker),
        f"{listener}ssl.truststore.type": "PEM",
        f"{listener}ssl.truststore.location": str(certificates.trusted),
        f"{listener}ssl.client.auth": "required",
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.jwks_url}"
    with RealKafka(
        listeners={"SECURED": "SASL_SSL"}, settings=settings, java=[*SHORT_LIVED, allowed]
    ) as broker:
        yield broker


def _client_settings(
    broker: RealKafka, provider: IdentityProvider, certificates: Certificates
) -> dict[str, object]:
    return {
        "bootstrap.servers": f"127.0.0.1:{broker.ports['SECURED']}",
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(certificates.trusted),
        "ssl.keystore.location": str(certificates.client),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "kclient.sasl.oauthbearer.allowed.urls": provider.token_url,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "secret",
        "reconnect.backoff.max.ms": 500,
    }


def _restart(broker: RealKafka, rng: random.Random) -> None:
    (broker.kill if rng.random() < 0.3 else broker.stop)()
    broker.start()


def _pause(seconds: float) -> None:
    threading.Event().wait(max(seconds, 0))


def _replace(path: Path, text: str) -> None:
    """Write a file that is never seen half written."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(text)
    os.replace(fresh, path)
