"""The step backbones in mmpretrain's registry.

Each ResNet takes the arguments of its library's class and, beside them,
``step``, ``step_blocks`` and ``fused`` (:class:`StepBackbone`).
"""
from collections.abc import Iterator, Sequence
from typing import Any

from mmpretrain.models.backbones.base_backbone import BaseBackbone
from mmpretrain.models.backbones.resnet import (
    BasicBlock,
    Bottleneck,
    ResNet,
    ResNetV1c,
    ResNetV1d,
)
from mmpretrain.models.backbones.resnet_cifar import ResNet_CIFAR
from mmpretrain.models.backbones.resnext import ResNeXt
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
    VisionTransformer,
)
from mmpretrain.models.utils import LayerNorm2d
from mmpretrain.registry import MODELS
from torch import Tensor, nn

from ..steps.layers import build_norm
from .any_network import bind_backbones
from .backbone import StepBackbone, StepOwner, one_per_stage
from .preact import PreActBlock
from .transformer_layers import SelfAttentionLayer, StepEncoderLayer


class _StepBackbone(StepBackbone):
    plain_blocks = (BasicBlock, Bottleneck)


@MODELS.register_module()
class StepResNet(_StepBackbone, ResNet):
    """ResNet of mmpretrain with step sizes, R-18/34/50/101/152."""


@MODELS.register_module()
class StepResNetV1c(_StepBackbone, ResNetV1c):
    """ResNetV1c of mmpretrain with step sizes: a deep stem."""


@MODELS.register_module()
class StepResNetV1d(_StepBackbone, ResNetV1d):
    """ResNetV1d of mmpretrain with step sizes: V1c with averaged shortcuts."""


@MODELS.register_module()
class StepResNeXt(_StepBackbone, ResNeXt):
    """ResNeXt of mmpretrain with step sizes, R-50/101/152."""


@MODELS.register_module()
class StepResNet_CIFAR(_StepBackbone, ResNet_CIFAR):
    """ResNet_CIFAR of mmpretrain with step sizes: widths 64-512, 4 stages."""


class PreActBasicBlock(PreActBlock, BasicBlock):
    """mmpretrain's BasicBlock in pre-activation, with a step size."""


class PreActBottleneck(PreActBlock, Bottleneck):
    """mmpretrain's Bottleneck in pre-activation, with a step size."""


#: block -> its class, that in pre-activation, and the layers of depth that
#: one block in each of the three stages adds.
CIFAR_BLOCKS: dict[str, tuple[type[nn.Module], type[nn.Module], int]] = dict(
    bottleneck=(Bottleneck, PreActBottleneck, 9),
    basic=(BasicBlock, PreActBasicBlock, 6))


@MODELS.register_module()
class StepResNetCIFAR(_StepBackbone, ResNet_CIFAR):
    """ResNet of the paper's Table 1: widths 16-32-64, 3 stages, step sizes.

    A 3 x 3 stem, then n blocks per stage at 1, 1/2 and 1/4 of the image's
    size; outputs of 64, 128 and 256 channels with bottlenecks, 16, 32 and 64
    with basic blocks. A residual's last norm starts at 1, as in the authors'
    other repositories.

    Two layouts have the parameters of the paper's ResNet-164 with StepNet:
    post-activation with steps in the blocks with an identity shortcut, the
    default, and ``preact=True`` with ``step_blocks='all'``. With ``preact``
    no norm follows the stem or a shortcut's convolution, no ReLU follows a
    sum, and a norm and a ReLU end the last stage; they freeze with it.

    Takes the other arguments of :class:`mmpretrain.models.ResNet_CIFAR`, for
    three stages, and those of :class:`StepBackbone`.

    Args:
        depth (int): 9n+2 with bottlenecks, 6n+2 with basic blocks.
        block (str): ``'bottleneck'`` or ``'basic'``. Defaults to
            ``'bottleneck'``.
        base_channels (int): of the first stage, doubled in each further one;
            a bottleneck's output has 4 times as many. Defaults to 16.
        zero_init_residual (bool): whether a residual's last norm starts at 0
            instead of 1. Defaults to False.
        downsample_norm_cfg (dict, optional): norm layer of the shortcuts'
            convolutions. Defaults to ``norm_cfg``.
        preact (bool): pre-activation, He et al. 2016b. Defaults to False.

    Raises:
        ValueError: on a ``depth`` of another form, an unknown ``block``, or
            arguments that do not go with ``preact``.
    """

    def __init__(self,
                 depth: int,
                 block: str = 'bottleneck',
                 stem_channels: int = 16,
                 base_channels: int = 16,
                 strides: tuple = (1, 2, 2),
                 dilations: tuple = (1, 1, 1),
                 out_indices: tuple = (2, ),
                 zero_init_residual: bool = False,
                 downsample_norm_cfg: dict | None = None,
                 preact: bool = False,
                 **kwargs):
        if block not in CIFAR_BLOCKS:
            raise ValueError(f'backbone.block: expected one of '
                             f'{[*CIFAR_BLOCKS]}, got {block!r}; choose one')
        plain, preactivated, layers = CIFAR_BLOCKS[block]
        if depth < 2 + layers or (depth - 2) % layers:
            raise ValueError(
                f'backbone.depth: expected {layers}n+2 with block={block!r}, '
                f'got {depth}; take one such as {2 * layers + 2} or '
                f"{18 * layers + 2}, or type='StepResNet_CIFAR' for "
                "mmpretrain's depths, 18 to 152")
        if preact and (zero_init_residual or downsample_norm_cfg):
            raise ValueError(
                'backbone.preact: expected zero_init_residual=False (a norm '
                'is followed by a ReLU, which would pass no gradient) and no '
                'downsample_norm_cfg (shortcuts have no norm), got '
                f'zero_init_residual={zero_init_residual}, '
                f'downsample_norm_cfg={downsample_norm_cfg}; leave them out')
        self.arch_settings = {depth: (
            preactivated if preact else plain, ((depth - 2) // layers, ) * 3)}
        self.preact = preact
        self.downsample_norm_cfg = downsample_norm_cfg
        super().__init__(
            depth,
            stem_channels=stem_channels,
            base_channels=base_channels,
            num_stages=3,
            strides=strides,
            dilations=dilations,
            out_indices=out_indices,
            zero_init_residual=zero_init_residual,
            **kwargs)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images (N, 3, H, W) -> the outputs of the ``out_indices`` stages."""
        outs = super().forward(x)
        if self.preact and self.num_stages - 1 in self.out_indices:
            outs = *outs[:-1], self.end_norm(outs[-1]).relu_()
        return outs

    def named_children(self) -> Iterator[tuple[str, nn.Module]]:
        """The children as torch orders them, but ``end_norm`` first.

        mmcv's fuse_conv_bn takes a norm for that of the last convolution
        before it.
        """
        return iter(sorted(super().named_children(),
                           key=lambda item: item[0] != 'end_norm'))

    def _make_stem_layer(self, in_channels: int, base_channels: int) -> None:
        super()._make_stem_layer(in_channels, base_channels)
        if self.preact:
            self.add_module(self.norm1_name, nn.Identity())
            self.relu = nn.Identity()
            self.end_norm = build_norm(
                'backbone.norm_cfg', self.norm_cfg,
                self.base_channels * self.expansion * 2**2)

    def _freeze_stages(self) -> None:
        super()._freeze_stages()
        if self.preact and self.frozen_stages == self.num_stages:
            self.end_norm.requires_grad_(False).eval()

    def make_res_layer(self, block: Any, **kwargs) -> nn.Module:
        """A stage, its shortcut with the norm that the layout gives it."""
        layer: Any = super().make_res_layer(block=block, **kwargs)
        downsample = layer[0].downsample
        if self.preact and downsample is not None:
            layer[0].downsample = downsample[:-1]
        elif self.downsample_norm_cfg and downsample is not None:
            downsample[-1] = build_norm('backbone.downsample_norm_cfg',
                                        self.downsample_norm_cfg,
                                        kwargs['out_channels'])
        return layer


class StepTransformerEncoderLayer(StepEncoderLayer, TransformerEncoderLayer):
    """mmpretrain's encoder layer with a step size."""


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


bind_backbones(MODELS, globals())
