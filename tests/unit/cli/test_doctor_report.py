"""Findings of the doctor: when a broker is within reach, what is wrong, and the lines that people read."""

from __future__ import annotations

import json

from kclient.cli.doctor_report import AddressReport, BrokerReport, Report, Step

GOOD = Step("tcp", 1.0, {"address": "10.0.0.1"})
BAD = Step("tls", 2.0, error="certificate has expired", setting="ssl.truststore.location")


def broker(*addresses: list[Step], host: str = "host", dns: Step | None = None) -> BrokerReport:
    made = [AddressReport(f"10.0.0.{number}", steps) for number, steps in enumerate(addresses, 1)]
    return BrokerReport(host, 9092, "bootstrap.servers", dns=dns or Step("dns", 0.1), addresses=made)


def metadata(cluster_id: str) -> Step:
    return Step(
        "metadata", 1.0, {"cluster_id": cluster_id, "controller_id": 1, "brokers": ["host:9092 (id 1)"]}
    )


def test_a_broker_with_one_good_address_is_within_reach() -> None:
    reached = broker([GOOD, BAD], [GOOD, metadata("c")])
    assert reached.ok
    assert reached.problem() is None
    assert reached.found("metadata")["cluster_id"] == "c"
    assert any("FAILED" in line for _, line in reached.lines())


def test_a_broker_without_a_good_address_is_told_with_its_first_failure_and_the_setting() -> None:
    lost = broker([GOOD, BAD], [Step("tcp", 1.0, error="refused")])
    assert not lost.ok
    assert lost.problem() == "host:9092: tls: certificate has expired; see ssl.truststore.location"
    nameless = broker(dns=Step("dns", 0.1, error="no such name", setting="bootstrap.servers"))
    assert not nameless.ok
    assert nameless.problem() == "host:9092: dns: no such name; see bootstrap.servers"


def test_a_setting_that_the_error_names_is_not_named_again() -> None:
    lost = broker([Step("tcp", 1.0, error="late (a.b.ms)", setting="a.b.ms")])
    assert lost.problem() == "host:9092: tcp: late (a.b.ms)"
    assert not any("see a.b.ms" in line for _, line in lost.lines())


def test_bootstrap_servers_of_different_clusters_are_a_problem() -> None:
    report = Report("PLAINTEXT", None, [broker([metadata("b")]), broker([metadata("a")], host="other")])
    assert report.problems() == ["bootstrap.servers leads to different clusters: a, b"]
    report.brokers.pop()
    assert report.problems() == []


def test_the_lines_have_every_step_with_its_time_and_what_was_found() -> None:
    found = broker(
        [
            Step(
                "tls",
                12.34,
                {"protocol": "TLSv1.3", "certificate": {"names": ["DNS:a", "DNS:b"], "days_left": 3}},
            )
        ]
    )
    found.node_id = 3
    assert [line for _, line in found.lines()] == [
        "host:9092 (bootstrap.servers, broker 3)",
        "  dns                    0.1 ms  ok",
        "  tls                   12.3 ms  protocol: TLSv1.3",
        "                                 certificate names: DNS:a, DNS:b",
        "                                 certificate days left: 3",
    ]


def test_addresses_are_told_apart_where_there_are_several() -> None:
    lines = [line for _, line in broker([GOOD], [BAD]).lines()]
    assert "  10.0.0.1" in lines
    assert "  10.0.0.2" in lines


def test_json_has_everything() -> None:
    report = Report("SSL", "socks5://proxy:1080", [broker([GOOD, BAD]), broker([GOOD, metadata("c")])])
    made = json.loads(json.dumps(report.as_json()))
    assert (made["ok"], made["proxy"], made["cluster_id"], made["controller_id"]) == (
        False,
        "socks5://proxy:1080",
        "c",
        1,
    )
    assert made["problems"] == ["host:9092: tls: certificate has expired; see ssl.truststore.location"]
    step = made["brokers"][0]["addresses"][0]["steps"][1]
    assert step == {
        "step": "tls",
        "ok": False,
        "elapsed_ms": 2.0,
        "error": "certificate has expired",
        "setting": "ssl.truststore.location",
    }
    assert [each["ok"] for each in made["brokers"]] == [False, True]
