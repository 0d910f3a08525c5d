"""Transformer encoder layers with a step size (Appendix G)."""
from typing import Any

from torch import Tensor, nn

from ..steps.base import StepSize, build_step
from .pretrained_start import PretrainedStart

MODES = ('replace', 'gate')


class ValueProjection(nn.Sequential):
    """f₃ of Eq. 32, in the place of an attention: (N, T, C) -> (N, T, C).

    C² parameters, with a bias C more. The attention's dropout and layer scale
    stay.

    Args:
        attn (nn.Module): the attention, mmpretrain's MultiheadAttention.
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

        Args:
            cfg (dict | str): the step-size module.
            mode (str): ``'replace'``: f is the value projection alone and
                the attention is gone (the Table 7 row); ``'gate'``: f is the
                attention.
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


def _as_map(x: Tensor) -> Tensor:
    """Tokens as a map of width 1: (N, T, C) -> (N, C, T, 1), a view."""
    return x.transpose(1, 2)[..., None]
