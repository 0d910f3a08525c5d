import os

import pytest

from stepnet_mm.utils.files import (
    UNFINISHED,
    differing_files,
    file_digest,
    write_new,
    written_whole,
)


def test_a_link_with_the_name_of_an_unfinished_file_is_removed(tmp_path):
    """The rest of an atomic write: tests/resume/test_latest_checkpoint.py."""
    (tmp_path / 'other').write_text('kept')
    os.symlink('other', tmp_path / f'a.bin{UNFINISHED}')
    with written_whole(tmp_path / 'a.bin') as file:
        file.write(b'first')
        assert not (tmp_path / 'a.bin').exists()
    assert (tmp_path / 'a.bin').read_bytes() == b'first'
    assert (tmp_path / 'other').read_text() == 'kept'


def test_a_new_file_is_never_written_over_another(tmp_path):
    path = tmp_path / 'new' / 'a.txt'
    write_new(path, 'first')
    with pytest.raises(FileExistsError):
        write_new(path, 'second')
    absent = tmp_path / 'absent'
    assert differing_files({path: 'first', absent: 'first'}) == [absent]
    assert differing_files({path: 'second'}) == [path]


def test_a_digest_is_that_of_sha256sum(tmp_path):
    path = tmp_path / 'a.bin'
    path.write_bytes(b'abc')
    assert file_digest(path) == 'ba7816bf8f01'
    assert file_digest('https://host/weights.pth') is None
