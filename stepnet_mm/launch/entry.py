"""Options, Runner, model and loaders of the tools that take a config.

mmengine's runner and models take seconds to import, so they are imported
where they are needed, not for a help text or an error.
"""
import argparse
import copy
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import MODELS, RUNNERS, init_default_scope
from torch import nn
from torch.utils.data import DataLoader

from ..config import (
    OptionsAction,
    add_custom_import,
    add_image_scale,
    add_resume_and_hooks,
    read_config,
    set_data_root,
    set_image_scale,
    set_in_loaders,
    use_tns_metric,
)
from ..utils.command_line import check_output, command_parser, output_file
from ..utils.data_errors import data_errors, name_samples
from ..utils.files import atomic_write
from ..utils.hook_helpers import ReplacedMethod
from ..utils.slurm import is_first_rank
from .distributed import init_distributed, stand_alone


def make_config_parser(description: str) -> argparse.ArgumentParser:
    """A parser of a config and the options that change it."""
    parser = command_parser(description)
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='where logs and checkpoints go')
    parser.add_argument(
        '--data-root', help='in place of the data_root of each dataset')
    add_image_scale(parser)
    parser.add_argument(
        '--cfg-options', nargs='+', action=OptionsAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    return parser


def make_parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options that both entry points take."""
    parser = make_config_parser(description)
    parser.add_argument(
        '--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none', help='what has started the ranks')
    parser.add_argument(
        '--no-pin-memory', action='store_true',
        help='data loaders with pin_memory=False')
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0,
        help='given by older launchers')
    return parser


def config_from(args: argparse.Namespace) -> Config:
    """The config with the common options applied.

    Raises:
        ValueError: if ``out`` of the arguments is the config or weights.
    """
    check_output('--out', getattr(args, 'out', None),
                 [args.config, getattr(args, 'checkpoint', None)])
    launcher = getattr(args, 'launcher', 'none')
    if launcher == 'none':
        stand_alone()
    os.environ.setdefault('LOCAL_RANK', str(getattr(args, 'local_rank', 0)))
    cfg = read_config(args.config, args.work_dir, args.cfg_options, launcher)
    cfg.work_dir = os.path.expanduser(cfg.work_dir)
    if args.data_root:
        set_data_root(cfg, args.data_root)
    if args.image_scale:
        set_image_scale(cfg, args.image_scale)
    if getattr(args, 'no_pin_memory', False):
        set_in_loaders(cfg, pin_memory=False)
    return cfg


def check_model(cfg: Config) -> None:
    """Raise ValueError if a config has no model."""
    if not cfg.get('model'):
        raise ValueError(f'{cfg.filename}: expected a config with a model, '
                         f'got the keys {sorted(cfg)}; name another file')


def set_scope(cfg: Config) -> None:
    """Make the config's scope the default for types without one.

    To be called before a part of a config is built without a Runner. With
    None, as in pure Python configs, each registry uses its own.
    """
    scope = cfg.get('default_scope', 'mmengine')
    if scope is not None:
        init_default_scope(scope)


def prepare_config(cfg: Config, changes: list[str]) -> Config:
    """Make a config ready to run; returns the one for the work dir.

    That has the libraries' own types, which their tools look for. ``changes``
    gets a line for each substitution.
    """
    own = copy.deepcopy(cfg)
    add_custom_import(own)
    use_tns_metric(own)
    changes += add_resume_and_hooks(cfg)
    return own


def build_runner(cfg: Config, changes: Sequence[str] = (),
                 own: Config | None = None):
    """mmengine's Runner, or that of ``runner_type``.

    ``changes`` and ``own`` are those of :func:`prepare_config`, for the log
    and the work dir.
    """
    from mmengine.runner import Runner

    from ..resume.checkpoint_content import add_content_hook
    init_distributed(cfg)
    if 'runner_type' in cfg:
        runner = RUNNERS.build(cfg)
    else:
        check_model(cfg)
        runner = Runner.from_cfg(cfg)
    if isinstance(runner, Runner):
        if own and is_first_rank():  # over what mmengine has written
            with atomic_write(
                    Path(cfg.work_dir, Path(cfg.filename).name)) as file:
                file.write(own.dump().encode())
        add_content_hook(runner)
        for name in ('train', 'val', 'test'):
            ReplacedMethod(runner, f'build_{name}_loop',
                           partial(_build_loop, f'{name}_dataloader'))
    for change in changes:
        runner.logger.info(change)
    return runner


def _build_loop(key: str, build, *args, **kwargs):
    """A loop, whose dataset may have errors."""
    with data_errors(key, 'build_dataloader'):
        return build(*args, **kwargs)


def build_model(cfg: Config, checkpoint: str | None = None, device='cpu',
                start: bool = True) -> nn.Module:
    """A config's network in eval mode, without a Runner.

    Without a checkpoint its weights are those at the start of a training with
    the config's seed or, without ``start``, random: no file is loaded.

    Raises:
        RuntimeError: if the weights are those of another network.
        ValueError: if the config has no model.
    """
    from mmengine.model import revert_sync_batchnorm
    from mmengine.runner import load_checkpoint, set_random_seed
    check_model(cfg)
    set_scope(cfg)
    set_random_seed((cfg.get('randomness') or {}).get('seed') or 0)
    model_cfg = copy.deepcopy(cfg.model)
    if cfg.get('data_preprocessor') is not None:
        model_cfg.setdefault('data_preprocessor', cfg.data_preprocessor)
    model = revert_sync_batchnorm(MODELS.build(model_cfg))
    if checkpoint:
        load_checkpoint(model, checkpoint, map_location='cpu', strict=True)
    elif start:
        model.init_weights()
    return model.to(device).eval()


def output_of(cfg: Config, args: argparse.Namespace, ending: str) -> Path:
    """The output file of a tool that measures a checkpoint.

    Without ``args.out`` it is beside a local checkpoint, or in the work dir
    for a URL; without a checkpoint ``start`` + ``ending`` there.

    Raises:
        ValueError: if it cannot be written.
    """
    checkpoint = Path(args.checkpoint or 'start')
    folder = (checkpoint.parent if args.checkpoint and checkpoint.exists()
              else Path(cfg.work_dir))
    path = args.out or folder / f'{checkpoint.stem}{ending}'
    try:
        return output_file(str(path))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f'--out: {error}') from None


def build_loader(cfg: Config, split: str,
                 batch_size: int | None = None) -> DataLoader:
    """The loader of a split; its batch size may be another.

    Raises:
        ValueError: if the config has no such loader, or its dataset or, during
            loading, a sample has an error.
    """
    from mmengine.runner import Runner
    set_scope(cfg)
    key = f'{split}_dataloader'
    if not cfg.get(key):
        raise ValueError(
            f'{cfg.filename}: expected a {key} to measure on, got none; set '
            'one, or choose another --split')
    loader_cfg = copy.deepcopy(cfg[key])
    if batch_size:
        loader_cfg.batch_size = batch_size
    with data_errors(key):
        loader = Runner.build_dataloader(loader_cfg)
    name_samples(loader, key)
    return loader
