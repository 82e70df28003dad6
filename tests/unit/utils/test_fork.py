"""ForkGuard: a client in a child process of its own process."""

from __future__ import annotations

import os

from kclient.errors import ForkedClientError
from kclient.utils.fork import ForkGuard


def test_a_child_process_is_told_that_the_client_belongs_to_its_parent() -> None:
    guard = ForkGuard("A test client")
    guard.check()
    child = os.fork()
    if child == 0:
        try:
            guard.check()
        except ForkedClientError as error:
            os._exit(0 if "A test client" in str(error) and guard.forked else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not guard.forked
