"""A convolution as self-attention (Theorem 1, arXiv:1911.03584)."""
import torch
from torch import nn

from ..utils.precision import float32_or_wider
from .self_attention import RelativeSelfAttention2d


@torch.no_grad()
def conv_to_attention(conv: nn.Conv2d,
                      precision: float = 64.) -> RelativeSelfAttention2d:
    """A self-attention layer that computes a convolution.

    Each of the kernel's K² elements becomes a head that looks at that shift
    alone, with values of full width; the output's projection holds the
    kernel's weights. For finite maps the output is the same up to rounding,
    at the border too, for any padding, padding mode, dilation, groups and
    bias.

    Args:
        conv (nn.Conv2d): odd kernel, stride 1.
        precision (float): α of the heads: the nearest other pixel has e^-α
            of the weight of the one looked at. Defaults to 64 (2e-28), where
            the gradients of centres and widths vanish; with 4 or less they
            can be trained.

    Returns:
        RelativeSelfAttention2d: on the device and in the dtype of ``conv``,
        centres and widths in float32 or wider, with parameters of its own.

    Raises:
        TypeError: if ``conv`` is no plain nn.Conv2d.
        ValueError: if its kernel is even or its stride is not 1.
    """
    _check(conv)
    kernel, dilation = conv.kernel_size, conv.dilation
    reach = [d * (k // 2) for k, d in zip(kernel, dilation)]
    named: dict = dict(same=reach, valid=0)
    layer = RelativeSelfAttention2d(
        conv.in_channels, num_heads=kernel[0] * kernel[1],
        out_channels=conv.out_channels,
        padding=named.get(conv.padding, conv.padding),
        padding_mode=conv.padding_mode, crop=reach,
        bias=conv.bias is not None).to(conv.weight)
    layer.positions.to(float32_or_wider(conv.weight.dtype))
    layer.positions.centers.copy_(_shifts(kernel, dilation))
    layer.positions.widths.fill_((2 * precision)**-.5)
    layer.output.weight.copy_(_dense(conv).flatten(1)[..., None, None])
    if conv.bias is not None:
        layer.output.bias = nn.Parameter(conv.bias.clone())
    return layer


def _check(conv) -> None:
    if not isinstance(conv, nn.Conv2d) or (
            type(conv).forward is not nn.Conv2d.forward):
        raise TypeError(f'conv_to_attention: expected a torch.nn.Conv2d, got '
                        f'{type(conv)}; copy its weights into one, if they '
                        'mean the same')
    if any(k % 2 == 0 for k in conv.kernel_size) or {*conv.stride} != {1}:
        raise ValueError(
            'conv_to_attention: expected odd sides of kernel_size, which have '
            'a centre for the query, and stride=1, a query at every pixel, '
            f'got {conv}')


def _shifts(kernel, dilation) -> torch.Tensor:
    """Δ of each element of the kernel, (K², 2)."""
    rows, columns = [
        d * (torch.arange(k) - k // 2) for k, d in zip(kernel, dilation)]
    return torch.cartesian_prod(rows, columns)


def _dense(conv: nn.Conv2d) -> torch.Tensor:
    """The weight without groups, (C', K², C)."""
    elements = conv.weight.flatten(2).unbind(2)  # of (C', C / groups)
    return torch.stack([torch.block_diag(*weight.chunk(conv.groups))
                        for weight in elements], 1)
