"""Producer ids are never given out twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.broker.transaction.producer_ids import BLOCK_SIZE, ProducerIds
from kclient.errors import KafkaStorageError


def test_ids_are_not_repeated_over_blocks_and_restarts(tmp_path: Path) -> None:
    seen: list[int] = []
    for count in (1, BLOCK_SIZE + 1, 0, 3):
        ids = ProducerIds(tmp_path)
        seen += [ids.next() for _ in range(count)]
    assert len(seen) == len(set(seen))
    assert min(seen) == 0


@pytest.mark.parametrize("content", ["", "x", "-5", "9" * 30, "1 2"])
def test_a_damaged_file_is_an_error_and_not_a_new_beginning(tmp_path: Path, content: str) -> None:
    (tmp_path / "producer-ids").write_text(content)
    with pytest.raises(KafkaStorageError, match="does not hold a producer id"):
        ProducerIds(tmp_path)


def test_no_id_is_given_out_before_its_block_is_on_disk(tmp_path: Path) -> None:
    ids = ProducerIds(tmp_path)
    (tmp_path / "producer-ids.tmp").mkdir()
    with pytest.raises(KafkaStorageError):
        ids.next()
    (tmp_path / "producer-ids.tmp").rmdir()
    assert ids.next() == 0
