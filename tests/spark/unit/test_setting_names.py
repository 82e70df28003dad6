"""Settings that options with `kafka.` name: those of the client that is used, of others, and of none."""

from __future__ import annotations

import pytest

from kclient.spark.option_names import Use
from kclient.spark.setting_names import setting_remarks, sort_names

READS = (Use.BATCH_READ, Use.STREAM_READ)
WRITES = (Use.BATCH_WRITE, Use.STREAM_WRITE)


def told(use: Use, *names: str) -> list[str]:
    return setting_remarks(dict.fromkeys((f"kafka.{name}" for name in names), "x"), use)


@pytest.mark.parametrize("use", Use)
def test_settings_of_all_clients_are_taken_without_a_word(use: Use) -> None:
    assert told(use, "bootstrap.servers", "client.id", "security.protocol", "sasl.jaas.config") == []


@pytest.mark.parametrize("use", READS)
def test_a_read_takes_the_consumers_and_tells_of_the_producers_in_one_line(use: Use) -> None:
    names = sort_names(["acks", "fetch.min.bytes", "linger.ms"], use)
    assert names.taken == ("fetch.min.bytes",)
    (line,) = names.remarks(use)
    said = "kafka.acks, kafka.linger.ms are settings of the producer alone, without effect in"
    assert line == f"{said} {use.value}, and ignored."


@pytest.mark.parametrize("use", WRITES)
def test_a_write_takes_the_producers_and_tells_of_the_consumers(use: Use) -> None:
    names = sort_names(["acks", "auto.offset.reset", "max.poll.records", "group.id"], use)
    assert names.taken == ("acks",)
    assert names.others == {"consumer": ("auto.offset.reset", "max.poll.records", "group.id")}
    (line,) = names.remarks(use)
    assert line.startswith("kafka.auto.offset.reset, kafka.max.poll.records, kafka.group.id are settings")


def test_what_only_the_admin_client_has_is_told_of_as_its() -> None:
    (line,) = told(Use.BATCH_WRITE, "bootstrap.controllers")
    assert line.startswith("kafka.bootstrap.controllers is a setting of the admin client alone,")


def test_a_setting_that_one_client_has_and_only_another_can_use_does_not_stop_a_shared_set() -> None:
    assert sort_names(["client.rack"], Use.STREAM_READ).taken == ("client.rack",)
    assert sort_names(["client.rack"], Use.STREAM_WRITE).others == {"consumer": ("client.rack",)}


@pytest.mark.parametrize("use", Use)
def test_what_only_a_jvm_can_use_is_told_of_and_reaches_no_client_which_would_tell_it_in_every_task(
    use: Use,
) -> None:
    names = sort_names(["ssl.provider", "client.id", "security.providers"], use)
    assert names.taken == ("client.id",)
    (line,) = names.remarks(use)
    assert line.startswith(
        "kafka.ssl.provider, kafka.security.providers are settings of the Java virtual machine"
    )


@pytest.mark.parametrize("name", ["partitioner.rack.aware", "metric.reporters"])
def test_a_setting_that_no_client_can_use_yet_is_for_its_own_client_to_refuse(name: str) -> None:
    assert sort_names([name], Use.BATCH_WRITE).taken == (name,)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fetch.min.bites", "Did you mean 'kafka.fetch.min.bytes'?"),
        ("lingr.ms", "Did you mean 'kafka.linger.ms'?"),
        ("ssl.cafile", "Here it is ssl.truststore.location."),
        ("zz", "and is ignored."),
    ],
)
@pytest.mark.parametrize("use", Use)
def test_an_unknown_one_is_ignored_and_told_with_what_was_meant_of_either_side(
    use: Use, name: str, hint: str
) -> None:
    assert sort_names([name], use).unknown == (name,)
    (line,) = told(use, name)
    assert line.startswith(f"kafka.{name} is not a setting of any client and is ignored.")
    assert line.endswith(hint)


def test_names_may_be_written_in_any_case_and_values_are_never_told() -> None:
    (line,) = setting_remarks({"KAFKA.Sasl.Jaas.Confg": "secret"}, Use.BATCH_READ)
    assert "'kafka.sasl.jaas.config'" in line
    assert "secret" not in line


def test_a_provider_of_values_is_no_unknown_setting() -> None:
    assert told(Use.BATCH_READ, "config.providers", "config.providers.file.class") == []


@pytest.mark.parametrize("use", READS)
def test_polled_records_are_taken_and_told_to_be_without_effect(use: Use) -> None:
    assert sort_names(["max.poll.records"], use).taken == ("max.poll.records",)
    (line,) = told(use, "max.poll.records")
    assert "has no effect" in line
    assert "maxRecordsPerPartition" in line


def test_a_group_is_told_of_in_a_read_alone() -> None:
    (line,) = told(Use.STREAM_READ, "group.id")
    assert "commitGroupId" in line
    (line,) = told(Use.STREAM_WRITE, "group.id")
    assert "setting of the consumer alone" in line
