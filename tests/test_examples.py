"""The examples in the docstrings of step-size modules and hooks."""
import doctest
import inspect

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS, METRICS, MODELS

from stepnet_mm import hooks, steps

NAMES = {name: getattr(module, name)
         for module in (steps, hooks) for name in module.__all__}
CLASSES = [cls for cls in NAMES.values() if inspect.isclass(cls)]


@pytest.mark.parametrize('cls', CLASSES, ids=lambda cls: cls.__name__)
def test_the_example_of_a_class_runs(cls):
    names = dict(NAMES, torch=torch, MODELS=MODELS, HOOKS=HOOKS)
    example, = doctest.DocTestFinder(recurse=False).find(
        cls, cls.__name__, globs=names)
    runner = doctest.DocTestRunner()
    assert runner.run(example, clear_globs=False) == (
        0, len(example.examples)) and example.examples
    for hook in example.globs.get('custom_hooks', ()):
        assert isinstance(HOOKS.build(hook), Hook)
    for metric in example.globs.get('val_evaluator', ()):
        assert METRICS.build(metric)
