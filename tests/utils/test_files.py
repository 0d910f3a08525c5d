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


def test_texts_and_digests(tmp_path):
    path, absent = tmp_path / 'new/a.txt', tmp_path / 'absent'
    write_new(path, 'abc')
    with pytest.raises(FileExistsError):
        write_new(path, 'second')
    assert differing_files({path: 'abc', absent: 'abc'}) == [absent]
    assert differing_files({path: 'second'}) == [path]
    assert file_digest(path) == 'ba7816bf8f01'  # as sha256sum
    assert file_digest('https://host/weights.pth') is None
