#!/usr/bin/env python
"""Measure NSI and TNS of a network on the data of its own config.

python tools/analysis/measure_stiffness.py CONFIG CHECKPOINT --num-samples 512

Without a checkpoint the network is measured at its start, as training would
begin. NSI of every sample and block goes into a record, one JSON line a
batch; a measurement that was cut goes on from there when the same command is
run again. Records are read by plot_stiffness.py, select_blocks.py,
correlate.py and make_report.py.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import hashlib
import platform
from datetime import date
from pathlib import Path

import torch
from mmengine.utils import ProgressBar

import stepnet_mm
from stepnet_mm import config as C
from stepnet_mm.launch.entry import (
    beside_checkpoint,
    build_loader,
    build_model,
    config_from,
    make_config_parser,
)
from stepnet_mm.recording import (
    TrajectoryRecorder,
    find_residual_blocks,
    list_blocks,
)
from stepnet_mm.recording.probe import (
    kept_state,
    run_features,
    spread_indices,
    subset_loader,
)
from stepnet_mm.recording.recorder import DEFINITIONS
from stepnet_mm.stiffness import (
    RecordHeader,
    append_rows,
    begin_record,
    read_stiffness_record,
)
from stepnet_mm.utils.command_line import output_file, positive


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument(
        '--out', type=output_file,
        help='the record (default: beside the checkpoint, '
        '<checkpoint>_stiffness.jsonl; without one in the work dir)')
    parser.add_argument('--name', help="in figures (default: the config's)")
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val', help='of the data')
    parser.add_argument(
        '--num-samples',
        type=positive,
        help='spread over the dataset (default: all)')
    parser.add_argument(
        '--batch-size', type=positive, help="default: the config's")
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('--blocks', help='regular expression for their names')
    parser.add_argument('--definition', choices=DEFINITIONS)
    parser.add_argument(
        '--list', action='store_true', help='list the blocks, and stop')
    return parser.parse_args()


def digest(path):
    """The first 12 digits of a file's SHA-256."""
    sha = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(2**20):
            sha.update(block)
    return sha.hexdigest()[:12]


def settings_digest(cfg, split):
    """A digest of everything in a config that a measurement depends on.

    The path alone would not tell a config that has changed since.
    """
    keys = ('model', 'data_preprocessor', 'randomness', f'{split}_dataloader')
    parts = [cfg[key] for key in keys if cfg.get(key) is not None]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def make_header(cfg, args, recorder, loader, indices):
    """What is measured, on what."""
    dataset = loader.dataset
    checkpoint = args.checkpoint or 'none'
    return RecordHeader.of(
        recorder,
        len(indices),
        name=args.name or Path(args.config).stem,
        config=args.config,
        settings=settings_digest(cfg, args.split),
        checkpoint=checkpoint,
        sha256=digest(checkpoint) if Path(checkpoint).is_file() else None,
        dataset=f'{type(dataset).__name__}, {args.split} split, '
        f'{len(indices)} of {len(dataset)} samples',
        batch_size=loader.batch_size,
        date=date.today().isoformat(),
        versions=f'stepnet_mm {stepnet_mm.__version__}, torch '
        f'{torch.__version__}, Python {platform.python_version()}',
        machine=torch.cuda.get_device_name() if args.device.startswith('cuda')
        else f'CPU, {torch.get_num_threads()} threads')


def split_stages(model, pattern, found, loader, indices):
    """The blocks, with stages that share a container told apart by shape."""
    batch = next(iter(subset_loader(loader, indices[:1])))
    names = [block.name for block in found]
    return find_residual_blocks(
        model, pattern, run=lambda: run_features(model, batch, names))


@torch.no_grad()
def measure(model, recorder, loader, indices, path, done):
    """Add the samples that a record still lacks, batch by batch."""
    bar = ProgressBar(len(indices), start=False)
    bar.completed = done
    bar.start()
    with kept_state(model), recorder:
        for batch in subset_loader(loader, indices[done:]):
            run_features(model, batch, recorder.blocks)
            nsi, step = recorder.nsi, recorder.step
            recorder.clear()
            append_rows(path, done, nsi, step)
            done += len(nsi)
            bar.update(len(nsi))
    print()


def main():
    args = parse_args()
    cfg = config_from(args)
    C.check_weights(cfg)
    model = build_model(cfg, args.checkpoint, args.device)
    found = find_residual_blocks(model, args.blocks)
    if args.list:
        return print(list_blocks(found))
    loader = build_loader(cfg, args.split, not args.skip_data_check,
                          args.batch_size)
    indices = spread_indices(len(loader.dataset), args.num_samples)
    found = split_stages(model, args.blocks, found, loader, indices)
    print(list_blocks(found))
    recorder = TrajectoryRecorder(model, found, args.definition)
    path = args.out or beside_checkpoint(cfg, args.checkpoint,
                                         '_stiffness.jsonl')
    done = begin_record(path,
                        make_header(cfg, args, recorder, loader, indices))
    measure(model, recorder, loader, indices, path, done)
    record = read_stiffness_record(path)
    for key, value in record.summary().items():
        print(f'{key:24} {value:.6g}')
    print(f'record: {path}')


if __name__ == '__main__':
    main()
