#!/usr/bin/env python
"""Overfit a Faster R-CNN with StepNet R-18 to a few real COCO images.

A detector that cannot learn four images by heart has a mistake in it. The
images are the first ones of the annotation file with 2 to 8 objects, none a
crowd and none small (32 px squared, at COCO's own scale).

python tools/benchmarks/overfit_coco.py data/coco
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import json
import time
from pathlib import Path

import stepnet_mm  # noqa: F401
from stepnet_mm import config as C

ROOT = Path(__file__).resolve().parents[2]


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('data_root', help='COCO folder')
    parser.add_argument('--split', default='train2017',
                        help='of COCO')
    parser.add_argument('--images', type=int, default=4,
                        help='to learn by heart')
    parser.add_argument('--iterations', type=int, default=300,
                        help='of the training')
    parser.add_argument('--edge', type=int, default=320, help='px')
    parser.add_argument('--work-dir', default='work_dirs/overfit_coco',
                        help='where logs and checkpoints go')
    return parser.parse_args()


def choose(content, number):
    """The annotation file of the first ``number`` fitting images."""
    by_image = {image['id']: [] for image in content['images']}
    for entry in content['annotations']:
        by_image[entry['image_id']].append(entry)
    images = [
        image for image in content['images']
        if 2 <= len(by_image[image['id']]) <= 8 and all(
            not entry['iscrowd'] and entry['area'] >= 32**2
            for entry in by_image[image['id']])
    ][:number]
    if len(images) < number:
        raise ValueError(f'only {len(images)} of {number} images have 2 to 8 '
                         'objects that are neither crowd nor small')
    chosen = [entry for image in images for entry in by_image[image['id']]]
    return dict(content, images=images, annotations=chosen)


def build_config(args, annotations):
    cfg = C.load_config(
        str(ROOT / 'configs/faster_rcnn_r34_stepnet_mini_coco.py'),
        args.work_dir)
    C.set_data_root(cfg, args.data_root)
    C.set_image_scale(cfg, (args.edge, args.edge))
    cfg.model.backbone.update(depth=18, base_channels=64)
    cfg.model.neck.in_channels = [64, 128, 256, 512]
    cfg.model.roi_head.bbox_head.num_classes = 80
    cfg.model.rpn_head.anchor_generator.scales = [8]
    for name in C.TRAIN + C.EVALUATION:
        dataset = cfg[name].dataset
        dataset.pop('metainfo')
        dataset.ann_file = annotations
        dataset.data_prefix = dict(img=f'{args.split}/')
        cfg[name].batch_size = args.images
    cfg.train_dataloader.dataset.pipeline = [
        t for t in cfg.train_dataloader.dataset.pipeline
        if t.type != 'RandomFlip'
    ]
    cfg.val_evaluator.ann_file = cfg.test_evaluator.ann_file = annotations
    cfg.train_cfg.update(
        max_iters=args.iterations, val_interval=args.iterations)
    cfg.param_scheduler[1].update(
        end=args.iterations, T_max=args.iterations - 30)
    cfg.default_hooks.checkpoint.interval = args.iterations
    return cfg


def main():
    args = parse_args()
    source = Path(args.data_root) / f'annotations/instances_{args.split}.json'
    content = choose(json.loads(source.read_text()), args.images)
    folder = Path(args.work_dir).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    annotations = folder / 'annotations.json'
    annotations.write_text(json.dumps(content))
    cfg = build_config(args, str(annotations))
    from mmengine.runner import Runner
    start = time.time()
    runner = Runner.from_cfg(cfg)
    runner.train()
    score = runner.message_hub.get_scalar('val/coco/bbox_mAP_50').current()
    print(f'{args.images} images, {len(content["annotations"])} objects, '
          f'{args.iterations} iterations, {time.time() - start:.0f} s: '
          f'bbox_mAP_50 {score:.3f}')


if __name__ == '__main__':
    main()
