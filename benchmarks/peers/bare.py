"""The least that it takes: the bytes of the records through a socket, or through OpenSSL, and no Kafka at all."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.case import Job, Measured
from benchmarks.watch import Stopwatch

_PIECE_BYTES = 65_536
# The other end: reads all there is, or writes for ever.
_OTHER_END = """
import socket, ssl, sys
port, authority, writes = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "writes"
sock = socket.create_connection(("127.0.0.1", port))
if authority:
    sock = ssl.create_default_context(cafile=authority).wrap_socket(sock, server_hostname="127.0.0.1")
piece = bytearray(65536)
try:
    while True:
        if writes:
            sock.sendall(piece)
        elif not sock.recv_into(piece):
            break
except OSError:
    pass
"""


def produce(job: Job) -> Measured:
    """Write the bytes of all records."""
    piece = b"".join(job.case.values() * (_PIECE_BYTES // (1000 * job.case.size) + 1))[:_PIECE_BYTES]
    left = job.records * job.case.size
    with _connected(job, "reads") as sock, Stopwatch() as watch:
        while left > 0:
            sock.sendall(piece)
            left -= len(piece)
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job) -> Measured:
    """Read the bytes of all records."""
    piece = bytearray(_PIECE_BYTES)
    left = job.records * job.case.size
    with _connected(job, "writes") as sock, Stopwatch() as watch:
        while left > 0:
            left -= sock.recv_into(piece)
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


@contextlib.contextmanager
def _connected(job: Job, other: str) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        command = [sys.executable, "-c", _OTHER_END, port, job.authority, other]
        with subprocess.Popen(command) as process:
            try:
                sock, _ = listening.accept()
                if job.authority:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(job.certificate)
                    sock = context.wrap_socket(sock, server_side=True)
                with sock:
                    yield sock
            finally:
                process.kill()
