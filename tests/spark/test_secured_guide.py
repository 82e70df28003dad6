"""The job of docs/spark.md for a secured cluster, as it is printed, with an executor that has what it ships alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.spark import sessions
from harness.spark.cluster_job import writable_home
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer

pytestmark = [pytest.mark.spark, pytest.mark.heavy, pytest.mark.timeout(300)]

_DOCS = Path(__file__).parent.parent.parent / "docs" / "spark.md"
_CONF = {
    "spark.executor.memory": "700m",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": sessions.JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": sessions.JAVA_OPTIONS,
}
_RECORDS = 20


def printed(language: str) -> str:
    """The first block of a language in the section."""
    section = _DOCS.read_text().partition("\n## Secured clusters\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_job_for_a_secured_cluster_runs_as_printed(tmp_path: Path) -> None:
    sessions.need()
    with EmbeddedKafka(security="SASL_SSL", users={"alice": "secret"}) as kafka:
        client = kafka.client_settings("alice")
        with KafkaAdminClient(client) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=2)])
        with KafkaProducer(client) as producer:
            for number in range(_RECORDS):
                producer.send("orders", b"%d" % number)
        shutil.copy(str(client["ssl.truststore.location"]), tmp_path / "authority.pem")
        # The embedded broker has its users for PLAIN.
        secrets = printed("properties").replace("scram.ScramLoginModule", "plain.PlainLoginModule")
        (tmp_path / "secrets.properties").write_text(secrets)
        job = printed("python").replace("SCRAM-SHA-512", "PLAIN")
        job = job.replace("broker.example:9094", kafka.bootstrap_servers).replace("/data/", f"{tmp_path}/")
        (tmp_path / "job.py").write_text(job)
        conf = "".join(f"{name} {value}\n" for name, value in _CONF.items())
        (tmp_path / "spark-defaults.conf").write_text(conf)
        home = writable_home(tmp_path)
        environment = {
            **os.environ,
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(tmp_path),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        done = subprocess.run(
            printed("bash").replace("spark://master:7077", "local-cluster[1,1,700]").split(),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
        assert 'secret"' not in done.stdout + done.stderr
        values: Counter[bytes] = Counter()
        with KafkaConsumer(client) as consumer:
            consumer.assign([TopicPartition("orders-copy", 0)])
            consumer.seek_to_beginning()

            def complete() -> bool:
                values.update(record.value for record in consumer.poll(500))
                return values.total() >= _RECORDS

            wait_until(complete, 60, "the records")
    assert values == {b"%d" % number: 1 for number in range(_RECORDS)}
