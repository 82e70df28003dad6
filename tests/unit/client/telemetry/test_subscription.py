from __future__ import annotations

from typing import Any

import pytest

from kclient.client.telemetry.subscription import TelemetrySubscription
from kclient.common.uuid import Uuid
from kclient.compress import CompressionType, decompress
from kclient.metrics import MetricName
from kclient.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

RATE = MetricName("record-send-rate", "producer-metrics")


def subscription(**fields: Any) -> TelemetrySubscription:
    return TelemetrySubscription.from_response(GetTelemetrySubscriptionsResponse(**fields))


def test_the_answer_says_who_the_client_is_and_what_is_wanted_of_it() -> None:
    client = Uuid.random()
    made = subscription(
        client_instance_id=client,
        subscription_id=77,
        accepted_compression_types=[4, 1],
        push_interval_ms=60_000,
        telemetry_max_bytes=1000,
        delta_temporality=True,
        requested_metrics=["org.apache.kafka.producer."],
    )
    assert made == TelemetrySubscription(
        client_instance_id=client,
        id=77,
        codecs=(CompressionType.ZSTD, CompressionType.GZIP),
        push_interval_ms=60_000,
        max_bytes=1000,
        delta=True,
        prefixes=("org.apache.kafka.producer.",),
    )


@pytest.mark.parametrize(
    ("prefixes", "wanted"),
    [
        (["*"], True),
        ([""], True),
        (["org.apache.kafka.producer.record.send.rate"], True),
        (["org.apache.kafka.consumer", "org.apache.kafka.producer.record"], True),
        (["org.apache.kafka.consumer"], False),
        (["kafka.producer"], False),
        ([], False),
    ],
)
def test_metrics_are_wanted_by_the_beginning_of_their_names(prefixes: list[str], wanted: bool) -> None:
    assert subscription(requested_metrics=prefixes).wants(RATE) is wanted


@pytest.mark.parametrize("codec", list(CompressionType))
def test_a_payload_is_compressed_as_the_broker_can_read_it(codec: CompressionType) -> None:
    used, compressed = subscription(accepted_compression_types=[99, int(codec), 1]).compressed(b"x" * 1000)

    assert used is codec
    assert decompress(codec, compressed, 10_000) == b"x" * 1000


@pytest.mark.parametrize("accepted", [[], [99, -1]])
def test_without_a_codec_in_common_a_payload_goes_as_it_is(accepted: list[int]) -> None:
    assert subscription(accepted_compression_types=accepted).compressed(b"xx") == (
        CompressionType.NONE,
        b"xx",
    )


@pytest.mark.parametrize("interval_ms", [-5, 0, 99])
def test_no_broker_makes_a_client_push_without_pause(interval_ms: int) -> None:
    assert subscription(push_interval_ms=interval_ms).push_interval_ms == 100
