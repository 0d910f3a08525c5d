"""What ``tools/train.py`` and ``tools/test.py`` have in common."""
import argparse
import os

from mmengine.config import Config, DictAction
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .config import load_config, set_data_root, set_image_scale


def make_parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options that both entry points take."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='where logs and checkpoints go')
    parser.add_argument(
        '--data-root', help='folder of all datasets, in place of data_root')
    parser.add_argument(
        '--image-scale',
        nargs=2,
        type=int,
        metavar=('LONG', 'SHORT'),
        help='scale of every Resize, px')
    parser.add_argument(
        '--skip-data-check',
        action='store_true',
        help='do not look at annotation files and images beforehand')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='changes to the config, key=value; lists as key="[a,b]"')
    parser.add_argument(
        '--launcher', choices=['none', 'pytorch', 'slurm'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)
    return parser


def config_from(args: argparse.Namespace) -> Config:
    """The config with the common options applied."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = load_config(args.config, args.work_dir, args.cfg_options,
                      args.launcher)
    if args.data_root:
        set_data_root(cfg, args.data_root)
    if args.image_scale:
        set_image_scale(cfg, args.image_scale)
    return cfg


def build_runner(cfg: Config) -> Runner:
    """mmengine's Runner, or the one that ``runner_type`` names."""
    return RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
