"""The recipe of docs/spark.md, as it is printed there, on a cluster whose workers have no kclient."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.network.ports import free_port
from harness.spark import sessions
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka

pytestmark = [pytest.mark.spark, pytest.mark.heavy, pytest.mark.timeout(600)]

_DOCS = Path(__file__).parent.parent.parent / "docs" / "spark.md"
_RECORDS = 50
_SCRIPT_S = 400
_JOB = """\
import sys
from pyspark.sql import SparkSession

servers, source, sink = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.format("kclient").option("kafka.bootstrap.servers", servers).option("subscribe", source).load()
(
    frame.write.format("kclient").mode("append")
    .option("kafka.bootstrap.servers", servers).option("topic", sink).save()
)
prefixes = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.prefix).collect()
print("executors run", *prefixes)
"""


def recipe() -> str:
    """The commands that pack an environment and submit a job with it."""
    blocks = re.findall(r"```bash\n(.*?)```", _DOCS.read_text(), re.DOTALL)
    return next(block for block in blocks if "venv-pack --prefix" in block)


def make_environment(at: Path) -> None:
    """A virtual environment with kclient and Arrow as they are installed here, and without PySpark."""
    venv.create(at, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = at / "lib" / version / "site-packages"
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    wanted, copied = ["kclient-kafka", "pyarrow"], set()
    while wanted:
        name = wanted.pop()
        if name in copied:
            continue
        copied.add(name)
        # From where it is installed, which the sources in the working directory are not.
        distribution = next(importlib.metadata.Distribution.discover(name=name, path=installed), None)
        if distribution is None:
            continue  # it is for another Python, or another system
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or not source.exists():
                continue  # a command, or a compiled file
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, site / file)
        needed = [each for each in distribution.requires or () if "extra ==" not in each]
        wanted += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A standalone cluster with one worker, which has nothing of this environment."""
    sessions.need()
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    of_master = ["org.apache.spark.deploy.master.Master", *here, "--port", port]
    of_worker = ["org.apache.spark.deploy.worker.Worker", *here, "--cores", "1", "--memory", "1g"]
    of_worker += ["--work-dir", str(tmp_path / "work"), url]
    log = tmp_path / "cluster.log"
    with log.open("wb") as output:
        started = [
            subprocess.Popen([spark_class, *each], env=clean_environment(), stdout=output, stderr=output)
            for each in (of_master, of_worker)
        ]
    try:
        wait_until(lambda: b"Successfully registered with master" in log.read_bytes(), 90, "the worker")
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


def clean_environment() -> dict[str, str]:
    """Without what leads to this interpreter."""
    left_out = {"VIRTUAL_ENV", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": without_this_environment(kept["PATH"])}


def without_this_environment(path: str) -> str:
    return os.pathsep.join(each for each in path.split(os.pathsep) if not each.startswith(sys.prefix))


def run(script: str, directory: Path, environment: dict[str, str]) -> str:
    """Run a script of bash's to its end, and end all that it started; its output."""
    log = directory / "script.log"
    with log.open("wb") as output, (directory / "script.out").open("w+b") as printed:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=directory,
            env=environment,
            stdout=printed,
            stderr=output,
            start_new_session=True,
        )
        try:
            ended = process.wait(_SCRIPT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
        assert ended == 0, log.read_text()[-4000:]
        printed.seek(0)
        return printed.read().decode()


def test_the_recipe_for_a_cluster_runs_as_printed(tmp_path: Path, master: str) -> None:
    import pyspark

    base = Path(sys.base_prefix) / "bin" / "python3"
    # Not in the checkout, from which it can be imported without being installed.
    alone = subprocess.run([base, "-c", "import kclient"], cwd=tmp_path, capture_output=True, check=False)
    assert alone.returncode != 0
    make_environment(tmp_path / "job-env")
    (tmp_path / "job.py").write_text(_JOB)
    (tmp_path / "bin").mkdir()
    for command in (
        Path(sys.prefix) / "bin" / "venv-pack",
        Path(pyspark.__file__).parent / "bin" / "spark-submit",
    ):
        (tmp_path / "bin" / command.name).symlink_to(command)
    environment = clean_environment()
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    with EmbeddedKafka() as kafka:
        servers = kafka.bootstrap_servers
        source, sink = new_topic(servers), new_topic(servers)
        produce(servers, source, _RECORDS)
        script = recipe().replace("spark://master:7077", master)
        script = script.rstrip() + f" {servers} {source} {sink}\n"
        executors = re.findall(r"executors run (.+)", run(script, tmp_path, environment))
        assert executors
        assert executors[0].startswith(str(tmp_path / "work"))
        written = {record.value for record in read_all(servers, sink)}
    assert written == {b"v%d" % number for number in range(_RECORDS)}
