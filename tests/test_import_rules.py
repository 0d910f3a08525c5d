"""Data flows one way, and either library alone is enough."""
import ast
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hidden import HIDE

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = 'stepnet_mm'
LIBRARIES = ('mmdet', 'mmpretrain')
OTHERS = ('mmseg', 'mmrotate', 'mmpose')
#: Files at the top that every folder may import.
COMMON = {'config_path', 'lazy_exports', 'regular_file', 'supported',
          'version'}
FILES = sorted((ROOT / PACKAGE).rglob('*.py'))


def imports(source, package):
    """Absolute dotted names that a file of ``package`` imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split('.')
            base = parts[:len(parts) - node.level + 1] if node.level else []
            base += [node.module] if node.module else []
            yield from ('.'.join([*base, alias.name]) for alias in node.names)


@functools.cache
def imports_of(path):
    package = '.'.join(path.relative_to(ROOT).parent.parts)
    return set(imports(path.read_text(), package))


def folder_of(path):
    """The folder under the package, '' for a file at its top."""
    parts = path.relative_to(ROOT / PACKAGE).parts
    return parts[0] if len(parts) > 1 else ''


def allowed():
    """What each folder may import of the others, as its docstring has it."""
    rules = {}
    for path in (ROOT / PACKAGE).glob('*/__init__.py'):
        text = ast.get_docstring(ast.parse(path.read_text()))
        named = re.search(r'^May import: ([^.]*)\.$', text, re.M)[1]
        rules[path.parent.name] = set() if named == 'no other folder' else (
            set(re.split(r',\s+', named)))
    return rules


def top(name):
    return name.partition('.')[0]


def lines(violations):
    return [f'{path.relative_to(ROOT)}: {name}' for path, name in violations]


def test_relative_imports_are_resolved():
    source = ('import os.path\nfrom . import a\nfrom .b import c\n'
              'def f():\n    from ..d.e import g as h\n'
              'from ... import tools\nfrom json import load')
    assert set(imports(source, 'one.two.three')) == {
        'os.path', 'one.two.three.a', 'one.two.three.b.c', 'one.two.d.e.g',
        'one.tools', 'json.load'
    }


def test_every_folder_says_what_it_may_import():
    rules = allowed()
    tuple(TopologicalSorter(rules).static_order())  # no circle
    assert {folder_of(path) for path in FILES} - {''} == set(rules)
    assert set().union(*rules.values()) < set(rules)


def test_data_flows_one_way():
    rules, used, violations = allowed(), defaultdict(set), []
    for path in FILES:
        folder = folder_of(path)
        for name in imports_of(path) if folder else ():
            parts = name.split('.')
            if parts[0] == PACKAGE and parts[1] not in {folder} | COMMON:
                used[folder].add(parts[1])
                if parts[1] not in rules[folder]:
                    violations.append((path, name))
    assert not lines(violations)
    # No rule allows what nobody needs.
    assert used == {folder: names for folder, names in rules.items() if names}


def test_stiffness_imports_torch_and_numpy_only():
    known = {'torch', 'numpy'} | sys.stdlib_module_names
    own = f'{PACKAGE}.stiffness'
    violations = [(path, name) for path in FILES for name in imports_of(path)
                  if folder_of(path) == 'stiffness' and top(name) not in known
                  and not f'{name}.'.startswith(f'{own}.')]
    assert not lines(violations)


def test_the_top_imports_nothing_but_the_package_and_the_standard_library():
    known = {PACKAGE} | sys.stdlib_module_names
    violations = [(path, name) for path in FILES for name in imports_of(path)
                  if not folder_of(path) and top(name) not in known]
    assert not lines(violations)


@pytest.mark.parametrize('library', LIBRARIES + OTHERS)
def test_one_file_a_folder_binds_to_a_library(library):
    files = defaultdict(set)
    for path in FILES:
        if library in map(top, imports_of(path)):
            files[folder_of(path)].add(path.name)
    assert files['models'] == {f'{library}_binding.py'}
    assert all(len(names) == 1 for names in files.values()), dict(files)
    assert '' not in files


def test_files_that_bind_to_a_library_are_imported_with_a_guard_only():
    bindings = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts)
        for path in FILES if set(LIBRARIES) & set(map(top, imports_of(path)))
    }
    violations = [(path, name) for path in FILES for name in imports_of(path)
                  for binding in bindings
                  if f'{name}.'.startswith(f'{binding}.')
                  and not path.name.endswith('_binding.py')]
    assert bindings
    assert not lines(violations)


def test_nothing_imports_tools_configs_or_tests():
    outer = {'tools', 'configs', 'tests'}
    violations = [(path, name) for path in FILES for name in imports_of(path)
                  if outer & set(name.split('.')[:2])]
    assert not lines(violations)


#: Imports modules in turn as if some libraries were not installed, then asks
#: each registry for what is ours.
PROBE = HIDE + '''
import importlib, json, time, warnings

modules, hidden = sys.argv[1].split(','), set(sys.argv[2].split(','))
hide(hidden)
LIBRARIES = ('mmdet', 'mmpretrain')
built, errors = {}, {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    for module in modules:
        importlib.import_module(module)
    loaded = [name for name in ('torch', 'mmengine', 'mmcv', *LIBRARIES,
              'mmdet.models', 'mmpretrain.models') if name in sys.modules]
    for library in LIBRARIES if 'ask' in sys.argv else ():
        try:
            registry = importlib.import_module(f'{library}.registry').MODELS
            built[library] = registry.get('StepResNet').__module__
        except Exception as error:
            errors[library] = f'{type(error).__name__}: {error}'
def where(library, kind, key):
    registries = importlib.import_module(f'{library}.registry')
    return getattr(registries, kind).get(key).__module__
across = [where(*words) for words in (
    ('mmengine', 'MODELS', 'mmdet.StepResNet'),
    ('mmengine', 'DATASETS', 'mmpretrain.STL10'),
    ('mmpretrain', 'MODELS', 'mmdet.StepResNeXt'),
    ('mmpretrain', 'DATASETS', 'FolderCIFAR10'),
    ('mmdet', 'MODELS', 'mmpretrain.StepVisionTransformer'),
    ('mmdet', 'HOOKS', 'TNSHook'))] if len(built) == 2 else []
own = [str(w.message) for w in caught if 'stepnet_mm' in str(w.message)]
print()
print(json.dumps(dict(warnings=own, loaded=loaded, built=built,
                      errors=errors, across=across)))
'''


def probe(*modules, hidden=(), path=(), ask=False):
    """Import modules in a process of its own, and ask for StepResNet."""
    env = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(map(str, [*path, ROOT])),
        OMP_NUM_THREADS='1')
    result = subprocess.run(
        [sys.executable, '-c', PROBE, ','.join(modules), ','.join(hidden),
         *(['ask'] if ask else [])],
        env=env,
        cwd=path[0] if path else ROOT,
        capture_output=True,
        text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def need(*libraries):
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f'{library} is not installed')


def binding(library):
    return {library: f'{PACKAGE}.models.{library}_binding'}


def fake(folder, library, error):
    (folder / library).mkdir()
    (folder / library / '__init__.py').write_text(f'raise {error}')
    return [folder]


@pytest.mark.core
def test_the_package_imports_nothing_before_it_is_asked():
    assert probe(PACKAGE)['loaded'] == []
    loaded = probe(PACKAGE, 'mmengine.runner')['loaded']
    assert not {'mmdet.models', 'mmpretrain.models'} & set(loaded)


#: Of a training that draws: what its hooks may load.
DRAWN = '''
import json, sys
from stepnet_mm.hooks import *
named = lambda: {m for m in sys.modules if m.startswith('stepnet_mm.')}
before = named()
from stepnet_mm import visualization as v
v.as_image(v.curve_figure([dict(step=1, tns=1.)]))
v.depth_figure, v.attention_figures
print(json.dumps([sorted(before), sorted(named() - before)]))
'''


@pytest.mark.core
def test_hooks_load_what_a_training_needs():
    """matplotlib and the figures come with the first picture."""
    need('mmengine')
    found = subprocess.run([sys.executable, '-c', DRAWN], text=True, cwd=ROOT,
                           capture_output=True, check=True).stdout
    before, drawn = json.loads(found.splitlines()[-1])
    folders = {name.split('.')[1] for name in before}
    assert 'hooks' in folders
    assert not folders & {'analysis', 'studies'}
    assert not [m for m in before if f'{PACKAGE}.visualization.' in m]
    own = f'{PACKAGE}.visualization.'
    assert set(drawn) == {f'{own}style', f'{own}training_curve',
                          f'{own}stiffness_figures', f'{own}attention_maps'}


@pytest.mark.long
def test_stiffness_needs_no_mm_library():
    found = probe(f'{PACKAGE}.stiffness',
                  hidden=['mmengine', 'mmcv', 'mmdet', 'mmpretrain'])
    assert found == dict(warnings=[], loaded=['torch'], built={}, errors={},
                         across=[])


@pytest.mark.long
@pytest.mark.parametrize('absent, present', [LIBRARIES, LIBRARIES[::-1]])
def test_an_absent_library_is_skipped_silently(absent, present):
    need(present)
    found = probe(PACKAGE, hidden=[absent], ask=True)
    assert found['built'] == binding(present)
    assert found['warnings'] == []
    assert absent not in found['loaded']


@pytest.mark.long
@pytest.mark.parametrize('first', ['before', 'after'])
def test_both_orders_of_import(first):
    """The package comes before the libraries, or when they are all there."""
    need(*LIBRARIES)
    libraries = ['mmengine.runner', 'mmdet.models', 'mmpretrain.models']
    found = probe(*([PACKAGE, *libraries] if first == 'before' else
                    [*libraries, PACKAGE]), ask=True)
    assert found['built'] == {**binding('mmdet'), **binding('mmpretrain')}
    assert found['errors'] == {}
    assert found['across'] == [
        f'{PACKAGE}.{module}' for module in (
            'models.mmdet_binding', 'datasets.mmpretrain_binding',
            'models.mmdet_binding', 'datasets.mmpretrain_binding',
            'models.mmpretrain_binding', 'hooks.tns_hook')]


@pytest.mark.parametrize('error', [
    pytest.param('RuntimeError', marks=pytest.mark.core),
    pytest.param('ImportError', marks=pytest.mark.long)])
def test_a_library_that_fails_is_named_in_one_warning(tmp_path, error):
    # mmdet imports mmpretrain where it can, and survives an ImportError only.
    present = ['mmdet'] if error == 'ImportError' else []
    need(*present)
    found = probe(PACKAGE, hidden=[] if present else ['mmdet'], ask=True,
                  path=fake(tmp_path, 'mmpretrain', f"{error}('boom')"))
    assert found['built'] == (binding('mmdet') if present else {})
    assert found['errors']['mmpretrain'] == f'{error}: boom'
    warning, = found['warnings']
    assert 'mmpretrain is installed but does not import as' in warning
    assert f'{error}: boom' in warning
