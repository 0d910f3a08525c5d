"""Records of networks that nobody trained."""
import math

import numpy as np
import torch

from stepnet_mm.attention import AttentionRecord, LayerAttention
from stepnet_mm.stiffness import RecordHeader, StiffnessRecord


def make_record(counts=(2, 3), samples=40, seed=0, bad=0, gates=True,
                **changes):
    """Blocks layer{stage}.{position}, counts[s] measured ones a stage.

    The first ``bad`` samples are not finite; ``gates`` may be a mask (L,).
    """
    generator = torch.Generator().manual_seed(seed)
    stage = [s for s, count in enumerate(counts, 1) for _ in range(count)]
    position = [i for count in counts for i in range(1, count + 1)]
    noise = torch.randn(2, samples, len(stage), generator=generator).double()
    nsi = noise[0].exp()
    step = torch.sigmoid(noise[1] - noise[0])
    nsi[:bad, -1] = math.inf
    step[:, ~torch.as_tensor(gates).expand(len(stage))] = math.nan
    header = RecordHeader(**{**dict(
        definition='residual', stage=stage, position=position,
        blocks=[f'layer{s}.{i}' for s, i in zip(stage, position)],
        samples=samples, meta=dict(name='SE')), **changes})
    return StiffnessRecord(header, nsi, step)


def named(name, *args, **kwargs):
    return make_record(*args, meta=dict(name=name), **kwargs)


def make_attention_record(step=0, layers=2, size=(12, 16)):
    """Every head looks at one pixel; the second layer has fewer heads."""
    maps = np.zeros((3, 6, 8), 'float32')
    maps[:, 1, 2] = 1
    return AttentionRecord([
        LayerAttention(
            name=f'layers.{i}.attn', maps=maps[i:], query=(3, 4),
            distance=[3., 1., 2.][:3 - i], uniform=5.) for i in range(layers)
    ], size, (7, 9), 2, step, 'net')
