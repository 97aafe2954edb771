"""Files appear whole, with ordinary permissions, or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from propopt.base.errors import InvalidInput
from propopt.base.files import written_whole


def test_what_was_written_takes_the_name(tmp_path):
    target = tmp_path / "table.csv"
    with written_whole(target) as draft:
        draft.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_no_folder_is_made(tmp_path):
    missing = pytest.raises(InvalidInput, match="there is no folder")
    with missing, written_whole(tmp_path / "a" / "table.csv") as draft:
        draft.write_text("new")
    assert list(tmp_path.iterdir()) == []


def test_draft_has_the_suffix_that_writers_look_at(tmp_path):
    with written_whole(tmp_path / "plot.svg") as draft:
        assert draft.suffix == ".svg"
        assert draft.parent == tmp_path


def write_half(target, error):
    with written_whole(target) as draft:
        draft.write_text("half of the n")
        raise error


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_old_file_stays_when_writing_fails(tmp_path, error):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(type(error)):
        write_half(target, error)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        with written_whole(tmp_path / "table.csv") as draft:
            draft.write_text("new")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / "table.csv").stat().st_mode)
    assert mode == 0o666 & ~mask
