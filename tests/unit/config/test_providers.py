"""Values that are kept in the environment, in files, or where an application's function finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient.config.providers import resolve
from kclient.errors import ConfigError
from kclient.producer.config import ProducerConfig

JAVA = "org.apache.kafka.common.config.provider."


def looked_up(value: object, *names: str, **about: Any) -> object:
    """Return the value of a setting; `about` are settings of providers, such as env_class."""
    settings = {f"config.providers.{name.replace('_', '.')}": each for name, each in about.items()}
    return resolve({"client.id": value}, list(names), settings)["client.id"]


def refused(why: str, value: object, *names: str, name: str = "client.id", **about: Any) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        looked_up(value, *names, **about)
    assert caught.value.name == name


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_TEST_A", "a")
    monkeypatch.setenv("KCLIENT_TEST_B", "${env:KCLIENT_TEST_A}")
    monkeypatch.delenv("KCLIENT_TEST_NONE", raising=False)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("${env:KCLIENT_TEST_A}", "a"),
        ("${env::KCLIENT_TEST_A}", "a"),
        ("x${env:KCLIENT_TEST_A}y${env:KCLIENT_TEST_A}", "xaya"),
        ("${env:KCLIENT_TEST_B}", "${env:KCLIENT_TEST_A}"),  # once, and not what comes out again
        ("${nothing}", "${nothing}"),
        ("$env:KCLIENT_TEST_A", "$env:KCLIENT_TEST_A"),
        (7, 7),
    ],
)
def test_variables_of_the_environment_are_put_in_once(value: object, found: object) -> None:
    assert looked_up(value, "env") == found


def test_a_provider_may_have_another_name_than_java_s(tmp_path: Path) -> None:
    assert looked_up("${e:KCLIENT_TEST_A}", "e", e_class=f"{JAVA}EnvVarConfigProvider") == "a"
    (tmp_path / "s.properties").write_text("key = of the file\nb\\:c = 2\n")
    for value, found in (("key", "of the file"), ("b:c", "2")):
        text = f"${{f:{tmp_path}/s.properties:{value}}}"
        assert looked_up(text, "f", f_class=f"{JAVA}FileConfigProvider") == found


def test_a_file_of_a_directory_is_a_value_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    assert looked_up(f"${{directory:{tmp_path}:password}}", "directory") == "s3cret\n"
    for key in ("none", ".", "..", "../password", "/etc/hostname"):
        refused("client.id: ", f"${{directory:{tmp_path}:{key}}}", "directory")


def test_a_function_may_be_a_provider() -> None:
    asked = []

    def vault(path: str, key: str) -> str | None:
        asked.append((path, key))
        return "found" if key == "k" else None

    assert looked_up("${vault:a/b:k}", "vault", vault_class=vault) == "found"
    assert asked == [("a/b", "k")]
    refused("is not there", "${vault:a/b:none}", "vault", vault_class=vault)


@pytest.mark.parametrize(
    "value",
    [
        "${env:KCLIENT_TEST_NONE}",
        "${env:path:KCLIENT_TEST_A}",
        "${file:/nowhere:k}",
        "${file:k}",
        "${other:k}",
    ],
)
def test_a_value_that_is_not_there_is_refused_with_its_setting(value: str) -> None:
    refused("^client.id: ", value, "env", "file")


def test_a_list_of_what_is_allowed_is_kept_to(tmp_path: Path) -> None:
    assert looked_up("${env:KCLIENT_TEST_A}", "env", **{"env_param_allowlist.pattern": "KCLIENT_.*"}) == "a"
    refused("allowlist", "${env:KCLIENT_TEST_A}", "env", **{"env_param_allowlist.pattern": "KCLIENT"})
    inside, outside = tmp_path / "in", tmp_path / "out"
    for each in (inside, outside):
        each.mkdir()
        (each / "f").write_text("v")
    allowed = {"directory_param_allowed.paths": f"/nowhere,{inside}"}
    assert looked_up(f"${{directory:{inside}:f}}", "directory", **allowed) == "v"
    for path in (outside, f"{inside}/../out"):
        refused("allowed.paths", f"${{directory:{path}:f}}", "directory", **allowed)
    (inside / "link").symlink_to(outside)
    refused("allowed.paths", f"${{directory:{inside}/link:f}}", "directory", **allowed)


def test_without_a_provider_nothing_is_looked_up() -> None:
    config = ProducerConfig.parse({"bootstrap.servers": "host:1", "client.id": "${env:KCLIENT_TEST_A}"}, {})
    assert config.client_id == "${env:KCLIENT_TEST_A}"


def test_no_class_is_imported_by_its_name() -> None:
    for chosen in ("os.system", "com.example.Vault", 7):
        refused("no class is imported", "x", "v", v_class=chosen, name="config.providers.v.class")


def test_settings_of_a_provider_that_is_not_named_are_refused() -> None:
    refused("does not name", "x", "env", vault_class=print, name="config.providers.vault.class")
