"""KafkaMetric: a metric of the application's own."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_name import MetricName


@attrs.frozen
class KafkaMetric:
    """A name, and the function that is asked for the value. Immutable.

    `cumulative` is for sums that only grow, such as the number of orders taken; everything else is a value as it is
    now. The function is called by the client's I/O thread: it may not wait, and should be quick.
    """

    name: MetricName
    value: Callable[[], float]
    cumulative: bool = False

    def measure(self) -> Measurement:
        """Return the value now; NaN where the function raises."""
        try:
            value = float(self.value())
        except Exception:
            value = float("nan")
        return Measurement(self.name, value, self.cumulative)
