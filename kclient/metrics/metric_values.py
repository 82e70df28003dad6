"""MetricValues: the metrics of a client at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from kclient.metrics.measurement import Measurement
from kclient.metrics.metric_name import MetricName


class MetricValues(dict[MetricName, float]):
    """Values by MetricName, and by plain name: `metrics()["record-send-rate"]`.

    A plain name is that of the client as a whole, without a node, topic or partition. Raises KeyError that says which
    metrics there are if none or several of that name are.
    """

    @classmethod
    def of(cls, measurements: Iterable[Measurement]) -> Self:
        """Return the values of the measurements."""
        return cls((each.name, each.value) for each in measurements)

    if TYPE_CHECKING:

        def __getitem__(self, key: MetricName | str) -> float: ...

    def __missing__(self, key: object) -> float:
        named = [name for name in self if name.name == key]
        of_client = [name for name in named if all(tag == "client-id" for tag, _ in name.tags)] or named
        if len(of_client) == 1:
            return super().__getitem__(of_client[0])
        if named:
            raise KeyError(f"There are several metrics called {key}: {', '.join(sorted(map(str, named)))}")
        raise KeyError(f"There is no metric {key}")
