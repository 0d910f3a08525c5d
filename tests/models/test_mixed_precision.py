"""What docs/performance.md says of mixed precision, on a CPU's autocast."""
import math

import pytest
import torch

from stepnet_mm.recording import TrajectoryRecorder

models = pytest.importorskip('mmpretrain.registry').MODELS
HALF = pytest.mark.since_torch('2.5', 'half on a CPU')

def network(step, fused=True, depth=18):
    return models.build(dict(
        type='StepResNet', depth=depth, base_channels=16, stem_channels=16,
        step=step, fused=fused))


@pytest.mark.core
@pytest.mark.parametrize('step, exact', [
    ('StepAdaptor', True), ('SEMAttention', True), ('CBAMAttention', True),
    ('SEAttention', False), ('FCAAttention', False)])
@pytest.mark.parametrize('dtype', [
    torch.bfloat16, pytest.param(torch.float16, marks=HALF)])
def test_the_dtype_of_the_step_size(step, exact, dtype):
    model, seen = network(step), set()
    for module in model.steps():
        module.delta.register_forward_hook(
            lambda module, args, output: seen.add(output.dtype))
    with torch.autocast('cpu', dtype):
        y = model(torch.randn(2, 3, 32, 32))[-1]
    assert y.dtype == dtype
    assert seen == {torch.float32 if exact else dtype}
    y.float().mean().backward()
    assert {p.grad.dtype for p in model.parameters()
            if p.grad is not None} == {torch.float32}


@pytest.mark.parametrize('fused', [True, False])
@HALF
def test_nsi_where_half_precision_overflows(fused):
    """A map that overflows gives inf; f of the fused tail is none."""
    model = network('SEAttention', fused, 34).eval()
    block = model.layer1[1]
    block.norm2.weight.data.fill_(1e6)
    block.norm2.bias.data.zero_()
    # With a gradient: else a CPU builds f.
    with torch.autocast('cpu', torch.float16), (
            TrajectoryRecorder(model)) as recorder:
        model(torch.randn(2, 3, 32, 32))
    nsi = recorder.nsi
    assert not nsi.isnan().any() and nsi.dtype == torch.float32
    first = recorder.blocks.index('layer1.1')
    assert (nsi[:, first].isfinite() == fused).all()
    assert (nsi[:, first + 1] == math.inf).all()  # its x_t is a map
