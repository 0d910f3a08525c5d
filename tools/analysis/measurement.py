"""NSI of a config's network on the config's own data, as a record."""
import argparse
import copy
import hashlib
import platform
from collections.abc import Callable, Sized
from datetime import date
from pathlib import Path
from typing import cast

import torch
from mmengine.config import Config
from mmengine.utils import ProgressBar
from torch.utils.data import DataLoader

from stepnet_mm.config.lookup import all_dicts
from stepnet_mm.launch.entry import build_loader, build_model, config_from
from stepnet_mm.launch.work_dir import measurement_lock
from stepnet_mm.recording import (
    ResidualBlock,
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
from stepnet_mm.stiffness import (
    DEFINITIONS,
    RecordHeader,
    StiffnessRecord,
    append_rows,
    begin_record,
    read_stiffness_record,
)
from stepnet_mm.utils.command_line import positive
from stepnet_mm.utils.files import file_digest
from stepnet_mm.version import __version__


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is measured, and on what."""
    parser.add_argument(
        '--split', choices=['val', 'test'], default='val', help='of the data')
    parser.add_argument(
        '--num-samples',
        type=positive,
        help='spread over the dataset (default: all)')
    parser.add_argument(
        '--batch-size', type=positive,
        help="samples at a time (default: the config's)")
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu',
        help='where it runs (default: cuda where there is one, else cpu)')
    parser.add_argument('--blocks', help='regular expression for their names')
    parser.add_argument(
        '--definition', choices=DEFINITIONS,
        help='of NSI (default: residual where every block allows it)')


class Measurement:
    """The network of a config, ready to be measured.

    Args:
        args (Namespace): the options of :func:`.make_config_parser` and of
            :func:`add_measuring_options`; ``checkpoint``, None for the
            network at its start; ``name``, of the record, None for that of
            the config.
        record (callable, optional): returns, for the config, where the
            record goes; is called before anything is built. Left out, the
            blocks alone are looked at, which need no weights.

    Attributes:
        cfg (Config): the config, with the options applied.
        path (Path | None): of the record.
        blocks (list[ResidualBlock]): the network's residual blocks.

    Raises:
        RuntimeError: if the weights are those of another network.
        ValueError: if no blocks are found.
    """

    def __init__(self, args: argparse.Namespace,
                 record: Callable[[Config], Path] | None = None):
        self.args = args
        self.cfg: Config = config_from(args)
        self.path = record and record(self.cfg)
        self.model = build_model(
            self.cfg, args.checkpoint, args.device, start=bool(record))
        self.blocks = find_residual_blocks(self.model, args.blocks)

    def run(self) -> StiffnessRecord:
        """Measure what the record still lacks, and read it.

        Raises:
            ValueError: if there is no such data, the file is the record of
                another measurement, or none, or somebody else writes it.
        """
        args, path = self.args, cast(Path, self.path)
        loader = build_loader(self.cfg, args.split, args.batch_size)
        indices = spread_indices(
            len(cast(Sized, loader.dataset)), args.num_samples)
        blocks = self._split_stages(loader, indices)
        print(list_blocks(blocks))
        recorder = TrajectoryRecorder(self.model, blocks, args.definition)
        header = self._header(recorder, loader, indices)
        with measurement_lock(path):
            done = begin_record(path, header)
            self._add_samples(recorder, loader, indices, path, done)
        return read_stiffness_record(path)

    def _split_stages(self, loader: DataLoader,
                      indices: list[int]) -> list[ResidualBlock]:
        """The blocks, stages that share a container told apart by shape."""
        batch = next(iter(subset_loader(loader, indices[:1])))
        names = [block.name for block in self.blocks]
        return find_residual_blocks(
            self.model, self.args.blocks,
            run=lambda: run_features(self.model, batch, names))

    def _header(self, recorder: TrajectoryRecorder, loader: DataLoader,
                indices: list[int]) -> RecordHeader:
        """What is measured, on what."""
        args, dataset = self.args, cast(Sized, loader.dataset)
        checkpoint = args.checkpoint or 'none'
        return RecordHeader.of(
            recorder,
            len(indices),
            name=args.name or Path(args.config).stem,
            config=args.config,
            settings=_settings_digest(self.cfg, args.split),
            checkpoint=checkpoint,
            sha256=file_digest(checkpoint),
            dataset=f'{type(dataset).__name__}, {args.split} split, '
            f'{len(indices)} of {len(dataset)} samples',
            batch_size=loader.batch_size,
            date=date.today().isoformat(),
            versions=f'stepnet_mm {__version__}, torch '
            f'{torch.__version__}, Python {platform.python_version()}',
            machine=torch.cuda.get_device_name()
            if args.device.startswith('cuda')
            else f'CPU, {torch.get_num_threads()} threads')

    @torch.no_grad()
    def _add_samples(self, recorder: TrajectoryRecorder, loader: DataLoader,
                     indices: list[int], path: Path, done: int) -> None:
        """Add the samples that a record still lacks, batch by batch."""
        bar = ProgressBar(len(indices), start=False)
        bar.completed = done
        bar.start()
        with kept_state(self.model), recorder:
            for batch in subset_loader(loader, indices[done:]):
                run_features(self.model, batch, recorder.blocks)
                nsi, step = recorder.nsi, recorder.step
                recorder.clear()
                append_rows(path, done, nsi, step)
                done += len(nsi)
                bar.update(len(nsi))
        print()


def _settings_digest(cfg: Config, split: str) -> str:
    """A digest of everything in a config that changes what is measured.

    The path alone would not tell a config that has changed since. Where the
    data lie and how many workers load them may change, the name of their
    folder may not.
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
