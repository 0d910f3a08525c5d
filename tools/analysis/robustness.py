#!/usr/bin/env python
"""Top-1 of a classifier on noisy and on adversarial images (FGSM).

python tools/analysis/robustness.py CONFIG CHECKPOINT

Gaussian noise of standard deviation 0.02, 0.05 and 0.1 of the pixels' range,
the same for every network, and FGSM (Goodfellow et al. 2015): one step of 1
and 2 / 255 for each pixel in the direction that raises the cross-entropy.
Both act on the pixels before they are normalised, and are clipped to their
range.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import torch
from torch.nn.functional import cross_entropy

import stepnet_mm  # registers modules and the safe loader
from stepnet_mm import config
from stepnet_mm.launch import entry
from stepnet_mm.recording.probe import spread_indices, subset_loader
from stepnet_mm.utils.command_line import aligned
from stepnet_mm.utils.provenance import measure_into

ENDING = '_robustness.json'
NOISE, FGSM = (.02, .05, .1), (1, 2)
WHITE = 255


def logits_of(model, pixels):
    """Of a batch of images, 0 to 255 as they are loaded."""
    inputs = model.data_preprocessor(dict(inputs=pixels))['inputs']
    logits = model(inputs, mode='tensor')
    if not isinstance(logits, torch.Tensor):  # a retriever's features
        raise ValueError('model.type: expected a classifier, which gives one '
                         f'tensor of logits, got {type(model).__name__}, '
                         f'which gives a {type(logits).__name__}; name '
                         'another config')
    return logits


def variants(model, pixels, labels, generator):
    """Name -> the images as they are, with noise, and adversarial."""
    noise = torch.randn(pixels.shape, generator=generator).to(pixels.device)
    with torch.enable_grad():
        tracked = pixels.clone().requires_grad_()
        loss = cross_entropy(logits_of(model, tracked), labels)
    sign = torch.autograd.grad(loss, tracked)[0].sign()
    return {
        'clean': pixels,
        **{f'noise_{sigma}': pixels + WHITE * sigma * noise
           for sigma in NOISE},
        **{f'fgsm_{epsilon}': pixels + epsilon * sign for epsilon in FGSM}}


@torch.no_grad()
def top1_of(model, loader, device):
    """Name of a variant -> its top-1 in %."""
    generator, right, number = torch.Generator().manual_seed(0), {}, 0
    for batch in loader:
        pixels = torch.stack([*batch['inputs']]).to(device).float()
        labels = torch.cat([sample.gt_label for sample in
                            batch['data_samples']]).to(device)
        number += len(labels)
        for name, images in variants(model, pixels, labels, generator).items():
            found = logits_of(model, images.clamp(0, WHITE)).argmax(1)
            right[name] = right.get(name, 0) + (found == labels).sum().item()
    return {name: 100 * count / number for name, count in right.items()}


def measure(cfg, args):
    """Top-1 by variant, and of how many images.

    Raises:
        ValueError: if the config is not one of mmpretrain.
    """
    if config.library_of(cfg) != 'mmpretrain':
        raise ValueError(f'{cfg.filename}: default_scope: expected a '
                         'classifier of mmpretrain, got '
                         f'{cfg.get("default_scope")!r}; name another config')
    model = entry.build_model(cfg, args.checkpoint, args.device)
    model.requires_grad_(False)
    loader = entry.build_loader(cfg, args.split)
    indices = spread_indices(len(loader.dataset), args.num_samples)
    return dict(split=args.split, images=len(indices), top1=top1_of(
        model, subset_loader(loader, indices), args.device))


def main():
    args = entry.make_measuring_parser(__doc__, ENDING, None).parse_args()
    cfg = entry.config_from(args)
    path = entry.output_of(cfg, args, ENDING if args.split == 'val' else
                     ENDING.replace('.', '_test.'))
    content = measure_into(path, args, lambda: measure(cfg, args))
    print(aligned([('images', 'top-1'),
                   *((name, f'{value:.5g}')
                     for name, value in content['top1'].items())]))
    print(f'all numbers: {path}')


if __name__ == '__main__':
    main()
