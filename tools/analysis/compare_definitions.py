#!/usr/bin/env python
"""TNS by this package's definition, and by others that are possible.

python tools/analysis/compare_definitions.py CONFIG CHECKPOINT

Runs some images of the config's own data through a ResNet of the libraries'
families, reads what its blocks show, and changes one choice at a time. What
each means, and why this package takes the first: docs/stiffness.md.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import torch

from stepnet_mm.launch.entry import (
    build_loader,
    build_model,
    config_from,
    make_config_parser,
)
from stepnet_mm.recording import find_residual_blocks
from stepnet_mm.recording.probe import (
    run_features,
    spread_indices,
    subset_loader,
)
from stepnet_mm.stiffness import (
    neural_stiffness_index,
    norm_ratio,
    sample_norm,
    summarize_tns,
    total_neural_stiffness,
)
from stepnet_mm.utils.command_line import positive


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument('--num-samples', type=positive, default=128,
                        help='spread over the dataset')
    return parser.parse_args()


class Shown:
    """What a block shows of each sample, in one number each.

    The norms of x_t, f and f ⊗ Δt, and the NSI by its output; the maps
    themselves are too large to be kept. ``size`` is their number of elements.
    """

    def __init__(self, block):
        self.block, self.size, self._identity = block, 0, None
        self.kept = dict(x=[], f=[], scaled=[], output=[])
        block.module.register_forward_hook(self._block)
        if block.identity is not None:
            block.identity.register_forward_hook(self._project)
        # Without a step f is both.
        (block.step.module if block.step else block.residual
         ).register_forward_hook(self._gate)

    def _block(self, module, args, output):
        x = args[0] if self._identity is None else self._identity
        self.size, self._identity = x[0].numel(), None
        self.kept['x'].append(sample_norm(x))
        self.kept['output'].append(neural_stiffness_index(x, output))

    def _project(self, module, args, output):
        self._identity = output.clone()

    def _gate(self, module, args, output):
        self.kept['f'].append(sample_norm(
            args[-1] if self.block.step else output))
        self.kept['scaled'].append(sample_norm(output))

    def __getattr__(self, key):
        return torch.cat(self.kept[key])


def residual_nsi(s):
    return norm_ratio(s.f, s.x)


#: One choice changed -> NSI of a block, (N,).
CHOICES = {
    'f over x_t (this package)': residual_nsi,
    'x_{t+1} is the block output, after the activation': lambda s: s.output,
    'not divided by Δt: f ⊗ Δt over x_t':
    lambda s: norm_ratio(s.scaled, s.x),
    'norms as means over the elements, not sums':
    lambda s: norm_ratio(s.f / s.size**.5, s.x / s.size**.5),
    'one norm for the whole batch':
    lambda s: norm_ratio(s.f.norm(), s.x.norm()).expand_as(s.f),
}


def tns(shown, nsi, stage=None):
    """TNS of blocks, by their stages or one label for all."""
    table = torch.stack([nsi(s) for s in shown], 1)
    labels = torch.tensor([s.block.stage for s in shown])
    labels = labels if stage is None else torch.full_like(labels, stage)
    return summarize_tns(total_neural_stiffness(table, labels))


def compare(blocks, run):
    """Description -> mean, median and 95 % quantile of TNS, by key.

    Raises:
        ValueError: if f of a block cannot be seen.
    """
    hidden = [b.name for b in blocks if b.residual is None and b.step is None]
    if hidden:
        raise ValueError('model.backbone: expected blocks of the ResNet '
                         'families, whose f can be seen beside their output, '
                         f'got {hidden}; take another config')
    everything = [Shown(block) for block in blocks]
    run()
    shown = [s for s in everything if s.block.position]
    found = {text: tns(shown, nsi) for text, nsi in CHOICES.items()}
    found['μ over all blocks, not by stage'] = tns(shown, residual_nsi, 1)
    found["each stage's first block counts too"] = tns(everything,
                                                       residual_nsi)
    return found


@torch.no_grad()
def main():
    args = parse_args()
    cfg = config_from(args)
    model = build_model(cfg, args.checkpoint, 'cpu')
    loader = build_loader(cfg, 'val')
    indices = spread_indices(len(loader.dataset), args.num_samples)
    blocks = find_residual_blocks(model)
    found = compare(blocks, lambda: [
        run_features(model, batch, [block.name for block in blocks])
        for batch in subset_loader(loader, indices)])
    print(f'| definition | TNS, {len(indices)} samples | median | '
          '95 % quantile |\n|---|---|---|---|')
    for text, numbers in found.items():
        print('|', ' | '.join([text, *(f'{n:.4f}' for n in numbers.values())]),
              '|')


if __name__ == '__main__':
    main()
