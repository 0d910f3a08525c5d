"""Configs of the libraries become StepNets: equal at the start, all trains.

By the functions of the benchmark, which has larger images.
"""
import pytest
import torch
from mmengine.config import Config

CONFIG = 'mmpretrain::resnet/resnet18_8xb16_cifar10.py'


@pytest.fixture
def benchmark(load_tool, monkeypatch):
    pytest.importorskip('mmpretrain')
    module = load_tool('benchmarks/existing_configs')
    monkeypatch.setattr(module, 'EDGE', 32)
    return module


@pytest.mark.parametrize('off', [0, 1])
def test_a_stepnet_that_differs_is_seen(benchmark, tmp_path, monkeypatch,
                                        off):
    found = benchmark.outputs

    def outputs(model, batch):
        first, *others = found(model, batch)
        return [first + off * hasattr(model.backbone, 'steps'), *others]

    monkeypatch.setattr(benchmark, 'outputs', outputs)
    name, backbone, tensors, losses, _ = benchmark.trial(CONFIG, tmp_path)
    assert (name, backbone) == (CONFIG, 'StepResNet_CIFAR')
    assert tensors == 'NO' if off else int(tensors) > 1
    assert len(losses.split()) == benchmark.ITERATIONS


@pytest.mark.core
@pytest.mark.parametrize('name', [
    'mmpretrain::resnet/resnet50_8xb32_in1k.py', pytest.param(
        'mmdet::dcn/faster-rcnn_r50-dconv-c3-c5_fpn_1x_coco.py',
        marks=pytest.mark.long)])
def test_two_lines_in_a_config(benchmark, name, tmp_path, monkeypatch):
    """As in the README: the backbone's type, and the import of it."""
    library = name.partition('::')[0]
    pytest.importorskip(library)
    monkeypatch.setattr(benchmark, 'EDGE', 96)
    path = tmp_path / 'step.py'
    path.write_text(f"_base_ = {name!r}\n"
                    "custom_imports = dict(imports='stepnet_mm')\n"
                    "model = dict(backbone=dict(type='StepResNet'))\n")
    cfgs = [Config.fromfile(file) for file in (
        benchmark.conversion.find_config(name), path)]
    for cfg in cfgs if library == 'mmdet' else ():
        cfg.model.train_cfg.rcnn.sampler.num = 16  # of 512, which take long
    stock, net = benchmark.build_pair(cfgs)
    batch = benchmark.make_batch(cfgs[0])
    assert all(map(torch.equal, *(benchmark.outputs(model, batch)
                                  for model in (stock, net))))
    before = [(parameter, parameter.clone()) for step in net.backbone.steps()
              for parameter in step.parameters() if parameter.requires_grad]
    losses = benchmark.train(net, cfgs[1], batch)
    assert torch.tensor(losses).isfinite().all()
    assert not any(torch.equal(now, then) or not now.isfinite().all()
                   for now, then in before)
    # All 12 adaptors of a R-50; 10 where its first stage is frozen.
    assert len(before) >= 10 * 5
