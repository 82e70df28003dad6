"""`kclient transactions`: list, describe and abort transactions; the options of kafka-transactions.sh."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kclient.admin import AbortTransactionSpec, KafkaAdminClient, ProducerState
from kclient.cli.common import (
    add_client_arguments,
    add_command,
    add_output_argument,
    client_settings,
    natural,
    print_table,
)
from kclient.cli.hanging_transactions import find_hanging
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError, KafkaError

_PARTS = {
    "list": "print transactional ids, their coordinators and states",
    "describe": "print the transaction of a transactional id",
    "describe-producers": "print the producers that have written to a partition",
    "abort": "end a hanging transaction on a partition",
    "find-hanging": "find open transactions that no coordinator will end",
    "forceTerminateTransaction": "abort the transaction of a transactional id, and refuse its producer",
}

Row = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Kafka's tool has these two before the command; they may stand behind it as well.
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT[,...]", help="see the help of each WHAT")
    parser.add_argument("--command-config", metavar="FILE", help="see the help of each WHAT")
    parts = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, summary in _PARTS.items():
        # An option without a default of its own leaves what was said before the command as it is.
        part = add_command(parts, name, summary, argument_default=argparse.SUPPRESS)
        if name in _ARGUMENTS:
            _ARGUMENTS[name](part)
        add_output_argument(part)
        add_client_arguments(part, "admin client")
        part.add_argument(
            "-v", "--verbose", action="count", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )


def _list_arguments(part: argparse.ArgumentParser) -> None:
    part.add_argument(
        "--duration-filter",
        type=int,
        default=-1,
        metavar="MS",
        help="only transactions that run for longer; all of them if negative (the default)",
    )
    part.add_argument(
        "--transactional-id-pattern",
        default=None,
        metavar="REGEX",
        help="only ids that this matches as a whole, in the syntax of RE2",
    )


def _describe_arguments(part: argparse.ArgumentParser) -> None:
    part.add_argument("--transactional-id", required=True, metavar="ID", help="the id to describe")


def _describe_producers_arguments(part: argparse.ArgumentParser) -> None:
    _add_partition(part)
    part.add_argument(
        "--broker-id", type=natural, default=None, metavar="ID", help="ask this replica, not the leader"
    )


def _abort_arguments(part: argparse.ArgumentParser) -> None:
    _add_partition(part)
    newer = part.add_argument_group("brokers since Kafka 3.0")
    newer.add_argument(
        "--start-offset", type=natural, default=None, metavar="OFFSET", help="where the transaction begins"
    )
    older = part.add_argument_group("older brokers, which need all of these in its place")
    older.add_argument("--producer-id", type=natural, default=None, metavar="ID")
    older.add_argument("--producer-epoch", type=natural, default=None, metavar="EPOCH")
    older.add_argument(
        "--coordinator-epoch",
        type=int,
        default=None,
        metavar="EPOCH",
        help="-1 if the producer has never ended a transaction there",
    )


def _find_hanging_arguments(part: argparse.ArgumentParser) -> None:
    part.add_argument(
        "--broker-id", type=natural, default=None, metavar="ID", help="search the replicas of this broker"
    )
    part.add_argument(
        "--max-transaction-timeout",
        type=natural,
        default=15,
        metavar="MINUTES",
        help="leave out transactions that were written to in the last MINUTES (default: %(default)s)",
    )
    part.add_argument("--topic", default=None, metavar="NAME", help="search this topic")
    part.add_argument("--partition", type=natural, default=None, metavar="NUMBER", help="of --topic")


def _force_terminate_arguments(part: argparse.ArgumentParser) -> None:
    part.add_argument(
        "--transactionalId",
        "--transactional-id",
        dest="transactional_id",
        required=True,
        metavar="ID",
        help="the id whose transaction ends",
    )


def _add_partition(part: argparse.ArgumentParser) -> None:
    part.add_argument("--topic", required=True, metavar="NAME", help="name of the topic")
    part.add_argument(
        "--partition", type=natural, required=True, metavar="NUMBER", help="number of the partition"
    )


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": _list_arguments,
    "describe": _describe_arguments,
    "describe-producers": _describe_producers_arguments,
    "abort": _abort_arguments,
    "find-hanging": _find_hanging_arguments,
    "forceTerminateTransaction": _force_terminate_arguments,
}


def run(options: argparse.Namespace) -> int:
    _check(options)
    with KafkaAdminClient(client_settings(options)) as admin:
        _RUN[options.what](admin, options)
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.what == "find-hanging":
        if options.topic is None and options.broker_id is None:
            raise ConfigError("find-hanging needs --topic or --broker-id, so that it knows where to search")
        if options.partition is not None and options.topic is None:
            raise ConfigError("--partition needs --topic")
    if options.what == "abort":
        names = ("producer_id", "producer_epoch", "coordinator_epoch")
        given = [name for name in names if getattr(options, name) is not None]
        if options.start_offset is not None and given:
            raise ConfigError(
                "--start-offset finds the producer by itself, and goes without its id and epochs"
            )
        if options.start_offset is None and len(given) < len(names):
            raise ConfigError(
                "abort needs --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch for "
                "brokers before Kafka 3.0"
            )
        if (options.producer_epoch or 0) >= 2**15:
            raise ConfigError(f"--producer-epoch {options.producer_epoch} is above 32767")


def _list(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    duration_ms = options.duration_filter
    listed = admin.list_transactions(
        duration_ms=None if duration_ms < 0 else duration_ms,
        transactional_id_pattern=options.transactional_id_pattern,
    )
    _print(
        ["transactional_id", "coordinator", "producer_id", "state"],
        [
            {
                "transactional_id": each.transactional_id,
                "coordinator": each.coordinator_id,
                "producer_id": each.producer_id,
                "state": each.state,
            }
            for _, each in sorted(listed.items())
        ],
        options,
    )


def _describe(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    found = admin.describe_transactions([options.transactional_id])[options.transactional_id]
    start_ms = found.transaction_start_time_ms
    row = {
        "coordinator": found.coordinator_id,
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "timeout_ms": found.transaction_timeout_ms,
        "start_time_ms": start_ms,
        "duration_ms": None if start_ms is None else _now_ms() - start_ms,
        "partitions": [str(tp) for tp in sorted(found.topic_partitions)],
    }
    _print(list(row), [row], options)


def _describe_producers(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    tp = TopicPartition(options.topic, options.partition)
    found = admin.describe_producers([tp], options.broker_id)[tp].active_producers
    _print(
        [
            *("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp_ms"),
            "transaction_start_offset",
        ],
        [
            {
                "producer_id": each.producer_id,
                "producer_epoch": each.producer_epoch,
                "coordinator_epoch": each.coordinator_epoch,
                "last_sequence": each.last_sequence,
                "last_timestamp_ms": each.last_timestamp_ms,
                "transaction_start_offset": each.current_transaction_start_offset,
            }
            for each in sorted(found, key=lambda state: state.producer_id)
        ],
        options,
    )


def _abort(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    tp = TopicPartition(options.topic, options.partition)
    if options.start_offset is None:
        # An epoch below 0 is that of no coordinator.
        epoch = None if options.coordinator_epoch < 0 else options.coordinator_epoch
        spec = AbortTransactionSpec(tp, options.producer_id, options.producer_epoch, epoch)
    else:
        state = _open_at(admin, tp, options.start_offset)
        spec = AbortTransactionSpec(tp, state.producer_id, state.producer_epoch, state.coordinator_epoch)
    admin.abort_transaction(spec)
    done = {
        "topic": tp.topic,
        "partition": tp.partition,
        "producer_id": spec.producer_id,
        "producer_epoch": spec.producer_epoch,
        "coordinator_epoch": spec.coordinator_epoch,
    }
    _print_done(f"Aborted the transaction on {spec}.", done, options)


def _open_at(admin: KafkaAdminClient, tp: TopicPartition, start_offset: int) -> ProducerState:
    for state in admin.describe_producers([tp])[tp].active_producers:
        if state.current_transaction_start_offset == start_offset:
            return state
    raise KafkaError(f"No open transaction on {tp} begins at offset {start_offset}")


def _find_hanging(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    now_ms = _now_ms()
    hanging = find_hanging(
        admin,
        topic=options.topic,
        partition=options.partition,
        broker_id=options.broker_id,
        last_written_before_ms=now_ms - options.max_transaction_timeout * 60_000,
    )
    _print(
        [
            *("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset"),
            *("last_timestamp_ms", "duration_min"),
        ],
        [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "producer_id": state.producer_id,
                "producer_epoch": state.producer_epoch,
                "coordinator_epoch": state.coordinator_epoch,
                "start_offset": state.current_transaction_start_offset,
                "last_timestamp_ms": state.last_timestamp_ms,
                "duration_min": (now_ms - state.last_timestamp_ms) // 60_000,
            }
            for tp, state in hanging
        ],
        options,
    )


def _force_terminate(admin: KafkaAdminClient, options: argparse.Namespace) -> None:
    admin.force_terminate_transaction(options.transactional_id)
    text = f"Ended the transaction of {options.transactional_id}, if there was one."
    _print_done(text, {"transactional_id": options.transactional_id}, options)


_RUN: dict[str, Callable[[KafkaAdminClient, argparse.Namespace], None]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _print(columns: Sequence[str], rows: Iterable[Row], options: argparse.Namespace) -> None:
    if options.output == "json":
        for row in rows:
            print(json.dumps(row, ensure_ascii=False))
        return
    print_table(
        [column.upper().replace("_", " ") for column in columns],
        [[_cell(row[column]) for column in columns] for row in rows],
    )


def _cell(value: Any) -> Any:
    return (",".join(value) or None) if isinstance(value, list) else value


def _print_done(text: str, done: Row, options: argparse.Namespace) -> None:
    print(json.dumps(done, ensure_ascii=False) if options.output == "json" else text)
