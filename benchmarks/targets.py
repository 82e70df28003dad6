"""The targets of kclient, as ratios against its peers, and the check of a result against them."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from benchmarks import shapes
from benchmarks.case import Case, Measured
from benchmarks.clients import COLUMNAR
from benchmarks.comparison import Line

# How each figure of a run is read; of the rate more is better, of all others less.
_FIGURES: Mapping[str, Callable[[Measured], float | None]] = {
    "records/s": lambda run: run.records_per_s,
    "CPU/record": lambda run: run.cpu_us_per_record,
    "p50": lambda run: run.p50_ms,
    "p99": lambda run: run.p99_ms,
}


@attrs.frozen
class Target:
    """`figure` of `ours` on uncompressed records of `size` bytes as a multiple of `peer`'s.

    Of the shapes in `shapes.PARTITIONS` partitions, of all else in one.

    Without a peer, `limit` is milliseconds. With `beside`, the peer's figure is that of another operation.
    """

    ours: str
    operation: str
    size: int
    figure: str
    peer: str | None
    limit: float
    beside: str | None = None

    @property
    def against(self) -> str:
        """For people; nothing without a peer."""
        return " ".join(filter(None, (self.peer, self.beside)))

    @property
    def at_least(self) -> bool:
        """True if more is better."""
        return self.figure == "records/s"

    @property
    def wanted(self) -> str:
        """For people."""
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{'x' if self.peer else ' ms'}"


@attrs.frozen
class Verdict:
    """A target, and the figures of the runs that decide about it; `theirs` is empty where there is no peer."""

    target: Target
    case: Case
    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def reached(self) -> float:
        """The ratio of the medians, or our median where there is no peer."""
        ours = statistics.median(self.ours)
        return ours / statistics.median(self.theirs) if self.theirs else ours

    @property
    def noise(self) -> tuple[float, float]:
        """The values of `reached` for the luckiest and unluckiest pair of runs, the lower one first."""
        theirs = self.theirs or (1.0,)
        return min(self.ours) / max(theirs), max(self.ours) / min(theirs)

    @property
    def met(self) -> bool:
        """True if `reached` meets the target."""
        compare = operator.ge if self.target.at_least else operator.le
        return bool(compare(self.reached, self.target.limit))


def _native(operation: str, size: int, confluent: float, java: float, cpu: float) -> Iterator[Target]:
    yield Target("kclient", operation, size, "records/s", "confluent", confluent)
    yield Target("kclient", operation, size, "records/s", "java", java)
    yield Target("kclient", operation, size, "CPU/record", "confluent", cpu)


def _as_written() -> Iterator[Target]:
    for operation, shape in shapes.SHAPES.items():
        yield Target("kclient", operation, 100, "records/s", "confluent", shape.rate)
        yield Target("kclient", operation, 100, "CPU/record", "confluent", shape.cpu)
    yield Target("kclient", "iterate", 100, "records/s", "kclient", 0.6, beside="poll")


TARGETS: Sequence[Target] = (
    *_native("produce", 100, 1.5, 1.5, 0.4),
    *_native("produce", 1000, 1.0, 1.3, 0.35),
    *_native("consume", 100, 1.5, 1.5, 0.5),
    *_native("consume", 1000, 1.0, 1.8, 1.0),
    *_native("columns", 100, 4.0, 4.0, 0.15),
    *_native("arrow", 100, 4.0, 4.0, 0.15),
    Target("kclient", "round_trip", 100, "p50", "confluent", 1.6),
    Target("kclient", "busy", 100, "p50", None, 3.0),
    Target("kclient", "busy", 100, "p99", None, 30.0),
    *_as_written(),
    Target("kclient_pure", "produce", 100, "records/s", "confluent", 0.5),
    Target("kclient_pure", "consume", 100, "records/s", "confluent", 0.4),
    Target("kclient_pure", "produce", 100, "records/s", "kafka_python", 5.0),
    Target("kclient_pure", "consume", 100, "records/s", "kafka_python", 5.0),
)


def verdicts(lines: Sequence[Line]) -> Iterator[Verdict]:
    """Every target that these lines say something about, once for each case it applies to."""
    for target in TARGETS:
        partitions = shapes.PARTITIONS if target.operation in shapes.SHAPES else 1
        for line in lines:
            case = line.case
            if (line.client, line.operation, case.size) != (target.ours, target.operation, target.size):
                continue
            if case.codec != "none" or case.partitions != partitions:
                continue
            peer = peer_line(lines, line, target.peer, target.beside) if target.peer else None
            if target.peer is None or peer is not None:
                yield Verdict(target, case, _figures(target, line), _figures(target, peer) if peer else ())


def peer_line(lines: Sequence[Line], line: Line, peer: str, beside: str | None = None) -> Line | None:
    """Return the line of `peer` for the case of `line`, None if there is none.

    It is of the operation `beside`, or of the same. When columns are read, a peer that can only read objects stands
    with its line for objects.
    """
    wanted = beside or line.operation
    for operation in (wanted, "consume") if wanted in COLUMNAR else (wanted,):
        for other in lines:
            if (other.case, other.operation, other.client) == (line.case, operation, peer):
                return other
    return None


def _figures(target: Target, line: Line) -> list[float]:
    return [figure for run in line.runs if (figure := _FIGURES[target.figure](run)) is not None]
