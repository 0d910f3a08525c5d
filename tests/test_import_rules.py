"""Data flows one way, and either library alone is enough."""
import ast
import contextlib
import functools
import importlib.util
import json
import re
import sys
import warnings
from collections import defaultdict
from graphlib import TopologicalSorter
from importlib.machinery import PathFinder
from pathlib import Path

import fresh
import pytest

from stepnet_mm.registered_names import BINDINGS

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = 'stepnet_mm'
LIBRARIES = ('mmdet', 'mmpretrain')
#: Files at the top that every folder may import.
COMMON = {'config_path', 'json_lines', 'lazy_exports', 'supported', 'version'}
FILES = sorted((ROOT / PACKAGE).rglob('*.py'))


@functools.cache
def imports_of(path):
    """Absolute dotted names."""
    package, found = '.'.join(path.relative_to(ROOT).parent.parts), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name(
                '.' * node.level + (node.module or ''), package)
            found |= {f'{base}.{alias.name}' for alias in node.names}
    return found


def module_of(path):
    return '.'.join(path.relative_to(ROOT).with_suffix('').parts)


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


def test_each_folder_imports_what_its_docstring_allows():
    rules, used, violations = allowed(), defaultdict(set), []
    tuple(TopologicalSorter(rules).static_order())  # no circle
    assert {folder_of(path) for path in FILES} - {''} == set(rules)
    for path in FILES:
        folder = folder_of(path)
        for name in imports_of(path) if folder else ():
            parts = name.split('.')
            if parts[0] == PACKAGE and parts[1] not in {folder} | COMMON:
                used[folder].add(parts[1])
                if parts[1] not in rules[folder]:
                    violations.append((path, name))
    assert not violations
    # No rule allows what nobody needs.
    assert used == {folder: names for folder, names in rules.items() if names}


def test_stiffness_needs_torch_alone_and_the_top_nothing():
    known = {'': {PACKAGE}, 'stiffness': {'torch', 'numpy', PACKAGE}}
    violations = [(path, name) for path in FILES for name in imports_of(path)
                  if top(name) not in known.get(folder_of(path), {top(name)})
                  | sys.stdlib_module_names
                  or top(name) in ('tools', 'configs', 'tests')]
    assert not violations


def test_bindings_alone_import_a_library_and_nothing_else_imports_them():
    """The lazy ones, or files that only these import."""
    lazy = {name for modules in BINDINGS.values() for name in modules.values()}
    bound = {module_of(path) for path in FILES
             if {*map(top, imports_of(path))} & {*LIBRARIES, 'mmseg'}}
    assert lazy <= bound
    assert not [
        (path, name) for path in FILES if module_of(path) not in lazy
        for name in imports_of(path)
        if f'{name}.'.startswith(tuple(f'{module}.' for module in bound))]


def look(modules, hidden):
    """Import modules as if some libraries were absent; print a finding."""
    find, built = PathFinder.find_spec, []
    PathFinder.find_spec = lambda name, *args: (
        None if top(name) in hidden else find(name, *args))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for module in modules:
            importlib.import_module(module)
        loaded = [name for name in sys.modules if top(name) in fresh.LIBRARIES]
        for library in LIBRARIES:
            with contextlib.suppress(ImportError):
                registry = importlib.import_module(f'{library}.registry')
                built.append(registry.MODELS.get('StepResNet').__module__)
    from mmengine.runner import CheckpointLoader
    safe = all('safe_loading' in loader.__code__.co_filename
               for loader in CheckpointLoader._schemes.values())
    own = [str(w.message) for w in caught if PACKAGE in str(w.message)]
    print('\n' + json.dumps(
        dict(warnings=own, loaded=loaded, built=built, safe=safe)))


def probe(folder, modules, hidden=()):
    """What a process finds that imports modules in turn."""
    return json.loads(fresh.printed_by(
        folder, look, modules, hidden).splitlines()[-1])


@pytest.mark.core
@pytest.mark.parametrize('modules', [
    (PACKAGE, 'mmengine.runner'), ('mmengine.runner', PACKAGE)])
def test_no_library_is_imported_before_it_is_asked(tmp_path, modules):
    """And each load is safe, in either order."""
    found = probe(tmp_path, modules)
    assert not {'mmdet.models', 'mmpretrain.models'} & {*found['loaded']}
    assert found['safe']


THEIRS = 'mmengine.runner', 'mmdet.models', 'mmpretrain.models'


@pytest.mark.long
@pytest.mark.parametrize('modules, hidden', [
    ((PACKAGE, ), 'mmdet'), ((PACKAGE, ), 'mmpretrain'),
    ((PACKAGE, *THEIRS), ''), ((*THEIRS, PACKAGE), '')])
def test_what_is_there_is_bound_and_what_is_absent_skipped_silently(
        tmp_path, modules, hidden):
    """The package comes before the libraries, or when they are all there."""
    found = probe(tmp_path, modules, [hidden])
    assert found['built'] == [f'{PACKAGE}.models.{library}_binding'
                              for library in LIBRARIES if library != hidden]
    assert found['warnings'] == []
