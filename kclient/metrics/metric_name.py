"""MetricName: what identifies a metric."""

from __future__ import annotations

import attrs


@attrs.frozen(cache_hash=True)
class MetricName:
    """The identity of a metric: name, group and tags, as in Java. Immutable; the description does not count."""

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()
    description: str = attrs.field(default="", eq=False)

    def __str__(self) -> str:
        tags = ",".join(f"{key}={value}" for key, value in self.tags)
        return f"{self.group}:{self.name}" + (f"[{tags}]" if tags else "")
