"""Imports of kclient in Spark's Python processes: each does one thing, and every query starts one that only plans."""

from __future__ import annotations

import subprocess
import sys

import pytest

# As the process that plans a stream does it; what is imported so far is Spark's.
START = """
import sys
import pyspark.sql.streaming.python_streaming_source_runner
from pyspark.sql.datasource import CaseInsensitiveDict
spark = set(sys.modules)
from kclient.spark.data_source import KafkaDataSource
def source(**options):
    return KafkaDataSource(CaseInsensitiveDict({"kafka.bootstrap.servers": "127.0.0.1:1", **options}))
"""
END = """
print(*(name for name in sys.modules if name not in spark))
"""
STEPS = {
    "the class": "",
    "a plan": """
source = source(subscribe="t", startingOffsets="earliest")
reader = source.streamReader(source.schema())
assert reader._planner
from kclient.spark import clients
clients.shared_admin(reader._planner._resolver._settings).close()
""",
    "a task that reads": """
source = source(subscribe="t", startingOffsets="earliest")
reader = source.reader(source.schema())
from kclient.spark.ranges import OffsetRange
from kclient.common.topic_partition import TopicPartition
import pyspark.sql.datasource, itertools
wanted = OffsetRange(TopicPartition("t", 0), 0, 0)
assert list(reader.read(pyspark.sql.datasource.InputPartition(wanted))) == []
""",
    "a task that writes": """
from pyspark.sql.types import StructField, StructType, BinaryType
sink = source(topic="t").writer(StructType([StructField("value", BinaryType())]), False)
assert sink.write(iter([])).written == {}
from kclient.spark import clients
clients.shared_producer(sink._options.settings)
clients.close_all()
""",
}
CLIENTS = {
    "kclient.admin.kafka_admin_client",
    "kclient.consumer.kafka_consumer",
    "kclient.producer.kafka_producer",
}
USED = {
    "the class": set(),
    "a plan": {"kclient.admin.kafka_admin_client"},
    "a task that reads": {"kclient.consumer.kafka_consumer"},
    "a task that writes": {"kclient.producer.kafka_producer"},
}
# Of the standard library and of others, where nothing that a query does needs them.
HEAVY = {
    "asyncio",
    "concurrent",
    "ctypes",
    "http",
    "multiprocessing",
    "numpy",
    "pandas",
    "rich",
    "unittest",
    "xml",
}
# Of what an admin client can do, a plan asks for topics and offsets.
UNASKED = {
    f"kclient.protocol.messages.{name}" for name in ("create_topics", "describe_groups", "offset_fetch")
}
OURS = {"kclient.broker", "kclient.cli", "kclient.spark.pipelines"}
# Packages and modules that a step has no use for, with all below them.
UNUSED = {
    "the class": ("kclient.admin", "kclient.client", "kclient.consumer", "kclient.producer"),
    "a plan": ("kclient.consumer.internals", "kclient.producer"),
    "a task that reads": (
        "kclient.admin",
        "kclient.consumer.assignor",
        "kclient.consumer.internals.coordinator.assembly",
        "kclient.consumer.internals.coordinator.commits",
        "kclient.producer",
    ),
    "a task that writes": ("kclient.admin", "kclient.consumer", "kclient.producer.internals.transactions"),
}
# For brokers with TLS or SASL, and for records on disk and of old formats.
UNUSED_EVERYWHERE = (
    "cryptography",
    "kclient.network.sasl_authenticator",
    "kclient.record.file_records",
    "kclient.record.legacy",
    "kclient.security",
    "ssl",
)


@pytest.mark.parametrize("step", STEPS)
def test_a_process_imports_the_client_that_it_uses_and_no_other(step: str) -> None:
    program = START + STEPS[step] + END
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert imported & CLIENTS == USED[step]
    assert not imported & OURS
    unused = (*UNUSED[step], *UNUSED_EVERYWHERE)
    assert not [name for name in imported if any(f"{name}.".startswith(f"{each}.") for each in unused)]
    assert step != "a plan" or not imported & UNASKED
    assert not {name.partition(".")[0] for name in imported} & HEAVY
