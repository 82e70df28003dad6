"""A ZooKeeper, for brokers of the time before KRaft."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.network.ports import free_port
from harness.real_kafka.node import POM_2_8, SHORT_LIVED, classpath
from harness.waiting import wait_until


@contextmanager
def zookeeper() -> Iterator[str]:
    """A ZooKeeper with nothing in it; its address."""
    port = free_port()
    command = [
        "java",
        *SHORT_LIVED,
        "-Xmx128m",
        "-Dzookeeper.admin.enableServer=false",
        "-cp",
        classpath(POM_2_8),
        "org.apache.zookeeper.server.ZooKeeperServerMain",
    ]
    with tempfile.TemporaryDirectory(prefix="kclient-zookeeper-", ignore_cleanup_errors=True) as directory:
        log = Path(directory, "zookeeper.log")
        with (
            log.open("wb") as out,
            subprocess.Popen([*command, str(port), directory], stdout=out, stderr=out) as process,
        ):

            def listens() -> bool:
                if process.poll() is not None:
                    raise RuntimeError(f"ZooKeeper did not start:\n{log.read_text()[-8000:]}")
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            try:
                wait_until(listens, 60, "ZooKeeper")
                yield f"127.0.0.1:{port}"
            finally:
                process.kill()
