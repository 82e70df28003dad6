"""The report on a job's options: each is refused, changes, is ignored, is ours or stays the same."""

from __future__ import annotations

import io

import pytest

from harness.guides import python_blocks
from kclient.spark import migrate_report
from kclient.spark.migration import Meaning, MigrationReport
from kclient.spark.option_names import OPTIONS

SERVERS = {"kafka.bootstrap.servers": "b:1"}


def report(use: str | None = "streaming read", pyspark: str = "4.3.0", **options: object) -> MigrationReport:
    given = {name.replace("__", "."): value for name, value in options.items()}
    if use is None or "read" in use:
        given = {"subscribe": "t", **given}
    return migrate_report({**SERVERS, **given}, use, pyspark=pyspark, file=io.StringIO())


def test_what_is_the_same_is_listed_and_the_job_runs() -> None:
    found = report(startingOffsets="earliest", includeHeaders=True)
    assert found.options(Meaning.SAME) == (
        "kafka.bootstrap.servers",
        "subscribe",
        "startingOffsets",
        "includeHeaders",
    )
    assert found.runs
    assert str(found).splitlines() == [
        'format("kclient") in the place of format("kafka"), streaming read, PySpark 4.3.0:',
        "  same     kafka.bootstrap.servers, subscribe, startingOffsets, includeHeaders",
    ]


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = migrate_report({**SERVERS, "subscribe": "t"}, "batch read", pyspark="4.0")
    assert capsys.readouterr().out == f"{found}\n"


def test_the_report_in_the_guide_is_the_one_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [each for each in python_blocks("docs/spark.md") if "migrate_report(" in each]
    exec(block, {})
    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("# ") for line in block.splitlines() if line.startswith("#")]
    assert len(printed) == len(shown)
    for line, start in zip(printed, shown, strict=True):
        assert line.startswith(start.removesuffix("..."))


def test_all_that_is_refused_is_found_each_with_its_reason() -> None:
    found = report(
        kafka__auto__offset__reset="latest",
        kafka__fetch__min__bytes="x",
        minPartitions="many",
        endingOffsets="latest",
        kclient__delivry="exactly_once",
    )
    assert not found.runs
    assert set(found.options(Meaning.REFUSED)) == {
        "kafka.auto.offset.reset",
        "kafka.fetch.min.bytes",
        "minPartitions",
        "endingOffsets",
        "kclient.delivry",
    }
    assert "use the option startingOffsets" in str(found)


def test_what_is_missing_is_refused_and_the_rest_still_looked_at() -> None:
    found = migrate_report(
        {"minPartitions": "0"}, "streaming read", pyspark="4.3", file=io.StringIO()
    ).options(Meaning.REFUSED)
    assert found == ("kafka.bootstrap.servers", "subscribe", "minPartitions")


@pytest.mark.parametrize("name", ["assign", "subscribePattern"])
def test_a_subscription_that_is_wrong_is_one_finding(name: str) -> None:
    found = migrate_report({**SERVERS, name: "("}, "batch read", pyspark="4.3", file=io.StringIO())
    assert found.options(Meaning.REFUSED) == (name,)


def test_what_has_no_effect_is_ignored_with_what_may_have_been_meant() -> None:
    found = report(
        kafka__lingr__ms="1", kafka__acks="all", topic="t", groupIdPrefix="x", startingOfset="latest"
    )
    assert set(found.options(Meaning.IGNORED)) == {
        "kafka.lingr.ms",
        "kafka.acks",
        "topic",
        "groupIdPrefix",
        "startingofset",
    }
    assert "Did you mean 'kafka.linger.ms'?" in str(found)
    assert found.runs


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"minPartitions": "5"}, "at least so many tasks"),
        ({"kafka__group__id": "g"}, "join no group"),
        ({"startingOffsets": "group:g"}, "kclient's alone"),
    ],
)
def test_what_has_another_meaning_is_told(given: dict[str, str], said: str) -> None:
    found = report(**given)
    assert len(found.options(Meaning.CHANGES)) == 1
    assert said in str(found)


def test_the_most_records_of_a_task_mean_another_thing_in_a_batch_alone() -> None:
    found = report("batch read", maxRecordsPerPartition="5")
    assert found.options(Meaning.CHANGES) == ("maxRecordsPerPartition",)
    assert "without minPartitions ignores it" in str(found)
    assert report(maxRecordsPerPartition="5").options(Meaning.CHANGES) == ()


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
def test_a_pattern_is_pythons_and_what_only_java_has_is_told() -> None:
    for pattern, told in (("orders.*", False), ("[a-z&&[^b]]", True)):
        found = migrate_report(
            {**SERVERS, "subscribePattern": pattern}, "batch read", pyspark="4.3", file=io.StringIO()
        )
        assert found.options(Meaning.CHANGES) == ("subscribePattern",)
        assert ("Java's alone" in str(found)) is told


def test_options_of_kclient_are_ours() -> None:
    found = report(commitGroupId="g", maxBytesPerTrigger="5", kclient__trigger="processing")
    assert found.options(Meaning.OURS) == ("commitGroupId", "maxBytesPerTrigger", "kclient.trigger")


@pytest.mark.parametrize(
    ("pyspark", "refused"), [("4.0.0", True), ("4.1.4", True), ("4.2", False), ("4.10", False)]
)
def test_limits_before_pyspark_4_2_need_the_trigger(pyspark: str, refused: bool) -> None:
    found = report(maxOffsetsPerTrigger="5", pyspark=pyspark)
    assert found.options(Meaning.REFUSED) == (("kclient.trigger",) if refused else ())
    assert report(maxOffsetsPerTrigger="5", kclient__trigger="processing", pyspark=pyspark).runs


def test_versions_matter_for_conditions_and_for_data_sources_at_all() -> None:
    assert report("batch read", "4.1", filterPushdown="true").runs
    assert not report("batch read", "4.0", filterPushdown="true").runs
    assert not report("batch read", "3.5.1").runs
    with pytest.raises(ValueError, match="'new' is no version"):
        report(pyspark="new")


def test_a_write_is_told_its_mode_its_output_mode_and_its_timestamps() -> None:
    batch, stream = report("batch write", topic="t"), report("streaming write", topic="t")
    assert ".mode('append')" in str(batch)
    assert "batch_writer" in str(stream)
    for found in (batch, stream):
        assert "kclient.sink.timestamp=ignore" in str(found)
        assert found.runs
    decided = report("batch write", topic="t", kclient__sink__timestamp="ignore")
    assert "A column timestamp" not in str(decided)


@pytest.mark.parametrize(
    ("options", "uses"),
    [
        ({"subscribe": "t"}, ["streaming read"]),
        ({"subscribe": "t", "topic": "t"}, ["streaming read", "streaming write"]),
        ({"topic": "t"}, ["streaming write"]),
        ({"assign": '{"t":[0]}', "endingOffsets": "latest"}, ["batch read"]),
        ({}, ["streaming write"]),
    ],
)
def test_without_a_use_the_options_say_which(options: dict[str, str], uses: list[str]) -> None:
    found = migrate_report({**SERVERS, **options}, pyspark="4.3", file=io.StringIO())
    assert list(dict.fromkeys(each.use for each in found.findings)) == uses


def test_a_use_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'read' is none of batch read, streaming read"):
        report("read")


def test_names_are_taken_in_any_case_and_no_value_of_a_secret_is_told() -> None:
    found = report(**{"KAFKA.SASL.JAAS.CONFIG": "hunter2", "STARTINGOFFSETS": "earliest"})
    assert "hunter2" not in str(found)
    assert "startingOffsets" in found.options(Meaning.SAME) + found.options(Meaning.CHANGES)


@pytest.mark.parametrize("use", ["batch read", "streaming read", "batch write", "streaming write"])
def test_every_option_there_is_has_one_meaning(use: str) -> None:
    found = migrate_report({**SERVERS, **dict.fromkeys(OPTIONS, "1")}, use, pyspark="4.3", file=io.StringIO())
    named = [each.option for each in found.findings if each.option]
    assert set(named) == {*SERVERS, *OPTIONS}
