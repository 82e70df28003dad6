"""A Kerberos KDC (Apache Kerby), from Maven."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from harness.real_kafka.node import HERE, SHORT_LIVED, classpath
from harness.waiting import wait_until

_SETTINGS = """org.name=EXAMPLE
org.domain=COM
kdc.bind.address=127.0.0.1
kdc.port=0
instance=DefaultKrbServer
max.ticket.lifetime=86400000
max.renewable.lifetime=604800000
transport=TCP
debug=false
"""


@attrs.frozen
class Kdc:
    """A KDC that runs: what Kerberos' libraries, Java's too, have to know of it, and the keys of its principals."""

    krb5_conf: Path
    key_table: Path


@contextmanager
def kdc(*principals: str) -> Iterator[Kdc]:
    """A KDC of the realm EXAMPLE.COM that knows `principals`; their keys are in one key table."""
    directory = Path(tempfile.mkdtemp(prefix="kclient-kdc-"))
    work, settings, log = directory / "work", directory / "kdc.properties", directory / "kdc.log"
    work.mkdir()
    settings.write_text(_SETTINGS)
    made = Kdc(directory / "krb5.conf", directory / "keys")
    command = [
        "java",
        *SHORT_LIVED,
        "-Xmx128m",
        "-cp",
        classpath(HERE / "kdc.xml"),
        "org.apache.hadoop.minikdc.MiniKdc",
    ]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*command, str(work), str(settings), str(made.key_table), *principals], stdout=out, stderr=out
        ) as process,
    ):
        try:
            wait_until(lambda: b"Do <CTRL-C>" in log.read_bytes(), 60, "the KDC")
            # A name is taken as it is: what DNS says of addresses on a machine with tests is anybody's guess.
            plain = "[libdefaults]\n    dns_canonicalize_hostname = false\n    rdns = false"
            made.krb5_conf.write_text((work / "krb5.conf").read_text().replace("[libdefaults]", plain))
            yield made
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(directory, ignore_errors=True)
