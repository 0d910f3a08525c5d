"""The benchmark that compares and trains configs of the libraries."""
import functools

import pytest

CONFIG = 'mmpretrain::resnet/resnet18_8xb16_cifar10.py'


@pytest.fixture
def benchmark(load_tool, monkeypatch):
    pytest.importorskip('mmpretrain')
    module = load_tool('benchmarks/existing_configs')
    monkeypatch.setattr(module, 'EDGE', 32)
    return module


def test_a_row(benchmark, tmp_path):
    name, backbone, tensors, losses, _ = benchmark.trial(CONFIG, tmp_path)
    assert (name, backbone) == (CONFIG, 'StepResNet_CIFAR')
    assert int(tensors) > 1
    assert len(losses.split()) == benchmark.ITERATIONS


@pytest.mark.long
def test_another_network_is_no_equal_one(benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, 'to_stepnet', functools.partial(
        benchmark.to_stepnet, step=dict(type='SEAttention')))
    assert benchmark.trial(CONFIG, tmp_path)[2] == 'NO'
