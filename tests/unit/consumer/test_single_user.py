"""The guard around every call: who is let in, and what is settled first."""

from __future__ import annotations

import threading

import pytest

from kclient._accel import forks
from kclient.consumer.internals.single_user import SingleUser
from kclient.errors import ClientClosedError, ConcurrentModificationError, KafkaError
from kclient.utils.fork import ForkGuard


class Settling:
    """Counts how often something was settled; fails with `error` until that is taken away."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.count = 0
        self.error = error

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error
        self.count += 1


def in_another_thread(use: SingleUser) -> type[BaseException] | None:
    """Enter in a second thread; returns the class of what that raised."""
    raised: list[type[BaseException] | None] = []

    def enter() -> None:
        try:
            with use:
                raised.append(None)
        except KafkaError as error:
            raised.append(type(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return raised[0]


def test_one_thread_is_in_at_a_time_and_may_enter_again_from_within() -> None:
    use = SingleUser("This", Settling())
    with use:
        with use:
            assert in_another_thread(use) is ConcurrentModificationError
        assert in_another_thread(use) is ConcurrentModificationError
    assert in_another_thread(use) is None


def test_an_error_inside_lets_the_next_one_in() -> None:
    use = SingleUser("This", Settling())
    with pytest.raises(KeyboardInterrupt), use:
        raise KeyboardInterrupt
    assert in_another_thread(use) is None


def test_nobody_is_let_in_after_the_end_but_who_is_in() -> None:
    use = SingleUser("This", Settling())
    with use:
        use.close()
        with use:
            pass
    with pytest.raises(ClientClosedError), use:
        raise AssertionError("let in")
    assert in_another_thread(use) is ClientClosedError


def test_what_is_unsettled_is_settled_by_who_enters_next_and_once() -> None:
    settling = Settling()
    use = SingleUser("This", settling)
    with use:
        pass
    assert settling.count == 0
    use.unsettled = True
    with use, use:
        assert settling.count == 1
    assert not use.unsettled


def test_who_is_interrupted_while_settling_leaves_it_to_the_next() -> None:
    settling = Settling(KeyboardInterrupt())
    use = SingleUser("This", settling)
    use.unsettled = True
    with pytest.raises(KeyboardInterrupt), use:
        raise AssertionError("let in")
    settling.error = None
    assert in_another_thread(use) is None
    assert settling.count == 1


def test_settling_at_once_is_left_to_the_thread_that_is_in() -> None:
    settling = Settling()
    use = SingleUser("This", settling)
    with use:
        use.unsettled = True
        other = threading.Thread(target=use.settle)
        other.start()
        other.join()
        assert settling.count == 0
    use.settle()
    assert settling.count == 1


def test_a_child_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    use = SingleUser("This", Settling())
    assert not use.guard.forked
    monkeypatch.setattr(forks, "generation", forks.generation + 1)
    monkeypatch.setattr(ForkGuard, "_getpid", staticmethod(lambda: -1))
    with pytest.raises(KafkaError, match="This"), use:
        raise AssertionError("let in")
    assert use.guard.forked
    with pytest.raises(KafkaError, match="This"):
        use.guard.check()
