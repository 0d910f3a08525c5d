"""A network of self-attention alone (Cordonnier et al. 2020)."""
from torch import Tensor, nn

from ..attention import RelativeSelfAttention2d
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
        """x_t + f(x_t) ⊗ Δt, then the FFN: (N, C, H, W) -> (N, C, H, W)."""
        residual = self.drop(self.attn(self.ln1(x)))
        if self.step is not None:
            residual = self.step(x, residual)
        x = x + residual
        return x + self.ffn(self.ln2(x))


def check_indices(out_indices, num_layers: int) -> tuple[int, ...]:
    """The layers to return, in order, the last one for None; ValueError."""
    if out_indices is None:
        out_indices = (num_layers - 1, )
    if not isinstance(out_indices, (tuple, list)) or not out_indices or (
            len(set(out_indices)) < len(out_indices)) or not all(
            type(i) is int and 0 <= i < num_layers for i in out_indices):
        raise ValueError(
            'backbone.out_indices: expected a tuple of some of 0 to '
            f'{num_layers - 1}, got {out_indices!r}; name each layer once')
    return tuple(sorted(out_indices))
