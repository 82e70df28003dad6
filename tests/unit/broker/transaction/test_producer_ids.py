"""Producer ids are never given out twice."""

from __future__ import annotations

import pytest

from kclient.broker.transaction.producer_ids import ProducerIds
from kclient.errors import KafkaStorageError


class Blocks:
    """Blocks of three ids, and a disk that may fail."""

    def __init__(self) -> None:
        self.next = 0
        self.fails = False

    def allocate(self) -> range:
        if self.fails:
            raise KafkaStorageError("the disk is full")
        self.next += 3
        return range(self.next - 3, self.next)


def test_ids_are_not_repeated_over_blocks_and_restarts() -> None:
    blocks = Blocks()
    seen: list[int] = []
    for count in (1, 4, 0, 3):
        ids = ProducerIds(blocks.allocate)
        seen += [ids.next() for _ in range(count)]
    assert seen == [0, 3, 4, 5, 6, 9, 10, 11]


def test_a_block_is_taken_when_an_id_is_wanted_and_not_before() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    assert blocks.next == 0
    ids.next()
    assert blocks.next == 3


def test_a_block_that_cannot_be_had_uses_no_id_up() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    assert [ids.next() for _ in range(3)] == [0, 1, 2]
    blocks.fails = True
    with pytest.raises(KafkaStorageError):
        ids.next()
    blocks.fails = False
    assert ids.next() == 3
