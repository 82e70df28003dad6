"""The recipes of docs/spark.md, as they are printed there, on a cluster whose workers have no kclient."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from harness.network.ports import free_port
from harness.spark import sessions
from harness.spark.standalone import (
    add_command,
    make_environment,
    own_environment,
    run_script,
    spark_home,
    standalone_cluster,
)
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka

pytestmark = [
    pytest.mark.spark,
    pytest.mark.heavy,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("spark-cluster"),
]

_DOCS = Path(__file__).parent.parent.parent / "docs" / "spark.md"
_MASTER = "spark://master:7077"
_RECORDS = 50
_JOB = """\
import sys
from pyspark.sql import SparkSession

servers, source, sink = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
{more}
frame = spark.read.format("kclient").option("kafka.bootstrap.servers", servers).option("subscribe", source).load()
(
    frame.write.format("kclient").mode("append")
    .option("kafka.bootstrap.servers", servers).option("topic", sink).save()
)
def environment(_):
    import kclient, os
    yield f"{{os.getcwd()}} {{sys.prefix}} {{kclient._accel.IMPL}}"
two = spark.sparkContext.parallelize([0, 1], 2).barrier()  # on two executors at the same time
for found in two.mapPartitions(environment).collect():
    print("executor:", found)
"""


def blocks(heading: str, language: str = "bash") -> list[str]:
    """The programs of one section of the guide."""
    section = _DOCS.read_text().partition(f"\n### {heading}\n")[2].partition("\n##")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@attrs.frozen
class Cluster:
    """A standalone cluster and a broker, and a folder for both."""

    folder: Path
    master: str
    servers: str

    def environment(self, folder: Path, *, index: bool) -> dict[str, str]:
        """Variables for someone who has Spark and pip in his path; without an index pip finds kclient alone."""
        tools = folder / "bin"
        tools.mkdir()
        (tools / "spark-submit").symlink_to(spark_home() / "bin" / "spark-submit")
        (tools / "pip").symlink_to(Path(sys.prefix) / "bin" / "pip")
        variables = own_environment(folder)
        # No index has kclient. It was built for this environment.
        wheels = {"PIP_FIND_LINKS": str(Path(sys.prefix) / "wheel")}
        if not index:
            wheels["PIP_NO_INDEX"] = "1"
        return {**variables, **wheels, "PATH": f"{tools}:{variables['PATH']}"}

    def submit(self, script: str, folder: Path, more: str = "", *, index: bool = False) -> list[list[str]]:
        """Run the script, which submits a job that copies a topic.

        The folder, the environment and kclient's body of each of the two executors.
        """
        (folder / "job.py").write_text(_JOB.format(more=more))
        source, sink = new_topic(self.servers), new_topic(self.servers)
        produce(self.servers, source, _RECORDS)
        script = script.replace(_MASTER, self.master).rstrip() + f" {self.servers} {source} {sink}\n"
        printed = run_script(script, folder, self.environment(folder, index=index))
        assert {each.value for each in read_all(self.servers, sink)} == {b"v%d" % n for n in range(_RECORDS)}
        found = [line.split() for line in re.findall(r"executor: (.+)", printed)]
        assert len({where for where, _, _ in found}) == 2
        assert all(where.startswith(f"{self.folder}/work-") for where, _, _ in found)
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    sessions.need()
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as master, EmbeddedKafka() as kafka:
        yield Cluster(folder, master, kafka.bootstrap_servers)


def test_an_archive_of_an_environment(cluster: Cluster, tmp_path: Path) -> None:
    make_environment(tmp_path / "job-env", ["kclient-kafka", "pyarrow", "venv-pack"])
    add_command(tmp_path / "job-env", "venv-pack", "venv_pack.__main__")
    made, submitted = blocks("An archive of an environment")
    assert "-m venv job-env\njob-env/bin/pip install 'kclient-kafka[arrow]' venv-pack\n" in made
    for where, prefix, body in cluster.submit(submitted, tmp_path):
        assert (prefix, body) == (f"{where}/job-env", "c")


@pytest.mark.soak
@pytest.mark.long
def test_an_archive_of_an_environment_from_an_empty_folder(cluster: Cluster, tmp_path: Path) -> None:
    script = "".join(blocks("An archive of an environment"))
    for where, prefix, body in cluster.submit(script, tmp_path, index=True):
        assert (prefix, body) == (f"{where}/job-env", "c")


@pytest.mark.soak
@pytest.mark.long
def test_installed_in_the_image(cluster: Cluster, tmp_path: Path) -> None:
    image = tmp_path / "image"
    make_environment(image, ["kclient-kafka", "pyarrow"])
    _, submitted = blocks("Installed in the image")
    assert "/opt/kclient/" in submitted
    for _, prefix, body in cluster.submit(submitted.replace("/opt/kclient", str(image)), tmp_path):
        assert (prefix, body) == (str(image), "c")


@pytest.mark.soak
@pytest.mark.long
def test_a_zip_beside_what_kclient_needs(cluster: Cluster, tmp_path: Path) -> None:
    python = tmp_path / "python"
    make_environment(python, ["attrs", "crc32c", "pyarrow"], needed=False)
    heading = "A zip, with `--py-files`"
    (submitted,) = blocks(heading)
    (register,) = blocks(heading, "python")
    assert "/opt/python/" in submitted
    for _, prefix, body in cluster.submit(submitted.replace("/opt/python", str(python)), tmp_path, register):
        assert (prefix, body) == (str(python), "python")


_CONNECTED = """
import importlib.util
assert importlib.util.find_spec("kclient") is None
kafka = {"kafka.bootstrap.servers": servers}
frame = spark.read.format("kclient").options(**kafka, subscribe=source).load()
frame.write.format("kclient").mode("append").options(**kafka, topic=sink).save()
stream = spark.readStream.format("kclient").options(**kafka, subscribe=source, startingOffsets="earliest").load()
writing = stream.writeStream.format("kclient").options(**kafka, topic=sink, checkpointLocation=checkpoint)
query = writing.trigger(availableNow=True).start()
assert query.awaitTermination(120)
assert query.exception() is None
spark.stop()
"""


@pytest.mark.soak
@pytest.mark.long
def test_a_client_of_spark_connect_needs_no_kclient(cluster: Cluster, tmp_path: Path) -> None:
    image, log = tmp_path / "image", tmp_path / "server"
    make_environment(image, ["kclient-kafka", "pyarrow"])
    made, started = blocks("Spark Connect")
    (connected,) = blocks("Spark Connect", "python")
    port = free_port()
    server = {
        **own_environment(tmp_path, {"spark.connect.grpc.binding.port": str(port)}),
        "SPARK_LOG_DIR": str(log),
        "SPARK_PID_DIR": str(tmp_path),
    }
    assert "/opt/kclient/" in started
    run_script(started.replace("/opt/kclient", str(image)).replace(_MASTER, cluster.master), tmp_path, server)
    try:
        run_script(made, tmp_path, own_environment(tmp_path))
        source, sink = new_topic(cluster.servers), new_topic(cluster.servers)
        produce(cluster.servers, source, _RECORDS)
        wait_until(
            lambda: any(b"Connect server started at" in each.read_bytes() for each in log.iterdir()),
            120,
            "the server",
        )
        assert "sc://server:15002" in connected
        program = tmp_path / "program.py"
        given = f"servers, source, sink = {cluster.servers!r}, {source!r}, {sink!r}\n"
        given += f"checkpoint = {str(tmp_path / 'checkpoint')!r}\n"
        program.write_text(given + connected.replace("server:15002", f"127.0.0.1:{port}") + _CONNECTED)
        done = subprocess.run(
            [tmp_path / "client-env" / "bin" / "python", program],
            cwd=tmp_path,
            env={name: value for name, value in server.items() if not name.startswith("SPARK")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert len(read_all(cluster.servers, sink)) == 2 * _RECORDS
    finally:
        run_script("$SPARK_HOME/sbin/stop-connect-server.sh", tmp_path, server)
