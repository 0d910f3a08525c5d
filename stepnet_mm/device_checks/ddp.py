"""Training on all GPUs of the machine, or in two processes on a CPU."""
import datetime
import tempfile
from pathlib import Path

import torch
from torch import Tensor, distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from ..launch.report import Report, Unavailable
from .networks import build_backbone
from .series import REPORT_IT

#: On a CPU.
RANKS = 2


def check(report: Report, device: torch.device) -> None:
    """Whether all ranks end with the same weights, with BN and with SyncBN."""
    cpu = device.type == 'cpu'
    if not cpu and not distributed.is_nccl_available():
        raise Unavailable("torch has no NCCL: set env_cfg.dist_cfg.backend="
                          "'gloo' for trainings")
    ranks = RANKS if cpu else torch.cuda.device_count()
    for norm in ('BN', 'SyncBN'):
        if cpu and norm == 'SyncBN':
            report.skip('SyncBN: torch has it for GPUs only')
        else:
            _try(report, device, norm, ranks)


def _try(report: Report, device: torch.device, norm: str, ranks: int) -> None:
    backend = 'gloo' if device.type == 'cpu' else 'nccl'
    what = f'{norm}, {ranks} rank{"s" * (ranks > 1)}, {backend}'
    try:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.start_processes(
                _train, (ranks, device.type, backend, norm, folder), ranks,
                # CUDA does not take a fork.
                start_method='fork' if device.type == 'cpu' else 'spawn')
        report.ok(f'{what}: the same weights everywhere')
    except Exception as error:
        why = f'{error}'.strip().splitlines()[-1]
        report.error(f'{what}: {why}', REPORT_IT)


def _train(rank: int, ranks: int, kind: str, backend: str, norm: str,
           folder: str) -> None:
    """Two iterations of one rank."""
    device = torch.device(f'cuda:{rank}' if kind == 'cuda' else kind)
    if kind == 'cuda':
        torch.cuda.set_device(device)
    distributed.init_process_group(
        backend, init_method=f'file://{Path(folder, "rendezvous")}', rank=rank,
        world_size=ranks, timeout=datetime.timedelta(seconds=60))
    network = build_backbone(device, depth=18, norm_cfg=dict(type=norm))
    # Buffers are SyncBN's own task; those of BN differ.
    model = DistributedDataParallel(
        network, [rank] if kind == 'cuda' else None, broadcast_buffers=False)
    _iterate(model, device, rank)
    same = network.state_dict() if norm == 'SyncBN' else dict(
        network.named_parameters())
    _require_same(same)
    distributed.destroy_process_group()


def _iterate(model: nn.Module, device: torch.device, rank: int) -> None:
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    for _ in range(2):
        optimizer.zero_grad()
        images = torch.randn(4, 3, 64, 64, device=device)
        model(images)[-1].square().mean().backward()
        optimizer.step()


def _require_same(tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        least, most = tensor.detach().clone(), tensor.detach().clone()
        distributed.all_reduce(least, distributed.ReduceOp.MIN)
        distributed.all_reduce(most, distributed.ReduceOp.MAX)
        if not torch.equal(least, most):
            raise RuntimeError(f'{name}: expected the same finite values in '
                               'all ranks, got others')
