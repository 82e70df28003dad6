"""The metadata and the log that it is replayed from: changes, snapshots, and what is too new to be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.mock_time import MockTime
from kclient.broker.metadata.metadata_log import MetadataLog
from kclient.broker.metadata.metadata_store import (
    FORMAT_FEATURE,
    FORMAT_LEVEL,
    MetadataStore,
    ReadOnlyMetadataStore,
)
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError, PolicyViolationError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message

T = Uuid.random()
NEVER = 1 << 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Callable[..., MetadataStore]]:
    """Open the store of a directory, over and over."""
    with ExitStack() as stack:

        def opened(*, snapshot_bytes: int = NEVER, started: bool = True) -> MetadataStore:
            made = MetadataStore(tmp_path / "log", MockTime(), snapshot_bytes=snapshot_bytes)
            stack.callback(made.close)
            if started:
                made.start()
            return made

        yield opened


def topic(number: int) -> TopicRecord:
    return TopicRecord(name=f"t{number}", topic_id=Uuid(number.to_bytes(16, "big")))


def files(directory: Path) -> set[str]:
    return {path.suffix for path in directory.iterdir()}


def test_what_was_committed_is_in_the_image_and_there_again_after_a_crash(
    store: Callable[..., MetadataStore],
) -> None:
    first = store()
    assert not first.found
    delta = first.commit([topic(1), topic(2)])
    assert delta.topics is not None
    assert len(delta.topics.changed) == 2
    again = store(started=False)
    assert again.found
    assert again.image == first.image
    assert set(again.image.topics.by_name) == {"t1", "t2"}


def test_a_change_that_contradicts_what_is_there_is_not_written(store: Callable[..., MetadataStore]) -> None:
    first = store()
    first.commit([topic(1)])
    with pytest.raises(KafkaStorageError, match="recorded twice"):
        first.commit([topic(2), topic(1)])
    assert set(first.image.topics.by_name) == {"t1"}
    assert store(started=False).image == first.image


def test_a_change_that_cannot_be_written_changes_nothing(
    store: Callable[..., MetadataStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store()
    first.commit([topic(1)])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", full)
        with pytest.raises(KafkaStorageError, match="No space left"):
            first.commit([topic(2)])
    assert set(first.image.topics.by_name) == {"t1"}
    first.commit([topic(3)])
    assert set(store(started=False).image.topics.by_name) == {"t1", "t3"}


def test_a_snapshot_is_written_when_the_log_has_grown_and_says_the_same(
    store: Callable[..., MetadataStore], tmp_path: Path
) -> None:
    first = store(snapshot_bytes=1000)
    for number in range(100):
        first.commit([topic(number)])
        assert store(started=False).image == first.image
    assert ".checkpoint" in files(tmp_path / "log")
    assert len(list((tmp_path / "log").iterdir())) <= 2


def test_a_snapshot_that_fails_takes_no_change_away_and_is_tried_again_later(
    store: Callable[..., MetadataStore], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = store(snapshot_bytes=500)
    tried = []

    def full(self: MetadataLog, records: object) -> None:
        tried.append(1)
        raise KafkaStorageError("No space left")

    with monkeypatch.context() as failing:
        failing.setattr(MetadataLog, "write_snapshot", full)
        for number in range(40):
            first.commit([topic(number)])
    assert 1 < len(tried) < 20
    assert "goes on without a snapshot: No space left" in caplog.text
    assert store(started=False).image == first.image


def test_a_start_writes_a_snapshot_of_a_log_that_is_long_for_what_it_says(
    store: Callable[..., MetadataStore], tmp_path: Path
) -> None:
    first = store()
    first.commit([topic(1), *[NoOpRecord()] * 1500])
    first.close()
    second = store()
    assert files(tmp_path / "log") == {".checkpoint"}
    assert second.image == first.image
    second.commit([topic(2)])
    third = store()
    assert files(tmp_path / "log") == {".checkpoint", ".log"}, "there is nothing to be gained now"
    assert third.image == second.image


def test_a_topic_whose_files_are_gone_is_remembered_no_longer(store: Callable[..., MetadataStore]) -> None:
    first = store()
    made = topic(1)
    first.commit([made])
    first.commit([RemoveTopicRecord(topic_id=made.topic_id)])
    assert set(first.image.topics.deleted) == {made.topic_id}
    first.forget_deleted(made.topic_id)
    assert first.image.topics.deleted == {}


@pytest.mark.parametrize(
    ("end", "names"),
    [(EndTransactionRecord(), {"t1", "t2"}), (AbortTransactionRecord(), set()), (None, set())],
)
def test_records_of_a_transaction_count_when_it_has_ended(
    store: Callable[..., MetadataStore], end: Message | None, names: set[str], tmp_path: Path
) -> None:
    log = MetadataLog(tmp_path / "log", MockTime())
    log.start()
    for record in (BeginTransactionRecord(name="n"), topic(1), topic(2), *([end] if end else ())):
        log.append([record])
    log.close()
    assert set(store(started=False).image.topics.by_name) == names


def test_a_log_of_a_newer_kclient_is_refused(store: Callable[..., MetadataStore]) -> None:
    first = store()
    first.commit([FeatureLevelRecord(name=FORMAT_FEATURE, feature_level=FORMAT_LEVEL)])
    assert store(started=False).image.features.levels == {FORMAT_FEATURE: FORMAT_LEVEL}
    first.commit([FeatureLevelRecord(name=FORMAT_FEATURE, feature_level=FORMAT_LEVEL + 1)])
    with pytest.raises(KafkaStorageError, match=r"written by a newer kclient: kclient\.metadata is 2"):
        store(started=False)


def test_records_that_contradict_each_other_on_disk_name_the_directory(
    store: Callable[..., MetadataStore], tmp_path: Path
) -> None:
    log = MetadataLog(tmp_path / "log", MockTime())
    log.start()
    log.append([ProducerIdsRecord(next_producer_id=5), topic(1), topic(1)])
    log.close()
    with pytest.raises(KafkaStorageError, match=f"{tmp_path / 'log'} cannot be read: .*recorded twice"):
        store(started=False)


def test_a_log_that_is_only_read_takes_the_records_of_a_start_into_the_image_alone(
    store: Callable[..., MetadataStore], tmp_path: Path
) -> None:
    store().commit([topic(1)])
    before = {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    read_only = ReadOnlyMetadataStore(tmp_path / "log", MockTime(), snapshot_bytes=1)
    read_only.start()
    delta = read_only.commit([topic(2)])
    assert delta.topics is not None
    assert set(read_only.image.topics.by_name) == {"t1", "t2"}
    with pytest.raises(PolicyViolationError, match="opened read-only"):
        read_only.commit([topic(3)])
    read_only.close()
    assert set(read_only.image.topics.by_name) == {"t1", "t2"}
    assert {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()} == before
