"""Directories of a broker: which are there, which are missing or copies, and where new logs go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.broker.log.log_directories import LogDirectories, place
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, KafkaStorageError

Open = Callable[..., LogDirectories]


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[Open]:
    """Looks at directories by their names, and gives their locks back at the end."""
    with ExitStack() as stack:

        def look(*names: str) -> LogDirectories:
            made = LogDirectories([tmp_path / name for name in names], None, 1)
            stack.callback(made.release)
            made.look()
            return made

        yield look


def started(directories: Open, *names: str) -> dict[Uuid, str]:
    """The places of directories that a broker made and left."""
    made = directories(*names)
    made.make({})
    places = made.places()
    made.release()
    return places


def live(made: LogDirectories) -> list[str]:
    return [log_dir.path.name for log_dir in made.live]


def test_a_look_makes_no_directory(directories: Open, tmp_path: Path) -> None:
    made = directories("a", "b")
    assert list(tmp_path.iterdir()) == []
    assert (made.cluster_id, made.places(), live(made)) == (None, {}, ["a", "b"])


def test_new_directories_belong_to_one_cluster_and_differ_in_their_ids(directories: Open) -> None:
    made = directories("a", "b")
    made.make({})
    metas = [log_dir.meta for log_dir in made.all]
    assert {meta.cluster_id for meta in metas if meta is not None} == {made.cluster_id}
    assert list(made.places().values()) == [place(log_dir) for log_dir in made.all]
    assert len(made.places()) == 2


def test_a_new_directory_joins_the_cluster_of_an_old_one_behind_it(directories: Open) -> None:
    first = directories("old")
    first.make({})
    first.release()
    again = directories("new", "old")
    again.make(first.places())
    assert again.cluster_id == first.cluster_id
    assert again.all[0].meta is not None
    assert again.all[0].meta.cluster_id == first.cluster_id


def test_a_copy_of_a_directory_is_refused(directories: Open, tmp_path: Path) -> None:
    started(directories, "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(IllegalStateError, match="a copy of the other"):
        directories("a", "b")


@pytest.mark.parametrize("empty", [True, False], ids=["empty", "missing"])
def test_a_directory_whose_disk_is_not_mounted_goes_offline_and_is_not_made_anew(
    directories: Open, tmp_path: Path, empty: bool
) -> None:
    places = started(directories, "a", "b")
    shutil.rmtree(tmp_path / "b")
    if empty:
        (tmp_path / "b").mkdir()
    made = directories("a", "b")
    made.make(places)
    assert live(made) == ["a"]
    assert "is its disk mounted" in str(made.all[1].offline_error)
    assert not (tmp_path / "b" / "meta.properties").exists()
    lost = next(known for known, where in places.items() if where.endswith("b"))
    with pytest.raises(KafkaStorageError, match=f"{tmp_path}/b.* is offline"):
        made.by_id(lost)


def test_the_old_place_of_a_directory_that_moved_is_free_for_a_new_one(
    directories: Open, tmp_path: Path
) -> None:
    (known,) = places = started(directories, "a")
    (tmp_path / "a").rename(tmp_path / "moved")
    made = directories("a", "moved")
    made.make(places)
    assert live(made) == ["a", "moved"]
    assert made.by_id(known).path.name == "moved"


def test_a_file_in_the_place_of_a_directory_takes_only_that_one_offline(
    directories: Open, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("not a directory")
    made = directories("a", "b")
    made.make({})
    assert live(made) == ["b"]


def test_an_id_that_was_never_here_is_not_in_the_settings(directories: Open) -> None:
    made = directories("a")
    made.make({})
    with pytest.raises(KafkaStorageError, match=r"not in log\.dirs"):
        made.by_id(Uuid.random())


def test_new_logs_go_where_there_are_fewest_and_first_of_those_that_have_as_many(directories: Open) -> None:
    made = directories("a", "b", "c")
    made.make({})
    a, b, c = made.all
    assert made.choose(5, []) == [a.id, b.id, c.id, a.id, b.id]
    assert made.choose(3, [a, a, c]) == [b.id, b.id, c.id]
    assert made.choose(0, [a]) == []


def test_no_log_goes_to_a_directory_that_is_offline(directories: Open) -> None:
    made = directories("a", "b")
    made.make({})
    a, b = made.all
    a.fail("test", OSError("broken"))
    assert made.choose(2, [a, b, b]) == [b.id, b.id]
    b.fail("test", OSError("broken"))
    with pytest.raises(KafkaStorageError, match="All log directories are offline"):
        made.choose(1, [])
