"""Every vulnerability of Kafka's clients and brokers that kclient could have had has tests here that would show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent
_SHOWN_BY = {
    # A batch that expires in flight gave its memory to others, whose bytes were sent in its place.
    "CVE-2026-35554": [
        "integration/test_fault_bytes.py::test_a_batch_that_expires_half_written_keeps_its_bytes_and_its_memory",
        "integration/test_producer_faults.py::test_batches_that_expire_in_flight_are_never_overwritten_by_others",
    ],
    # Brokers took tokens that nobody had signed. The embedded broker does not authenticate, and says so.
    "CVE-2026-33557": ["unit/broker/test_config.py::test_a_bad_value_raises_with_the_settings_name"],
    # Requests with secrets were logged.
    "GHSA-wf66-mphr-4c4r": [
        "kafka/test_sasl.py::test_records_go_there_and_back_and_no_log_has_the_password",
        "kafka/test_oauth.py::test_tokens_that_end_are_followed_by_others_and_no_connection_is_lost",
        "unit/admin/test_scram.py::test_is_in_no_repr_no_log_and_no_error",
        "unit/client/test_network_client.py::test_connections_are_told_of_and_payloads_are_not",
    ],
    # The address of a token endpoint read files, and led into networks that the application could not see.
    "CVE-2025-27817": [
        "unit/security/test_token_endpoint.py::test_an_address_has_one_of_three_schemes",
        "unit/security/test_token_endpoint.py::test_an_address_that_is_not_https_has_to_be_allowed",
        "unit/security/test_token_endpoint.py::test_the_secret_goes_to_no_other_address",
    ],
    # A login module that a setting named ran code: CVE-2025-27818 and CVE-2025-27819 as well.
    "CVE-2023-25194": [
        "unit/security/test_jaas.py::test_what_is_wrong_is_said_without_what_may_be_secret",
        "unit/config/test_java_names.py::test_another_name_is_refused_saying_what_to_pass",
        "unit/config/test_providers.py::test_no_class_is_imported_by_its_name",
    ],
    # Settings from strangers read files and the environment.
    "CVE-2024-31141": ["unit/config/test_providers.py::test_without_a_provider_nothing_is_looked_up"],
    # Nonces of SCRAM were not compared; CVE-2021-38153: they were, in a time that told of them.
    "CVE-2024-56128": [
        "unit/security/test_scram.py::test_a_challenge_that_is_not_right_is_refused_before_the_password_is_used",
        "unit/security/test_scram.py::test_a_server_that_cannot_prove_that_it_knows_the_password_is_refused",
    ],
    # A few bytes of a stranger made a broker take all memory.
    "CVE-2022-34917": [
        "unit/protocol/test_hostile.py::test_a_size_that_cannot_be_is_refused_before_anything_is_made_for_it",
        "unit/protocol/test_hostile.py::test_memory_stays_below_eight_times_made_up_bytes",
    ],
    # Snappy believed what a chunk said of its length: CVE-2023-43642 and GHSA-q233-g92q-qxp6 as well.
    "CVE-2023-34455": [
        "unit/compress/test_snappy.py::test_a_chunk_that_lies_about_its_length_is_refused",
        "unit/compress/test_codec.py::test_a_bomb_costs_no_more_memory_than_the_limit_twice",
    ],
    # Clients fetched as followers, and wrote what only brokers may: CVE-2018-17196 as well.
    "CVE-2018-1288": [
        "unit/broker/apis/test_produce_and_fetch.py::test_followers_are_refused",
        "unit/broker/log/test_validator.py::test_clients_write_no_control_records",
    ],
    # librdkafka 1 did not compare the names of certificates unless it was told to.
    "host names": [
        "unit/security/test_tls.py::test_by_default_the_name_is_checked_and_the_system_is_trusted",
        "unit/network/test_tls_transport.py::test_a_name_that_is_not_in_the_certificate_is_refused",
    ],
}


@pytest.mark.parametrize("name", _SHOWN_BY)
def test_what_would_show_it_is_there(name: str) -> None:
    for test in _SHOWN_BY[name]:
        file, _, function = test.partition("::")
        text = (_TESTS / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *def {function}", text, re.MULTILINE), f"there is no {test}"
