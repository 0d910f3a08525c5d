"""The networks that the checks run, smaller on a CPU."""
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from ..launch.report import Unavailable

DTYPES = torch.float32, torch.bfloat16, torch.float16
LAYOUTS = torch.contiguous_format, torch.channels_last


def library() -> str:
    """The library whose StepResNet is tried.

    Raises:
        Unavailable: if neither is installed.
    """
    for name in ('mmpretrain', 'mmdet'):
        if importlib.util.find_spec(name):
            return name
    raise Unavailable('neither mmpretrain nor mmdet is installed: bash '
                      'tools/setup_env.sh installs them')


def build_backbone(device: torch.device, kind: str = 'StepResNet',
                   depth: int = 50, narrow: bool = True,
                   **settings: Any) -> Any:
    """A backbone in training mode, always with the same weights.

    Args:
        device (torch.device): where to.
        kind (str): ``'StepResNet'`` or the library's ``'ResNet'``.
        depth (int): its layers.
        narrow (bool): an eighth of the channels, on a CPU.
        **settings: the other arguments.
    """
    if narrow and device.type == 'cpu':
        settings = dict(base_channels=8, stem_channels=8, **settings)
    torch.manual_seed(0)
    network = MODELS.build(dict(
        type=f'{library()}.{kind}', depth=depth, norm_eval=False,
        frozen_stages=-1, **settings)).to(device)
    network.train()  # the libraries' own returns nothing
    return network


def make_images(device: torch.device, number: int, edge: int) -> Tensor:
    """Random images, (number, 3, edge, edge), always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(
        number, 3, edge, edge, generator=generator).to(device)


@contextmanager
def precision(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Autocast to a dtype; float32 and wider without it.

    Raises:
        Unavailable: if the device does not have it.
    """
    if dtype in (torch.float32, torch.float64):
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(torch.autocast(device.type, dtype))
        except RuntimeError as error:  # torch 2.1, float16 on a CPU
            raise Unavailable(f'{short(dtype)}: autocast on {device.type} '
                              f'gives an error ({error})') from None
        _require(device, dtype)
        yield


def short(value: torch.dtype | torch.memory_format) -> str:
    """torch.float16 -> 'float16'; torch.channels_last -> 'channels_last'."""
    return str(value).rpartition('.')[2].removesuffix('_format')


def _require(device: torch.device, dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and device.type == 'cuda' and (
            torch.cuda.get_device_capability(device) < (8, 0)):
        raise Unavailable('bfloat16: GPUs from sm_80 on have it; use float16')
    image = torch.ones(1, 1, 2, 2, device=device)
    got = nn.functional.conv2d(image, image).dtype
    if got != dtype:
        raise Unavailable(f'{short(dtype)}: autocast on {device.type} gives '
                          f'{short(got)}; another torch may have it')
