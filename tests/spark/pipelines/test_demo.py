"""`kclient pipeline demo` shows what came out, and says that all is well only if it is."""

from __future__ import annotations

import importlib.util
import io
import re
from collections import Counter
from pathlib import Path

import attrs
import pytest

from harness.spark import sessions
from harness.spark.pipelines import PipelineProcess
from kclient.spark.pipelines.trial import Expected, Outcome

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.heavy
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_demonstration_verifies_every_order_and_shows_all_tables(tmp_path: Path) -> None:
    sessions.need()
    with PipelineProcess(
        tmp_path / "log",
        *("demo", "--records", "1500", "--output", str(tmp_path / "output")),
        settings={"spark.master": "local[2]", "spark.driver.extraJavaOptions": sessions.JAVA_OPTIONS},
    ) as demo:
        demo.finish(400)
        said = demo.said()
    for part in (
        "what came out",
        "dead letters",
        "not one JSON object",
        "top windows",
        "lag",
        "verified: 1,500 orders",
    ):
        assert part in said
    if importlib.util.find_spec("matplotlib") is None:
        assert "no picture: matplotlib is not installed" in said
    else:
        (said_path,) = re.findall(r"picture: (.*\.png)", said)
        assert Path(said_path).read_bytes().startswith(PNG)
    # The JVM's own warning is the only line that is not the demonstration's.
    assert said.count("WARN") == said.count("WARNING: Using incubator modules")


@attrs.frozen
class Told:
    """The part of the progress that the verdict looks at."""

    query: str
    rows: int = 10
    late_rows: int = 0
    behind: int = 0


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (Told("events"), None),
        (Told("events", rows=9), "events read 9 rows"),
        (Told("events", behind=3), "events is 3 behind"),
        (Told("events", late_rows=2), "2 good orders came too late"),
    ],
)
def test_the_verdict_is_no_if_a_query_is_not_done(told: Told, problem: str | None) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install '.[spark]')")
    from rich.console import Console

    from kclient.spark.pipelines.demo import Demo

    said = io.StringIO()
    demo = Demo(10, {}, Console(file=said, soft_wrap=True))
    demo._progress = [told]  # type: ignore[list-item]
    nothing = Outcome(Counter(), Counter(), Counter(), Counter())
    assert demo._verdict(nothing, Expected(frozenset(), frozenset(), frozenset(), frozenset())) == (
        problem is None
    )
    assert (problem or "verified: 10 orders") in said.getvalue()


def test_no_orders_are_no_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install '.[spark]')")
    from kclient.errors import ConfigError
    from kclient.spark.pipelines.demo import Demo

    with pytest.raises(ConfigError, match="an order at least"):
        Demo(0, {})
