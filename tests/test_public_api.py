"""The public surface: what `__all__` says is complete and documented (that it is sorted is ruff's RUF022)."""

from __future__ import annotations

import importlib
import inspect
import types
from typing import TypeVar

import pytest

import kclient

PACKAGES = [
    "kclient",
    "kclient.admin",
    "kclient.broker",
    "kclient.config",
    "kclient.consumer",
    "kclient.errors",
    "kclient.producer",
    "kclient.serialization",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_complete(name: str) -> None:
    package = importlib.import_module(name)
    # Modules and type variables come along with imports; they are not for others to import from here.
    passing = (types.ModuleType, TypeVar, type(annotations))
    public = {
        key
        for key, value in vars(package).items()
        if not key.startswith("_") and not isinstance(value, passing)
    }
    if name == "kclient":
        public |= {"__version__"}
    assert len(package.__all__) == len(set(package.__all__))
    assert set(package.__all__) == public


@pytest.mark.parametrize("name", PACKAGES)
def test_everything_public_is_documented(name: str) -> None:
    package = importlib.import_module(name)
    for key in package.__all__:
        value = getattr(package, key)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{key} has no docstring"


@pytest.mark.parametrize("client", [kclient.KafkaProducer, kclient.KafkaConsumer, kclient.KafkaAdminClient])
def test_every_public_method_of_a_client_is_documented_and_typed(client: type) -> None:
    for name, method in inspect.getmembers(client, inspect.isfunction):
        if name.startswith("_"):
            continue
        assert method.__doc__, f"{client.__name__}.{name} has no docstring"
        hints = inspect.get_annotations(method)
        missing = set(inspect.signature(method).parameters) - {"self"} - set(hints)
        assert not missing, f"{client.__name__}.{name} does not type {missing}"
        assert "return" in hints
