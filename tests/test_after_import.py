import importlib
import importlib.util
import sys

import pytest

from stepnet_mm.registration import after_import


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The file of a module that nobody has imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'meta_path', list(sys.meta_path))
    path = tmp_path / 'some_module.py'
    path.write_text('value = 1')
    yield path
    sys.modules.pop('some_module', None)


def values():
    """A list, and an action that appends what it sees of the module."""
    seen = []
    return seen, lambda module: seen.append(module.value)


@pytest.mark.core
def test_the_actions_run_once_after_the_import(module):
    seen, action = values()
    before = list(sys.meta_path)
    for _ in range(2):
        after_import('some_module', action)
    spec = importlib.util.find_spec('some_module')  # no import
    assert spec.loader.get_filename('some_module') == str(module)
    assert seen == []
    found = importlib.import_module('some_module')
    assert seen == [1, 1]
    assert sys.meta_path == before
    assert type(found.__loader__).__module__ != 'stepnet_mm.registration'
    assert found.__spec__.loader is found.__loader__


def test_what_is_there_is_not_waited_for(module):
    importlib.import_module('some_module')
    seen, action = values()
    after_import('some_module', action)
    assert seen == [1]
    sys.modules['some_module'] = None  # forbids its import
    for name in 'some_module', 'no_such_module_at_all':
        after_import(name, action)
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)
    assert seen == [1]


def test_an_action_that_fails_is_tried_again(module):
    seen, action = values()

    def fails_once(found):
        if not seen:
            seen.append('failed')
            raise ImportError('of the action')
        action(found)

    after_import('some_module', fails_once)
    with pytest.raises(ImportError, match='of the action'):
        importlib.import_module('some_module')
    importlib.import_module('some_module')
    assert seen == ['failed', 1]
