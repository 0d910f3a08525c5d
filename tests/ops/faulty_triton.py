"""Trains with a fault in each Triton kernel, interpreted on the CPU.

    python faulty_triton.py FOLDER    # TRITON_INTERPRET=1
"""
import importlib.util
import sys
import warnings
from pathlib import Path

import torch
from mmpretrain.registry import MODELS

from stepnet_mm import ops
from stepnet_mm.ops import tail_check, tail_triton

NAME = tail_triton.__name__
SOURCE = Path(tail_triton.__file__).read_text()
FAULTS = dict(
    moments=('two += tl.sum(v * v, 0)', 'two += tl.sum(v, 0)'),
    scale_add_relu=('where(out <= 0, 0., out)', 'where(out <= 1, 0., out)'),
    mask_and_sum=('mask, 0.) <= 0, 0., g)', 'mask, 0.) < 0, 0., g)'),
    input_gradients=('masked + offset, g + ', 'masked + offset, g - '))


def install(folder, name, before, after):
    """The Triton kernels with one change, in the place of the right ones."""
    assert SOURCE.count(before) == 1, before
    path = folder / f'{name}.py'
    path.write_text(SOURCE.replace(before, after))
    spec = importlib.util.spec_from_file_location(NAME, path)
    sys.modules[NAME] = ops.tail_triton = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ops.tail_triton)


def losses(fused):
    torch.manual_seed(0)
    model = MODELS.build(
        dict(type='StepResNet', depth=18, base_channels=4, stem_channels=4,
             step=dict(type='SEAttention', reduction=2), fused=fused))
    optimizer = torch.optim.SGD(model.parameters(), .1)
    found = []
    for _ in range(2):
        loss = model(torch.randn(2, 3, 32, 32))[-1].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main():
    # As on a GPU: the kernels are Triton's.
    tail_check._module = lambda device: ops.tail_triton
    plain, sound = losses(False), losses(True)
    kernels, = tail_check._checked.values()
    assert kernels is tail_triton
    assert sound != plain
    torch.testing.assert_close(sound, plain, rtol=1e-3, atol=0)
    for name, fault in FAULTS.items():
        install(Path(sys.argv[1]), name, *fault)
        tail_check._checked.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            assert losses(True) == plain
        warning, = [str(w.message) for w in caught if 'kernels' in str(
            w.message)]
        assert f'got {name}: ' in warning and warning.count(': off by') == 1
    print('equal')


main()
