"""The Triton kernels without a GPU: interpreted, and compiled for two.

Triton decides at import whether to interpret, so that runs in a process of
its own.
"""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from kernels import SHAPES, assert_kernels

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec('triton') is None, reason='no Triton')

INTERPRETED = '''
import torch
from kernels import assert_kernels
from stepnet_mm.ops import tail_triton

layouts = torch.contiguous_format, torch.channels_last
for dtype, tail_triton.PROGRAMS in {cases}:
    for shape in {shapes}:
        for layout in layouts:
            assert_kernels(tail_triton, shape, dtype, layout)
print('equal')
'''
#: Types and numbers of programs, each list in one process.
SOME = [(torch.float32, 2048), (torch.bfloat16, 1)]
OTHERS = [(torch.float16, 2048), (torch.float32, 1)]


@pytest.mark.core
@pytest.mark.parametrize('cases, shapes', [
    pytest.param(SOME, SHAPES[1:2], id='some'),
    pytest.param(OTHERS, SHAPES[2:], id='others')])
@pytest.mark.long
def test_as_the_reference_in_the_interpreter(cases, shapes):
    # That of older ones wants a GPU.
    pytest.importorskip('triton', '3.1')
    here = Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, '-c', INTERPRETED.format(cases=cases, shapes=shapes)],
        capture_output=True,
        text=True,
        env=dict(os.environ, TRITON_INTERPRET='1', OMP_NUM_THREADS='1',
                 PYTHONPATH=os.pathsep.join([str(here),
                                             str(here.parents[1])])))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == 'equal'


MAPS = ('z', 'x', 'y', 'grad', 'masked', 'dz')
SIZES = ('L', 'STRIDE_C', 'STRIDE_L', 'ROWS', 'SPLITS')


@pytest.mark.core
@pytest.mark.parametrize('dtype, capability', [
    ('bf16', 90), pytest.param('fp16', 75, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    'name', ['moments', 'scale_add_relu', 'mask_and_sum', 'input_gradients'])
def test_compiles_for_a_gpu(name, dtype, capability):
    triton = pytest.importorskip('triton', '3.3')
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from stepnet_mm.ops import tail_triton
    kernel = getattr(tail_triton, f'_{name}_kernel')
    flags = dict(C=256, BLOCK_C=64, BLOCK_L=32, TILES=4, HAS_B=True,
                 HAS_D=True)
    constants = {(i, ): flags[arg] for i, arg in enumerate(kernel.arg_names)
                 if arg in flags}
    kinds = {
        arg: 'constexpr' if arg in flags else 'i32' if arg in SIZES else
        f'*{dtype}' if arg in MAPS else '*fp32' for arg in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=kinds, constexprs=constants)
    made = triton.compile(source, target=GPUTarget('cuda', capability, 32))
    assert f'sm_{capability}' in made.asm['ptx']
    assert made.asm['cubin']


@pytest.mark.gpu
@pytest.mark.parametrize(
    'layout', [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    'dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_as_the_reference_on_a_gpu(dtype, layout):
    from stepnet_mm.ops import tail_triton
    for shape in SHAPES:
        with torch.device('cuda'):
            assert_kernels(tail_triton, shape, dtype, layout)
