"""Metrics of topics, partitions, logs and the cleaner."""

from __future__ import annotations

from kclient.broker.log.log_manager import LogManager
from kclient.broker.metrics.readout import Readout
from kclient.broker.metrics.topic_counts import TopicCounts
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.errors import KafkaError

_TOPICS = "server.BrokerTopicMetrics"
_REPLICAS = "server.ReplicaManager"


def read_topics(out: Readout, replicas: ReplicaManager) -> None:
    """Read out what was written and read, in all and by topic. For any thread."""
    total, topics = replicas.topic_counts()
    _read_counts(out, total)
    for topic, counts in sorted(topics.items()):
        _read_counts(out, counts, topic=topic)


def read_replicas(out: Readout, replicas: ReplicaManager) -> None:
    """Read out the state of the partitions, and of requests that wait for them. For any thread."""
    partitions = replicas.partitions()
    out.gauge(_REPLICAS, "PartitionCount", len(partitions), "Partitions of this broker")
    out.gauge(_REPLICAS, "LeaderCount", len(partitions), "Partitions that this broker leads")
    out.gauge(_REPLICAS, "OfflineReplicaCount", replicas.offline_count, "Partitions that cannot be served")
    under = sum(partition.log.config.min_insync_replicas > 1 for partition in partitions)
    out.gauge(_REPLICAS, "UnderMinIsrPartitionCount", under, "Partitions with too few replicas for acks=all")


def read_logs(out: Readout, logs: LogManager) -> None:
    """Read out logs and their directories. For any thread."""
    directories = logs.log_dirs
    offline = [one for one in directories if one.offline_error is not None]
    out.gauge("log.LogManager", "OfflineLogDirectoryCount", len(offline), "Log directories that have failed")
    for one in directories:
        failed = one.offline_error is not None
        out.gauge(
            "log.LogManager", "LogDirectoryOffline", failed, "1 if it has failed", logDirectory=str(one.path)
        )
    flushes = [one.commits.flush_times for one in directories]
    out.times("log.LogFlushStats", "LogFlushRateAndTimeMs", flushes, "Time to force a log to disk")
    for log in logs.all_logs():
        tp = log.topic_partition
        tags = {"topic": tp.topic, "partition": str(tp.partition)}
        try:
            segments, size = len(log.segment_base_offsets), log.size
        except KafkaError:
            continue  # closed or offline meanwhile
        out.gauge("log.Log", "Size", size, "Bytes of the log", **tags)
        out.gauge("log.Log", "NumLogSegments", segments, "Segments of the log", **tags)
        out.gauge("log.Log", "LogStartOffset", log.log_start_offset, "First offset of the log", **tags)
        out.gauge("log.Log", "LogEndOffset", log.log_end_offset, "Offset of the next record", **tags)


def read_cleaner(out: Readout, logs: LogManager) -> None:
    """Read out the log cleaner, if there is one. For any thread."""
    if logs.cleaner is None:
        return
    now = logs.cleaner.metrics()
    group, manager = "log.LogCleaner", "log.LogCleanerManager"
    used = now.max_buffer_utilization_percent
    out.gauge(group, "max-buffer-utilization-percent", used, "Share of the map of keys that was needed")
    out.gauge(group, "cleaner-recopy-percent", now.cleaner_recopy_percent, "Share of the bytes that stayed")
    out.gauge(group, "max-clean-time-secs", now.max_clean_time_secs, "Longest of the last rounds")
    late = now.max_compaction_delay_secs
    out.gauge(group, "max-compaction-delay-secs", late, "Time by which max.compaction.lag.ms is exceeded")
    out.gauge(group, "DeadThreadCount", now.dead_thread_count, "Threads that have ended by an error")
    out.gauge(manager, "max-dirty-percent", now.max_dirty_percent, "Dirty share of the dirtiest log")
    out.gauge(
        manager, "time-since-last-run-ms", now.time_since_last_run_ms, "Time since something was looked for"
    )
    for one in logs.log_dirs:
        count = now.uncleanable_partitions_counts.get(one.path, 0)
        out.gauge(
            manager,
            "uncleanable-partitions-count",
            count,
            "Logs that cannot be cleaned",
            logDirectory=str(one.path),
        )


def _read_counts(out: Readout, counts: TopicCounts, **tags: str) -> None:
    for name, count, description in (
        ("MessagesInPerSec", counts.messages_in, "Records that were written"),
        ("BytesInPerSec", counts.bytes_in, "Bytes that were written"),
        ("BytesOutPerSec", counts.bytes_out, "Bytes that were read"),
        ("BytesRejectedPerSec", counts.bytes_rejected, "Bytes that were too large"),
        ("TotalProduceRequestsPerSec", counts.produce_requests, "Writes to a partition"),
        ("FailedProduceRequestsPerSec", counts.failed_produce_requests, "Writes that failed unexpectedly"),
        ("TotalFetchRequestsPerSec", counts.fetch_requests, "Reads of a partition"),
        ("FailedFetchRequestsPerSec", counts.failed_fetch_requests, "Reads that failed unexpectedly"),
    ):
        out.counter(_TOPICS, name, count, description, **tags)
