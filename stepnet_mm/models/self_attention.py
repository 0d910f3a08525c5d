"""A network of self-attention alone (Cordonnier et al. 2020)."""
from torch import Tensor, nn

from ..attention import RelativeSelfAttention2d
from ..attention.relative import check_counts
from ..steps.base import build_step
from .pretrained_start import PretrainedStart


class SelfAttentionLayer(PretrainedStart, nn.Module):
    """Pre-norm layer on maps: x + f(x) ⊗ Δt, then its FFN.

    Args:
        channels (int): C.
        feedforward_channels (int): hidden width of the FFN.
        norm (callable): C -> a norm layer over channels.
        drop_rate (float): dropout behind the attention and in the FFN.
        step (dict | str | None): the step-size module that gates the
            attention (Appendix G); None leaves Δt = 1.
        **attention: arguments of :class:`RelativeSelfAttention2d`.
    """
    residual_weight = 'attn.output.weight'

    def __init__(self, channels: int, feedforward_channels: int, norm,
                 drop_rate: float = 0., step=None, **attention):
        super().__init__()
        self.ln1, self.ln2 = norm(channels), norm(channels)
        self.attn = RelativeSelfAttention2d(channels, **attention)
        self.drop = nn.Dropout(drop_rate)
        self.ffn = nn.Sequential(
            nn.Conv2d(channels, feedforward_channels, 1), nn.GELU(),
            nn.Dropout(drop_rate),
            nn.Conv2d(feedforward_channels, channels, 1),
            nn.Dropout(drop_rate))
        self.step = None if step is None else build_step(step, channels)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> the same."""
        residual = self.drop(self.attn(self.ln1(x)))
        if self.step is not None:
            residual = self.step(x, residual)
        x = x + residual
        return x + self.ffn(self.ln2(x))


def check_indices(out_indices, num_layers: int) -> tuple:
    """The layers to return, in order; the last one for None.

    Raises:
        ValueError: if there is no such layer.
    """
    if out_indices is None:
        out_indices = (num_layers - 1, )
    if not isinstance(out_indices, (tuple, list)) or not out_indices or (
            len(set(out_indices)) < len(out_indices)) or not all(
            type(i) is int and 0 <= i < num_layers for i in out_indices):
        raise ValueError(f'backbone.out_indices: got {out_indices!r}, '
                         f'expected a tuple of some of 0 to {num_layers - 1}')
    return tuple(sorted(out_indices))


def check_network(num_layers, downsample, attention: dict) -> None:
    """Raise ValueError on arguments that leave no network."""
    check_counts('backbone.', num_layers=num_layers, downsample=downsample)
    taken = {'in_channels', 'out_channels', 'num_heads', 'padding', 'crop'}
    if taken & set(attention):
        raise ValueError(
            f'backbone.attention: got {sorted(taken & set(attention))}, which '
            'the network sets itself (num_heads: backbone.num_heads)')


def check_divides(downsample: int, x: Tensor) -> None:
    """Raise ValueError if an image (N, C, H, W) cannot be folded."""
    if any(size % downsample for size in x.shape[2:]):
        raise ValueError(
            f'SelfAttentionNet: got images of {tuple(x.shape[2:])} px, '
            f'expected multiples of backbone.downsample={downsample}')
