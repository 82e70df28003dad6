"""Pictures of what pipelines have done, with Matplotlib, which is optional. Needs no PySpark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[int, str, Any]
"""A time in ms since the epoch, what it is of, and a number."""

_WIDTH_INCHES, _HEIGHT_INCHES = 10.0, 3.2
_MOST_BARS = 12
_MS_A_DAY = 86_400_000
_MISSING = "no picture: matplotlib is not installed (pip install 'kclient-kafka[plot]')"


class Picture:
    """Diagrams below each other. Each call adds one; `save` draws them."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._panels: list[Callable[[Axes], None]] = []

    def over_time(self, title: str, unit: str, length_ms: int, points: Iterable[Point]) -> Self:
        """Bars for spans of `length_ms`, those of one beginning on top of each other, each name in a colour."""
        found = list(points)

        def draw(axes: Axes) -> None:
            starts = sorted({start_ms for start_ms, _, _ in found})
            below = dict.fromkeys(starts, 0.0)
            for name in sorted({name for _, name, _ in found}):
                heights = dict.fromkeys(starts, 0.0)
                for start_ms, of, number in found:
                    if of == name:
                        heights[start_ms] += float(number)
                axes.bar(
                    [_moment(start_ms) for start_ms in starts],
                    list(heights.values()),
                    width=0.9 * length_ms / _MS_A_DAY,
                    bottom=list(below.values()),
                    align="edge",
                    label=name,
                )
                below = {start_ms: below[start_ms] + heights[start_ms] for start_ms in starts}
            _label(axes, title, "time (UTC)", unit)
            _time_axis(axes)
            _legend(axes)

        self._panels.append(draw)
        return self

    def lines(self, title: str, unit: str, points: Iterable[Point]) -> Self:
        """A line for each name."""
        found = sorted(points, key=lambda point: point[0])

        def draw(axes: Axes) -> None:
            for name in sorted({name for _, name, _ in found}):
                mine = [(_moment(time_ms), float(number)) for time_ms, of, number in found if of == name]
                axes.plot(*zip(*mine, strict=True), marker="o", label=name, clip_on=False)
            _label(axes, title, "time (UTC)", unit)
            # Where nothing is behind there would be fractions of a record.
            axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1.0))
            _time_axis(axes)
            _legend(axes)

        self._panels.append(draw)
        return self

    def bars(self, title: str, unit: str, numbers: Iterable[tuple[str, Any]]) -> Self:
        """A bar for each name, the longest first; what is beyond a dozen is one bar together."""
        found = sorted(((name, float(number)) for name, number in numbers), key=lambda each: -each[1])
        if len(found) > _MOST_BARS:
            rest = found[_MOST_BARS - 1 :]
            found[_MOST_BARS - 1 :] = [(f"{len(rest)} others", sum(number for _, number in rest))]

        def draw(axes: Axes) -> None:
            places = range(len(found))
            bars = axes.barh(places, [number for _, number in found])
            axes.set_yticks(places, [_short(name) for name, _ in found])
            axes.bar_label(bars, fmt="{:,.0f}", padding=3)
            axes.invert_yaxis()
            axes.margins(x=0.1)
            _label(axes, title, unit, "")

        self._panels.append(draw)
        return self

    def save(self, path: str | Path) -> str:
        """Draw it as PNG, in a folder that is made if need be; a line that says where it is, or why there is none."""
        if importlib.util.find_spec("matplotlib") is None:
            return _MISSING
        if "://" in str(path):
            return f"no picture: {path} is no local file"
        from matplotlib.figure import Figure

        # A figure of its own: no window, no backend, no state that others share.
        figure = Figure(
            figsize=(_WIDTH_INCHES, _HEIGHT_INCHES * len(self._panels) + 0.6), layout="constrained"
        )
        figure.suptitle(self._title)
        axes = figure.subplots(len(self._panels), 1, squeeze=False)
        for draw, (one,) in zip(self._panels, axes, strict=True):
            draw(one)
            if not one.has_data():
                one.set_axis_off()
                one.text(0.5, 0.5, "nothing there", ha="center", va="center", transform=one.transAxes)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="png", dpi=120)
        return f"picture: {path}"


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"


def _label(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, axis="both", alpha=0.3)
    axes.set_axisbelow(True)


def _time_axis(axes: Axes) -> None:
    """Times below, whole numbers at the side."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    locator = AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))


def _legend(axes: Axes) -> None:
    if len(axes.get_legend_handles_labels()[1]) > 0:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
