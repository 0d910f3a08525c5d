#!/usr/bin/env python
"""The numbers and texts that no change of the code alone may change.

python tests/goldens.py              # shows what differs from the files
python tests/goldens.py --accept     # writes the files

Weights and images are drawn by their names, so that no initialiser and no
order of construction has a part in them; only the training draws its own. A
key that comes several times was found in several ways, which must agree.

That a training that was killed and resumed ends as an unbroken one, bit for
bit, is shown by tests/resume/test_resumable_loops.py and
tests/tools/test_train.py.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import difflib
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from runpy import run_path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from mmengine.logging import MMLogger
from mmengine.registry import MODELS
from pytest import approx
from torch import Tensor, nn

import stepnet_mm  # registers modules
from stepnet_mm.config import (
    add_resume_and_hooks,
    conversion,
    read_config,
    set_data_root,
)
from stepnet_mm.launch.entry import build_runner
from stepnet_mm.models import step_block_class
from stepnet_mm.ops import residual_tail
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.registered_names import NAMES
from stepnet_mm.steps import build_step
from stepnet_mm.stiffness import (
    DEFINITIONS,
    summarize_stiffness,
    total_neural_stiffness,
)
from stepnet_mm.supported import differences
from stepnet_mm.utils.command_line import command_parser
from stepnet_mm.utils.provenance import versions

# Small maps are fused too.
residual_tail.MIN_NUMEL['cpu'] = 0

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = ROOT / 'tests/data/goldens.json'
TEXTS = ROOT / 'tests/data/to_stepnet.txt'
TABLE = ROOT / 'docs/results/existing_configs.md'
MEANT = 'if this is meant: python tests/goldens.py --accept'
#: The largest relative differences. In float64 rounding is 1e-16; in a mean
#: Δt, a float32, 1e-7. In the training it is 1e-7 too, and weights that begin
#: 1e-6 off change a loss by 5e-6 and TNS by 7e-5. No absolute floor is needed:
#: each value is beyond 0.005, or 0 as a count, a share or a start.
FLOAT64, TRAINED = 1e-6, 1e-4

#: Networks, each recorded in another way.
NETWORKS: dict[str, dict] = {
    'post-activation': dict(type='mmpretrain.StepResNetCIFAR', depth=29),
    'pre-activation': dict(
        type='mmpretrain.StepResNetCIFAR', depth=20, block='basic',
        preact=True),
    'without steps': dict(
        type='mmdet.ResNet', depth=50, base_channels=8, stem_channels=8),
    'transformer': dict(
        type='mmpretrain.VisionTransformer', img_size=16, patch_size=8,
        arch=dict(embed_dims=32, num_layers=4, num_heads=4,
                  feedforward_channels=64)),
}
STEPS = NAMES['MODELS']['stepnet_mm.steps']
CHANNELS = 64
Values = Iterator[tuple[str, Any]]


def draw(name: str, shape) -> Tensor:
    """Normal numbers in float64 that depend on the name alone."""
    # Of numpy's generators the one whose stream is promised to stay.
    generator = np.random.RandomState(crc32(name.encode()))
    return torch.from_numpy(generator.standard_normal(tuple(shape)))


@torch.no_grad()
def with_drawn_weights(module: nn.Module) -> nn.Module:
    """In float64; other buffers, which are constants, keep their values."""
    module.double()
    for name, parameter in module.named_parameters():
        parameter.copy_(_weight(name, parameter.shape))
    for name, buffer in module.named_buffers():
        if name.endswith(('running_mean', 'running_var')):
            buffer.copy_(_weight(name, buffer.shape))
    return module


def _weight(name: str, shape) -> Tensor:
    values = draw(name, shape)
    if len(shape) > 1:  # outputs as large as inputs
        return values / math.sqrt(math.prod(shape[1:]))
    if name.endswith(('weight', 'running_var')):
        return 1 + values.tanh() / 2
    return values * .3


def digest(values: Tensor) -> list[float]:
    """2-norm, and the product with a fixed vector, which knows the order."""
    flat = values.detach().double().flatten()
    direction = torch.arange(1., len(flat) + 1, dtype=torch.float64).cos()
    return [flat.norm().item(), flat.dot(direction).item()]


def stiffness(network: dict) -> Values:
    """NSI, Δt and TNS of four images, by every definition."""
    net = with_drawn_weights(MODELS.build(network))
    net.eval()
    for definition in DEFINITIONS:
        with TrajectoryRecorder(net, definition=definition) as recorder:
            with torch.no_grad():
                net(draw('images', (4, 3, 16, 16)))
        nsi, stage = recorder.nsi, recorder.stage
        yield f'{definition}/blocks', recorder.blocks
        for name, values in zip(recorder.blocks, nsi.T):
            yield f'{definition}/nsi of {name}', values.tolist()
        for name, values in zip(recorder.blocks, recorder.step.T):
            if not values.isnan().any():  # there is a gate to be read
                yield f'step of {name}', values.tolist()
        yield f'{definition}/tns', total_neural_stiffness(nsi, stage).tolist()
        for name, value in summarize_stiffness(nsi, stage).items():
            yield f'{definition}/summary {name}', value


def step_block(name: str) -> Values:
    """A block with a step: its start, then outputs and gradients."""
    start = _block(name).step or _block(name).bn2
    for key, value in start.state_dict().items():
        one = value.unique().numel() == 1
        yield f'start/{key}', value.flatten()[0].item() if one else 'several'
    for fused, training in product((False, True), repeat=2):
        block = with_drawn_weights(_block(name)).train(training)
        block.fused = fused
        mode = 'training' if training else 'eval'
        for key, value in _outputs_and_gradients(block):
            yield f'{mode}/{key}', value


def _block(name: str) -> Any:
    from mmpretrain.models.backbones.resnet import BasicBlock
    norm = 'IEBN' if name == 'IEBN' else 'BN'
    block = step_block_class(BasicBlock, (BasicBlock, ))(
        CHANNELS, CHANNELS, norm_cfg=dict(type=norm))
    if name != 'IEBN':  # a norm layer, not a step
        named = dict(name='ese') if name == 'TimmAttention' else {}
        block.step = build_step(dict(type=name, **named), CHANNELS)
    return block


def _outputs_and_gradients(block: nn.Module) -> Values:
    x = draw('x_t', (3, CHANNELS, 6, 5)).requires_grad_()
    y = block(x)
    (y * draw('gradient', y.shape)).sum().backward()
    yield 'output', digest(y)
    yield 'gradient of x_t', digest(x.grad)
    for name, parameter in block.named_parameters():
        yield f'gradient of {name}', digest(parameter.grad)
    if block.training:
        for name, buffer in block.named_buffers():
            if 'running' in name:
                yield name, digest(buffer)


def training() -> Values:
    """Ten iterations of a RetinaNet from a config to its losses and TNS."""
    with tempfile.TemporaryDirectory() as folder:
        drawing = run_path(str(ROOT / 'tools/make_mini_coco.py'))
        drawing['make_mini_coco'](f'{folder}/data', 8, 3, size=64)
        cfg = read_config(str(ROOT / 'tests/data/retinanet_mini_coco.py'),
                          f'{folder}/work')
        add_resume_and_hooks(cfg)
        set_data_root(cfg, f'{folder}/data/')
        runner = build_runner(cfg)
        runner.train()
        path, = Path(folder).glob('work/*/vis_data/stiffness.json')
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    for name, scalars in runner.message_hub.log_scalars.items():
        if name.startswith('train/') and 'time' not in name:
            yield name[6:], scalars.data[0].tolist()
    for key in rows[0]:
        if '/nsi/' not in key:
            name = key.replace('stiffness/', '')
            yield f'stiffness {name}', [row[key] for row in rows]


def to_stepnet() -> Values:
    """The texts of the configs that the table lists."""
    for name in re.findall(r'^\| (mm\w+::\S+)', TABLE.read_text(), re.M):
        yield name, conversion.to_stepnet(name)


#: What the goldens are of -> what finds them.
PARTS: dict[str, Callable[[], Values]] = {
    **{f'stiffness/{name}': partial(stiffness, network)
       for name, network in NETWORKS.items()},
    **{f'steps/{name}': partial(step_block, name) for name in STEPS},
    'training': training,
    'to_stepnet': to_stepnet,
}


def why_not(part: str) -> str:
    """Why a part cannot be compared here; '' if it can."""
    if part == 'training':
        found = versions()
        other = differences(found['python'], found)['onedl']
        return other and f'on file for onedl alone, here {", ".join(other)}'
    return ''


def find(part: str) -> Values:
    """Keys, which begin with the part, and values to eight digits."""
    for key, value in PARTS[part]():
        yield f'{part}/{key}', _rounded(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f'{value:.8g}') if isinstance(value, float) else value


def compare(part: str, found: Iterable[tuple[str, Any]],
            accepted: dict) -> list[str]:
    """What differs from the accepted goldens of a part, a text each."""
    tolerance = TRAINED if part == 'training' else FLOAT64
    pairs = [(key, got, accepted.get(key)) for key, got in found]
    missing = {key for key in accepted if key.startswith(f'{part}/')} - {
        key for key, *_ in pairs}
    pairs += [(key, None, accepted[key]) for key in sorted(missing)]
    return [_difference(key, got, expected) for key, got, expected in pairs
            if got != approx(expected, rel=tolerance, abs=0)]


def _difference(key: str, got: Any, expected: Any) -> str:
    if not _is_text(got) or not _is_text(expected):
        return f'{key}: expected {expected}, got {got}'
    return '\n'.join([f'{key}:', *difflib.unified_diff(
        expected.splitlines(), got.splitlines(), lineterm='')])


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and '\n' in value


def read() -> dict:
    """The accepted goldens, by key."""
    parts = re.split(r'(?m)^=== (.+)\n', TEXTS.read_text())[1:]
    return {**json.loads(NUMBERS.read_text()),
            **dict(zip(parts[::2], parts[1::2]))}


def write(goldens: dict) -> None:
    """A key a line, and the texts in a file of their own."""
    lines = [f'{json.dumps(key)}: {json.dumps(value)}'
             for key, value in goldens.items() if not _is_text(value)]
    NUMBERS.write_text('{\n' + ',\n'.join(lines) + '\n}\n')
    TEXTS.write_text(''.join(f'=== {key}\n{value}' for key, value in
                             goldens.items() if _is_text(value)))


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument('--accept', action='store_true',
                        help='write the goldens of what can be found here')
    accept = parser.parse_args().accept
    torch.set_num_threads(1)
    MMLogger.get_instance('goldens', log_level='ERROR')
    accepted, kept, texts = read(), {}, []
    for part in PARTS:
        if reason := why_not(part):
            print(f'{part}: left out, {reason}')
            found = [item for item in accepted.items()
                     if item[0].startswith(f'{part}/')]
        else:
            found = [*find(part)]
            texts += compare(part, found, accepted)
        for key, value in found:
            # Of several ways the first, with which the others are compared.
            kept.setdefault(key, value)
    print('\n'.join(texts))
    if accept:
        write(kept)
    elif texts:
        print(f'{len(texts)} differences; {MEANT}')
    return bool(texts) and not accept


if __name__ == '__main__':
    sys.exit(main())
