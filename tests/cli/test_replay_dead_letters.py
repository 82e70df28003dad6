"""`kclient pipeline replay-dead-letters` on the embedded broker: dead letters go back as the records that they were."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

import pytest

from harness.topics import new_topic, read_all
from kclient.admin import KafkaAdminClient
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord
from kclient.processing.dead_letters import Reason, dead_letter
from kclient.producer import KafkaProducer

TIME_MS = 1_735_732_800_000
Header = tuple[str, bytes | None]


class Letters:
    """A source, a topic of dead letters, and the command between them."""

    def __init__(self, servers: str, captured: pytest.CaptureFixture[str]) -> None:
        self.servers = servers
        self.source, self.dead = new_topic(servers, 2), new_topic(servers, 1)
        self._captured = captured
        self.said = ""

    def of_pipeline(
        self,
        value: bytes | None,
        error: str,
        *,
        partition: int = 1,
        headers: Sequence[Header] = (),
        hour: int = 0,
    ) -> None:
        """A dead letter as pipelines write them."""
        more = [
            *(
                ("kclient.source.topic", self.source.encode()),
                ("kclient.source.partition", b"%d" % partition),
            ),
            *(("kclient.source.offset", b"7"), ("kclient.error", error.encode())),
        ]
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            producer.send(
                self.dead,
                value,
                key=b"k",
                headers=[*headers, *more],
                timestamp_ms=TIME_MS + hour * 3_600_000,
            ).result(30)

    def of_loop(self, record: ConsumerRecord[bytes, bytes], error: Exception) -> None:
        """A dead letter as kclient.processing writes them."""
        letter = dead_letter(self.dead, record, Reason(error, 3))
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            producer.send(letter).result(30)

    def replay(self, words: str = "", code: int = 0) -> list[tuple[str, str | None, str | None, int]]:
        """Run it; the lines of its report."""
        self._captured.readouterr()
        command = [
            "pipeline",
            "replay-dead-letters",
            "--bootstrap-server",
            self.servers,
            "--topic",
            self.dead,
        ]
        command += ["--delivery", "at_least_once", "--output", "json", *shlex.split(words)]
        assert main(command) == code
        text, self.said = self._captured.readouterr()
        return [tuple(json.loads(line).values()) for line in text.splitlines()]

    def arrived(self, topic: str | None = None) -> list[ConsumerRecord[bytes, bytes]]:
        return read_all(self.servers, topic or self.source)


@pytest.fixture
def letters(servers: str, capsys: pytest.CaptureFixture[str]) -> Letters:
    return Letters(servers, capsys)


def test_a_record_comes_back_as_it_was_with_the_attempt_in_a_header(letters: Letters) -> None:
    letters.of_pipeline(b"v", "amount is missing", headers=[("trace", b"7"), ("none", None)])
    assert letters.replay("--execute") == [("sent", letters.source, "amount is missing", 1)]
    (record,) = letters.arrived()
    assert (record.partition, record.key, record.value, record.timestamp_ms) == (1, b"k", b"v", TIME_MS)
    assert record.headers == (("trace", b"7"), ("none", None), ("kclient.replay.attempt", b"1"))


def test_nothing_is_sent_and_nothing_remembered_without_execute(letters: Letters) -> None:
    letters.of_pipeline(b"v", "amount is missing")
    for words in ("", "--dry-run"):
        assert letters.replay(words) == [("would be sent", letters.source, "amount is missing", 1)]
        assert "--execute" in letters.said
    assert letters.arrived() == []


def test_letters_of_the_processing_loop_go_back_too(letters: Letters) -> None:
    with KafkaProducer(bootstrap_servers=letters.servers) as producer:
        # One that came from a pipeline, with its source's headers.
        of_source = [("kclient.source.topic", b"before"), ("kclient.source.partition", b"5")]
        producer.send(
            letters.source, b"v", key=b"k", headers=of_source, partition=0, timestamp_ms=TIME_MS
        ).result(30)
    (first,) = letters.arrived()
    letters.of_loop(first, ValueError("no such product: 17"))
    assert letters.replay("--reason 'product: 1' --execute") == [
        ("sent", letters.source, "builtins.ValueError", 1)
    ]
    _, again = letters.arrived()
    assert (again.partition, again.key, again.value, again.timestamp_ms) == (0, b"k", b"v", TIME_MS)
    assert again.headers == (*of_source, ("kclient.replay.attempt", b"1"))


def test_what_was_sent_back_is_left_out_by_every_later_choice_and_the_rest_is_not(letters: Letters) -> None:
    for number in range(6):
        letters.of_pipeline(b"%d" % number, "odd" if number % 2 else "even")
    assert letters.replay("--reason odd --execute") == [
        ("sent", letters.source, "odd", 3),
        ("left: not chosen", None, "even", 3),
    ]
    assert letters.replay("--execute --limit 2") == [("sent", letters.source, "even", 2)]
    assert "--limit was reached" in letters.said
    assert letters.replay("--execute") == [("sent", letters.source, "even", 1)]
    assert letters.replay("--execute") == []
    assert sorted(record.value for record in letters.arrived()) == [b"%d" % number for number in range(6)]


def test_a_group_whose_offsets_are_reset_sends_all_of_it_again(letters: Letters) -> None:
    letters.of_pipeline(b"v", "odd")
    assert letters.replay("--execute --group mine") == [("sent", letters.source, "odd", 1)]
    assert letters.replay("--group another") == [("would be sent", letters.source, "odd", 1)]
    with KafkaAdminClient(bootstrap_servers=letters.servers) as admin:
        admin.alter_consumer_group_offsets("mine", {TopicPartition(letters.dead, 0): 0})
    assert letters.replay("--group mine") == [("would be sent", letters.source, "odd", 1)]


def test_a_record_that_comes_to_grief_again_and_again_stays(letters: Letters) -> None:
    for attempt in (1, 2):
        letters.of_pipeline(b"v", "odd", headers=[("kclient.replay.attempt", b"%d" % attempt)])
    assert letters.replay("--execute --max-attempts 2") == [
        ("sent", letters.source, "odd", 1),
        ("left: sent back too often", None, "odd", 1),
    ]
    (record,) = letters.arrived()
    assert record.headers == (("kclient.replay.attempt", b"2"),)


def test_letters_are_chosen_by_time_offset_and_source(letters: Letters) -> None:
    for hour in range(4):
        letters.of_pipeline(b"%d" % hour, "odd", hour=hour)
    letters.replay("--start 2025-01-01T13:00:00Z --end 2025-01-01T14:00:00Z --execute")
    letters.replay("--offsets 0:3 --execute")
    assert [record.value for record in letters.arrived()] == [b"1", b"3"]
    assert letters.replay("--offsets 0:0-1 --source-topic another") == [("left: not chosen", None, "odd", 2)]
    assert letters.replay(f"--offsets 0:0-1 --source-topic {letters.source}") == [
        ("would be sent", letters.source, "odd", 1),
        ("left: not chosen", None, "odd", 1),
    ]


def test_they_go_to_another_topic_where_that_is_wanted(letters: Letters) -> None:
    target = new_topic(letters.servers, 1)
    letters.of_pipeline(b"v", "odd")
    assert letters.replay(f"--to {target} --execute") == [("sent", target, "odd", 1)]
    (record,) = letters.arrived(target)
    assert (record.value, letters.arrived()) == (b"v", [])


def test_a_record_that_is_no_dead_letter_stays_unless_a_target_is_named(letters: Letters) -> None:
    with KafkaProducer(bootstrap_servers=letters.servers) as producer:
        # A good record of a pipeline's, without an error.
        headers = [("kclient.source.topic", b"t"), ("kclient.source.partition", b"0")]
        producer.send(letters.dead, b"v", headers=headers).result(30)
    assert letters.replay("--execute") == [("left: no source in its headers", None, None, 1)]
    assert letters.replay(f"--execute --to {letters.source}") == [("sent", letters.source, "", 1)]
    (record,) = letters.arrived()
    assert record.headers == (*headers, ("kclient.replay.attempt", b"1"))


def test_a_source_that_is_not_there_is_named_and_nothing_sent(letters: Letters) -> None:
    letters.of_pipeline(b"v", "odd")
    with KafkaAdminClient(bootstrap_servers=letters.servers) as admin:
        admin.delete_topics([letters.source])
    assert letters.replay("--execute", code=1) == []
    assert f"There is no topic {letters.source}, which letters of {letters.dead} come from" in letters.said


def test_more_letters_than_a_batch_come_back_in_order(letters: Letters) -> None:
    with KafkaProducer(bootstrap_servers=letters.servers) as producer:
        for number in range(1200):
            headers = [
                *(("kclient.source.topic", letters.source.encode()), ("kclient.source.partition", b"0")),
                *(("kclient.source.offset", b"%d" % number), ("kclient.error", b"odd")),
            ]
            producer.send(letters.dead, b"%d" % number, headers=headers)
    assert letters.replay("--execute") == [("sent", letters.source, "odd", 1200)]
    assert [record.value for record in letters.arrived()] == [b"%d" % number for number in range(1200)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--execute --dry-run", "--execute and --dry-run exclude each other"),
        ("--start 5 --end 5", "--end has to be after --start"),
        ("--to dead --topic dead", "--to is --topic itself"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "replay-dead-letters", "--topic", "t", *words.split()]) == 2
    assert said in capsys.readouterr().err


def test_transactions_that_the_broker_does_not_have_are_told(letters: Letters) -> None:
    letters.of_pipeline(b"v", "odd")
    letters.replay("--execute --delivery exactly_once", code=1)
    assert "--delivery at_least_once" in letters.said
