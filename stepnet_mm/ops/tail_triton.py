"""The kernels of the fused tail for CUDA, in Triton.

One program takes a tile of pixels x channels of one sample, in either
memory format; sums over space are written per program and added up by torch,
so they are the same in every run. Signatures and results are as in
:mod:`tail_reference`; ``input_gradients`` writes over ``masked``.
"""
import torch
import triton
import triton.language as tl
from torch import Tensor

from ..utils.precision import float32_or_wider

#: Elements of a tile, and the programs from which on a sum is not split.
TILE, PROGRAMS = 2048, 2048


def moments(z: Tensor, variance: bool) -> tuple:
    """Mean and (or None) biased variance over space, two tables."""
    grid = _Grid(z, sums=True)
    # About a value from the middle, which keeps Σz² from cancelling.
    h, w = z.shape[2] // 2, z.shape[3] // 2
    about = z[:, :, h:h + 1, w:w + 1].contiguous()
    about = about.to(float32_or_wider(z.dtype))
    total, square = grid.sums(), grid.sums()
    grid.run(_moments_kernel, z, about, total, square)
    size = z[0, 0].numel()
    total = total.sum(0) / size
    if not variance:
        return about + total, None
    square = square.sum(0) / size - total.square()
    return about + total, square.clamp_min_(0)


def scale_add_relu(z: Tensor, x: Tensor, scale: Tensor,
                   shift: Tensor) -> Tensor:
    """The map relu(x + scale · z + shift)."""
    grid, y = _Grid(z), torch.empty_like(z)
    grid.run(_scale_add_relu_kernel, z, x, scale.contiguous(),
             shift.contiguous(), y)
    return y


def mask_and_sum(grad: Tensor, y: Tensor, z: Tensor, mean: Tensor) -> tuple:
    """The ReLU's gradient g, the tables Σ g and Σ g·(z - mean) over space."""
    grid, masked = _Grid(z, sums=True), torch.empty_like(z)
    total, moment = grid.sums(), grid.sums()
    grid.run(_mask_and_sum_kernel, _like(grad, z), _like(y, z), z,
             mean.contiguous(), masked, total, moment)
    return masked, total.sum(0), moment.sum(0)


def input_gradients(masked: Tensor, z: Tensor, a: Tensor, b: Tensor | None,
                    c: Tensor, d: Tensor | None) -> tuple:
    """The maps dz = a · g + b · z + c and dx = g + d, which is ``masked``."""
    grid, dz = _Grid(z), torch.empty_like(z)
    # A table that is not there is not read.
    a, b_, c, d_ = [(a if t is None else t).contiguous()
                    for t in (a, b, c, d)]
    grid.run(_input_gradients_kernel, masked, z, a, b_, c, d_, dz,
             HAS_B=b is not None, HAS_D=d is not None)
    return dz, masked


class _Grid:
    """How the programs share out a map."""

    def __init__(self, z: Tensor, sums: bool = False):
        n, c, h, w = z.shape
        size, last = h * w, not z.is_contiguous()
        # Long along the axis that is dense in memory.
        wide_c, wide_l = map(triton.next_power_of_2, (c, size))
        if last:
            channels = min(64, wide_c)
            pixels = min(TILE // channels, wide_l)
        else:
            pixels = min(TILE, wide_l)
            channels = min(TILE // pixels, wide_c)
        tiles = triton.cdiv(size, pixels)
        groups = triton.cdiv(c, channels)
        # A sum runs over many tiles, unless the programs are then too few.
        # Their number is a power of two and no size of the image is a
        # constant, so a new size hardly ever compiles anything.
        share = triton.cdiv(tiles * n * groups, PROGRAMS) if sums else 1
        share = min(triton.next_power_of_2(share),
                    triton.next_power_of_2(tiles))
        splits = triton.cdiv(tiles, share)
        self.table = (splits, n, c, 1, 1), float32_or_wider(z.dtype), z.device
        self.programs = (n * groups * splits, )
        self.layout = dict(
            C=c,
            L=size,
            STRIDE_C=1 if last else size,
            STRIDE_L=c if last else 1,
            ROWS=n * c,
            SPLITS=splits,
            BLOCK_C=channels,
            BLOCK_L=pixels,
            TILES=share)

    def run(self, kernel, z: Tensor, *args, **flags) -> None:
        with torch.cuda.device_of(z):
            kernel[self.programs](z, *args, **self.layout, **flags)

    def sums(self) -> Tensor:
        """(programs along space, N, C, 1, 1)."""
        shape, dtype, device = self.table
        return torch.empty(shape, dtype=dtype, device=device)


def _like(x: Tensor, z: Tensor) -> Tensor:
    """x in the memory format of z."""
    if x.stride() == z.stride():
        return x
    return torch.empty_like(z).copy_(x)


@triton.jit
def _place(C: tl.constexpr, SPLITS, BLOCK_C: tl.constexpr):
    """This program's sample, its channels, which of them exist, its split."""
    groups = tl.cdiv(C, BLOCK_C)
    i = tl.program_id(0) // SPLITS
    channel = (i % groups) * BLOCK_C + tl.arange(0, BLOCK_C)
    return i // groups, channel, channel < C, tl.program_id(0) % SPLITS


@triton.jit
def _tile(n, channel, inside, i, C: tl.constexpr, L, STRIDE_C, STRIDE_L,
          BLOCK_L: tl.constexpr):
    """Offsets and mask of a tile's elements, (BLOCK_L, BLOCK_C)."""
    pixel = i * BLOCK_L + tl.arange(0, BLOCK_L)
    start = n.to(tl.int64) * C * L
    offset = start + pixel[:, None] * STRIDE_L + channel[None] * STRIDE_C
    return offset, (pixel < L)[:, None] & inside[None]


@triton.jit
def _moments_kernel(z, about, total, square, C: tl.constexpr,
                    L, STRIDE_C, STRIDE_L, ROWS, SPLITS,
                    BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                    TILES: tl.constexpr):
    n, channel, inside, split = _place(C, SPLITS, BLOCK_C)
    row = n * C + channel
    centre = tl.load(about + row, inside, 0.)
    one = tl.zeros([BLOCK_C], centre.dtype)
    two = tl.zeros([BLOCK_C], centre.dtype)
    for i in range(TILES):
        offset, mask = _tile(n, channel, inside, split * TILES + i,
                             C, L, STRIDE_C, STRIDE_L, BLOCK_L)
        v = tl.load(z + offset, mask, 0.).to(centre.dtype) - centre[None]
        v = tl.where(mask, v, 0.)
        one += tl.sum(v, 0)
        two += tl.sum(v * v, 0)
    row += split * ROWS
    tl.store(total + row, one, inside)
    tl.store(square + row, two, inside)


@triton.jit
def _scale_add_relu_kernel(z, x, scale, shift, y, C: tl.constexpr,
                           L, STRIDE_C, STRIDE_L, ROWS, SPLITS,
                           BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                           TILES: tl.constexpr):
    n, channel, inside, split = _place(C, SPLITS, BLOCK_C)
    a = tl.load(scale + n * C + channel, inside, 0.)[None]
    b = tl.load(shift + n * C + channel, inside, 0.)[None]
    offset, mask = _tile(n, channel, inside, split, C, L, STRIDE_C,
                         STRIDE_L, BLOCK_L)
    f = tl.load(z + offset, mask, 0.).to(a.dtype) * a + b
    out = f + tl.load(x + offset, mask, 0.).to(a.dtype)
    # Not tl.maximum, which makes 0 of a NaN.
    tl.store(y + offset, tl.where(out <= 0, 0., out), mask)


@triton.jit
def _mask_and_sum_kernel(grad, y, z, mean, masked, total, moment,
                         C: tl.constexpr,
                         L, STRIDE_C, STRIDE_L, ROWS, SPLITS,
                         BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                         TILES: tl.constexpr):
    n, channel, inside, split = _place(C, SPLITS, BLOCK_C)
    row = n * C + channel
    centre = tl.load(mean + row, inside, 0.)
    one = tl.zeros([BLOCK_C], centre.dtype)
    two = tl.zeros([BLOCK_C], centre.dtype)
    for i in range(TILES):
        offset, mask = _tile(n, channel, inside, split * TILES + i,
                             C, L, STRIDE_C, STRIDE_L, BLOCK_L)
        g = tl.load(grad + offset, mask, 0.)
        g = tl.where(tl.load(y + offset, mask, 0.) <= 0, 0., g)
        tl.store(masked + offset, g, mask)
        g = g.to(one.dtype)
        one += tl.sum(g, 0)
        v = tl.load(z + offset, mask, 0.).to(one.dtype) - centre[None]
        two += tl.sum(tl.where(mask, g * v, 0.), 0)
    row += split * ROWS
    tl.store(total + row, one, inside)
    tl.store(moment + row, two, inside)


@triton.jit
def _input_gradients_kernel(masked, z, a, b, c, d, dz, C: tl.constexpr,
                            L, STRIDE_C, STRIDE_L, ROWS, SPLITS,
                            BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                            TILES: tl.constexpr,
                            HAS_B: tl.constexpr, HAS_D: tl.constexpr):
    n, channel, inside, split = _place(C, SPLITS, BLOCK_C)
    row = n * C + channel
    offset, mask = _tile(n, channel, inside, split, C, L, STRIDE_C,
                         STRIDE_L, BLOCK_L)
    scale = tl.load(a + row, inside, 0.)[None]
    g = tl.load(masked + offset, mask, 0.).to(scale.dtype)
    out = g * scale + tl.load(c + row, inside, 0.)[None]
    if HAS_B:
        value = tl.load(z + offset, mask, 0.).to(scale.dtype)
        out += value * tl.load(b + row, inside, 0.)[None]
    tl.store(dz + offset, out, mask)
    if HAS_D:
        tl.store(masked + offset, g + tl.load(d + row, inside, 0.)[None],
                 mask)
