"""The binding to the system's GSSAPI library, as far as that goes without a KDC."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.errors import ConfigError, SaslAuthenticationError
from kclient.security import gssapi_library
from kclient.security.gssapi_library import Context, Credentials, Name


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    conf = tmp_path / "krb5.conf"
    conf.write_text("[libdefaults]\ndefault_realm = EXAMPLE.COM\ndns_lookup_kdc = false\n")
    monkeypatch.setenv("KRB5_CONFIG", str(conf))
    gssapi_library._library.cache_clear()
    yield
    gssapi_library._library.cache_clear()


@pytest.fixture
def library() -> None:
    try:
        gssapi_library._library()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("library")
def test_no_ticket_is_told_with_the_librarys_words(tmp_path: Path) -> None:
    with pytest.raises(SaslAuthenticationError, match=r"^Kerberos failed: .*[Cc]redentials.*cache"):
        Context(
            Credentials(None, {"ccache": f"FILE:{tmp_path}/none"}), Name("kafka@broker", service=True)
        ).step(b"")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("text", ["alice@EXAMPLE.COM", "alice", "kafka/broker.example@EXAMPLE.COM"])
def test_a_name_is_made_and_let_go(text: str) -> None:
    assert Name(text, service=False).handle.value is not None


@pytest.mark.parametrize("found", [None, "libgssapi_none.so", ctypes.util.find_library("m")])
def test_a_library_that_is_missing_or_another_one_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, found: str | None
) -> None:
    def load(name: str) -> ctypes.CDLL:
        if found is None or name != found or "none" in name:
            raise OSError(f"{name}: cannot open shared object file")
        return loading(name)

    loading = ctypes.CDLL
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: found)
    monkeypatch.setattr(ctypes, "CDLL", load)
    with pytest.raises(ConfigError, match="libgssapi-krb5-2 on Debian") as caught:
        Name("alice", service=False)
    assert caught.value.name == "sasl.mechanism"
