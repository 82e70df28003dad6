"""Arguments about credentials, quotas and settings: what goes together in one call. Single values are tried in
`tests/integration/test_fault_arguments.py`.
"""

from __future__ import annotations

import pytest

from kclient.admin import (
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.admin.internals import security_arguments as checks

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def test_a_user_may_have_a_change_for_each_mechanism_and_no_second_one() -> None:
    first = UserScramCredentialUpsertion("a", ScramCredentialInfo(SHA_256), "p")
    assert checks.checked_credential_alterations([first, UserScramCredentialDeletion("a", SHA_512)])
    with pytest.raises(ValueError, match="alterations: user a comes twice with the same mechanism"):
        checks.checked_credential_alterations([first, UserScramCredentialDeletion("a", SHA_256)])


def test_an_entity_has_one_alteration() -> None:
    def change(value: int) -> ClientQuotaAlteration:
        return ClientQuotaAlteration(ClientQuotaEntity({"user": "a"}), {"x": value})

    assert len(checks.checked_quota_alterations([change(1), change(1)])) == 1
    with pytest.raises(ValueError, match="alterations: user a comes twice"):
        checks.checked_quota_alterations([change(1), change(2)])


def test_no_time_leaves_it_to_the_broker() -> None:
    assert checks.checked_period("renew_period_ms", None) == -1
    assert checks.checked_period("renew_period_ms", 0) == 0
    with pytest.raises(ValueError, match="max_lifetime_ms must be 1 or more, not 0"):
        checks.checked_period("max_lifetime_ms", 0, least=1)


def test_brokers_are_named_by_their_ids() -> None:
    broker, every = (ConfigResource(ConfigResourceType.BROKER, name) for name in ("2147483647", ""))
    assert checks.checked_resources([broker, every, broker]) == [broker, every]
    for name in ("one", "2147483648", "-1", "9" * 5000, "٣"):
        wrong = ConfigResource(ConfigResourceType.BROKER_LOGGER, name)
        with pytest.raises(ValueError, match="resources: the name of a broker is its id"):
            checks.checked_resources([wrong])
        with pytest.raises(ValueError, match="configs: the name of a broker is its id"):
            checks.checked_config_changes({wrong: [AlterConfigOp("x", "y")]})
