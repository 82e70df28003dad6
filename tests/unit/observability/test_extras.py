"""Packages that are not there: the error names the command that brings them."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("prometheus", "prometheus_client", "prometheus"),
        ("tracing", "opentelemetry", "otel"),
    ],
)
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"kclient.observability.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install 'kclient-kafka\[{extra}\]'"):
        importlib.import_module(f"kclient.observability.{module}")
