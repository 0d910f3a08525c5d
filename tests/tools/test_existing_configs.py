"""Configs of the libraries become StepNets: equal at the start, all trains."""
import pytest

CONFIG = 'mmpretrain::resnet/resnet18_8xb16_cifar10.py'


@pytest.mark.core
@pytest.mark.parametrize('name, backbone, off', [
    pytest.param(CONFIG, 'StepResNet_CIFAR', 0, marks=pytest.mark.long),
    (CONFIG, 'StepResNet_CIFAR', 1),
    pytest.param('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
                 'StepResNet', 0, marks=pytest.mark.long)])
def test_a_row_of_the_table(load_tool, tmp_path, monkeypatch, name, backbone,
                            off):
    """A StepNet whose first tensor is ``off`` is seen."""
    pytest.importorskip(name.partition('::')[0])
    benchmark = load_tool('benchmarks/existing_configs')
    monkeypatch.setattr(benchmark, 'EDGE', 32 if name == CONFIG else 96)
    found = benchmark.outputs

    def outputs(model, batch):
        first, *others = found(model, batch)
        return [first + off * hasattr(model.backbone, 'steps'), *others]

    monkeypatch.setattr(benchmark, 'outputs', outputs)
    row = benchmark.trial(name, tmp_path)
    assert row[:2] == (name, backbone)
    assert row[2] == 'NO' if off else int(row[2]) > 1
    assert len(row[3].split()) == benchmark.ITERATIONS
    assert 'nan' not in row[3] and 'inf' not in row[3]
