import sys
import warnings

import pytest

from stepnet_mm.optional import import_binding

pytestmark = pytest.mark.core


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ('some_library', 'some_binding'):
        sys.modules.pop(name, None)


def test_an_absent_library_is_skipped_silently(folder):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert not import_binding('some_binding', 'some_library')


def test_a_binding_is_imported(folder):
    (folder / 'some_library.py').write_text('')
    (folder / 'some_binding.py').write_text('import some_library')
    assert import_binding('some_binding', 'some_library')
    assert 'some_binding' in sys.modules


def test_a_library_that_fails_is_skipped_with_its_message(
        folder, monkeypatch):
    monkeypatch.setattr('stepnet_mm.optional._warned', set())
    (folder / 'some_library.py').write_text('raise RuntimeError("boom")')
    (folder / 'some_binding.py').write_text('import some_library')
    with pytest.warns(UserWarning, match='some_library.*RuntimeError: boom'):
        assert not import_binding('some_binding', 'some_library')


def test_a_library_is_named_once(folder, monkeypatch):
    monkeypatch.setattr('stepnet_mm.optional._warned', set())
    (folder / 'some_library.py').write_text('raise RuntimeError("boom")')
    for name in ('some_binding', 'other_binding'):
        (folder / f'{name}.py').write_text('import some_library')
    with pytest.warns(UserWarning) as caught:
        assert not import_binding('some_binding', 'some_library')
        assert not import_binding('other_binding', 'some_library')
    assert len(caught) == 1
