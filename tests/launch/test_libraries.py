"""Libraries that do not import or train are named."""
import pytest
from torch.optim import SGD

from stepnet_mm.launch import libraries


@pytest.mark.core
def test_a_resume_that_forgets_is_an_error(report, printed, monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    libraries.check_training(report, 'mmpretrain')
    assert ('error    mmpretrain: no training of a tiny StepResNet '
            '(RuntimeError: resume: expected the weights') in printed()


def test_operators_that_are_not_compiled(report, monkeypatch, printed):
    import_module = libraries.importlib.import_module

    def without(name):
        if name == 'mmcv.ops':
            raise ModuleNotFoundError('No module named mmcv._ext')
        return import_module(name)

    monkeypatch.setattr(libraries.importlib, 'import_module', without)
    libraries.check_imports(report)
    assert 'error    mmcv has no compiled operators' in printed()
