#!/usr/bin/env python
"""Measure NSI and TNS of a network on the data of its own config.

python tools/analysis/measure_stiffness.py CONFIG CHECKPOINT --num-samples 512

Without a checkpoint the network is measured at its start, as training would
begin. NSI of every sample and block goes into a record, one JSON line a
batch; a measurement that was cut goes on from there when the same command is
run again. Records are read by plot.py and stiffest_blocks.py.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import copy
import hashlib
import platform
from pathlib import Path

import torch
from mmengine.utils import track_iter_progress

from stepnet_mm import recording, stiffness
from stepnet_mm.config.lookup import all_dicts
from stepnet_mm.launch import entry
from stepnet_mm.recording import probe
from stepnet_mm.utils.command_line import output_file, positive
from stepnet_mm.utils.file_lock import file_lock, lock_beside
from stepnet_mm.utils.files import file_digest
from stepnet_mm.utils.provenance import today
from stepnet_mm.version import __version__

ENDING = '_stiffness.jsonl'


def parse_args():
    parser = entry.make_config_parser(__doc__)
    parser.add_argument('checkpoint', nargs='?', help='weights')
    parser.add_argument(
        '--out', type=output_file, help='default: beside the checkpoint, '
        f'<checkpoint>{ENDING}; without one in the work dir')
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val', help='of the data')
    parser.add_argument(
        '--num-samples', type=positive,
        help='spread over the dataset; default: all')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu',
        help='where it runs; default: cuda where there is one, else cpu')
    parser.add_argument('--name', help="in figures (default: the config's)")
    parser.add_argument(
        '--batch-size', type=positive,
        help="samples at a time (default: the config's)")
    parser.add_argument('--blocks', help='regular expression for their names')
    parser.add_argument(
        '--definition', choices=stiffness.DEFINITIONS,
        help='of NSI (default: residual where every block allows it)')
    parser.add_argument(
        '--list', action='store_true', help='list the blocks, and stop')
    return parser.parse_args()


@torch.no_grad()
def measure(cfg, args, path):
    """Measure what the record still lacks, batch by batch.

    Raises:
        ValueError: if there are no such blocks or data, the file is the
            record of another measurement, or none, or somebody else writes
            it.
    """
    model = entry.build_model(cfg, args.checkpoint, args.device)
    loader = entry.build_loader(cfg, args.split, args.batch_size)
    indices = probe.spread_indices(len(loader.dataset), args.num_samples)
    blocks = recording.find_residual_blocks(model, args.blocks)
    print(recording.list_blocks(blocks))
    recorder = recording.TrajectoryRecorder(model, blocks, args.definition)
    header = header_of(cfg, args, recorder, loader, len(indices))
    with file_lock(lock_beside(path)):
        done = stiffness.begin_record(path, header)
        rest = probe.subset_loader(loader, indices[done:])
        with probe.restored_state(model), recorder:
            for batch in track_iter_progress((rest, len(rest))):
                probe.run_features(model, batch, recorder.blocks)
                nsi, step = recorder.nsi, recorder.step
                recorder.clear()
                stiffness.append_rows(path, done, nsi, step)
                done += len(nsi)


def header_of(cfg, args, recorder, loader, samples):
    """What is measured, on what."""
    checkpoint = args.checkpoint or 'none'
    return stiffness.RecordHeader.of(
        recorder, samples, name=args.name or Path(args.config).stem,
        config=args.config, settings=settings_digest(cfg, args.split),
        checkpoint=checkpoint, sha256=file_digest(checkpoint),
        dataset=f'{type(loader.dataset).__name__}, {args.split} split, '
        f'{samples} of {len(loader.dataset)} samples',
        batch_size=loader.batch_size, date=today(),
        versions=f'stepnet_mm {__version__}, torch {torch.__version__}, '
        f'Python {platform.python_version()}',
        machine=torch.cuda.get_device_name()
        if args.device.startswith('cuda')
        else f'CPU, {torch.get_num_threads()} threads')


def settings_digest(cfg, split):
    """A digest of everything in a config that changes what is measured.

    Where the data lie and how many workers load them may change, the name of
    their folder may not.
    """
    loader = cfg[f'{split}_dataloader']
    dataset = copy.deepcopy(loader['dataset'])
    for node in all_dicts(dataset):
        if node.get('data_root'):
            node['data_root'] = Path(node['data_root']).name
    seed = (cfg.get('randomness') or {}).get('seed') or 0
    parts = [cfg['model'], cfg.get('data_preprocessor'), seed, dataset,
             loader.get('collate_fn')]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def main():
    args = parse_args()
    cfg = entry.config_from(args)
    if args.list:
        model = entry.build_model(cfg, args.checkpoint, start=False)
        blocks = recording.find_residual_blocks(model, args.blocks)
        return print(recording.list_blocks(blocks))
    path = entry.output_of(cfg, args, ENDING)
    measure(cfg, args, path)
    for key, value in stiffness.read_stiffness_record(path).summary().items():
        print(f'{key:24} {value:.6g}')
    print(f'record: {path}')


if __name__ == '__main__':
    main()
