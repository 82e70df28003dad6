"""Clients that nobody has closed when the interpreter ends, and names of modules are gone, and daemons have stopped."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

_CLIENTS = """
import gc, logging, sys, threading, time
import __main__
import kclient

logging.disable()
DEAD = {"bootstrap.servers": "127.0.0.1:1"}
KINDS = {
    "producer": lambda: kclient.KafkaProducer(DEAD),
    "consumer": lambda: kclient.KafkaConsumer({**DEAD, "group.id": "g"}),
    "share": lambda: kclient.KafkaShareConsumer({**DEAD, "group.id": "g"}),
    "admin": lambda: kclient.KafkaAdminClient(DEAD),
}

def make():
    return [each() for each in KINDS.values()]

def in_thread(function, *arguments):
    began = threading.Event()
    def run():
        kept = function(*arguments)
        began.set()
        time.sleep(1000)
    threading.Thread(target=run, daemon=True).start()
    began.wait()
"""
_MODULES_GO = """
# Whoever has this module keeps it, so that it gives its names up one by one, after those of all other modules.
in_thread(lambda: __main__)
"""
_KEPT = {
    "by a name of the module": "clients = make()",
    "by a cycle": "gc.disable()\nclients = make()\nclients.append(clients)\ndel clients",
    "by a cycle that the module names": "clients = make()\nclients.append(clients)",
    "by a daemon": "in_thread(make)",
    "by sys": "sys.clients = make()",
}


def ended(*program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", _CLIENTS + "".join(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )


@pytest.mark.parametrize("kept", _KEPT.values(), ids=_KEPT)
def test_nothing_is_printed_but_that_clients_were_not_closed(kept: str) -> None:
    said = ended(_MODULES_GO, kept).stderr.splitlines()
    warning = re.compile(r"sys:1: ResourceWarning: Kafka(Share)?(Consumer|AdminClient) [\w-]+ was not closed")
    assert [line for line in said if not warning.match(line)] == []


def test_those_that_are_let_go_of_are_warned_of() -> None:
    said = ended(_MODULES_GO, _KEPT["by a name of the module"]).stderr
    assert sorted(re.findall(r"Kafka\w+", said)) == [
        "KafkaAdminClient",
        "KafkaConsumer",
        "KafkaShareConsumer",
    ]


@pytest.mark.parametrize("kind", ["producer", "consumer", "share", "admin"])
def test_a_client_that_is_closed_then_waits_for_no_daemon(kind: str) -> None:
    """A close() in a `__del__` of the program: daemons have stopped in the middle of what they did."""
    closing = f"""
class Owner:
    def __init__(self):
        self.client = KINDS["{kind}"]()
    def __del__(self, clock=time.monotonic):
        began = clock()
        self.client.close()
        print(clock() - began)

owner = Owner()
"""
    assert float(ended(closing).stdout) < 10
