"""Compaction changes nothing about the table that a log stands for, over random histories."""

from __future__ import annotations

import random
import tempfile
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.cleaning import batches_of, clean, end_transaction, last_values, put
from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.compress import CompressionType

DELETE_RETENTION_MS = 50

Pairs = list[tuple[bytes, "bytes | None"]]


class History:
    """A log, what is done to it by chance, and the table that it should stand for."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.harness = LogHarness(root)
        self.codec = self.random.choice([CompressionType.NONE, CompressionType.LZ4])
        self.config = LogConfig(
            cleanup_policy=("compact",),
            index_interval_bytes=self.random.choice([0, 200]),
            segment_bytes=self.random.randint(300, 1500),
            delete_retention_ms=DELETE_RETENTION_MS,
            file_delete_delay_ms=0,
        )
        self.log = self.harness.open(self.config, clean=True)
        # Of each key the last in the log that counts, whenever it was committed.
        self.table: dict[bytes, tuple[int, bytes | None]] = {}
        self.open: dict[int, list[tuple[int, Pairs]]] = {}
        self.sequences: dict[int, int] = {}
        self.written = 0
        self.cleaned_to: int | None = None

    def run(self, steps: int) -> None:
        actions = [self.write, self.write_in_transaction, self.end_one, self.wait, self.compact, self.reopen]
        for _ in range(steps):
            self.random.choices(actions, weights=[4, 4, 3, 1, 1, 0.5])[0]()
        for pid in list(self.open):
            self.end(pid)
        self.log.roll()
        for _ in range(3):  # markers go last, and only after their data
            self.harness.run_due(DELETE_RETENTION_MS + 1)
            self.compact()

    def pairs(self) -> Pairs:
        pairs: Pairs = []
        for _ in range(self.random.randint(1, 4)):
            self.written += 1
            value = None if self.random.random() < 0.2 else b"%d." % self.written + b"x" * 20
            pairs.append((b"k%d" % self.random.randint(0, 7), value))
        return pairs

    def put(self, pid: int, pairs: Pairs, *, transactional: bool) -> int:
        sequence = self.sequences.get(pid, 0)
        self.sequences[pid] = sequence + len(pairs)
        return put(
            self.harness,
            self.log,
            *pairs,
            pid=pid,
            seq=sequence,
            transactional=transactional,
            compression=self.codec,
        )

    def count(self, first_offset: int, pairs: Pairs) -> None:
        for offset, (key, value) in enumerate(pairs, first_offset):
            self.table[key] = max(self.table.get(key, (-1, None)), (offset, value), key=lambda one: one[0])

    def write(self) -> None:
        pairs = self.pairs()
        self.count(self.put(self.random.choice([-1, 1, 2]), pairs, transactional=False), pairs)

    def write_in_transaction(self) -> None:
        pid, pairs = self.random.choice([7, 8, 9]), self.pairs()
        first_offset = self.put(pid, pairs, transactional=True)
        self.open.setdefault(pid, []).append((first_offset, pairs))

    def end_one(self) -> None:
        if self.open:
            self.end(self.random.choice(list(self.open)))

    def end(self, pid: int) -> None:
        commit = self.random.random() < 0.5
        end_transaction(self.harness, self.log, pid, commit=commit)
        for first_offset, pairs in self.open.pop(pid):
            if commit:
                self.count(first_offset, pairs)

    def wait(self) -> None:
        self.harness.run_due(self.random.randint(0, DELETE_RETENTION_MS))

    def compact(self) -> None:
        before = last_values(self.log)
        stable, end = self.log.last_stable_offset, self.log.log_end_offset
        cleaned_to, _ = clean(
            self.harness, self.log, self.cleaned_to, keys=self.random.choice([1, 3, 1000, 1000])
        )
        assert cleaned_to >= (self.cleaned_to or 0)
        self.cleaned_to = cleaned_to
        assert (self.log.last_stable_offset, self.log.log_end_offset) == (stable, end)
        assert last_values(self.log) == before
        self.check()

    def reopen(self) -> None:
        if self.random.random() < 0.5:
            self.log.flusher.flush()
        recovery_point, end = self.log.flusher.recovery_point, self.log.log_end_offset
        tidy = self.random.random() < 0.5
        if tidy:
            self.log.close()
        else:
            self.harness.crash(self.log)
        self.harness.run_due()
        self.log = self.harness.open(self.config, clean=tidy, recovery_point=recovery_point)
        assert self.log.log_end_offset == end
        self.check()

    def check(self) -> None:
        """Compare with the model what can be compared while transactions are open."""
        if not self.open:
            assert self.log.last_stable_offset == self.log.log_end_offset
            expected = {key: value for key, (_, value) in self.table.items() if value is not None}
            assert last_values(self.log) == expected
        offsets = [(batch.base_offset, batch.next_offset) for batch in batches_of(self.log)]
        assert all(before[1] <= after[0] for before, after in pairwise(offsets))
        states = {one.producer_id: one.last_sequence for one in self.log.producer_states()}
        for pid, sequence in self.sequences.items():
            if pid >= 0:
                assert states[pid] == sequence - 1


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_the_last_value_of_each_key_is_that_of_before(seed: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        history = History(Path(root), seed)
        try:
            history.run(120)
            # All that is left of the dirty part is one record of each key, or nothing.
            cleaned = [
                record.key
                for batch in batches_of(history.log)
                if not batch.is_control and batch.base_offset < (history.cleaned_to or 0)
                for record in batch.records()
            ]
            assert len(cleaned) <= 2 * len(set(cleaned))
        finally:
            history.harness.close()
