"""Processes of a real Apache Kafka (KRaft) and its command line tools, from Maven.

Needs Java 17 and Maven; nothing of Kafka is installed: the jars stay in Maven's own repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
POM_4_4 = HERE / "pom-4.4.0.xml"
"""A broker alone, for what is newer than POM's."""
POM_3_9 = HERE / "pom-3.9.1.xml"
"""A broker alone, of the last release before transactions got an epoch each."""
POM_2_8 = HERE / "pom-2.8.2.xml"
"""A broker alone, of the time before KRaft, and ZooKeeper."""
CACHE = HERE / ".cache"
# For a process of minutes the better compiler does not pay off, nor does a collector with threads.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LONG_LIVED = ("-XX:+UseG1GC",)


def missing() -> str | None:
    """The reason why a real Kafka cannot run here, None if it can."""
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


def new_id() -> str:
    """An id of a cluster or a directory, as Kafka writes them."""
    made = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    return "A" + made[1:] if made.startswith("-") else made  # a leading dash would be taken for an option


def tool(
    main_class: str,
    *arguments: str,
    stdin: bytes | None = None,
    timeout_s: float = 90.0,
    check: bool = True,
    pom: Path = POM,
) -> str:
    """Run one of Kafka's command line classes to its end; its standard output."""
    done = subprocess.run(
        ["java", *SHORT_LIVED, "-Xmx256m", "-cp", classpath(pom), main_class, *arguments],
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


class KafkaNode:
    """One process of Kafka: a broker, a controller or both, as the lines of its server.properties say.

    `directory` holds its properties, its log file and its data; `port` is the one that tells that it runs. `java` are
    options of the virtual machine. `pom` says which jars it has, and `more_classes` where there are others.
    """

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str],
        *,
        port: int,
        heap: str,
        java: Sequence[str] = SHORT_LIVED,
        pom: Path = POM,
        more_classes: Path | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = port
        self.log_file = directory / "broker.log"
        self.log_dir = directory / "data"
        self.config = directory / "server.properties"
        lines = {"log.dirs": str(self.log_dir), **properties}
        self.config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        self.directory = directory
        self._pom = pom
        self._classpath = classpath(pom) + (f"{os.pathsep}{more_classes}" if more_classes else "")
        self._heap = heap
        self._java = java
        self._process: subprocess.Popen[bytes] | None = None

    def format(self, cluster_id: str) -> None:
        """Prepare the data directory."""
        tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.config), pom=self._pom)

    @property
    def running(self) -> bool:
        """Started, and not stopped or killed since."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def start(self, timeout_s: float = 60.0) -> None:
        """Start the process and wait until it accepts connections."""
        self.spawn()
        self.wait(timeout_s)

    def spawn(self) -> None:
        """Start the process."""
        with self.log_file.open("ab") as log:
            self._offset = log.tell()
            self._process = subprocess.Popen(
                [
                    "java",
                    f"-Xmx{self._heap}",
                    f"-Xms{self._heap}",
                    *self._java,
                    f"-Dorg.slf4j.simpleLogger.logFile={self.log_file}.slf4j",
                    "-cp",
                    self._classpath,
                    "kafka.Kafka",
                    str(self.config),
                ],
                stdout=log,
                stderr=log,
                cwd=self.directory,
            )

    def wait(self, timeout_s: float = 60.0) -> None:
        """Wait until the process accepts connections."""
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Kafka did not start:\n{self._tail()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)

    def stop(self, timeout_s: float = 60.0) -> None:
        """Shut down cleanly (SIGTERM)."""
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

    def _tail(self) -> str:
        with self.log_file.open("rb") as log:
            log.seek(self._offset)
            return log.read()[-8000:].decode(errors="replace")
