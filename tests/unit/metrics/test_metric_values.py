"""Metrics by their plain names."""

from __future__ import annotations

import pytest

from kclient.metrics import MetricName, MetricValues

CLIENT = (("client-id", "c"),)
TOPIC = (*CLIENT, ("topic", "t"))


def test_a_plain_name_is_that_of_the_client_and_not_of_its_topics() -> None:
    whole, part = MetricName("send-rate", "g", CLIENT), MetricName("send-rate", "tg", TOPIC)
    values = MetricValues({part: 1.0, whole: 2.0})
    assert values["send-rate"] == 2.0
    assert values[part] == 1.0
    assert values[whole] == 2.0


def test_a_name_that_only_one_topic_has_is_enough() -> None:
    assert MetricValues({MetricName("lag", "tg", TOPIC): 3.0})["lag"] == 3.0


def test_a_name_of_several_is_refused_with_all_of_them() -> None:
    values = MetricValues({MetricName("n", "g", CLIENT): 1.0, MetricName("n", "h", CLIENT): 2.0})
    with pytest.raises(KeyError, match=r"several metrics called n: g:n\[client-id=c\], h:n\[client-id=c\]"):
        values["n"]


@pytest.mark.parametrize("key", ["none", MetricName("n", "h")])
def test_a_name_of_none_is_refused(key: str | MetricName) -> None:
    with pytest.raises(KeyError, match="There is no metric"):
        MetricValues({MetricName("n", "g"): 1.0})[key]
