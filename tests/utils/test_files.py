import pytest

from stepnet_mm.utils.files import written_whole

pytestmark = pytest.mark.core


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / 'new' / 'a.bin'
    with written_whole(path) as file:
        file.write(b'first')
        assert not path.exists()
    assert path.read_bytes() == b'first'
    assert [*path.parent.iterdir()] == [path]


def test_what_was_there_stays_when_writing_fails(tmp_path):
    path = tmp_path / 'a.bin'
    path.write_bytes(b'first')
    with pytest.raises(KeyboardInterrupt), written_whole(path) as file:
        file.write(b'half of the sec')
        raise KeyboardInterrupt
    assert path.read_bytes() == b'first'
