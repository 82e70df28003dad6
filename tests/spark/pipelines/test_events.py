"""The pipeline `events`, killed at any moment and started again, comes to the results that plain Python computes.

What is killed is always a program. What goes on from its checkpoint is most often the session that tests share: a JVM
that is there already needs a fraction of the time, and has nothing of the killed one but the files.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from harness.broker.process import BrokerProcess
from harness.spark import sessions
from harness.spark.pipelines import PipelineProcess
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.spark.pipelines import orders
from kclient.spark.pipelines.options import EventsOptions

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.timeout(900),
]

RECORDS = 2600
PER_BATCH = 800
# A JVM and a first micro-batch are a matter of seconds, but of minutes where every processor has other things to do.
DEADLINE_S = 300
_numbers = itertools.count()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    sessions.need()
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def options(servers: str, tmp_path: Path) -> EventsOptions:
    return order_options(servers, tmp_path)


def order_options(servers: str, tmp_path: Path) -> EventsOptions:
    topic = f"orders-{next(_numbers)}"
    made = orders.order_options(
        bootstrap_servers=servers,
        topic=topic,
        checkpoint=str(tmp_path / "checkpoint"),
        output=str(tmp_path / "output"),
        dead_letter_topic=f"{topic}.dead",
        window_topic=f"{topic}.windows",
        max_offsets_per_trigger=PER_BATCH,
    )
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2)])
        admin.create_topics(
            [NewTopic(each, num_partitions=1) for each in (made.dead_letter_topic, made.window_topic)]
        )
    return made


def program(options: EventsOptions, *more: str) -> PipelineProcess:
    assert options.max_lateness is not None
    assert options.max_ahead is not None
    return PipelineProcess(
        Path(options.output).with_name("log"),
        *("events", "--bootstrap-server", options.bootstrap_servers, "--topic", options.topic),
        *("--schema", options.schema, "--time-column", "time", "--required", ",".join(options.required)),
        *("--conditions", orders.CONDITION, "--max-lateness", options.max_lateness),
        *("--max-ahead", options.max_ahead, "--watermark", options.watermark, "--group-by", "product"),
        *("--sums", "amount", "--checkpoint", options.checkpoint, "--output", options.output),
        *("--max-offsets-per-trigger", str(PER_BATCH)),
        *("--dead-letter-topic", options.dead_letter_topic, "--window-topic", options.window_topic),
        *more,
    )


def go_on(options: EventsOptions) -> None:
    """Run the pipeline to its end, in the session of all tests."""
    from kclient.spark.pipelines.events import start_events
    from kclient.spark.pipelines.source import wait

    with sessions.session() as spark:
        wait(spark, start_events(spark, options))


def go_on_as_a_program(options: EventsOptions) -> None:
    with program(options) as again:
        again.finish(DEADLINE_S)


def generated(options: EventsOptions) -> list[orders.Sent]:
    start_ms = (time.time_ns() // 1_000_000 // 300_000 - 24) * 300_000  # two hours ago
    return list(orders.generate(RECORDS, start_ms, options))


def send(options: EventsOptions):
    from kclient.spark.pipelines import trial

    return trial.send(generated(options), options)


def assert_exact(options: EventsOptions, expected) -> None:
    from kclient.spark.pipelines import trial

    assert len(expected.letters) == RECORDS // 13
    assert len(expected.closed) > 20
    assert trial.differences(trial.outcome(options), expected) == []


def wal_of_the_first_batch(options: EventsOptions) -> bool:
    return (Path(options.checkpoint) / "events" / "offsets" / "0").exists()


def folder_of_a_batch_half_written(options: EventsOptions) -> bool:
    folder = Path(options.output) / "events" / "batch=1"
    return folder.exists() and not (folder / "_SUCCESS").exists()


def batch_written_and_not_committed(options: EventsOptions) -> bool:
    return (Path(options.output) / "events" / "batch=1" / "_SUCCESS").exists()


def windows_written_and_not_committed(options: EventsOptions) -> bool:
    return any((Path(options.output) / "windows").glob("batch=[1-9]/_SUCCESS"))


def windows_committed(options: EventsOptions) -> bool:
    return committed(options, "windows", 1)


def committed(options: EventsOptions, query: str, batch_id: int) -> bool:
    return (Path(options.checkpoint) / query / "commits" / str(batch_id)).exists()


def kill_and_start_again(
    options: EventsOptions, moment: Callable[[EventsOptions], bool], again: Callable[[EventsOptions], None]
) -> None:
    expected = send(options)
    with program(options) as first:
        wait_until(lambda: moment(options) or first.ended, DEADLINE_S, moment.__name__)
        assert not first.ended, first.said()
        first.kill()
    again(options)
    assert_exact(options, expected)


# The other moments are those on a real Kafka, below: most of such a test is the start of a JVM.
@pytest.mark.parametrize(
    "moment",
    [batch_written_and_not_committed, pytest.param(windows_committed, marks=pytest.mark.soak)],
    ids=lambda moment: moment.__name__,
)
def test_a_driver_that_is_killed_and_started_again_comes_to_exact_results(
    options: EventsOptions, moment: Callable[[EventsOptions], bool]
) -> None:
    kill_and_start_again(options, moment, go_on)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("moment", "again"),
    [
        pytest.param(wal_of_the_first_batch, go_on, marks=pytest.mark.soak),
        pytest.param(folder_of_a_batch_half_written, go_on, marks=pytest.mark.soak),
        (windows_written_and_not_committed, go_on_as_a_program),
    ],
    ids=lambda each: each.__name__,
)
def test_with_a_real_kafka_the_results_are_exact_too(
    real_servers: str,
    tmp_path: Path,
    moment: Callable[[EventsOptions], bool],
    again: Callable[[EventsOptions], None],
) -> None:
    kill_and_start_again(order_options(real_servers, tmp_path), moment, again)


def test_a_stream_without_an_end_ends_in_order_when_it_is_told_to_and_goes_on_later(
    options: EventsOptions,
) -> None:
    from kclient.spark.pipelines import trial

    every = generated(options)
    # After a restart Spark closes windows with the next rows, and the end may come before any that is written already.
    early, late = every[: RECORDS - PER_BATCH], every[RECORDS - PER_BATCH :]
    letters = trial.send(early, options).letters
    with program(options, "--every", "1 second") as live:
        wait_until(
            lambda: windows_committed(options) or live.ended, DEADLINE_S, "two micro-batches of windows"
        )
        live.signal(signal.SIGTERM)
        live.finish(DEADLINE_S)
        # Of a micro-batch that is cut off Spark would tell at great length.
        assert not re.search(r"Error|^\s+at ", live.said(), re.MULTILINE), live.said()
        assert re.search(r"^events: [\d,]+ rows, .* in all$", live.said(), re.MULTILINE), live.said()
    letters |= trial.send(late, options).letters
    go_on(options)
    assert_exact(options, trial.expect(every, letters, options))


def test_windows_that_the_last_micro_batch_of_a_run_has_closed_come_with_the_next_rows(
    options: EventsOptions,
) -> None:
    from kclient.spark.pipelines import trial
    from kclient.spark.pipelines.events import start_events

    every = generated(options)
    letters = trial.send(every[:-1], options).letters
    with sessions.session() as spark:
        # All rows are one micro-batch, and the next one, without rows, would come an hour later.
        once = attrs.evolve(options, max_offsets_per_trigger=None, every="1 hour")
        queries = start_events(spark, once)
        wait_until(
            lambda: all(committed(options, query.name, 0) for query in queries),
            DEADLINE_S,
            "one micro-batch of each query",
        )
        for query in queries:
            query.stop()
    go_on(options)
    assert not trial.outcome(options).windows
    letters |= trial.send(every[-1:], options).letters
    go_on(options)
    assert_exact(options, trial.expect(every, letters, options))
