"""The wheel and the sdist hold what a user needs, and work in an empty environment of every interpreter here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kclient import __version__

ROOT = Path(__file__).parent.parent
SMOKE = """
import kclient
from kclient import KafkaConsumer, KafkaProducer, TopicPartition

assert kclient.__version__ == {version!r}
assert {site!r} in kclient.__file__, kclient.__file__
for codec in ("gzip", "snappy", "lz4", "zstd"):
    with KafkaProducer(bootstrap_servers="embedded://smoke", compression_type=codec) as producer:
        producer.send("t", codec.encode()).result(timeout=30)
with KafkaConsumer(bootstrap_servers="embedded://smoke") as consumer:
    consumer.assign([TopicPartition("t", 0)])
    consumer.seek_to_beginning([TopicPartition("t", 0)])
    values = []
    while len(values) < 4:
        values += [record.value for record in consumer.poll(1000)]
assert values == [b"gzip", b"snappy", b"lz4", b"zstd"], values
"""

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("packaging"), pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KCLIENT_"))}
    # What is tested is that it builds, five times over; compiled without optimization that takes half the time.
    environment = {**kept, "CFLAGS": "-O0", **variables}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def interpreter(name: str) -> str | None:
    """The path of `name`: on the path, or among the versions that pyenv keeps beside the one that is switched on."""
    kept = sorted(Path(os.environ.get("PYENV_ROOT", "/nowhere")).glob(f"versions/*/bin/{name}"))
    for candidate in (shutil.which(name), *kept):
        # pyenv's stand-in is on the path for versions that are not switched on, and only says so when called.
        if (
            candidate
            and subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0
        ):
            return str(candidate)
    return None


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as a clone would have it: nothing that git does not know or that it ignores."""
    copy = tmp_path_factory.mktemp("source")
    if (ROOT / ".git").exists():
        listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    else:
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith((".venv/", "dist/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def built(source: Path) -> Path:
    run(sys.executable, "-m", "build", "--outdir", source / "dist", source)
    return source / "dist"


def test_the_newest_changelog_entry_is_this_version() -> None:
    found = re.search(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == __version__


def test_the_wheel_holds_the_package_its_types_and_nothing_else(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    assert "kclient/py.typed" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"kclient", "pyspark_kclient", f"kclient_kafka-{__version__}.dist-info"}
    assert "kclient/_accel/native/__init__.pyi" in names
    assert not [name for name in names if name.endswith(".c")]
    # That one is installed beside kclient, where PySpark looks for it.
    expected = {
        str(path.relative_to(ROOT)).replace("kclient/spark/pyspark_kclient/", "pyspark_kclient/")
        for path in (ROOT / "kclient").rglob("*.py")
    }
    assert expected <= set(names)


def test_the_sdist_holds_what_is_needed_to_build_and_the_licence(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "kclient/__init__.py"} <= names
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "kclient/_accel/native").glob("*.p[yx][dx]")}
    assert {*sources, "kclient/_accel/native/crc32c.h"} <= names


# The wheel is for the interpreter that built it, from the sdist; on the others the sdist itself is installed.
@pytest.mark.parametrize(
    ("minor", "kind"),
    [
        # Each of the others builds it all again, for minutes.
        pytest.param(
            minor,
            "whl" if minor == sys.version_info.minor else "tar.gz",
            marks=[] if minor == sys.version_info.minor else [pytest.mark.soak],
        )
        for minor in (11, 12, 13)
    ],
)
def test_it_installs_and_works_in_an_empty_environment(
    built: Path, tmp_path: Path, minor: int, kind: str
) -> None:
    python = interpreter(f"python3.{minor}")
    if python is None:
        pytest.skip(f"there is no Python 3.{minor} on this machine")
    run(python, "-m", "venv", tmp_path / "env")
    binaries = tmp_path / "env" / "bin"
    run(
        binaries / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        next(built.glob(f"*.{kind}")),
    )
    script = tmp_path / "smoke.py"
    script.write_text(SMOKE.format(version=__version__, site=str(tmp_path / "env")))
    run(binaries / "python", "-W", "error", script, cwd=tmp_path)
    assert f"kclient {__version__} (c " in run(binaries / "kclient", "--version", cwd=tmp_path)
    run(binaries / "python", "-W", "error", script, cwd=tmp_path, KCLIENT_IMPL="python")
    assert "verified" in run(binaries / "kclient", "demo", "--records", "2000", cwd=tmp_path)


def test_without_a_compiler_it_installs_and_the_pure_body_runs(source: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", source, CC="/bin/false")
    said = run(python, "-c", "import kclient; print(kclient.IMPL)", cwd=tmp_path)
    assert said.strip() == "python"
    refused = subprocess.run(
        [python, "-c", "import kclient"],
        cwd=tmp_path,
        env={**os.environ, "KCLIENT_IMPL": "c"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert "KCLIENT_IMPL=c" in refused.stderr


def test_make_demo_works_in_a_fresh_clone(source: Path) -> None:
    said = run("make", "demo", f"PYTHON={sys.executable}", cwd=source)
    assert "creating .venv" in said
    assert "verified" in said
    assert "100,000" in said


def test_make_says_in_one_line_that_a_python_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "-s", "demo", "PYTHON=python-of-nowhere", f"VENV={tmp_path / 'env'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    first = done.stdout.splitlines()[0]
    assert "python-of-nowhere" in first
    assert "make PYTHON=" in first
