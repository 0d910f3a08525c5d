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

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec('triton') is None, reason='no Triton')

#: Tiles and blocks are small, so that a few programs reach every branch: more
#: channels than one takes, several tiles in each of several programs of a sum,
#: more samples than one takes at once.
INTERPRETED = '''
import torch
from stepnet_mm.ops import tail_kernels, tail_triton

columns = tail_triton._columns

def in_chunks(n, c):
    layout = columns(n, c)
    layout.arguments.update(BLOCK_N=2, CHUNKS=2 if n > 2 else 1)
    return layout

tail_triton._columns = in_chunks
tail_triton.TILE = 64
tail_kernels._module = lambda device: tail_triton
tail_kernels.FORMATS['cpu'] = tail_kernels.FORMATS['cuda']
for dtype, tail_triton.PROGRAMS, tail_kernels.SHAPES in [
        (torch.float32, 4, [(3, 5, 3, 3), (1, 5, 9, 9), (2, 70, 1, 1)]),
        (torch.bfloat16, 4, [(1, 5, 3, 3)]),
        (torch.float16, 4, [(1, 5, 3, 3)])]:
    for result in tail_kernels.check_kernels('cpu', [dtype]):
        assert result.ok and result.difference < .5, result
print('equal')
'''


@pytest.mark.core
@pytest.mark.long
def test_as_the_reference_in_the_interpreter():
    # That of older ones wants a GPU.
    pytest.importorskip('triton', '3.1')
    done = subprocess.run(
        [sys.executable, '-c', INTERPRETED],
        capture_output=True, text=True,
        env=dict(os.environ, TRITON_INTERPRET='1', OMP_NUM_THREADS='1',
                 PYTHONPATH=str(Path(__file__).resolve().parents[2])))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == 'equal'


MAPS = 'z', 'x', 'y', 'grad', 'masked', 'dz'
SIZES = ('L', 'STRIDE_C', 'STRIDE_L', 'ROWS', 'PARTS', 'MIDDLE', 'N', 'C')
FLAGS = dict(BLOCK_C=64, BLOCK_L=32, BLOCK_N=64, BLOCK=256, TILES=4, CHUNKS=2,
             MOST_PARTS=2, HAS_B=True, HAS_D=True, HAS_X=True,
             HAS_SQUARE=True, HAS_WEIGHT=True, HAS_BIAS=True, HAS_MEAN=True,
             BATCH=True, RUNNING=False)


@pytest.mark.core
@pytest.mark.parametrize('dtype, capability', [
    ('bf16', 90), pytest.param('fp16', 75, marks=pytest.mark.long)])
@pytest.mark.parametrize('name', [
    'moments', 'normalize', 'output', 'mask_and_sum', 'step_gradient',
    'input_tables', 'input_gradients'])
def test_compiles_for_a_gpu(name, dtype, capability):
    triton = pytest.importorskip('triton', '3.3')
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from stepnet_mm.ops import tail_triton
    kernel = getattr(tail_triton, f'_{name}_kernel')
    flags = dict(FLAGS)
    if 'TILES' in kernel.arg_names:
        flags['C'] = 256
    constants = {(i, ): flags[arg] for i, arg in enumerate(kernel.arg_names)
                 if arg in flags}
    kinds = {
        arg: 'constexpr' if arg in flags else 'i32' if arg in SIZES else
        'fp32' if arg == 'EPS' else
        f'*{dtype}' if arg in MAPS else '*fp32' for arg in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=kinds, constexprs=constants)
    made = triton.compile(source, target=GPUTarget('cuda', capability, 32))
    assert f'sm_{capability}' in made.asm['ptx']
    assert made.asm['cubin']
