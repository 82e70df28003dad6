"""A log holds what a plain list would hold, whatever is done to it in whatever order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness.broker.logs import LogHarness, read_all
from kclient.broker.log.config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.compress import CompressionType
from kclient.record import iter_batches


class LogMachine(RuleBasedStateMachine):
    """The model is the list of (offset, value, timestamp) between start and end, and the batches' first
    offsets.
    """

    log: UnifiedLog
    harness: LogHarness

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.records: list[tuple[int, bytes, int]] = []
        self.batches: list[tuple[int, int]] = []  # first and last offset
        self.start = self.end = 0
        self.sequence = 0
        self.last_sent: tuple[bytes, int] | None = None

    @initialize(interval=st.sampled_from([0, 100, 4096]), segment_bytes=st.integers(300, 3000))
    def open(self, interval: int, segment_bytes: int) -> None:
        self.harness = LogHarness(self.root)
        self.config = LogConfig(
            index_interval_bytes=interval,
            segment_bytes=segment_bytes,
            retention_bytes=2000,
            file_delete_delay_ms=0,
        )
        self.log = self.harness.open(self.config, clean=True)

    @rule(
        sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5),
        step_ms=st.integers(0, 5),
        codec=st.sampled_from([CompressionType.NONE, CompressionType.LZ4]),
    )
    def append(self, sizes: list[int], step_ms: int, codec: CompressionType) -> None:
        self.harness.time.advance(step_ms)
        now = self.harness.time.wall_ms()
        values = [b"%d." % (self.end + i) + b"x" * size for i, size in enumerate(sizes)]
        sent = self.harness.batch(values, pid=1, seq=self.sequence, compression=codec)
        info = self.log.append_as_leader(sent, 0)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + len(values) - 1)
        self.last_sent = (sent, self.end)
        self.batches.append((self.end, self.end + len(values) - 1))
        self.records += [(self.end + i, value, now) for i, value in enumerate(values)]
        self.end += len(values)
        self.sequence += len(values)

    @rule()
    def retry(self) -> None:
        if self.last_sent is not None:
            info = self.log.append_as_leader(self.last_sent[0], 0)
            assert (info.is_duplicate, info.first_offset) == (True, self.last_sent[1])

    @rule()
    def roll(self) -> None:
        assert self.log.roll() == self.end

    @rule()
    def flush(self) -> None:
        self.log.flusher.flush()
        assert self.log.flusher.recovery_point == self.end

    @rule(clean=st.booleans(), flushed=st.booleans())
    def reopen(self, clean: bool, flushed: bool) -> None:
        if flushed:
            self.log.flusher.flush()
        recovery_point = self.log.flusher.recovery_point
        if clean:
            self.log.close()
        else:
            self.harness.crash(self.log)
        self.harness.run_due()
        self.log = self.harness.open(
            self.config, clean=clean, log_start_offset=self.start, recovery_point=recovery_point
        )

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        if not self.batches:
            return
        cut = data.draw(st.sampled_from([first for first, _ in self.batches]))
        dropped = sum(offset >= cut for offset, _, _ in self.records)
        self.log.truncate_to(cut)
        self.batches = [batch for batch in self.batches if batch[0] < cut]
        self.records = [record for record in self.records if record[0] < cut]
        self.end = cut
        self.start = min(self.start, cut)
        # The producer begins anew, as the sequences after the cut are free again or forgotten.
        self.sequence = (
            self.sequence - dropped if self.batches and self.records else self._sequence_after_cut(cut)
        )
        self.last_sent = None

    def _sequence_after_cut(self, cut: int) -> int:
        states = self.log.producer_states()
        return states[0].last_sequence + 1 if states and states[0].last_sequence >= 0 else cut

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        before = data.draw(st.integers(self.start, self.end))
        self.start = self.log.delete_records_before(before)
        assert self.start == before

    @rule()
    def retain(self) -> None:
        self.log.delete_old_segments()
        self.harness.run_due()
        start = self.log.log_start_offset
        assert start >= self.start
        self.start = start
        self.batches = [batch for batch in self.batches if batch[0] >= self.log.segment_base_offsets[0]]

    @rule(data=st.data(), max_bytes=st.integers(1, 500))
    def read_somewhere(self, data: st.DataObject, max_bytes: int) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        found = self.log.read(offset, max_bytes)
        if offset == self.end:
            assert len(found.records) == 0
            return
        batch = next(iter(iter_batches(found.records)))
        assert batch.is_valid
        assert batch.base_offset <= offset <= batch.last_offset

    @rule(data=st.data(), back_ms=st.integers(-3, 30))
    def look_up_a_time(self, data: st.DataObject, back_ms: int) -> None:
        asked = self.harness.time.wall_ms() - back_ms
        alive = [record for record in self.records if record[0] >= self.start]
        expected = next(((ts, offset, 0) for offset, _, ts in alive if ts >= asked), None)
        assert self.log.offset_for_timestamp(asked) == expected

    @invariant()
    def the_log_is_what_the_list_is(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        self.records = [record for record in self.records if record[0] >= self.start]
        found = [(record.offset, record.value, record.timestamp_ms) for record in read_all(self.log)]
        assert found == self.records

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.harness.close()
        shutil.rmtree(self.root)


LogMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize=True,
)
TestLogModel = LogMachine.TestCase
