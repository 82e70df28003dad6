"""`kclient perf`: what it sends, reads, prints and refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.topics import end_offsets, new_topic, read_all
from kclient.cli.main import main

NUMBER = r"([0-9.]+)"
SENT = re.compile(
    rf"{NUMBER} records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, "
    rf"{NUMBER} ms max latency, {NUMBER} ms 50th, {NUMBER} ms 95th, {NUMBER} ms 99th, {NUMBER} ms 99.9th\.$",
    re.MULTILINE,
)
Captured = pytest.CaptureFixture[str]


def produce(servers: str, topic: str, count: int, *more: str) -> int:
    words = ["perf", "produce", "--bootstrap-server", servers, "--topic", topic, "--num-records", str(count)]
    return main([*words, *more])


def consume(servers: str, topic: str, count: int, *more: str) -> int:
    words = ["perf", "consume", "--bootstrap-server", servers, "--topic", topic, "--num-records", str(count)]
    return main([*words, *more])


def figures(line: str) -> dict[str, float]:
    """The figures of a line of `perf consume`, after the times or time and thread."""
    names = ("mb", "mb_s", "records", "records_s", "joining_ms", "fetching_ms", "fetched_mb_s", "fetched_s")
    return dict(zip(names, map(float, line.split(", ")[2:]), strict=True))


@pytest.mark.parametrize("what", ["produce", "consume", "latency"])
def test_every_part_explains_its_options(what: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["perf", what, "--help"])
    assert ended.value.code == 0
    assert "--bootstrap-server" in capsys.readouterr().out


def test_producing_sends_every_record_and_says_how_it_went(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 2500, "--record-size", "30", "--throughput", "-1") == 0
    line = SENT.search(capsys.readouterr().out)
    assert line is not None
    count, rate, mebibytes, average, highest, p50, _, p99, p999 = map(float, line.groups())
    assert count == 2500
    assert rate > 0
    assert mebibytes == pytest.approx(rate * 30 / 2**20, abs=0.01)
    assert 0 < p50 <= p99 <= p999 <= highest
    assert average <= highest
    values = [record.value or b"" for record in read_all(servers, topic)]
    assert len(values) == 2500
    assert {len(value) for value in values} == {30}
    assert len(set(values)) == 1000
    assert all(re.fullmatch(rb"[A-Z]{30}", value) for value in values)


def test_settings_are_taken_as_each_of_kafkas_tools_takes_them(
    servers: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("compression.type=no-such-codec\n")
    size = ["--record-size", "1"]
    assert produce(servers, topic, 1, *size, "--producer.config", str(file)) == 2
    assert produce(servers, topic, 1, *size, "--producer-props", "acks=1", "linger.ms=no") == 2
    assert produce(servers, topic, 1, *size, "--command-property", "acks=1", "linger.ms=no") == 2
    fixed = ["--command-config", str(file), "-X", "compression.type=zstd", "-X", "acks=1"]
    assert produce(servers, topic, 1, *size, *fixed) == 0


@pytest.mark.parametrize("what", ["produce", "consume", "latency"])
def test_serializers_of_a_file_do_not_matter(what: str, servers: str, topic: str, tmp_path: Path) -> None:
    assert produce(servers, topic, 1, "--record-size", "30") == 0
    of_java = tmp_path / "client.properties"
    of_java.write_text(
        f"bootstrap.servers={servers}\n"
        "value.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "value.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
    )
    words = ["perf", what, "--topic", topic, "--num-records", "1", "--command-config", str(of_java)]
    assert main([*words, *(["--record-size", "30"] if what == "produce" else [])]) == 0


def test_the_payloads_of_a_file_are_sent_equally_often(servers: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("one;two;;three;;")
    assert produce(servers, topic, 8, "--payload-file", str(file), "--payload-delimiter", ";") == 0
    values = [record.value or b"" for record in read_all(servers, topic)]
    assert sorted(values) == [b""] * 2 + [b"one"] * 2 + [b"three"] * 2 + [b"two"] * 2


def test_an_empty_file_of_payloads_is_refused(
    servers: str, topic: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "payloads"
    file.write_text("\n\n")
    assert produce(servers, topic, 8, "--payload-file", str(file)) == 2
    assert "holds nothing" in capsys.readouterr().err


def test_monotonic_payloads_are_numbers_and_the_warm_up_is_left_out_of_the_steady_line(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 1500, "--payload-monotonic", "--warmup-records", "700") == 0
    output = capsys.readouterr().out
    assert "1500 records sent" in output
    assert "\n800 steady state records sent" in output
    values = sorted(int(record.value or b"") for record in read_all(servers, topic))
    assert values == list(range(1500))


def test_a_rate_is_kept_and_told_while_it_goes_on(servers: str, topic: str, capsys: Captured) -> None:
    more = ("--record-size", "10", "--throughput", "400", "--reporting-interval", "100")
    assert produce(servers, topic, 200, *more) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    last = SENT.match(lines[-1])
    assert last is not None
    assert float(last[2]) <= 410
    assert sum(int(line.split()[0]) for line in lines[:-1]) <= 200


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--record-size", "1", "--throughput", "0"], "--throughput 0"),
        (["--record-size", "1", "--warmup-records", "5"], "--warmup-records"),
    ],
)
def test_what_could_not_work_is_refused(
    servers: str, topic: str, more: list[str], reason: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 5, *more) == 2
    assert reason in capsys.readouterr().err


def test_records_that_are_not_delivered_make_it_fail(servers: str, capsys: Captured) -> None:
    small = new_topic(servers, 1, max_message_bytes="200")
    assert produce(servers, small, 3, "--record-size", "500") == 1
    captured = capsys.readouterr()
    assert "0 records sent" in captured.out
    assert "(3 records)" in captured.err


def test_consuming_counts_records_and_bytes_in_the_columns_of_kafkas_tool(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 3000, "--record-size", "1024") == 0
    capsys.readouterr()
    assert consume(servers, topic, 3000) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, ")
    assert len(header.split(", ")) == len(line.split(", ")) == 10
    found = figures(line)
    assert found["records"] == 3000
    assert found["mb"] == pytest.approx(3000 / 1024, abs=0.001)
    assert found["fetched_s"] >= found["records_s"] > 0
    assert found["fetching_ms"] > 0


def test_columns_give_the_same_counts_and_bytes_as_objects(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 3000, "--record-size", "100") == 0
    capsys.readouterr()
    assert consume(servers, topic, 3000, "--hide-header") == 0
    objects = figures(capsys.readouterr().out)
    assert consume(servers, topic, 3000, "--hide-header", "--columns") == 0
    columns = figures(capsys.readouterr().out)
    assert (columns["records"], columns["mb"]) == (objects["records"], objects["mb"]) == (3000, 0.2861)


def test_detailed_figures_add_up_and_the_header_can_be_left_out(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 2000, "--record-size", "10") == 0
    capsys.readouterr()
    more = ("--show-detailed-stats", "--reporting-interval", "1", "--hide-header", "--group", "perf-details")
    assert consume(servers, topic, 2000, *more, "-X", "max.poll.records=100") == 0
    lines = capsys.readouterr().out.splitlines()
    counts = [figures(line)["records"] for line in lines]
    assert len(lines) > 1
    assert counts == sorted(counts)
    assert counts[-1] == 2000


def test_consuming_gives_up_when_nothing_comes(servers: str, topic: str, capsys: Captured) -> None:
    assert produce(servers, topic, 5, "--record-size", "10") == 0
    assert consume(servers, topic, 6, "--timeout", "700") == 1
    captured = capsys.readouterr()
    assert "5 of 6 records came" in captured.err
    assert figures(captured.out.splitlines()[-1])["records"] == 5


def test_from_latest_leaves_out_what_is_there(servers: str, topic: str, capsys: Captured) -> None:
    assert produce(servers, topic, 5, "--record-size", "10") == 0
    assert consume(servers, topic, 1, "--timeout", "700", "--from-latest") == 1
    assert "0 of 1 record came" in capsys.readouterr().err


def test_topics_can_be_chosen_by_a_pattern_and_metrics_printed(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert produce(servers, topic, 5, "--record-size", "10", "--print-metrics") == 0
    assert "record-send-total" in capsys.readouterr().out
    words = [
        "perf",
        "consume",
        "--bootstrap-server",
        servers,
        "--include",
        f"{topic[:-1]}.",
        "--messages",
        "5",
    ]
    assert main([*words, "--print-metrics"]) == 0
    assert "records-consumed-total" in capsys.readouterr().out


def test_round_trips_are_timed_and_each_record_is_checked(servers: str, capsys: Captured) -> None:
    more = ["--num-headers", "2", "--record-header-key-size", "3", "--record-header-size", "-1"]
    words = [
        "perf",
        "latency",
        "--bootstrap-server",
        servers,
        "--topic",
        "made-by-perf",
        "--num-records",
        "30",
    ]
    assert main([*words, "--record-size", "50", "--record-key-size", "7", *more]) == 0
    output = capsys.readouterr().out
    assert re.search(rf"^0\t{NUMBER}$", output, re.MULTILINE)
    found = re.search(
        rf"Avg latency: {NUMBER} ms\n\nPercentiles: 50th = {NUMBER}, 99th = {NUMBER}, 99.9th = {NUMBER}\n",
        output,
    )
    assert found is not None
    assert 0 < float(found[2]) <= float(found[3]) <= float(found[4])
    assert list(end_offsets(servers, "made-by-perf").values()) == [30]
    record = read_all(servers, "made-by-perf")[0]
    assert (record.serialized_key_size, record.serialized_value_size) == (7, 50)
    assert record.headers == (("ABC", None), ("ABC", None))


def test_the_short_form_of_kafkas_latency_tool_is_understood(servers: str, capsys: Captured) -> None:
    assert main(["perf", "latency", servers, "short-form", "3", "1", "20"]) == 0
    assert "Percentiles" in capsys.readouterr().out
    assert read_all(servers, "short-form")[0].serialized_value_size == 20


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["localhost:1", "t", "3"], "not 3"),
        (["localhost:1", "t", "0", "1", "20"], "--num-records"),
        (["localhost:1", "t", "3", "2", "20"], "--producer-acks 2"),
        (["localhost:1", "t", "3", "1", "20", "--topic", "u"], "--topic is given twice"),
        ([], "--topic and --num-records"),
        (["--topic", "t", "--num-records", "1", "--record-header-size", "-2"], "--record-header-size -2"),
    ],
)
def test_a_short_form_that_is_wrong_is_told_with_its_option(
    words: list[str], reason: str, capsys: Captured
) -> None:
    assert main(["perf", "latency", *words]) == 2
    assert reason in capsys.readouterr().err


def test_an_embedded_broker_is_started_by_name_and_said_to_take_its_share(capsys: Captured) -> None:
    assert produce("embedded://perf", "t", 10, "--record-size", "10") == 0
    captured = capsys.readouterr()
    assert "10 records sent" in captured.out
    assert "in this process" in captured.err


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["perf", "everything"])
    assert ended.value.code == 2
