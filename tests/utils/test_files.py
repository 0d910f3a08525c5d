import os

import pytest

from stepnet_mm.utils.files import (
    UNFINISHED,
    differing_files,
    file_digest,
    write_new,
    written_whole,
)


@pytest.mark.parametrize('make', [
    os.mkfifo, lambda path: os.symlink('other', path)], ids=['pipe', 'link'])
def test_what_has_the_name_of_an_unfinished_file_is_removed(tmp_path, make):
    """The rest of an atomic write: tests/resume/test_atomic_backend.py."""
    (tmp_path / 'other').write_text('kept')
    make(tmp_path / f'a.bin{UNFINISHED}')
    with written_whole(tmp_path / 'a.bin') as file:
        file.write(b'first')
        assert not (tmp_path / 'a.bin').exists()
    assert (tmp_path / 'a.bin').read_bytes() == b'first'
    assert (tmp_path / 'other').read_text() == 'kept'
    assert len([*tmp_path.iterdir()]) == 2


def test_a_new_file_is_never_written_over_another(tmp_path):
    path = tmp_path / 'new' / 'a.txt'
    write_new(path, 'first')
    with pytest.raises(FileExistsError):
        write_new(path, 'second')
    assert path.read_text() == 'first'
    assert differing_files({path: 'first', tmp_path / 'absent': 'first'}) == [
        tmp_path / 'absent']
    assert differing_files({path: 'second'}) == [path]


def test_a_digest_is_that_of_sha256sum(tmp_path):
    path = tmp_path / 'a.bin'
    path.write_bytes(b'abc')
    assert file_digest(path) == 'ba7816bf8f01'
    assert file_digest('https://host/weights.pth') is None
