"""Names of options: known ones in any case, those without effect, and what is said of the others."""

from __future__ import annotations

import pytest

from kclient.errors import ConfigError
from kclient.spark.option_names import OPTIONS, Use, check_names


def given(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "x")


def test_only_reads_read() -> None:
    assert [use for use in Use if use.reads] == [Use.BATCH_READ, Use.STREAM_READ]


@pytest.mark.parametrize("use", Use)
def test_every_option_of_a_use_is_taken_in_any_case_without_a_word(use: Use) -> None:
    names = [name for name, uses in OPTIONS.items() if use in uses]
    for spelled in (names, map(str.lower, names), map(str.upper, names)):
        assert check_names(given(*spelled), use) == []


def test_settings_of_the_client_are_for_others_to_check() -> None:
    assert check_names(given("kafka.anything", "KAFKA.Anything"), Use.BATCH_READ) == []
    (told,) = check_names(given("kafkaanything"), Use.BATCH_READ)
    assert told.startswith("Option kafkaanything is not known and is ignored")


def test_an_option_of_another_use_is_told_of_by_its_own_name() -> None:
    assert check_names(given("COMMITGROUPID", "topic"), Use.BATCH_READ) == [
        "Option commitGroupId has no effect in a batch read and is ignored.",
        "Option topic has no effect in a batch read and is ignored.",
    ]
    assert check_names(given("subscribe"), Use.STREAM_WRITE) == [
        "Option subscribe has no effect in a streaming write and is ignored."
    ]


def test_before_the_use_is_known_no_option_is_without_effect() -> None:
    assert check_names(given(*OPTIONS, "path", "unknown"), None) == []


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_an_end_is_refused_in_a_stream_that_reads_and_ignored_in_one_that_writes(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not valid in a streaming query") as caught:
        check_names(given(name.lower()), Use.STREAM_READ)
    assert caught.value.name == name
    assert check_names(given(name.lower()), Use.STREAM_WRITE) == [
        f"Option {name} has no effect in a streaming write and is ignored."
    ]


def test_a_time_as_the_end_of_a_stream_is_ignored_as_by_sparks_own_connector() -> None:
    assert check_names(given("endingTimestamp"), Use.STREAM_READ) == [
        "Option endingTimestamp has no effect in a streaming read and is ignored."
    ]


def test_an_unknown_name_is_told_with_the_nearest_one_if_any_is_near() -> None:
    near, far = check_names(given("SubscribePatern", "zzz"), Use.BATCH_WRITE)
    assert near.endswith("Did you mean 'subscribePattern'?")
    assert "Did you mean" not in far


@pytest.mark.parametrize("use", [None, *Use])
def test_an_unknown_name_of_our_own_is_refused_as_no_other_connector_has_it(use: Use | None) -> None:
    with pytest.raises(
        ConfigError, match=r"'kclient\.delivry' is not an option .*'kclient\.delivery'"
    ) as caught:
        check_names(given("kclient.Delivry"), use)
    assert caught.value.name == "kclient.delivry"


@pytest.mark.parametrize("use", Use)
def test_a_path_is_ignored_and_told_with_what_names_topics(use: Use) -> None:
    (told,) = check_names(given("Path"), use)
    assert told.startswith("Option path,")
    assert "subscribe or topic" in told


@pytest.mark.parametrize("use", [None, *Use])
def test_a_table_without_options_is_told_to_be_a_view(use: Use | None) -> None:
    for table in ({}, given("provider", "owner", "subscribe", "option.subscribe")):
        with pytest.raises(ConfigError, match=r"CREATE TABLE \.\.\. USING kclient .* CREATE TEMPORARY VIEW"):
            check_names(table, use)
