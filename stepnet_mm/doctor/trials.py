"""Checks what a training does on a device: kernels, networks, steps, cost,
and trainings of seconds, saved and resumed, and of several ranks.
"""
import datetime
import os
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch
from mmengine.config import Config
from mmengine.dist import all_gather_object
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import Tensor, distributed, multiprocessing, nn

from ..ops import residual_tail
from ..ops.tail_kernels import HAS_TRITON, check_kernels, formats_on
from ..profiling import TimedNetwork, interleave, median_ratio
from ..steps import build_step
from ..steps.base import step_types
from ..utils.precision import float32_or_wider
from .process import REPORT_IT, attempt, judge, row

TODO = f'backbone.fused=False does without it; {REPORT_IT}'
#: The fused tail's error may be so many times that of the modules, and as
#: much more as one ReLU makes whose argument is nearly 0.
FACTOR, FLOOR = 2, .01
PLAIN, STEPNET, UNFUSED = 'plain', 'StepNet', 'StepNet, fused=False'
NETWORKS: dict[str, dict] = {
    PLAIN: dict(kind='ResNet'), STEPNET: {}, UNFUSED: dict(fused=False)}
#: Of 9 rounds the second least and the second largest ratio are a confidence
#: interval of the median; it is wrong in 4 % of all cases.
ROUNDS = 9
#: The fused tail is kept unless it is surely slower, by this factor.
NOISE = 1.02
#: Of a training, with a checkpoint after each, and the one that is resumed.
ITERATIONS, RESUMED = 4, 3


def kernels(device: str) -> Iterator[dict]:
    """Whether every kernel agrees with the plain formulas."""
    if device == 'cuda' and not HAS_TRITON:
        yield row('warning', 'Triton is not installed, StepNet runs without '
                  'its fused tail: pip install triton makes it faster')
        return
    for dtype in dtypes(device):
        for found in check_kernels(device, [dtype]):
            text = found.reason or (
                f'{found.difference:.2g} of the allowed difference')
            yield judge(found.ok, f'{found.kernel}, {dtype}, '
                        f'{found.memory_format}: {text}', TODO)


def backbone(device: str) -> Iterator[dict]:
    """Whether StepResNet-50's fused tail is as exact as its modules."""
    exact = _run(device, torch.float64, torch.contiguous_format, fused=False)
    # Small maps are quicker to compare.
    with mock.patch.dict(residual_tail.MIN_NUMEL, cpu=0, cuda=0):
        for kind in product(dtypes(device), formats_on(device)):
            plain, fused = (
                [float((got - want).norm() / want.norm()) for got, want in
                 zip(_run(device, *kind, fused=fused), exact)]
                for fused in (False, True))
            yield judge(
                all(a <= FACTOR * b + FLOOR for a, b in zip(fused, plain)),
                f'{kind[0]}, {kind[1]}: off float64 by {fused[0]:.1e} (output)'
                f' and {fused[1]:.1e} (gradients), fused=False by '
                f'{plain[0]:.1e} and {plain[1]:.1e}', TODO)


def _run(device: str, dtype: torch.dtype, layout: torch.memory_format,
         fused: bool) -> tuple[Tensor, Tensor]:
    """The last map and all parameters' gradients, flat, in float64 on CPU."""
    wide = float32_or_wider(dtype)
    narrow: dict = dict(base_channels=8, stem_channels=8) if (
        device == 'cpu') else {}
    network = build_backbone(device, layout, fused=fused, **narrow).to(wide)
    for name, parameter in network.named_parameters():
        if name.endswith('bn3.weight'):  # depth multiplies rounding errors
            nn.init.constant_(parameter, .2)
    shape = (4, 3, 64, 64) if device == 'cpu' else (16, 3, 224, 224)
    images = random(*shape).to(device, wide, memory_format=layout)
    with _autocast(device, dtype):
        output = network(images)[-1]
    direction = random(*output.shape).to(device, wide)
    (.01 * output.to(wide) * direction).sum().backward()
    return output.detach().double().cpu(), torch.cat([
        p.grad.double().flatten().cpu()
        for p in network.parameters() if p.grad is not None])


def steps(device: str) -> Iterator[dict]:
    """Whether each registered step gives finite values and gradients."""
    for name in step_types():
        yield from attempt(name, _try_step, name, device)


def _try_step(name: str, device: str) -> Iterator[dict]:
    given = dict(name='eca') if name == 'TimmAttention' else {}
    if given and not find_spec('timm'):
        yield row('skipped', 'timm is not installed')
        return
    for dtype in dtypes(device):
        step = build_step(dict(type=name, **given), 64).to(device)
        x, f = random(2, 4, 64, 14, 14).to(device)
        f.requires_grad_()
        with _autocast(device, dtype):
            output = step(x, f)
        output.float().square().mean().backward()
        # A NaN or inf of the output is one of f's gradient.
        nn.utils.clip_grad_norm_([f, *step.parameters()], 1.,
                                 error_if_nonfinite=True)
    yield row('ok', f'finite in {", ".join(map(str, dtypes(device)))}')


def cost(device: str) -> Iterator[dict]:
    """Time and memory of plain and StepNet, with and without fused tail."""
    # Every map of StepNet is just large enough for the fused tail.
    images, dtype = random(8, 3, 128, 128), None
    layout = torch.contiguous_format
    if device != 'cpu':
        images, layout = random(128, 3, 224, 224), torch.channels_last
        dtype = dtypes(device)[1]
    images = images.to(device, memory_format=layout)
    networks = {name: TimedNetwork(build_backbone(device, layout, **settings),
                                   images, dtype=dtype)
                for name, settings in NETWORKS.items()}
    times = interleave({name: network.seconds
                        for name, network in networks.items()}, ROUNDS)
    for name, network in networks.items():
        saved, peak = network.saved_megabytes(), network.peak_megabytes()
        yield row('ok', f'{name}: {1e3 * median(times[name]):.1f} ms, '
                  f'{median_ratio(times[name], times[PLAIN]):.3f} of plain; '
                  f'{saved:.1f} MB kept for backward, {peak:.0f} MB peak on '
                  'a GPU', seconds_of_rounds=times[name],
                  saved_megabytes=saved, peak_megabytes=peak)
    yield verdict(times[STEPNET], times[UNFUSED])


def verdict(fused: list[float], unfused: list[float]) -> dict:
    """A row: whether to keep the fused tail, from the seconds of rounds."""
    _, low, *_, high, _ = sorted(a / b for a, b in zip(fused, unfused))
    return judge(low <= NOISE, f'the fused tail takes {low:.2f} to {high:.2f} '
                 'of the time without it', 'backbone.fused=False is faster',
                 'warning')


class _Tiny(BaseModel):
    """A backbone; the loss is the last map's mean square."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        last = self.backbone(torch.stack(list(inputs)))[-1]
        return dict(loss=last.square().mean())


def _train(work_dir: str, library: str, norm: str = 'BN',
           **settings: Any) -> dict[str, Tensor]:
    """The weights of a library's StepResNet, on the CPU, after a training with
    a checkpoint after each iteration; settings are of the Runner.
    """
    norm_cfg = dict(type=norm)
    # The ranks' running averages of BN differ, those of SyncBN do not.
    averages = [dict(type='SyncBuffersHook')] if norm == 'BN' else []
    runner = Runner(**{**dict(
        model=_Tiny(dict(
            type=f'{library}.StepResNet', depth=18, base_channels=8,
            stem_channels=8, norm_cfg=norm_cfg,
            step=dict(type='StepAdaptor', norm_cfg=norm_cfg))),
        work_dir=work_dir,
        train_dataloader=dict(
            dataset=[dict(inputs=image) for image in random(8, 3, 32, 32)],
            batch_size=4, num_workers=0,
            sampler=dict(type='InfiniteSampler', shuffle=True)),
        train_cfg=dict(
            type='ResumableIterBasedTrainLoop', max_iters=ITERATIONS),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', interval=1, by_epoch=False)),
        custom_hooks=[dict(type='NonFiniteLossHook'), *averages],
        randomness=dict(seed=0, deterministic=True),
        default_scope='mmengine',
        log_level='ERROR',
        experiment_name=f'stepnet_mm_{work_dir}'), **settings})
    runner.train()
    return {k: v.cpu() for k, v in runner.model.state_dict().items()}


def resume(_: str) -> Iterator[dict]:
    """Whether a resumed training ends as an uninterrupted one, by library."""
    for library in libraries():
        yield from attempt(library, _resume, library)


def _resume(library: str) -> Iterator[dict]:
    with TemporaryDirectory() as folder:
        whole = _train(f'{folder}/whole', library)
        resumed = _train(f'{folder}/resumed', library, resume=True,
                         load_from=f'{folder}/whole/iter_{RESUMED}.pth')
    _require_equal(resumed, whole, 'a training that was not stopped')
    yield row('ok', 'a tiny StepResNet trains, is saved, loaded in iteration '
              f'{RESUMED} and resumed bit for bit (deterministic=True)')


def ddp(device: str) -> Iterator[dict]:
    """Whether all ranks end with the same weights: one rank per GPU, with
    SyncBN, or two on a CPU, with BN.
    """
    ranks = torch.cuda.device_count() or 2
    norm, backend, method = ('SyncBN', 'nccl', 'spawn') if (
        device == 'cuda') else ('BN', 'gloo', 'fork')
    with TemporaryDirectory() as folder:
        multiprocessing.start_processes(
            _train_rank, (ranks, folder, backend, norm), ranks,
            start_method=method)
    yield row('ok', f'{norm}, {ranks} rank{"s" * (ranks > 1)}, {backend}: '
              'the same weights everywhere')


def _train_rank(rank: int, ranks: int, folder: str, backend: str,
                norm: str) -> None:
    os.environ['LOCAL_RANK'] = str(rank)
    if backend == 'nccl':
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend, init_method=f'file://{folder}/rendezvous',
        rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))
    wrapper = dict(type='MMDistributedDataParallel', broadcast_buffers=False,
                   device_ids=[rank] if backend == 'nccl' else None)
    weights = _train(
        folder, libraries()[0], norm, launcher='pytorch',
        randomness=dict(seed=0), cfg=Config(dict(model_wrapper_cfg=wrapper)))
    _require_equal(weights, all_gather_object(weights)[0], 'rank 0')
    distributed.destroy_process_group()


def _require_equal(got: dict, expected: dict, of: str) -> None:
    different = [name for name, value in got.items()
                 if not torch.equal(value, expected[name])]
    if different:
        raise RuntimeError(
            f'weights: expected those of {of}, got others, {different[0]} the '
            f'first of {len(different)}')


def libraries() -> list[str]:
    """The installed libraries that have a StepResNet."""
    return [name for name in ('mmpretrain', 'mmdet') if find_spec(name)]


def build_backbone(device: str, layout: torch.memory_format,
                   kind: str = 'StepResNet', **settings: Any) -> Any:
    """A ResNet-50 in training mode, always with the same weights."""
    torch.manual_seed(0)
    network = MODELS.build(dict(
        type=f'{libraries()[0]}.{kind}', depth=50, norm_eval=False,
        frozen_stages=-1, **settings))
    network.train()  # the libraries' own returns nothing
    return network.to(device, memory_format=layout)


def _autocast(device: str, dtype: torch.dtype) -> torch.autocast:
    """Autocast in a half precision, none in another one."""
    half = None if dtype == float32_or_wider(dtype) else dtype
    # torch 2.1 refuses to name float32, even if it is disabled.
    return torch.autocast(device, half, enabled=half is not None)


def random(*shape: int) -> Tensor:
    """Normal numbers, always the same."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def dtypes(device: str) -> list[torch.dtype]:
    """The dtypes of trainings: float32, then the better one of autocast."""
    if device == 'cpu':
        return [torch.float32, torch.bfloat16]
    new = torch.cuda.get_device_capability() >= (8, 0)
    return [torch.float32, *[torch.bfloat16] * new, torch.float16]
