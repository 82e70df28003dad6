from __future__ import annotations

import pytest

from kclient.client.requests import RequestFactory
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest

BEAT = HeartbeatRequest(group_id="g")


def test_requests_are_numbered_and_a_number_never_gets_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    new_request = RequestFactory(500)
    first, second = new_request(1, BEAT), new_request(1, BEAT, timeout_ms=7)
    assert (first.correlation_id, second.correlation_id) == (1, 2)
    assert (first.timeout_ms, second.timeout_ms) == (500, 7)
    assert first.build(3) is BEAT
    monkeypatch.setattr(new_request, "_correlation_id", 0x7FFFFFFF)
    assert new_request(1, BEAT).correlation_id == 0


def test_a_builder_needs_the_name_of_its_api() -> None:
    new_request = RequestFactory(500)
    assert new_request(1, lambda version: BEAT, api_key=ApiKeys.HEARTBEAT).api_key is ApiKeys.HEARTBEAT
    with pytest.raises(TypeError, match="api_key"):
        new_request(1, lambda version: BEAT)
