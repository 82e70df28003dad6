"""The public surface: what `__all__` says is complete and documented (that it is sorted is ruff's RUF022)."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import types
from pathlib import Path
from typing import TypeVar

import pytest

import kclient
from kclient.consumer import ConsumerPartitionAssignor, ConsumerRebalanceListener

PACKAGES = [
    "kclient",
    "kclient.admin",
    "kclient.broker",
    "kclient.config",
    "kclient.consumer",
    "kclient.errors",
    "kclient.processing",
    "kclient.producer",
    "kclient.security",
    "kclient.serialization",
]
LAZY = ["kclient", "kclient.admin", "kclient.consumer", "kclient.processing", "kclient.producer"]


def shown_to_type_checkers(package: types.ModuleType) -> dict[str, str]:
    """The names that `if typing.TYPE_CHECKING:` imports, with their modules."""
    tree = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    blocks = [
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def fresh(program: str) -> str:
    """The output of a new interpreter."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_complete(name: str) -> None:
    package = importlib.import_module(name)
    for key in package.__all__:
        getattr(package, key)  # some are there once they were asked for
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


@pytest.mark.parametrize(
    "client",
    [kclient.KafkaProducer, kclient.KafkaConsumer, kclient.KafkaShareConsumer, kclient.KafkaAdminClient],
)
def test_every_public_method_of_a_client_is_documented_and_typed(client: type) -> None:
    for name, method in inspect.getmembers(client, inspect.isfunction):
        if name.startswith("_"):
            continue
        assert method.__doc__, f"{client.__name__}.{name} has no docstring"
        hints = inspect.get_annotations(method)
        missing = set(inspect.signature(method).parameters) - {"self"} - set(hints)
        assert not missing, f"{client.__name__}.{name} does not type {missing}"
        assert "return" in hints


# Methods of Java's interfaces of Kafka 4.3, in Python's grammar.
_OF_BOTH = [
    "subscription",
    "subscribe",
    "unsubscribe",
    "poll",
    "commit_sync",
    "commit_async",
    "close",
    "wakeup",
]
_OF_BOTH += ["client_instance_id", "metrics", "register_metric_for_subscription"]
_OF_BOTH += ["unregister_metric_from_subscription"]
_JAVAS = {
    kclient.KafkaShareConsumer: [
        *_OF_BOTH,
        *("acknowledge", "set_acknowledgement_commit_callback", "acquisition_lock_timeout_ms"),
    ],
    kclient.KafkaConsumer: [
        *_OF_BOTH,
        *("assignment", "assign", "seek", "seek_to_beginning", "seek_to_end", "position", "committed"),
        *("partitions_for", "list_topics", "paused", "pause", "resume", "offsets_for_times"),
        *("beginning_offsets", "end_offsets", "current_lag", "group_metadata", "enforce_rebalance"),
    ],
    ConsumerPartitionAssignor: [
        *("name", "assign", "subscription_user_data", "on_assignment", "supported_protocols", "version"),
    ],
    ConsumerRebalanceListener: ["on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost"],
}


@pytest.mark.parametrize("kind", _JAVAS)
def test_what_java_has_is_there_by_its_name(kind: type) -> None:
    assert [name for name in _JAVAS[kind] if not hasattr(kind, name)] == []


@pytest.mark.parametrize("name", LAZY)
def test_what_is_imported_late_is_what_type_checkers_are_shown(name: str) -> None:
    package = importlib.import_module(name)
    shown = shown_to_type_checkers(package)
    assert set(shown) == set(package.__all__) & set(shown)
    for key, module in shown.items():
        assert getattr(package, key) is getattr(importlib.import_module(module), key)
    late = fresh(f"import {name} as p; print(*(n for n in p.__all__ if n not in vars(p)))")
    assert set(late.split()) == set(shown)


@pytest.mark.parametrize("name", LAZY)
def test_a_name_that_is_imported_late_is_listed_before_and_kept_afterwards(name: str) -> None:
    program = f"import {name} as p; assert set(p.__all__) <= set(dir(p)); [getattr(p, n) for n in p.__all__]"
    assert fresh(f"{program}; print(*(n for n in p.__all__ if n not in vars(p)))") == ""
    assert fresh(f"from {name} import *; import {name} as p; print(*set(p.__all__) - set(globals()))") == ""


def test_submodules_are_attributes_without_an_import_of_their_own() -> None:
    assert (
        fresh("import kclient; print(kclient.consumer.ConsumerConfig.__module__)")
        == "kclient.consumer.config"
    )


@pytest.mark.parametrize("name", LAZY)
def test_a_name_that_is_not_there_is_told_as_of_any_module(name: str) -> None:
    package = importlib.import_module(name)
    for missing in ("nothing", "Nothing", "__nothing__", "_nothing"):
        with pytest.raises(AttributeError) as caught:
            getattr(package, missing)
        assert str(caught.value) == f"module {name!r} has no attribute {missing!r}"
    with pytest.raises(ImportError, match=f"cannot import name 'Nothing' from '{name}'"):
        exec(f"from {name} import Nothing")


def test_whoever_wants_one_client_imports_no_other() -> None:
    program = (
        "import kclient, sys; kclient.KafkaConsumer; print(*(n for n in sys.modules if n.count('.') == 1))"
    )
    found = {module.removeprefix("kclient.") for module in fresh(program).split()}
    assert "consumer" in found
    assert found.isdisjoint({"producer", "admin", "broker", "spark", "testing"})
