import os

import pytest

from stepnet_mm.utils.files import (
    UNFINISHED,
    differing_files,
    file_digest,
    write_new,
    written_whole,
)


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / 'new' / 'a.bin'
    with written_whole(path) as file:
        file.write(b'first')
        assert not path.exists()
    assert path.read_bytes() == b'first'
    assert [*path.parent.iterdir()] == [path]
    with pytest.raises(KeyboardInterrupt), written_whole(path) as file:
        file.write(b'half of the sec')
        raise KeyboardInterrupt
    assert path.read_bytes() == b'first'


@pytest.mark.parametrize('make', [
    os.mkfifo, lambda path: os.symlink('other', path)], ids=['pipe', 'link'])
def test_what_has_the_name_of_an_unfinished_file_is_removed(tmp_path, make):
    (tmp_path / 'other').write_text('kept')
    make(tmp_path / f'a.bin{UNFINISHED}')
    with written_whole(tmp_path / 'a.bin') as file:
        file.write(b'first')
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
