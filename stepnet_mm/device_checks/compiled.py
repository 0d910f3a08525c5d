"""The same comparison under torch.compile."""
import torch

from ..launch.report import Report, Unavailable
from .cost import NETWORKS, Contestant, add_verdict, race, sizes


def check(report: Report, device: torch.device) -> None:
    """Compare on a GPU, where a compiler is."""
    if device.type == 'cpu':
        raise Unavailable('a compiler takes minutes on a CPU: tools/benchmarks'
                          '/step_cost.py --compiled plain stepnet takes them')
    _require_compiler(device)
    compare(report, device)


def compare(report: Report, device: torch.device) -> None:
    """Say what the fused tail is worth in a compiled network."""
    networks = {name: Contestant(name, device, compiled=True)
                for name in NETWORKS if name != 'SE'}
    add_verdict(report, race(networks), sizes(device))


def _require_compiler(device: torch.device) -> None:
    """Skip where torch.compile does not work for anything."""
    try:
        torch.compile(lambda x: x.square() + 1)(
            torch.ones(2, device=device))
    except Exception as error:
        reason = f'{error}'.strip().partition('\n')[0]
        raise Unavailable(f'torch.compile does not work here ({reason}); '
                          'eager networks do without') from error
