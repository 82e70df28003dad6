"""From names and numbers to messages, without importing more than is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kclient.protocol import ApiKeys
from kclient.protocol.registry import request_class, response_class


def test_every_api_of_brokers_has_a_request_and_a_response() -> None:
    for api in ApiKeys:
        if api.on_broker_listener:
            request, response = request_class(api), response_class(api)
            assert (request.__name__, request.API_KEY, request.KIND) == (
                f"{api.title}Request",
                api,
                "request",
            )
            assert (response.__name__, response.API_KEY, response.KIND) == (
                f"{api.title}Response",
                api,
                "response",
            )
            newest = api.max_version + api.latest_version_unstable
            for cls in (request, response):
                assert (api.min_version, newest) == (cls.MIN_VERSION, cls.MAX_VERSION), api
                assert api.flexible_from == cls.FLEXIBLE_FROM or cls.FLEXIBLE_FROM is None, api


def test_an_api_of_controllers_has_no_message() -> None:
    with pytest.raises(KeyError, match="VOTE"):
        request_class(ApiKeys.VOTE)
    with pytest.raises(KeyError, match="VOTE"):
        response_class(ApiKeys.VOTE)


def test_an_unknown_number_is_no_api() -> None:
    assert ApiKeys.for_id(1) is ApiKeys.FETCH
    assert ApiKeys.for_id(1000) is None


def test_messages_are_imported_when_they_are_asked_for() -> None:
    code = (
        "import sys, kclient.protocol.header; from kclient.protocol import ApiKeys\n"
        "from kclient.protocol.registry import request_class\n"
        "p = 'kclient.protocol.messages.'\n"
        "before = {n for n in sys.modules if n.startswith(p)}\n"
        "request_class(ApiKeys.DESCRIBE_ACLS)\n"
        "print(sorted(n.removeprefix(p) for n in sys.modules if n.startswith(p) and n not in before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['describe_acls']"
