"""Spark finds the format by itself where kclient is installed, and says what is missing where PySpark is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.spark import sessions

ROOT = Path(__file__).parent.parent.parent
LOAD = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
reader = spark.read.format("kclient").option("kafka.bootstrap.servers", "127.0.0.1:1")
print(reader.option("subscribe", "t").load().columns)
import pyspark_kclient
print(pyspark_kclient.__file__)
spark.stop()
"""
BLOCKED = """
import sys
sys.modules["pyspark"] = None
import kclient.spark
for name in kclient.spark.__all__:
    try:
        getattr(kclient.spark, name)
    except ImportError as error:
        print(error)
    else:
        print(name, "is there")
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env={**kept, **variables}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.heavy
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_an_installed_kclient_is_found_without_registration(tmp_path: Path) -> None:
    sessions.need()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    # The pure body is enough here, and no compiler is waited for.
    run(*pip, "--target", tmp_path / "site", ROOT, cwd=tmp_path, CC="/bin/false")
    script = tmp_path / "load.py"
    script.write_text(LOAD)
    said = run(
        sys.executable, script, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"), PYSPARK_PYTHON=sys.executable
    )
    columns, where = said.splitlines()[-2:]
    assert columns == "['key', 'value', 'topic', 'partition', 'offset', 'timestamp', 'timestampType']"
    assert where.startswith(str(tmp_path / "site"))


def test_without_pyspark_the_names_say_what_to_install(tmp_path: Path) -> None:
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED)
    said = run(sys.executable, script, cwd=ROOT)
    assert said.count("pip install 'kclient-kafka[spark]'") == 4
    # Which looks at options alone, and may do so on another machine than the job's.
    assert said.count("is there") == said.count("migrate_report is there") == 1


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import kclient.spark

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kclient.spark.nothing
