"""What the package registers is known at once and imported when asked for."""
import copy
import importlib
import pickle
import pkgutil
import sys
from importlib.util import find_spec

import mmengine.registry
import pytest
from mmengine.registry import Registry

import stepnet_mm
from stepnet_mm import registration
from stepnet_mm.registered_names import BINDINGS, NAMES

ROOTS = {kind: getattr(mmengine.registry, kind) for kind in NAMES}


def own_modules():
    absent = ['triton', *(f'{library}_binding' for library in BINDINGS
                          if find_spec(library) is None)]
    for module in pkgutil.walk_packages(stepnet_mm.__path__, 'stepnet_mm.'):
        if not any(name in module.name for name in absent):
            yield importlib.import_module(module.name)


@pytest.mark.core
def test_the_names_are_those_that_the_modules_register():
    list(own_modules())
    for kind, modules in NAMES.items():
        registered = {
            name for name, cls in ROOTS[kind].module_dict.items()
            if cls.__module__.startswith('stepnet_mm.')}
        assert registered == {
            name for names in modules.values() for name in names}, kind


@pytest.mark.core
def test_every_name_is_found_from_every_scope():
    libraries = [pytest.importorskip(f'{library}.registry')
                 for library in ('mmdet', 'mmpretrain')]
    for kind, modules in NAMES.items():
        new = Registry('new', parent=ROOTS[kind], scope=f'a_{kind}')
        scopes = [ROOTS[kind], new,
                  *(getattr(library, kind) for library in libraries)]
        for module, name in ((m, n) for m in modules for n in modules[m]):
            for scope in scopes:
                found = scope.get(name)
                assert found.__name__ == name
                assert found.__module__.startswith(module)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A root registry, and a module that registers Lazy and Other in it."""
    monkeypatch.syspath_prepend(tmp_path)
    root = Registry('root', scope='root')
    monkeypatch.setattr(mmengine.registry, 'LAZY', root, raising=False)
    monkeypatch.setattr(registration, 'NAMES', {
        'LAZY': {'lazy_home': ('Lazy', 'Other')}})
    (tmp_path / 'lazy_home.py').write_text(
        'from mmengine.registry import LAZY\n'
        '@LAZY.register_module()\nclass Lazy: pass\n'
        '@LAZY.register_module()\nclass Other: pass\n')
    registration._add_names(mmengine.registry)
    yield root
    sys.modules.pop('lazy_home', None)


@pytest.mark.core
def test_a_name_is_imported_when_asked_for_and_replaced_by_force_alone(home):
    child = Registry('child', parent=home, scope='child')
    assert child.get('Unknown') is None
    assert 'lazy_home' not in sys.modules
    assert child.get('Lazy').__name__ == 'Lazy'
    with pytest.raises(KeyError, match='Lazy is already registered'):
        home.register_module('Lazy', module=object)
    home.register_module('Lazy', force=True, module=dict)
    assert child.get('Lazy') is dict
    assert child.get('Other') is sys.modules['lazy_home'].Other


def pickled(registry):
    return pickle.loads(pickle.dumps(registry))


@pytest.mark.core
@pytest.mark.parametrize('asked_before', [False, True])
@pytest.mark.parametrize('copied', [pickled, copy.deepcopy, copy.copy])
def test_a_copy_finds_what_its_registry_finds(home, copied, asked_before):
    """Ray, joblib and spawned processes copy what a function names."""
    child = Registry('child', parent=home, scope='child')
    if asked_before:
        child.get('Lazy')
    twin = copied(copied(child))
    assert ('lazy_home' in sys.modules) == asked_before
    assert twin.get('Unknown') is None
    for name in 'Lazy', 'Other':
        assert twin.get(name) is child.get(name)
    twin.parent.register_module('Lazy', force=True, module=dict)
    assert twin.get('Lazy') is dict
    assert (child.get('Lazy') is dict) == (copied is copy.copy)


@pytest.mark.core
@pytest.mark.parametrize('asked_before', [False, True])
def test_a_location_is_read_when_the_registry_is_asked(home, asked_before):
    registry = Registry('some', parent=home, scope='some')
    others = registry._locations
    if asked_before:
        registry.get('Nothing')
    assert registry._imported is asked_before
    registration._add_location(registry, 'lazy_home')
    assert others == [] and Registry('third', scope='third')._locations == []
    assert ('lazy_home' in sys.modules) == asked_before
    registry.get('Nothing')
    assert 'lazy_home' in sys.modules
    for root in ROOTS.values():
        assert isinstance(root._module_dict, registration._LazyEntries)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The file of a module that nobody has imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'meta_path', list(sys.meta_path))
    path = tmp_path / 'some_module.py'
    path.write_text('value = 1')
    yield path
    sys.modules.pop('some_module', None)


@pytest.mark.core
def test_the_actions_run_once_after_the_import(module):
    seen, before = [], list(sys.meta_path)
    for _ in range(2):
        registration.after_import(
            'some_module', lambda module: seen.append(module.value))
    spec = find_spec('some_module')  # no import
    assert spec.loader.get_filename('some_module') == str(module)
    assert seen == []
    found = importlib.import_module('some_module')
    assert seen == [1, 1]
    assert sys.meta_path == before
    assert type(found.__loader__).__module__ != 'stepnet_mm.registration'
    assert found.__spec__.loader is found.__loader__
    registration.after_import('some_module', seen.append)  # at once
    assert seen == [1, 1, found]


def test_an_import_or_action_that_fails_is_tried_again(module):
    seen = []

    def fails_once(found):
        seen.append(found.value)
        if len(seen) == 1:
            raise ImportError('of the action')

    registration.after_import('some_module', fails_once)
    module.write_text('raise ImportError("of the module")')
    with pytest.raises(ImportError, match='of the module'):
        importlib.import_module('some_module')
    module.write_text('value = 22  # another length than before')
    importlib.invalidate_caches()
    with pytest.raises(ImportError, match='of the action'):
        importlib.import_module('some_module')
    importlib.import_module('some_module')
    assert seen == [22, 22]
