"""The journal of topics: what it gives back after any end of its writer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import pytest

from kclient._accel import crc32c
from kclient.broker.metadata.cache import TopicImage
from kclient.broker.metadata.topic_names import colliding_topic, validate_topic_name
from kclient.broker.metadata.topics import JOURNAL, TopicStore
from kclient.common.uuid import Uuid
from kclient.errors import InvalidTopicError, KafkaStorageError

A, B = Uuid.random(), Uuid.random()
ONE = TopicImage("one", Uuid.random(), 3, MappingProxyType({"retention.ms": "5"}), (A, B, A))
TWO = TopicImage("two", Uuid.random(), 1, directories=(B,))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def opened(stack: ExitStack, directory: Path, *live: Uuid) -> TopicStore:
    store = TopicStore(directory)
    stack.callback(store.close)
    store.start(store.topics.values(), {known: f"/{known}" for known in live or (A, B)})
    return store


def test_topics_come_back_with_all_they_are(tmp_path: Path, stack: ExitStack) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    store.put(TWO)
    assert TopicStore(tmp_path).topics == {"one": ONE, "two": TWO}


def test_a_deleted_topic_does_not_come_back_and_is_remembered_while_a_directory_of_it_is_missing(
    tmp_path: Path, stack: ExitStack
) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    store.delete(ONE)
    for _ in range(2):
        again = opened(stack, tmp_path, A)
        assert (again.topics, set(again.deleted)) == ({}, {ONE.id})
        assert again.directories[B] == f"/{B}", "where it was"
    again = opened(stack, tmp_path, A, B)
    assert again.deleted == TopicStore(tmp_path).deleted == {}


def test_a_topic_that_was_written_without_its_directories_is_in_none_yet(tmp_path: Path) -> None:
    lines = []
    for change in (
        {"topic": "one", "id": str(ONE.id), "partitions": 2, "configs": {}},
        {"delete": "two", "id": str(TWO.id)},
    ):
        body = json.dumps(change).encode()
        lines.append(b"%08x %s\n" % (crc32c(body), body))
    (tmp_path / JOURNAL).write_bytes(b"kclient topics 1\n" + b"".join(lines))
    found = TopicStore(tmp_path)
    assert found.topics["one"].directories == (Uuid.ZERO, Uuid.ZERO)
    assert found.deleted[TWO.id].directories == frozenset()


def test_a_directory_in_the_place_of_another_one_takes_it_over(tmp_path: Path, stack: ExitStack) -> None:
    new = Uuid.random()
    for second in (B, new):
        store = TopicStore(tmp_path)
        stack.callback(store.close)
        store.start([], {A: "/a", second: "/b"})
    assert TopicStore(tmp_path).directories == {A: "/a", new: "/b"}


def test_a_topic_made_again_under_its_old_name_is_another_one(tmp_path: Path, stack: ExitStack) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    store.delete(ONE)
    new = TopicImage("one", Uuid.random(), 1, directories=(A,))
    store.put(new)
    again = TopicStore(tmp_path)
    assert (again.topics, set(again.deleted)) == ({"one": new}, {ONE.id})


def test_a_change_that_was_cut_off_at_any_byte_is_left_out(tmp_path: Path, stack: ExitStack) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    whole = (tmp_path / JOURNAL).read_bytes()
    store.put(TWO)
    after = (tmp_path / JOURNAL).read_bytes()
    for length in range(len(whole), len(after) - 1):
        (tmp_path / JOURNAL).write_bytes(after[:length])
        assert TopicStore(tmp_path).topics == {"one": ONE}, f"cut at {length}"
    (tmp_path / JOURNAL).write_bytes(whole + bytes(100))
    assert TopicStore(tmp_path).topics == {"one": ONE}


def test_damage_in_the_middle_is_an_error_as_topics_would_be_lost_without_a_word(
    tmp_path: Path, stack: ExitStack
) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    store.put(TWO)
    content = bytearray((tmp_path / JOURNAL).read_bytes())
    content[content.index(b"one")] ^= 1
    (tmp_path / JOURNAL).write_bytes(content)
    with pytest.raises(KafkaStorageError, match="damaged in line 3"):
        TopicStore(tmp_path)


def test_another_file_of_this_name_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("my notes\n")
    with pytest.raises(KafkaStorageError, match="is not a journal of topics"):
        TopicStore(tmp_path)


def test_a_change_that_could_not_be_written_leaves_no_half_of_it(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(stack, tmp_path)
    store.put(ONE)
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KafkaStorageError, match="No space left"):
        store.put(TWO)
    monkeypatch.setattr(os, "fsync", real)
    store.put(TopicImage("three", TWO.id, 1))
    assert set(TopicStore(tmp_path).topics) == {"one", "three"}


def test_a_closed_store_takes_no_changes(tmp_path: Path, stack: ExitStack) -> None:
    store = opened(stack, tmp_path)
    store.close()
    store.close()
    with pytest.raises(KafkaStorageError, match="is closed"):
        store.put(ONE)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "a" * 250, "a\n", "a\0"])
def test_names_that_no_topic_can_have_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopicError):
        validate_topic_name(name)


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "...", "a" * 249])
def test_names_that_topics_have_are_accepted(name: str) -> None:
    validate_topic_name(name)


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    assert colliding_topic("a.b", ["a_b", "c"]) == "a_b"
    assert colliding_topic("a.b", ["a.b", "ab", "a-b"]) is None
    assert colliding_topic("ab", ["a_b"]) is None
