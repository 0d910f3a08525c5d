"""One exported graph serves every batch and size: no branch reads either."""
import io

import pytest
import torch
from attentions import ALL, CHANNELS, call, randomised
from torch import nn

from stepnet_mm.steps import IEBN

#: Those whose formula reads the size of the map.
READING = 'FCAAttention', 'SGEAttention', 'SRMAttention'
AXES = {0: 'n', 2: 'h', 3: 'w'}
every = pytest.mark.parametrize('name', [
    *READING, *(pytest.param(name, marks=pytest.mark.long)
                for name in [*ALL, 'IEBN'] if name not in READING)])


class Net(nn.Module):
    """A step or IEBN behind a convolution that halves the map."""

    def __init__(self, name):
        super().__init__()
        self.conv = nn.Conv2d(3, CHANNELS, 3, 2, 1)
        self.step = IEBN(CHANNELS) if name == 'IEBN' else randomised(name)

    def forward(self, x):
        x = self.conv(x)
        if isinstance(self.step, IEBN):
            return self.step(x)
        return call(self.step, x, x.relu())


def by_torch(net, x):
    dims = {axis: torch.export.Dim(name, min=1 if axis == 0 else 4, max=640)
            for axis, name in AXES.items()}
    return torch.export.export(net, (x, ), dynamic_shapes=(dims, )).module()


def by_tracing(net, x):
    return torch.jit.trace(net, x, check_trace=False)


def by_onnx(net, x, dynamo=False):
    runtime = pytest.importorskip('onnxruntime')
    file = io.BytesIO()
    torch.onnx.export(net, (x, ), file, dynamo=dynamo, input_names=['x'],
                      dynamic_axes={'x': AXES})
    session = runtime.InferenceSession(
        file.getvalue(), providers=['CPUExecutionProvider'])
    return lambda x: torch.from_numpy(session.run(None, {'x': x.numpy()})[0])


def by_onnx_and_dynamo(net, x):
    return by_onnx(net, x, dynamo=True)


@every
@pytest.mark.parametrize('export', [
    by_torch, by_tracing, by_onnx,
    pytest.param(by_onnx_and_dynamo, marks=pytest.mark.long)])
@torch.no_grad()
def test_it_gives_what_the_module_gives(export, name):
    net = Net(name).eval()
    exported = export(net, torch.randn(2, 3, 28, 28))
    for shape in ((2, 28, 28), (3, 14, 14), (1, 18, 22), (2, 33, 13)):
        x = torch.randn(shape[0], 3, *shape[1:])
        torch.testing.assert_close(exported(x), net(x), rtol=1e-4, atol=1e-5)
