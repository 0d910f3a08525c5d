"""Transformer layers with a step size: of a ViT, and of maps (Appendix G)."""
from typing import Any

from torch import Tensor, nn

from ..attention import RelativeSelfAttention2d
from ..steps.base import StepSize, build_step
from .blocks import PretrainedStart


class ValueProjection(nn.Sequential):
    """f₃ of Eq. 32, in the place of an attention: (N, T, C) -> (N, T, C).

    C² parameters, with a bias C more. The dropout and layer scale of
    ``attn``, mmpretrain's MultiheadAttention, stay.
    """

    def __init__(self, attn: Any):
        channels, bias = attn.embed_dims, attn.qkv.bias is not None
        super().__init__(
            nn.Linear(channels, channels, bias), attn.proj_drop, attn.gamma1)


class StepEncoderLayer(PretrainedStart):
    """Mixin for a pre-norm encoder layer: x_t + f ⊗ Δt, then its FFN.

    Expects ``ln1``, ``attn``, ``ln2`` and ``ffn``, as mmpretrain's layers
    have them.
    """
    # Not there with 'replace': no checkpoint of a plain ViT has that f.
    residual_weight = 'attn.qkv.weight'
    step: StepSize
    # The library's:
    ln1: nn.Module
    ln2: nn.Module
    ffn: nn.Module
    attn: Any

    def add_step(self, cfg: dict | str, mode: str) -> None:
        """Give the layer a step-size module.

        With ``'replace'`` f is the value projection alone and the attention
        is gone (Table 7); with ``'gate'`` f is the attention.
        """
        attn = self.attn
        self.step = build_step(cfg, attn.embed_dims)
        # Behind the step, as in the residual blocks.
        self.drop_path, attn.out_drop = attn.out_drop, nn.Identity()
        if mode == 'replace':
            self.attn = ValueProjection(attn)

    def forward(self, x: Tensor) -> Tensor:
        """x_t + f(x_t) ⊗ Δt, then the FFN: (N, T, C) -> (N, T, C)."""
        residual = self.attn(self.ln1(x))
        scaled = self.step(_as_map(x), _as_map(residual))
        x = x + self.drop_path(scaled[..., 0].transpose(1, 2))
        return self.ffn(self.ln2(x), identity=x)


class SelfAttentionLayer(PretrainedStart):
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


def _as_map(x: Tensor) -> Tensor:
    """Tokens as a map of width 1: (N, T, C) -> (N, C, T, 1), a view."""
    return x.transpose(1, 2)[..., None]
