"""The metadata log is found wherever it is, and a Kafka's is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.mock_time import MockTime
from kclient.broker.log.checkpoints import META_PROPERTIES, MetaProperties
from kclient.broker.metadata.metadata_directory import claim_home, find_metadata_log, open_home
from kclient.broker.metadata.metadata_store import FORMAT_FEATURE, FORMAT_LEVEL, MetadataStore
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, InconsistentClusterIdError, KafkaStorageError
from kclient.protocol.messages.metadata_records import FeatureLevelRecord

USUAL, OTHER = "__cluster_metadata-0", "__kclient_metadata-0"


def log_of(directory: Path, *, ours: bool, snapshot_bytes: int = 1 << 40) -> Path:
    """Write a metadata log: this broker's, or a Kafka's."""
    store = MetadataStore(directory, MockTime(), snapshot_bytes=snapshot_bytes)
    store.start()
    records = [FeatureLevelRecord(name="metadata.version", feature_level=25)]
    if ours:
        records.append(FeatureLevelRecord(name=FORMAT_FEATURE, feature_level=FORMAT_LEVEL))
    store.commit(records)
    store.close()
    return directory


@pytest.fixture
def dirs(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "a", tmp_path / "b"]
    for path in made:
        path.mkdir()
    return made


def test_a_new_log_belongs_into_the_first_directory_or_where_it_is_wanted(
    dirs: list[Path], tmp_path: Path
) -> None:
    assert find_metadata_log(dirs, None) == dirs[0] / USUAL
    assert find_metadata_log(dirs, dirs[1]) == dirs[1] / USUAL
    assert find_metadata_log(dirs, tmp_path / "not-there") == tmp_path / "not-there" / USUAL
    assert list(dirs[0].iterdir()) == [], "looking makes nothing"


def test_a_directory_is_the_same_however_it_is_written(dirs: list[Path]) -> None:
    assert find_metadata_log(dirs, dirs[0] / ".." / "b") == dirs[1] / USUAL


@pytest.mark.parametrize("snapshot_bytes", [1, 1 << 40], ids=["as a snapshot", "as a segment"])
@pytest.mark.parametrize("name", [USUAL, OTHER])
def test_the_log_is_found_in_any_directory(dirs: list[Path], name: str, snapshot_bytes: int) -> None:
    log = log_of(dirs[1] / name, ours=True, snapshot_bytes=snapshot_bytes)
    assert find_metadata_log(dirs, None) == log
    assert find_metadata_log(dirs, dirs[1]) == log


@pytest.mark.parametrize("snapshot_bytes", [1, 1 << 40], ids=["as a snapshot", "as a segment"])
def test_a_kafkas_log_is_not_taken_for_ours_and_not_written_to(dirs: list[Path], snapshot_bytes: int) -> None:
    log_of(dirs[0] / USUAL, ours=False, snapshot_bytes=snapshot_bytes)
    assert find_metadata_log(dirs, None) == dirs[0] / OTHER
    log = log_of(dirs[0] / OTHER, ours=True)
    assert find_metadata_log(dirs, None) == log


def test_there_is_no_place_between_two_that_are_others(dirs: list[Path]) -> None:
    for name in (USUAL, OTHER):
        log_of(dirs[0] / name, ours=False)
    with pytest.raises(KafkaStorageError, match="neither is this broker's"):
        find_metadata_log(dirs, None)


def test_what_a_crash_left_of_making_the_log_is_no_log(dirs: list[Path]) -> None:
    (dirs[0] / USUAL).mkdir()
    assert find_metadata_log(dirs, None) == dirs[0] / USUAL
    (dirs[0] / USUAL / f"{0:020d}.log.tmp").write_bytes(b"half")
    assert find_metadata_log(dirs, None) == dirs[0] / USUAL


def test_two_logs_are_refused(dirs: list[Path]) -> None:
    for place in dirs:
        log_of(place / USUAL, ours=True)
    with pytest.raises(KafkaStorageError, match=f"{dirs[0] / USUAL} and {dirs[1] / USUAL} are both"):
        find_metadata_log(dirs, None)


def test_a_log_that_is_not_where_the_setting_says_is_refused(dirs: list[Path], tmp_path: Path) -> None:
    log_of(dirs[0] / USUAL, ours=True)
    for elsewhere in (dirs[1], tmp_path / "c"):
        with pytest.raises(KafkaStorageError, match=rf"metadata\.log\.dir is {elsewhere}"):
            find_metadata_log(dirs, elsewhere)


def test_a_directory_of_its_own_is_locked_and_marked_as_the_nodes(tmp_path: Path) -> None:
    home = open_home(tmp_path / "c", 1)
    assert (home.meta, home.path.exists()) == (None, False)
    claim_home(home, "cluster", 1)
    written = MetaProperties.read(tmp_path / "c" / META_PROPERTIES)
    assert written is not None
    assert (written.cluster_id, written.node_id) == ("cluster", 1)
    with pytest.raises(IllegalStateError, match="in use"):
        open_home(tmp_path / "c", 1)
    home.release()
    again = open_home(tmp_path / "c", 1)
    assert again.meta == written
    again.release()


def test_a_directory_of_another_node_is_refused_and_let_go_of(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    MetaProperties("cluster", 7, Uuid.random()).write(tmp_path / "c" / META_PROPERTIES)
    for _ in range(2):
        with pytest.raises(InconsistentClusterIdError, match="belongs to node 7"):
            open_home(tmp_path / "c", 1)


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(KafkaStorageError, match=rf"metadata\.log\.dir {tmp_path / 'c'} cannot be used"):
        open_home(tmp_path / "c", 1)
