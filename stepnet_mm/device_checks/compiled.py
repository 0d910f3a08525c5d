"""The same comparison under torch.compile."""
import torch

from ..launch.report import Report, Unavailable
from .cost import NETWORKS, Contestant, add_verdict, race, sizes


def check(report: Report, device: torch.device) -> None:
    """Say what the fused tail is worth in a compiled network."""
    _require_compiler()
    # For a whole network a compiler takes minutes on a CPU.
    small = dict(num_stages=1, out_indices=(0, ), strides=(1, ),
                 dilations=(1, )) if device.type == 'cpu' else {}
    networks = {name: Contestant(name, device, compiled=True, **small)
                for name in NETWORKS if name != 'SE'}
    add_verdict(report, race(networks), sizes(device))


def _require_compiler() -> None:
    """Skip where torch.compile does not work for anything."""
    try:
        torch.compile(lambda x: x.square() + 1)(torch.ones(2))
    except Exception as error:
        reason = f'{error}'.strip().partition('\n')[0]
        raise Unavailable(f'torch.compile does not work here ({reason}); '
                          'eager networks do without') from error
