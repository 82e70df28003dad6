"""Names of options: known ones in any case, those without effect, and what is said of the others."""

from __future__ import annotations

import logging

import pytest

from kclient.errors import ConfigError
from kclient.spark.option_names import OPTIONS, Use, check_names


def given(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "x")


def test_only_reads_read() -> None:
    assert [use for use in Use if use.reads] == [Use.BATCH_READ, Use.STREAM_READ]


@pytest.mark.parametrize("use", Use)
def test_every_option_of_a_use_is_taken_in_any_case_without_a_word(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    names = [name for name, uses in OPTIONS.items() if use in uses]
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        for spelled in (names, map(str.lower, names), map(str.upper, names)):
            check_names(given(*spelled), use)
    assert caplog.text == ""


def test_settings_of_the_client_are_for_others_to_check() -> None:
    check_names(given("kafka.anything", "KAFKA.Anything"), Use.BATCH_READ)
    with pytest.raises(ConfigError, match="'kafkaanything' is not an option"):
        check_names(given("kafkaanything"), Use.BATCH_READ)


def test_an_option_of_another_use_is_warned_of_by_its_own_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        check_names(given("COMMITGROUPID", "topic"), Use.BATCH_READ)
        check_names(given("subscribe"), Use.STREAM_WRITE)
    assert [record.getMessage() for record in caplog.records] == [
        "Option commitGroupId has no effect in a batch read and is ignored.",
        "Option topic has no effect in a batch read and is ignored.",
        "Option subscribe has no effect in a streaming write and is ignored.",
    ]


def test_before_the_use_is_known_no_option_is_without_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        check_names(given(*OPTIONS), None)
    assert caplog.text == ""


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_an_end_is_refused_in_a_stream_that_reads_and_ignored_in_one_that_writes(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not valid in a streaming query") as caught:
        check_names(given(name.lower()), Use.STREAM_READ)
    assert caught.value.name == name
    check_names(given(name.lower()), Use.STREAM_WRITE)
    assert f"{name} has no effect in a streaming write" in caplog.text


def test_an_unknown_name_is_told_with_the_nearest_one_if_any_is_near() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'subscribePattern'") as caught:
        check_names(given("SubscribePatern"), None)
    assert caught.value.name == "subscribepatern"
    with pytest.raises(ConfigError) as caught:
        check_names(given("zzz"), None)
    assert "Did you mean" not in str(caught.value)
    assert "kafka.bootstrap.servers" in str(caught.value)


@pytest.mark.parametrize("use", [None, *Use])
def test_a_path_is_refused_with_what_to_do_instead(use: Use | None) -> None:
    with pytest.raises(
        ConfigError, match=r"^path: .*without one, and name topics with subscribe or topic\.$"
    ):
        check_names(given("Path"), use)
