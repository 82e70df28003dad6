"""Answers to requests whose handler failed, held against what Java's classes of these requests answer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.broker.hostile import HostileRequests
from harness.real_kafka.java import compiled, missing_compiler
from harness.real_kafka.node import SHORT_LIVED, classpath, missing
from harness.requirements import skip_if
from kclient.broker.apis.error_responses import error_response
from kclient.broker.apis.registry import ServedApi, served_apis
from kclient.errors import InvalidRequestError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode, encode
from kclient.protocol.registry import response_class
from kclient.protocol.schema import Message, Structure

EXPECTED = InvalidRequestError("it is said why")
UNEXPECTED = RuntimeError("not for clients")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skip_if(missing() or missing_compiler())
    return compiled("ErrorResponses", tmp_path_factory.mktemp("classes"))


def java(classes: Path, requests: list[tuple[Message, int]], error: Exception) -> list[Any]:
    """The answers of Java's requests; "none" where there is none, "refused" where Java cannot read the request."""
    kind = "expected" if error is EXPECTED else "unexpected"
    lines = [
        f"{int(one.API_KEY or 0)} {version} {encode(one, version).hex()} {kind}" for one, version in requests
    ]
    done = subprocess.run(
        ["java", *SHORT_LIVED, "-cp", f"{classpath()}:{classes}", "ErrorResponses"],
        input="\n".join(lines), text=True, capture_output=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answers = done.stdout.split()
    assert len(answers) == len(requests)
    return [
        answer
        if answer in {"none", "refused"}
        else decode(response_class(one.API_KEY), version, bytes.fromhex(answer))
        for (one, version), answer in zip(requests, answers, strict=True)
        if one.API_KEY is not None
    ]


def comparable(answer: Any, api: ServedApi) -> Any:
    """An answer without what Java does not say in one way."""
    if answer in ("none", "refused"):
        return answer
    _forget_texts(answer)
    if api.key is ApiKeys.PRODUCE:
        return {  # Java has each partition once, in any order
            (topic.name, topic.topic_id, one.index, one.error_code, one.base_offset, one.log_start_offset)
            for topic in answer.responses
            for one in topic.partition_responses
        }
    if api.key is ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS:
        answer.results = []  # Java's have no names
    return answer


def _forget_texts(structure: Structure) -> None:
    """Java gives the text of the error, one of its code, or none, as each request has it."""
    for field in structure.FIELDS:
        value = getattr(structure, field.name)
        if field.name == "error_message":
            structure.error_message = None  # type: ignore[attr-defined]
        elif isinstance(value, list):
            for entry in value:
                if isinstance(entry, Structure):
                    _forget_texts(entry)


@pytest.mark.parametrize("error", [EXPECTED, UNEXPECTED], ids=["expected", "unexpected"])
def test_all_of_a_request_is_answered_with_an_error_as_by_java(classes: Path, error: Exception) -> None:
    apis = list(served_apis().values())
    requests = [
        (message, version)
        for api in apis
        for version in range(api.min_version, api.max_version + 1)
        for message in HostileRequests([api], seed=version).messages(version, 4)
    ]
    compared = set()
    for (request, version), theirs in zip(requests, java(classes, requests, error), strict=True):
        assert request.API_KEY is not None
        if theirs == "refused":
            continue
        made = error_response(request, version, error)
        ours = "none" if made is None else decode(type(made), version, encode(made, version))
        api = served_apis()[int(request.API_KEY)]
        assert comparable(ours, api) == comparable(theirs, api), (version, request)
        compared.add((api.key, version))
    assert compared >= {(api.key, api.max_version) for api in apis}
