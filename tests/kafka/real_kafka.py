"""A real Apache Kafka broker (KRaft, one node) and its command line tools, from Maven.

Used by the tests in this folder, by the soak and by the benchmarks. Needs Java 17 and Maven; nothing of Kafka is
installed: the jars stay in Maven's own repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CACHE = HERE / ".cache"


def missing() -> str | None:
    """Why a real Kafka cannot run here, None if it can."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            return f"{program} is not installed (a real Apache Kafka needs Java 17 and Maven)"
    return None


def classpath(pom: Path = POM) -> str:
    """The jars of `pom`, fetched by Maven once and remembered for as long as the pom and the jars stay."""
    CACHE.mkdir(exist_ok=True)
    known = CACHE / f"classpath-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}.txt"
    if known.exists():
        text = known.read_text()
        if all(Path(jar).exists() for jar in text.split(os.pathsep)):
            return text
    fresh = known.with_suffix(f".{os.getpid()}")
    subprocess.run(
        ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={fresh}"],
        check=True,
        timeout=600,
        stdout=subprocess.DEVNULL,
    )
    fresh.replace(known)
    return known.read_text()


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RealKafka:
    """One broker with its own directory, port and log file.

    `settings` overrides lines of server.properties. Use as a context manager, or call start() and close().
    """

    def __init__(self, *, heap: str = "512m", settings: dict[str, str] | None = None) -> None:
        self._classpath = classpath()
        self._heap = heap
        self._dir = Path(tempfile.mkdtemp(prefix="kclient-kafka-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.log_file = self._dir / "broker.log"
        self.log_dir = self._dir / "data"
        controller = free_port()
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.initial.task.delay.ms": "1000",
            "auto.create.topics.enable": "true",
            "num.partitions": "1",
            **(settings or {}),
        }
        self._config = self._dir / "server.properties"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if cluster_id.startswith("-"):
            cluster_id = "A" + cluster_id[1:]  # StorageTool would take a leading dash for an option
        self.tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._config))

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the broker."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self._process is not None
        return self._process.pid

    def start(self, timeout_s: float = 60.0) -> Self:
        """Start the broker and wait until it accepts connections and says that it runs."""
        with self.log_file.open("ab") as log:
            offset = log.tell()
            self._process = subprocess.Popen(
                [
                    "java",
                    f"-Xmx{self._heap}",
                    f"-Xms{self._heap}",
                    "-XX:+UseG1GC",
                    f"-Dorg.slf4j.simpleLogger.logFile={self.log_file}.slf4j",
                    "-cp",
                    self._classpath,
                    "kafka.Kafka",
                    str(self._config),
                ],
                stdout=log,
                stderr=log,
                cwd=self._dir,
            )
        deadline = time.monotonic() + timeout_s
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Kafka did not start:\n{self._tail(offset)}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
                continue
            return self

    def stop(self, timeout_s: float = 60.0) -> None:
        """Shut the broker down cleanly (SIGTERM)."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL, 10.0)

    def signal(self, number: int) -> None:
        """Send a signal such as SIGSTOP or SIGCONT."""
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: int, timeout_s: float) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process = None

    def tool(
        self,
        main_class: str,
        *arguments: str,
        stdin: bytes | None = None,
        timeout_s: float = 90.0,
        check: bool = True,
    ) -> str:
        """Run one of Kafka's command line classes to its end; its standard output."""
        done = subprocess.run(
            ["java", "-Xmx256m", "-cp", self._classpath, main_class, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(
                f"{main_class} {' '.join(arguments)} ended with {done.returncode}:\n"
                f"{done.stdout.decode(errors='replace')[-4000:]}\n{done.stderr.decode(errors='replace')[-4000:]}"
            )
        return done.stdout.decode(errors="replace")

    def close(self) -> None:
        """Stop the broker, if it runs, and remove its files."""
        self.stop()
        shutil.rmtree(self._dir, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:  # a Ctrl-C as well: nobody else would stop it
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tail(self, offset: int) -> str:
        with self.log_file.open("rb") as log:
            log.seek(offset)
            return log.read()[-8000:].decode(errors="replace")
