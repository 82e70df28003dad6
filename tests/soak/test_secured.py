"""A broker that clients reach over SASL_SSL alone, with tokens that end, certificates that change, and restarts."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from harness.network.certificates import Authority
from harness.network.identity_provider import IdentityProvider, identity_provider
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import SHORT_LIVED, missing
from harness.requirements import skip_if
from harness.soak.load import Load
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.consumer import KafkaConsumer

_JAVA = "org.apache.kafka.common.security.oauthbearer"
_TOKEN_S = 30
_PARTITIONS = 3


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
    """A group's only member; counts how often it has read each value."""

    def __init__(self, topic: str, settings: dict[str, object]) -> None:
        super().__init__(name="reader", daemon=True)
        self.read: Counter[bytes] = Counter()
        self.error: BaseException | None = None
        self._topic = topic
        self._settings = settings
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings, group_id="readers", auto_offset_reset="earliest") as consumer:
                consumer.subscribe([self._topic])
                while not self._stopping.is_set():
                    self.read.update(record.value for record in consumer.poll(200))
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
    caplog.set_level(logging.DEBUG, "kclient.client.node_connections")
    with (
        identity_provider(lifetime_s=token_s) as provider,
        secured_broker(provider, certificates) as broker,
    ):
        topic = new_topic(broker.bootstrap_servers, _PARTITIONS)
        settings = _client_settings(broker, provider, certificates)
        loads = [
            Load(
                str(settings["bootstrap.servers"]), topic, name, per_s=100, alone=name == "alone", **settings
            )
            for name in ("one", "two", "alone")
        ]
        reader = Reader(topic, settings)
        restarts = 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            # Time for several sessions, so that they are renewed in peace, too.
            _pause(min(rng.uniform(1, 4) * token_s, ends - time.monotonic()))
            certificates.renew(lambda: _restart(broker, rng))
            restarts += 1
        for load in loads:
            load.stop()
        acked = {value for load in loads for value in load.acked}
        wait_until(lambda: reader.error or acked <= reader.read.keys(), 120, "everything read")
        reader.stop()
        log = [record.value for record in read_all(broker.bootstrap_servers, topic)]
    renewed = sum("Authenticated again" in record.getMessage() for record in caplog.records)
    print(
        f"{len(acked)} records, {restarts} restarts, {len(provider.requests)} tokens, {renewed} sessions renewed"
    )
    problems = [f"thread: {each.error!r}" for each in (*loads, reader) if each.error is not None]
    problems += [f"failed: {value!r}: {error}" for load in loads for value, error in load.failed.items()]
    problems += [f"lost: {value!r}" for value in acked - set(log)]
    problems += [f"twice: {value!r}" for value, count in Counter(log).items() if count > 1]
    problems += [f"unread: {value!r}" for value in acked - reader.read.keys()]
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
