#!/usr/bin/env python
"""Export a classifier, or any model's backbone, to ONNX and compare.

python tools/export_onnx.py CONFIG CHECKPOINT --out model.onnx
python tools/export_onnx.py configs/faster_rcnn_r50_stepnet.py CHECKPOINT \
  --part backbone --size 800 1344

Input of the exported network: images as the model's data preprocessor leaves
them (normalised, (N, C, H, W)); --dynamic leaves N, H and W open. Output of a
classifier: its scores before the softmax; of a backbone: one map a level. The
file is run by onnxruntime on random images and compared; the exit code is 1
where a value differs by more than --tolerance times the largest one. For
whole detectors, with their post-processing, see MMDeploy.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import inspect
import sys
from pathlib import Path

import torch
from torch import nn

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm.launch.entry import (
    build_model,
    config_from,
    make_config_parser,
)
from stepnet_mm.profiling import image_channels
from stepnet_mm.utils.command_line import output_file, positive


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument(
        '--out', type=output_file, default=Path('model.onnx'),
        help='file to write')
    parser.add_argument('--part', choices=['model', 'backbone'],
                        default='model', help='what is exported')
    parser.add_argument('--size', type=positive, nargs=2, default=[224, 224],
                        metavar=('HEIGHT', 'WIDTH'), help='px')
    parser.add_argument('--batch-size', type=positive, default=1,
                        help='images of the comparison')
    parser.add_argument('--dynamic', action='store_true',
                        help='leave batch size, height and width open')
    parser.add_argument('--opset', type=positive, default=17,
                        help='version of the ONNX operators')
    parser.add_argument('--tolerance', type=float, default=1e-4,
                        help='of the comparison, relative to the largest '
                        'value')
    return parser.parse_args()


def part_of(model, part) -> nn.Module:
    """What is exported: (N, C, H, W) -> scores, or one map a level."""
    if part == 'backbone':
        return model.backbone
    if hasattr(model, 'bbox_head') or hasattr(model, 'rpn_head'):
        raise SystemExit(
            '--part: expected backbone of a detector, whose results are no '
            f'tensors, got model of {type(model).__name__}; take --part '
            'backbone here, or MMDeploy')
    return model


@torch.no_grad()
def export(net, images, args):
    """Write ``args.out``, by the exporter that needs no onnxscript."""
    axes = {0: 'n', 2: 'height', 3: 'width'} if args.dynamic else {}
    known = inspect.signature(torch.onnx.export).parameters
    kwargs = dict(dynamo=False) if 'dynamo' in known else {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        net, (images, ), str(args.out), input_names=['images'],
        dynamic_axes={'images': axes}, opset_version=args.opset, **kwargs)


@torch.no_grad()
def largest_difference(net, path, images) -> float:
    """Over all outputs, relative to each one's largest value; may be NaN."""
    got, want = run(path, images), net(images)
    want = want if isinstance(want, (tuple, list)) else [want]
    return torch.stack([
        (torch.from_numpy(a) - b).abs().max() / b.abs().max()
        for a, b in zip(got, want, strict=True)]).max().item()


def run(path, images) -> list:
    """The outputs of onnxruntime."""
    import onnxruntime
    try:
        session = onnxruntime.InferenceSession(
            str(path), providers=['CPUExecutionProvider'])
        return session.run(None, {'images': images.numpy()})
    except Exception as error:  # its own kinds have no common base
        raise SystemExit(
            f'{path}: expected a network that onnxruntime runs on images of '
            f'{tuple(images.shape)}, got {str(error)[:300]}; leave --dynamic '
            'out (self-attention keeps the size of its maps), or try another '
            '--opset') from None


def main():
    args = parse_args()
    import onnxruntime  # noqa: F401  missing: now, not after the export
    cfg = config_from(args)
    net = part_of(build_model(cfg, args.checkpoint, 'cpu'), args.part)
    torch.manual_seed(0)
    shape = image_channels(cfg), *args.size
    images = torch.randn(args.batch_size, *shape)
    export(net, images, args)
    differences = [largest_difference(net, args.out, images)]
    if args.dynamic:
        channels, height, width = shape
        differences.append(largest_difference(net, args.out, torch.randn(
            args.batch_size + 1, channels, height + 32, width + 32)))
    worst = torch.tensor(differences).max().item()  # NaN if one is
    print(f'{args.out}: differs from torch by {worst:.2e} of the largest '
          f'value in onnxruntime')
    sys.exit(not worst <= args.tolerance)


if __name__ == '__main__':
    main()
