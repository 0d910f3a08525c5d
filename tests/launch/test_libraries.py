"""Libraries that do not import or train are named."""
import importlib
import sys

import pytest
from torch.optim import SGD

from stepnet_mm.launch import libraries


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(report, printed, monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    libraries.check_training(report, 'mmpretrain')
    assert ('error    mmpretrain: no training of a tiny StepResNet '
            '(RuntimeError: resume: expected the weights') in printed()


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """packages(name='its code', ...): modules that a new process imports."""
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(libraries, '_FATAL', {})

    def packages(**codes):
        for name, code in codes.items():
            (tmp_path / f'{name}.py').write_text(code)
        return list(codes)

    return packages


def test_an_import_that_ends_or_holds_the_process(packages, monkeypatch):
    monkeypatch.setattr(libraries, 'LIMIT', .5)
    names = packages(
        dies='import os, signal; print("dies"); os.kill(os.getpid(), 11)',
        raises='raise SystemExit(3)', leaves='import os; os._exit(0)',
        hangs='while True: pass', whole='print("hangs")')
    assert libraries.fatal_imports(names) == dict(
        dies='it ends the process: SIGSEGV', hangs='no end after 0.5 s',
        leaves='it ends the process: exit code 0')


def test_what_ends_a_process_is_not_imported_in_this_one(
        packages, monkeypatch, report, printed):
    name, = packages(dies_on_import='import os; os._exit(3)')
    monkeypatch.setattr(libraries, 'LIBRARIES', [name])
    monkeypatch.setitem(sys.modules, name, None)  # and undone at the end
    del sys.modules[name]
    libraries.check_imports(report)
    assert (f'error    {name} does not import (it ends the process: exit '
            'code 3)') in printed()
    with pytest.raises(ImportError):
        importlib.import_module(name)


def test_operators_that_are_not_compiled(report, monkeypatch, printed):
    import_module = libraries.importlib.import_module

    def without(name):
        if name == 'mmcv.ops':
            raise ModuleNotFoundError('No module named mmcv._ext')
        return import_module(name)

    monkeypatch.setattr(libraries.importlib, 'import_module', without)
    libraries.check_imports(report)
    assert 'error    mmcv has no compiled operators' in printed()
