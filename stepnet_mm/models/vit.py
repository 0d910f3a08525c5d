"""ViT with step sizes (Appendix G), in mmpretrain's registry."""
from collections.abc import Sequence
from typing import Any

from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
    VisionTransformer,
)
from mmpretrain.registry import MODELS
from torch import Tensor, nn

from ..steps.base import StepSize, build_step
from .backbone import StepOwner, one_per_stage
from .pretrained_start import PretrainedStart


class ValueProjection(nn.Sequential):
    """f₃ of Eq. 32, in the place of an attention: (N, T, C) -> (N, T, C).

    C² parameters, with a bias C more. The dropout and layer scale of
    ``attn``, mmpretrain's MultiheadAttention, stay.
    """

    def __init__(self, attn: Any):
        channels, bias = attn.embed_dims, attn.qkv.bias is not None
        super().__init__(
            nn.Linear(channels, channels, bias), attn.proj_drop, attn.gamma1)


class StepTransformerEncoderLayer(PretrainedStart, TransformerEncoderLayer):
    """mmpretrain's encoder layer with a step size: x_t + f ⊗ Δt, its FFN."""
    # Not there with 'replace': no checkpoint of a plain ViT has that f.
    residual_weight = 'attn.qkv.weight'
    step: StepSize
    attn: Any
    ln1: nn.Module
    ffn: nn.Module
    ln2: nn.Module

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


def _as_map(x: Tensor) -> Tensor:
    """Tokens as a map of width 1: (N, T, C) -> (N, C, T, 1), a view."""
    return x.transpose(1, 2)[..., None]


@MODELS.register_module()
class StepVisionTransformer(StepOwner, VisionTransformer):
    """ViT with step sizes in the place of, or behind, its attention.

    Appendix G: with ``step_mode='replace'`` (Table 7) every attention becomes
    x + f₃(x) ⊗ F̃(x + f₃(x), x), f₃ the value projection of the normalised
    tokens, pooled over all tokens, the class token included; with ``'gate'``
    the attention stays and is the residual that is gated. The FFN stays as it
    is. A step-size module sees the tokens as a map (N, C, T, 1).

    Takes the arguments of :class:`mmpretrain.models.VisionTransformer`.

    Args:
        step (dict | str | list | None): the step-size module of every layer,
            or a list with one of these per layer. Defaults to StepAdaptor;
            with the weights of a plain ViT and ``'gate'`` it starts at 1.
            None leaves the stock network, or the stock layer.
        step_mode (str): ``'replace'`` or ``'gate'``. Defaults to
            ``'replace'``.

    Raises:
        ValueError: on an unknown ``step_mode`` or step type.
    """

    def __init__(self,
                 *args,
                 step='StepAdaptor',
                 step_mode: str = 'replace',
                 **kwargs):
        if step_mode not in ('replace', 'gate'):
            raise ValueError("backbone.step_mode: expected 'replace' or "
                             f"'gate', got {step_mode!r}; choose one of them")
        super().__init__(*args, **kwargs)
        self.step = step
        cfgs = one_per_stage(step, self.num_layers)
        for layer, cfg in zip(self.layers, cfgs):
            if cfg is not None:
                # The library builds its layers inside its constructor.
                layer.__class__ = StepTransformerEncoderLayer
                layer.add_step(cfg, step_mode)
        self._freeze_again()

    def train(self, mode: bool = True) -> 'StepVisionTransformer':
        """Set the mode as torch does; frozen layers stay frozen."""
        # The library freezes in its constructor alone.
        super().train(mode)
        self._freeze_again()
        return self

    def _freeze_again(self) -> None:
        if self.steps() and self.frozen_stages > 0:
            self._freeze_stages()

    def _stages(self) -> Sequence[Sequence[nn.Module]]:
        return [[layer] for layer in self.layers]
