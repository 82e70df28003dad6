"""Measurement: the value of a metric at one moment."""

from __future__ import annotations

import attrs

from kclient.metrics.metric_name import MetricName


@attrs.frozen
class Measurement:
    """A metric with its value, NaN where there is nothing to tell. Immutable.

    `cumulative` ones are sums that only grow; the others are values as they are now.
    """

    name: MetricName
    value: float
    cumulative: bool
