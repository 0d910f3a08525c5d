"""What docs/performance.md says of mixed precision, on a CPU's autocast."""
import pytest
import torch

models = pytest.importorskip('mmpretrain.registry').MODELS


@pytest.mark.core
@pytest.mark.parametrize('step, exact', [
    ('StepAdaptor', True), ('SEMAttention', True), ('CBAMAttention', True),
    ('SEAttention', False), ('FCAAttention', False)])
@pytest.mark.parametrize('dtype', [
    torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.since_torch(
        '2.5', 'half on a CPU'))])
def test_the_dtype_of_the_step_size(step, exact, dtype):
    model, seen = models.build(dict(
        type='StepResNet', depth=18, base_channels=16, stem_channels=16,
        step=step)), set()
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
