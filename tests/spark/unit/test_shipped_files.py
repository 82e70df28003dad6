"""Files that settings name: on their own paths, or where Spark puts what was shipped with a job."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.jaas import parse_jaas
from kclient.spark.shipped_files import files_folder, on_this_machine

JAAS = "sasl.jaas.config"
TRUST = "ssl.truststore.location"
SESSION = "0f7f2fd1-3c1b-4b83-9a6e-2c4b6a2a9d10"


@pytest.fixture(autouse=True)
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the process, without a Spark at first."""
    made = tmp_path / "cwd"
    made.mkdir()
    monkeypatch.chdir(made)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    return made


def work_in(monkeypatch: pytest.MonkeyPatch, folder: Path | str) -> None:
    """Be a Python worker whose files Spark has put into `folder`."""
    module: Any = ModuleType("pyspark")
    module.SparkFiles = SimpleNamespace(getRootDirectory=lambda: str(folder))
    monkeypatch.setitem(sys.modules, "pyspark", module)


def written(folder: Path, name: str = "trust.pem") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    return file


@pytest.mark.parametrize(
    "name",
    [
        TRUST,
        "ssl.keystore.location",
        "kclient.ssl.crl.location",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.template.file",
    ],
)
def test_a_name_is_found_among_the_shipped_files_before_the_folder_of_the_process(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    written(cwd)
    assert on_this_machine({name: "trust.pem"}) == {name: str(cwd / "trust.pem")}
    shipped = written(tmp_path / "userFiles")
    work_in(monkeypatch, shipped.parent)
    assert on_this_machine({name: " trust.pem "}) == {name: str(shipped)}


def test_on_an_executor_spark_puts_files_into_the_folder_of_the_process(
    cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in(monkeypatch, ".")
    assert files_folder() == cwd
    file = written(cwd, "certificates/trust.pem")  # as of an archive
    assert on_this_machine({TRUST: "certificates/trust.pem"}) == {TRUST: str(file)}


@pytest.mark.parametrize("job", ["streaming_job", SESSION])
def test_what_all_jobs_have_is_found_from_the_folder_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    shipped = written(tmp_path / "userFiles")
    work_in(monkeypatch, tmp_path / "userFiles" / job)
    assert on_this_machine({TRUST: "trust.pem"}) == {TRUST: str(shipped)}
    own = written(tmp_path / "userFiles" / job)
    assert on_this_machine({TRUST: "trust.pem"}) == {TRUST: str(own)}


def test_no_other_folder_above_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    (tmp_path / "userFiles-1").mkdir()
    work_in(monkeypatch, tmp_path / "userFiles-1")
    with pytest.raises(ConfigError, match="not on this machine"):
        on_this_machine({TRUST: "trust.pem"})


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "etc")
    work_in(monkeypatch, tmp_path)
    given = {TRUST: str(file), "bootstrap.servers": "b:1", "ssl.keystore.location": ""}
    assert on_this_machine(given) == given


@pytest.mark.parametrize("relative", [True, False])
def test_a_missing_file_is_told_with_option_places_and_machine(
    tmp_path: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    work_in(monkeypatch, tmp_path / "userFiles" / "streaming_job")
    path = "trust.pem" if relative else str(tmp_path / "etc" / "trust.pem")
    with pytest.raises(ConfigError) as caught:
        on_this_machine({TRUST: path})
    looked_at = [tmp_path / "userFiles" / "streaming_job", tmp_path / "userFiles", cwd]
    places = [str(each / path) for each in looked_at] if relative else [path]
    assert str(caught.value) == (
        f"kafka.ssl.truststore.location: {path} is not on this machine ({socket.gethostname()}); looked for "
        f"{', '.join(places)}. Ship it with the job (--files, spark.files or SparkContext.addFile) and give its name "
        "alone, or give the absolute path of a file that every machine has."
    )
    assert caught.value.name == "kafka.ssl.truststore.location"


def test_who_gives_the_path_of_a_shipped_file_is_told_to_give_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in(monkeypatch, written(tmp_path / "userFiles").parent)
    for path in ("conf/trust.pem", "/home/me/trust.pem"):
        with pytest.raises(ConfigError, match=r"A file trust\.pem was shipped .*: give its name alone"):
            on_this_machine({TRUST: path})


def test_a_file_that_cannot_be_read_is_told(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(cwd)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything
    with pytest.raises(
        ConfigError, match=rf"{file} cannot be read by the user of this process .*\({socket.gethostname()}\)"
    ):
        on_this_machine({TRUST: "trust.pem"})


def test_a_key_table_is_found_and_all_else_of_its_module_stays(cwd: Path) -> None:
    text = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="{}" principal="a\\"b\\\\c@R";'
    found = on_this_machine({JAAS: text.format("FILE:me.keytab" if written(cwd, "me.keytab") else "")})[JAAS]
    before, after = parse_jaas(Password(text.format(""))), parse_jaas(Password(found))
    assert after.name == "Krb5LoginModule"
    assert after.options == {**before.options, "keyTab": str(cwd / "me.keytab")}


def test_a_missing_key_table_is_told_without_the_rest_of_its_module() -> None:
    text = 'x.Krb5LoginModule required keyTab="me.keytab" password="hidden";'
    with pytest.raises(
        ConfigError, match=r"^kafka\.sasl\.jaas\.config, option keyTab: me\.keytab is not"
    ) as caught:
        on_this_machine({JAAS: text})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ['x.PlainLoginModule required username="u" password="p";', "not one at all", ""]
)
def test_a_module_without_files_stays_as_it_is_and_a_wrong_one_is_left_to_the_client(text: str) -> None:
    assert on_this_machine({JAAS: text}) == {JAAS: text}


def test_providers_read_shipped_files(cwd: Path) -> None:
    written(cwd, "secrets.properties")
    (cwd / "mounted").mkdir()
    found = on_this_machine(
        {
            "config.providers": "file, dir,env",
            "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
            JAAS: "${file:secrets.properties:jaas}",
            "ssl.key.password": "${dir:mounted:password}-${env:SUFFIX}",
            TRUST: "${env:TRUST}",
        }
    )
    assert found[JAAS] == f"${{file:{cwd}/secrets.properties:jaas}}"
    assert found["ssl.key.password"] == f"${{dir:{cwd}/mounted:password}}-${{env:SUFFIX}}"
    assert found[TRUST] == "${env:TRUST}"


def test_variables_of_no_provider_mean_nothing() -> None:
    given = {JAAS: "${file:secrets.properties:jaas}", "client.id": "${x:y:z}"}
    assert on_this_machine(given) == given
    given["config.providers"] = "env"
    assert on_this_machine(given) == given


def test_a_provider_whose_file_is_missing_is_told() -> None:
    with pytest.raises(
        ConfigError, match=r"^kafka\.client\.id, \$\{file:a\.properties:x\}: a\.properties is not"
    ):
        on_this_machine({"config.providers": "file", "client.id": "${file:a.properties:x}"})
