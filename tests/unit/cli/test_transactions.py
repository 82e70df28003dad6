"""`kclient transactions`: from its options to what brokers are asked, and how their answers are printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import describe_producers as producers
from kclient.protocol.messages import describe_transactions as describe
from kclient.protocol.messages import list_transactions as lists
from kclient.protocol.messages import write_txn_markers as markers
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse

Captured = pytest.CaptureFixture[str]
Kclient = Callable[..., int]

AT = ("--topic", "orders", "--partition", "0")


@pytest.fixture(autouse=True)
def coordinator(scripted: ScriptedBroker) -> None:
    """Has transaction `a` of producer 9, which began at offset 5 of orders-0, and writes every marker."""
    ongoing = [
        lists.TransactionState(transactional_id=each, producer_id=9, transaction_state="Ongoing")
        for each in ("b", "a")
    ]
    scripted.on(
        ApiKeys.LIST_TRANSACTIONS, lambda h, m: lists.ListTransactionsResponse(transaction_states=ongoing)
    )
    scripted.on(
        ApiKeys.FIND_COORDINATOR,
        lambda h, m: FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host="127.0.0.1", port=scripted.port)
                for key in m.coordinator_keys
            ]
        ),
    )

    def described(header: Any, message: Any) -> describe.DescribeTransactionsResponse:
        (transactional_id,) = message.transactional_ids
        state = describe.TransactionState(
            transactional_id=transactional_id,
            error_code=0 if transactional_id in "ab" else Errors.TRANSACTIONAL_ID_NOT_FOUND,
            transaction_state="Ongoing" if transactional_id == "a" else "Empty",
            transaction_timeout_ms=60_000,
            transaction_start_time_ms=1000 if transactional_id == "a" else -1,
            producer_id=9,
            producer_epoch=2,
            topics=[describe.TopicData(topic="orders", partitions=[0])] if transactional_id == "a" else [],
        )
        return describe.DescribeTransactionsResponse(transaction_states=[state])

    scripted.on(ApiKeys.DESCRIBE_TRANSACTIONS, described)
    found = [
        producers.ProducerState(
            producer_id=9,
            producer_epoch=2,
            last_sequence=4,
            last_timestamp=1000,
            coordinator_epoch=3,
            current_txn_start_offset=5,
        ),
        producers.ProducerState(producer_id=8, last_sequence=1, last_timestamp=2000, coordinator_epoch=-1),
    ]
    partition = producers.PartitionResponse(partition_index=0, error_message=None, active_producers=found)
    scripted.on(
        ApiKeys.DESCRIBE_PRODUCERS,
        lambda h, m: producers.DescribeProducersResponse(
            topics=[producers.TopicResponse(name="orders", partitions=[partition])]
        ),
    )

    def written(header: Any, message: Any) -> markers.WriteTxnMarkersResponse:
        (marker,) = message.markers
        result = markers.WritableTxnMarkerPartitionResult(partition_index=0)
        topic = markers.WritableTxnMarkerTopicResult(name="orders", partitions=[result])
        return markers.WriteTxnMarkersResponse(
            markers=[markers.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[topic])]
        )

    scripted.on(ApiKeys.WRITE_TXN_MARKERS, written)
    scripted.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=9))


def marker(scripted: ScriptedBroker) -> tuple[int, int, int]:
    """Producer id and epoch, coordinator epoch of the one marker that was written."""
    (request,) = scripted.received(ApiKeys.WRITE_TXN_MARKERS)
    (one,) = request.markers
    assert not one.transaction_result
    return one.producer_id, one.producer_epoch, one.coordinator_epoch


def test_transactions_are_listed_in_order_as_a_table_or_as_json(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("transactions", "list") == 0
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        ["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"],
        ["a", "0", "9", "Ongoing"],
        ["b", "0", "9", "Ongoing"],
    ]
    assert kclient("transactions", "list", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {
        "transactional_id": "a",
        "coordinator": 0,
        "producer_id": 9,
        "state": "Ongoing",
    }


@pytest.mark.parametrize(
    ("words", "duration_ms", "pattern"),
    [
        ((), -1, None),
        (("--duration-filter", "0"), 0, None),
        (("--duration-filter", "-5"), -1, None),
        (("--duration-filter", "60000", "--transactional-id-pattern", "a.*"), 60_000, "a.*"),
    ],
)
def test_filters_of_the_list_go_to_the_broker(
    scripted: ScriptedBroker, kclient: Kclient, words: tuple[str, ...], duration_ms: int, pattern: str | None
) -> None:
    assert kclient("transactions", "list", *words) == 0
    (request,) = scripted.received(ApiKeys.LIST_TRANSACTIONS)
    assert (request.duration_filter, request.transactional_id_pattern) == (duration_ms, pattern)


def test_a_transaction_is_described(
    kclient: Kclient, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.cli.transactions._now_ms", lambda: 4000)
    assert kclient("transactions", "describe", "--transactional-id", "a", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "coordinator": 0,
        "transactional_id": "a",
        "producer_id": 9,
        "producer_epoch": 2,
        "state": "Ongoing",
        "timeout_ms": 60_000,
        "start_time_ms": 1000,
        "duration_ms": 3000,
        "partitions": ["orders-0"],
    }
    assert kclient("transactions", "describe", "--transactional-id", "a") == 0
    shown = ["0", "a", "9", "2", "Ongoing", "60000", "1000", "3000", "orders-0"]
    assert capsys.readouterr().out.splitlines()[1].split("\t") == shown
    assert kclient("transactions", "describe", "--transactional-id", "b") == 0
    shown = ["0", "b", "9", "2", "Empty", "60000", "-", "-", "-"]
    assert capsys.readouterr().out.splitlines()[1].split("\t") == shown


def test_an_id_that_is_not_there_is_told_in_one_line(kclient: Kclient, capsys: Captured) -> None:
    assert kclient("transactions", "describe", "--transactional-id", "zz") == 1
    assert "failed for zz: No transactional id" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("words", "looked_up"), [((), True), (("--broker-id", "0"), False)])
def test_producers_of_a_partition_are_described_by_its_leader_or_by_a_broker(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, words: tuple[str, ...], looked_up: bool
) -> None:
    assert kclient("transactions", "describe-producers", *AT, *words) == 0
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        [
            *("PRODUCER ID", "PRODUCER EPOCH", "COORDINATOR EPOCH", "LAST SEQUENCE", "LAST TIMESTAMP MS"),
            "TRANSACTION START OFFSET",
        ],
        ["8", "0", "-", "1", "2000", "-"],
        ["9", "2", "3", "4", "1000", "5"],
    ]
    assert any(request.topics for request in scripted.received(ApiKeys.METADATA)) == looked_up


def test_a_transaction_is_aborted_by_its_start_offset(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("transactions", "abort", *AT, "--start-offset", "5") == 0
    assert marker(scripted) == (9, 2, 3)
    said = "Aborted the transaction on orders-0 (producer id 9, epoch 2, coordinator epoch 3).\n"
    assert capsys.readouterr().out == said


def test_nothing_is_aborted_where_no_transaction_begins(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured
) -> None:
    assert kclient("transactions", "abort", *AT, "--start-offset", "6") == 1
    assert capsys.readouterr().err == "error: No open transaction on orders-0 begins at offset 6\n"
    assert scripted.received(ApiKeys.WRITE_TXN_MARKERS) == []


@pytest.mark.parametrize(("epoch", "sent"), [("4", 4), ("-1", 0)])
def test_a_transaction_is_aborted_by_its_producer(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, epoch: str, sent: int
) -> None:
    producer = ("--producer-id", "9", "--producer-epoch", "2", "--coordinator-epoch", epoch)
    assert kclient("transactions", "abort", *AT, *producer, "--output", "json") == 0
    assert marker(scripted) == (9, 2, sent)
    assert json.loads(capsys.readouterr().out)["producer_id"] == 9
    assert scripted.received(ApiKeys.DESCRIBE_PRODUCERS) == []


@pytest.mark.parametrize("option", ["--transactionalId", "--transactional-id"])
def test_a_transaction_is_terminated_by_its_id(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, option: str
) -> None:
    assert kclient("transactions", "forceTerminateTransaction", option, "a") == 0
    (request,) = scripted.received(ApiKeys.INIT_PRODUCER_ID)
    assert request.transactional_id == "a"
    assert capsys.readouterr().out == "Ended the transaction of a, if there was one.\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("abort", *AT), "abort needs --start-offset, or --producer-id"),
        (("abort", *AT, "--producer-id", "1", "--producer-epoch", "1"), "--coordinator-epoch"),
        (("abort", *AT, "--start-offset", "1", "--producer-id", "1"), "goes without"),
        (
            ("abort", *AT, "--producer-id", "1", "--producer-epoch", "40000", "--coordinator-epoch", "1"),
            "--producer-epoch 40000",
        ),
        (("find-hanging",), "find-hanging needs --topic or --broker-id"),
        (("find-hanging", "--broker-id", "1", "--partition", "0"), "--partition needs --topic"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_sent(
    scripted: ScriptedBroker, kclient: Kclient, capsys: Captured, words: tuple[str, ...], said: str
) -> None:
    assert kclient("transactions", *words) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert scripted.requests == []


def test_servers_and_settings_may_stand_on_either_side_of_the_command(
    scripted: ScriptedBroker, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={scripted.bootstrap}\n")
    at = ("--bootstrap-server", scripted.bootstrap)
    config = ("--command-config", str(file))
    for words in ((*at, "list"), ("list", *at), (*config, "list"), ("list", *config), ("-v", "list", *at)):
        assert main(["transactions", *words]) == 0
    assert main(["transactions", "--bootstrap-server", "127.0.0.1:1", "list", *at, "-X", "retries=3"]) == 0
    assert len(scripted.received(ApiKeys.LIST_TRANSACTIONS)) == 6
