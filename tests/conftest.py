"""Fixtures shared by all tests. Here a save is not synced to the disk, and
small maps are fused on a CPU too.
"""
import stepnet_mm.utils.interrupts

import functools
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import mmengine.config.config
import mmengine.config.utils
import mmengine.dataset.base_dataset
import mmengine.hooks.runtime_info_hook
import mmengine.runner.runner
import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.registry import MODELS
from mmengine.utils import ManagerMixin, digit_version
from yapf.yapflib import yapf_api

import stepnet_mm
from stepnet_mm.ops import residual_tail
from stepnet_mm.steps import StepSize

pytest_plugins = ['limits']
ROOT = Path(__file__).parents[1]

# Tools that tests run in this process import it; Ctrl-C stays pytest's.
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Every `mmpretrain::` base reads all metafiles of the library, which is most
# of the time that a config takes.
mmengine.config.utils.load = functools.cache(mmengine.config.utils.load)
# Each start and checkpoint of a Runner formats the config, which is half of a
# small training.
for module in (mmengine.config.config, yapf_api):  # where it is looked for
    module.FormatCode = lambda text, **_: (text, True)
# Each dataset looks for garbage, half a second among so many modules.
mmengine.dataset.base_dataset.gc = SimpleNamespace(collect=lambda: None)
# Each start asks compilers for their versions, each checkpoint asks git.
for module in (mmengine.runner.runner, mmengine.hooks.runtime_info_hook):
    module.get_git_hash = functools.cache(module.get_git_hash)
mmengine.runner.runner.collect_env = functools.cache(
    mmengine.runner.runner.collect_env)
# No test cuts the power.
os.fsync = lambda descriptor: None
# The maps of the tests are small, and should be fused all the same.
residual_tail.MIN_NUMEL['cpu'] = 0
# Two threads cost more than they gain for tiny layers on shared cores.
torch.set_num_threads(1)


def pytest_configure(config):
    # The first backward pass of a process decides whether its forks may have
    # one: not after it has seen a device. Compilers and exporters pretend one.
    if config.getoption('markexpr') != 'gpu':
        os.environ['CUDA_VISIBLE_DEVICES'] = ''
    torch.ones(1, requires_grad=True).backward()


def pytest_collection_modifyitems(config, items):
    """The long ones first: no worker is left alone with one at the end."""
    if hasattr(config, 'workerinput'):
        items.sort(key=lambda item: item.get_closest_marker('long') is None)


@MODELS.register_module()
class ToyStep(StepSize):
    """A step size from f alone: σ(a · GAP(f) + b)."""

    def __init__(self, in_channels, start=0.):
        super().__init__()
        self.start = start
        self.a = torch.nn.Conv2d(
            in_channels, in_channels, 1, groups=in_channels)
        self.init_weights()

    def init_weights(self):
        torch.nn.init.constant_(self.a.weight, self.start)
        torch.nn.init.constant_(self.a.bias, 1.)

    def step_size(self, identity, residual):
        return self.a(residual.mean((2, 3), keepdim=True)).sigmoid()


def pytest_runtest_setup(item):
    for mark in item.iter_markers('since_torch'):
        version, what = mark.args
        if digit_version(torch.__version__) < digit_version(version):
            pytest.skip(f'{what}: needs torch {version}')
    if item.get_closest_marker('gpu') and not torch.cuda.is_available():
        pytest.skip('no GPU, or hidden: python -m pytest -m gpu shows it')


def forget_instances(kind):
    """mmengine keeps scopes, visualizers and loggers of earlier Runners."""
    for subclass in kind.__subclasses__():
        subclass._instance_dict.clear()
        forget_instances(subclass)


@pytest.fixture(scope='session')
def studies_venv():
    """The environment that has Snakemake; skips where it cannot be made."""
    done = subprocess.run(
        ['bash', ROOT / 'tools/studies/install.sh'], capture_output=True,
        text=True, env=dict(os.environ, PYTHON=sys.executable))
    if done.returncode:
        pytest.skip(f'no Snakemake here: {done.stderr or "no Python 3.11"}')
    return done.stdout.strip()


@pytest.fixture
def forget_runs():
    """Two Runners of one second would share a log."""
    return functools.partial(forget_instances, ManagerMixin)


@pytest.fixture(autouse=True)
def quiet_and_seeded(forget_runs):
    """The same start for every test; mmengine's log stays at errors."""
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(False)  # a Runner sets it for good
    forget_runs()
    MMLogger.get_instance('stepnet_mm_tests', log_level='ERROR')
    logging.getLogger('mmengine').setLevel(logging.ERROR)


@pytest.fixture(params=['mmpretrain'])
def models(request):
    """A library's MODELS; ``equality.BOTH`` asks for both in turn."""
    return pytest.importorskip(f'{request.param}.registry').MODELS
