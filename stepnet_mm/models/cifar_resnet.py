"""The paper's ResNet for CIFAR and STL-10, in mmpretrain's registry."""
from collections.abc import Iterator
from typing import Any

from mmpretrain.models.backbones.resnet import BasicBlock, Bottleneck
from mmpretrain.models.backbones.resnet_cifar import ResNet_CIFAR
from mmpretrain.registry import MODELS
from torch import Tensor, nn

from ..steps.layers import build_norm
from .backbone import StepBackbone
from .preact import PreActBlock


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
class StepResNetCIFAR(StepBackbone, ResNet_CIFAR):
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
    three stages (``stem_channels=16``, ``strides=(1, 2, 2)``,
    ``dilations=(1, 1, 1)``, ``out_indices=(2, )``), and those of
    :class:`StepBackbone`.

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
    plain_blocks = (BasicBlock, Bottleneck)
    DEFAULTS: dict[str, Any] = dict(
        num_stages=3, stem_channels=16, strides=(1, 2, 2),
        dilations=(1, 1, 1), out_indices=(2, ))

    def __init__(self,
                 depth: int,
                 block: str = 'bottleneck',
                 *,
                 base_channels: int = 16,
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
            depth, base_channels=base_channels,
            zero_init_residual=zero_init_residual,
            **{**self.DEFAULTS, **kwargs})

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
