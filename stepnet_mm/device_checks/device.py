"""The device, and what is installed for it."""
import os
import platform
import shutil
import subprocess

import torch

from ..launch.machine import check_devices
from ..launch.report import Report
from ..utils.circumstances import circumstances
from ..version import __version__


def check(report: Report, device: torch.device) -> None:
    """Whether the device is there; its facts go into the file of --json."""
    if device.type == 'cuda' and not torch.cuda.is_available():
        report.error('no GPU that torch can use',
                     'nvidia-smi shows what is there; is torch a CUDA build, '
                     'or CUDA_VISIBLE_DEVICES empty? --device cpu does the '
                     'same on the CPU')
        return
    if device.type == 'cuda':
        check_devices(report)
    facts = _facts(device)
    report.ok(f'{facts["device"]}, driver {facts["driver"] or "none"}, CUDA '
              f'{facts["cuda"]}, commit {facts["commit"]}', facts=facts)


def _facts(device: torch.device) -> dict:
    found = circumstances()
    found['versions'].update(stepnet_mm=__version__, triton=_triton())
    gpus = torch.cuda.device_count() if device.type == 'cuda' else 0
    return dict(
        found,
        platform=platform.platform(),
        gpus=[torch.cuda.get_device_name(i) for i in range(gpus)],
        load=[round(load, 2) for load in os.getloadavg()],
        driver=_driver(),
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version())


def _triton() -> str | None:
    try:
        import triton
        return triton.__version__
    except ImportError:
        return None


def _driver() -> str:
    """The driver's version; '' where there is none that answers."""
    if shutil.which('nvidia-smi') is None:
        return ''
    try:
        return subprocess.run(
            ['nvidia-smi', '--query-gpu=driver_version',
             '--format=csv,noheader'],
            capture_output=True, text=True, timeout=20,
            check=True).stdout.partition('\n')[0]
    except (OSError, subprocess.SubprocessError):
        return ''
