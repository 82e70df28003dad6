"""Certificates as the doctor tells of them."""

from __future__ import annotations

import datetime as dt

from kclient.cli.doctor_certificates import describe

DECODED = {
    "subject": ((("countryName", "XY"),), (("organizationName", "An Org"), ("commonName", "broker"))),
    "issuer": ((("commonName", "An Authority"),),),
    "notBefore": "Nov  1 10:00:00 2026 GMT",
    "notAfter": "Nov 11 10:00:00 2026 GMT",
    "subjectAltName": (("DNS", "broker.example"), ("IP Address", "10.0.0.1")),
}


def test_names_and_dates_are_told_in_full() -> None:
    assert describe(DECODED, dt.datetime(2026, 11, 9, 9, tzinfo=dt.UTC)) == {
        "subject": "countryName=XY, organizationName=An Org, commonName=broker",
        "issuer": "commonName=An Authority",
        "names": ["DNS:broker.example", "IP Address:10.0.0.1"],
        "valid_from": "2026-11-01T10:00:00+00:00",
        "valid_until": "2026-11-11T10:00:00+00:00",
        "days_left": 2,
    }


def test_one_that_has_expired_has_less_than_no_days_left() -> None:
    assert describe(DECODED, dt.datetime(2026, 11, 11, 11, tzinfo=dt.UTC))["days_left"] == -1


def test_one_without_names_has_none() -> None:
    bare = {name: DECODED[name] for name in ("notBefore", "notAfter")}
    told = describe(bare, dt.datetime(2026, 11, 9, tzinfo=dt.UTC))
    assert (told["subject"], told["issuer"], told["names"]) == ("", "", [])
