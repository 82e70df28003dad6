"""Parts that operations share: errors of one key or of many, codes that are tried again, calls that are abandoned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.mock_time import MockTime
from kclient.admin.internals.context import OperationContext, retry_on_codes, settle, settle_each
from kclient.admin.internals.driver import Call, Role, Target
from kclient.admin.internals.steps import Operation, Pause
from kclient.errors import AdminError, Errors, GroupIdNotFoundError, NotCoordinatorError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.backoff import ExponentialBackoff


class NotedDriver:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.abandoned: list[object] = []

    def submit(self, call: Call) -> Any:
        self.calls.append(call)
        return call.future

    def abandon(self, owner: object) -> None:
        self.abandoned.append(owner)


def context() -> tuple[OperationContext, NotedDriver]:
    driver: Any = NotedDriver()
    return OperationContext(driver, MockTime().timer(500), ExponentialBackoff(10, 20, jitter=0)), driver


def test_of_one_thing_its_own_error_is_raised_with_its_name() -> None:
    shared = GroupIdNotFoundError("no group")
    with pytest.raises(GroupIdNotFoundError, match=r"^Doing it failed for g: no group$") as raised:
        settle(["g"], {}, {"g": shared}, "Doing it")
    assert raised.value is not shared
    assert str(shared) == "no group"


def test_of_several_things_the_good_and_the_bad_are_in_one_error() -> None:
    error = GroupIdNotFoundError("no group")
    with pytest.raises(AdminError, match=r"^Doing it failed for g: no group$") as raised:
        settle(["g", "h"], {"h": 1}, {"g": error}, "Doing it")
    assert (raised.value.results, raised.value.errors) == ({"h": 1}, {"g": error})


@pytest.mark.parametrize(
    ("failed", "end"), [(5, "4: no"), (6, "4: no and 1 more"), (1000, "4: no and 995 more")]
)
def test_only_the_first_five_are_in_the_text(failed: int, end: str) -> None:
    errors = {str(i): GroupIdNotFoundError("no") for i in range(failed)}
    with pytest.raises(AdminError) as raised:
        settle(list(errors), {}, errors, "Doing it")
    assert str(raised.value).endswith(end)
    assert len(raised.value.errors) == failed


def test_without_errors_the_results_are_a_dict_of_the_callers_own() -> None:
    results = {"a": 1}
    settled = settle(["a"], results, {}, "Doing it")
    assert settled == results
    assert settled is not results


def test_outcomes_are_told_apart_and_none_is_a_result() -> None:
    assert settle_each(["a", "b"], {"a": None, "b": 2}, "Doing it") == {"a": None, "b": 2}
    with pytest.raises(GroupIdNotFoundError):
        settle_each(["a"], {"a": GroupIdNotFoundError("no")}, "Doing it")


def test_an_answer_is_tried_again_for_the_first_of_its_codes_that_may_pass() -> None:
    check = retry_on_codes(
        lambda codes: [SimpleNamespace(error_code=code) for code in codes], Errors.NOT_COORDINATOR
    )
    assert isinstance(check([0, Errors.UNKNOWN_SERVER_ERROR, Errors.NOT_COORDINATOR]), NotCoordinatorError)
    assert check([0, Errors.UNKNOWN_SERVER_ERROR]) is None
    assert check([]) is None


def test_a_message_is_the_same_in_all_versions_and_a_builder_is_asked() -> None:
    made, driver = context()
    message = object()
    made.call(ApiKeys.METADATA, message)
    made.call(
        ApiKeys.METADATA,
        lambda version: version * 2,
        Target(Role.NODE, node_id=3),
        min_version=4,
        max_version=5,
    )
    first, second = driver.calls
    assert first.build is not None
    assert second.build is not None
    assert (first.build(1), first.target) == (message, Target())
    assert (second.build(4), second.target, second.min_version, second.max_version) == (
        8,
        Target(Role.NODE, node_id=3),
        4,
        5,
    )
    assert {each.deadline_ms for each in driver.calls} == {made.timer.deadline_ms}
    assert all(each.owner is made for each in driver.calls)


def test_asking_for_a_coordinator_sends_nothing_to_it() -> None:
    made, driver = context()
    made.coordinator(Target.of_group("g"))
    (call,) = driver.calls
    assert call.build is None
    assert call.target == Target.of_group("g")


def test_an_operation_that_ends_well_abandons_nothing() -> None:
    made, driver = context()

    def operation() -> Operation[int]:
        yield made.pause(0)
        return 5

    assert made.run(operation(), "it") == 5
    assert driver.abandoned == []
    assert made.pause(1) == Pause(20)


@pytest.mark.parametrize("error", [GroupIdNotFoundError("no"), KeyboardInterrupt()])
def test_an_operation_that_is_ended_by_an_error_abandons_its_calls(error: BaseException) -> None:
    made, driver = context()

    def operation() -> Operation[int]:
        yield made.pause(0)
        raise error

    with pytest.raises(type(error)):
        made.run(operation(), "it")
    assert driver.abandoned == [made]
