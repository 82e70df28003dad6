"""A standalone Spark cluster as processes of its own, whose workers have nothing of this environment."""

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.network.ports import free_port
from harness.spark import sessions
from harness.waiting import wait_until

_WORKERS = 2
_SCRIPT_S = 400
_LEFT_OUT = {
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYSPARK_PYTHON",
    "PYSPARK_DRIVER_PYTHON",
    "SPARK_HOME",
}
_SETTINGS = {
    "spark.driver.extraJavaOptions": sessions.JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": sessions.JAVA_OPTIONS,
    # Not before every worker takes part.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.ui.enabled": "false",
}
# Parts of Arrow that are large, and that no data source of Spark's uses.
_LARGE = re.compile(r"pyarrow/(include|tests)/|/(lib)?(arrow_)?(python_)?_?(flight|s3|s3fs|gcsfs|azurefs)\b")


def spark_home() -> Path:
    """Return the folder of the installed Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


def own_environment(folder: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables without what leads to this interpreter, with settings of Spark's that are written into `folder`."""
    lines = "".join(f"{name} {value}\n" for name, value in {**_SETTINGS, **(settings or {})}.items())
    (folder / "spark-defaults.conf").write_text(lines)
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    path = [each for each in kept["PATH"].split(os.pathsep) if not each.startswith(sys.prefix)]
    here = {"SPARK_HOME": str(spark_home()), "SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**kept, **here, "PATH": os.pathsep.join(path)}


@contextmanager
def standalone_cluster(folder: Path, workers: int = _WORKERS) -> Iterator[str]:
    """A master and its workers, a core each, whose own Python has no kclient; the master's address.

    Executors have their folders in `folder`/work-0, `folder`/work-1 and so on.
    """
    spark_class = str(spark_home() / "bin" / "spark-class")
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [["master.Master", *here, "--port", port]]
    for number in range(workers):
        work = ["--work-dir", str(folder / f"work-{number}"), "--cores", "1", "--memory", "1g"]
        commands.append(["worker.Worker", *here, *work, url])
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    environment = {
        **own_environment(folder),
        "PYSPARK_PYTHON": base,
        "SPARK_DAEMON_JAVA_OPTS": sessions.JAVA_OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    # Not in the checkout, from which kclient can be imported without being installed.
    alone = [base, "-c", "import kclient"]
    assert subprocess.run(alone, cwd=folder, env=environment, capture_output=True, check=False).returncode
    log = folder / "cluster.log"
    with log.open("wb") as output:
        started = [
            subprocess.Popen(
                [spark_class, f"org.apache.spark.deploy.{each[0]}", *each[1:]],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
            )
            for each in commands
        ]
    try:
        registered = b"Successfully registered with master"
        wait_until(lambda: log.read_bytes().count(registered) == workers, 120, "the workers")
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


def make_environment(at: Path, names: Iterable[str], needed: bool = True) -> None:
    """Make a virtual environment with these packages as they are installed here, and with what they need."""
    venv.create(at, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = at / "lib" / version / "site-packages"
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    wanted, copied = list(names), set()
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
            if ".." in file.parts or _LARGE.search(f"/{file}") or not source.exists():
                continue  # a command, or a compiled file
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, site / file)
        if needed:
            requires = [each for each in distribution.requires or () if "extra ==" not in each]
            wanted += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in requires]


def add_command(at: Path, name: str, module: str) -> None:
    """Give an environment a command of a package that is copied into it."""
    command = at / "bin" / name
    command.write_text(f"#!{at}/bin/python\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
    command.chmod(0o755)


def run_script(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a script of bash's in `folder` to its end, and end all that it started; its output."""
    log = folder / "script.log"
    with log.open("wb") as output, (folder / "script.out").open("w+b") as printed:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
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
        printed.seek(0)
        said = printed.read().decode()
        # spark-submit puts the program's own errors into its output.
        assert ended == 0, f"{log.read_text()[-3000:]}\n{said[-3000:]}"
        return said
