"""Self-attention in the place of convolutions, in mmpretrain's registry."""
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.utils import LayerNorm2d
from mmpretrain.registry import MODELS
from torch import Tensor, nn

from ..attention import RelativeSelfAttention2d
from ..steps.base import build_step
from .backbone import one_per_stage
from .pretrained_start import PretrainedStart


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


@MODELS.register_module()
class SelfAttentionNet(BaseBackbone):
    """Self-attention alone, in the place of convolutions.

    The 6-layer, 9-head network of Cordonnier et al. 2020: pixels of 2 x 2
    folded into channels, a projection, self-attention layers by relative
    position, all at one resolution.

    Args:
        embed_dims (int): width of the network. Defaults to 400.
        num_layers (int): self-attention layers. Defaults to 6.
        num_heads (int): heads of each layer, each of the network's full
            width. Defaults to 9.
        feedforward_channels (int): hidden width of a layer's FFN. Defaults
            to 512.
        downsample (int): edge of the squares that are folded. Defaults to 2.
        drop_rate (float): dropout behind the attention and in the FFN.
            Defaults to 0.1.
        attention (dict, optional): further arguments of
            :class:`RelativeSelfAttention2d`. Defaults to learned encodings
            for maps of 16 x 16 px.
        step (dict | str | list | None): the step-size module that gates every
            attention, or a list with one of these per layer. Defaults to
            None.
        out_indices (tuple[int]): layers whose outputs, normalised, are
            returned. Defaults to the last.

    Raises:
        ValueError: on a wrong argument.
    """

    def __init__(self,
                 in_channels: int = 3,
                 embed_dims: int = 400,
                 num_layers: int = 6,
                 num_heads: int = 9,
                 feedforward_channels: int = 512,
                 downsample: int = 2,
                 drop_rate: float = 0.1,
                 attention: dict | None = None,
                 step=None,
                 out_indices: tuple | None = None,
                 init_cfg=None):
        super().__init__(init_cfg)
        if attention is None:
            attention = dict(encoding='learned', max_size=16)
        self.out_indices = tuple(sorted(out_indices or [num_layers - 1]))
        if not {*self.out_indices} <= {*range(num_layers)}:
            raise ValueError(
                'backbone.out_indices: expected some of 0 to '
                f'{num_layers - 1}, got {out_indices}; count from 0')
        self.stem = nn.Sequential(
            nn.PixelUnshuffle(downsample),
            nn.Conv2d(in_channels * downsample**2, embed_dims, 1))
        self.layers = nn.ModuleList(
            SelfAttentionLayer(
                embed_dims, feedforward_channels, LayerNorm2d, drop_rate, cfg,
                num_heads=num_heads, **attention)
            for cfg in one_per_stage(step, num_layers))
        self.norms = nn.ModuleDict(
            {str(i): LayerNorm2d(embed_dims) for i in self.out_indices})

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """(N, C, H, W) -> tuple of (N, embed_dims, H', W').

        Raises:
            ValueError: where the image is larger than the encoding.
        """
        x, out = self.stem(x), []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i in self.out_indices:
                out.append(self.norms[str(i)](x))
        return tuple(out)
