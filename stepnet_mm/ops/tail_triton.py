"""The kernels of the fused tail for CUDA, in Triton.

One program takes a tile of pixels x channels of one sample, in either
memory format. Sums over space are written in parts, (parts, N, C), and added
up by the kernel that makes tables of them, so they are the same in every run.
Signatures and results are as in :mod:`tail_reference`; ``input_gradients``
writes over ``masked``.
"""
import functools
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import tail_reference
from .tail_reference import Gradients, Moments, Norm

#: Elements of a tile, and the programs from which on a sum is not split.
TILE, PROGRAMS = 2048, 2048


def measure(z: Tensor, x: Tensor | None, norm: Norm) -> Moments:
    """All moments; that of x where it is given."""
    layout, n, c, size = _layout(z, sums=True)
    batch, pools = norm.running is None, x is not None
    parts = _tables(3, z, layout.parts, n, c)
    middle = z.shape[2] // 2 * z.shape[3] + z.shape[3] // 2
    _launch(_moments_kernel, layout, z, z if x is None else x, parts, middle,
            HAS_SQUARE=batch, HAS_X=pools)
    tables, rows = _tables(2, z, n, c, 1, 1), _tables(5, z, 1, c, 1, 1)
    mean, variance = tables.unbind()
    # No views: a step may change the means that it is given.
    mean_f = torch.empty_like(mean)
    identity_mean = torch.empty_like(mean) if pools else mean_f
    # A tensor that is not there is not read.
    given = [tables if t is None else t.contiguous() for t in (
        norm.weight, norm.bias, *(norm.running or (None, None)))]
    _launch(_normalize_kernel, _columns(n, c), z, parts, *given, tables,
            identity_mean, mean_f, rows,
            norm.eps, middle, n, c, size, layout.stride_c, layout.stride_l,
            layout.parts, MOST_PARTS=layout.most_parts,
            HAS_WEIGHT=norm.weight is not None,
            HAS_BIAS=norm.bias is not None, RUNNING=not batch, HAS_X=pools)
    return Moments(mean, variance if batch else None,
                   identity_mean if pools else None, mean_f, *rows.unbind())


def output(z: Tensor, x: Tensor, scale: Tensor, shift: Tensor,
           step: Tensor) -> Tensor:
    """The map relu(x + f ⊗ Δt), Δt a table."""
    y = torch.empty_like(z)
    _launch(_output_kernel, _layout(z)[0], z, x, scale, shift,
            step.contiguous(), y)
    return y


def step_gradient(grad: Tensor, y: Tensor, z: Tensor, mean: Tensor,
                  scale: Tensor, shift: Tensor) -> tuple:
    """The ReLU's gradient g and the tables Σ g, Σ g·(z - mean), Σ g·f."""
    layout, n, c, _ = _layout(z, sums=True)
    masked = torch.empty_like(z)
    parts = _tables(2, z, layout.parts, n, c)
    _launch(_mask_and_sum_kernel, layout, z, _like(grad, z), _like(y, z),
            mean, masked, parts)
    tables = _tables(3, z, n, c, 1, 1)
    _launch(_step_gradient_kernel, _rows_of(n * c), parts, mean, scale, shift,
            tables, c, n * c, layout.parts, MOST_PARTS=layout.most_parts)
    return masked, *tables.unbind()


def input_gradients(masked: Tensor, z: Tensor, total: Tensor, moment: Tensor,
                    step: Tensor, m: Moments, grads: Gradients) -> tuple:
    """The maps dz and dx, which is ``masked``; the norm's two rows."""
    layout, n, c, size = _layout(z)
    d, batch = grads.identity_mean, m.variance is not None
    rows: Any
    if grads._replace(mean_f=None, identity_mean=None) == Gradients():
        tables, rows = _tables(3, z, n, c), _tables(2, z, 1, c, 1, 1)
        d_mean_f = total if grads.mean_f is None else grads.mean_f.contiguous()
        _launch(_input_tables_kernel, _columns(n, c), total, moment,
                step.contiguous(), d_mean_f, m.mean, m.scale, m.centre,
                m.inverse, tables, rows, n, c, size,
                HAS_MEAN=grads.mean_f is not None, BATCH=batch)
    else:
        a, b, shift, _, *rows = tail_reference.input_tables(
            z, total, moment, step, m, grads)
        batch, tables = b is not None, torch.stack(
            [a, a if b is None else b, shift])
    dz = torch.empty_like(z)
    _launch(_input_gradients_kernel, layout, z, masked, tables,
            tables if d is None else d.contiguous(), dz, HAS_B=batch,
            HAS_D=d is not None)
    return dz, masked, *rows


def _tables(count: int, z: Tensor, *shape: int) -> Tensor:
    """Tables one after the other, so that a kernel has fewer arguments."""
    return z.new_empty((count, *shape), dtype=torch.float32)


class _Layout(NamedTuple):
    """How the programs of a kernel share out its work."""
    programs: tuple
    arguments: dict
    parts: int = 1
    most_parts: int = 1
    stride_c: int = 0
    stride_l: int = 0


def _layout(z: Tensor, sums: bool = False) -> tuple:
    """That of a kernel over a map; N, C and H·W."""
    n, c, h, w = z.shape
    size = h * w
    return (_over_a_map(n, c, size, not z.is_contiguous(),
                        PROGRAMS if sums else 0), n, c, size)


@functools.lru_cache(1024)
def _over_a_map(n: int, c: int, size: int, last: bool,
                programs: int) -> _Layout:
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
    share = triton.cdiv(tiles * n * groups, programs) if programs else 1
    share = min(triton.next_power_of_2(share), triton.next_power_of_2(tiles))
    parts = triton.cdiv(tiles, share)
    stride_c, stride_l = (1, c) if last else (size, 1)
    return _Layout((n * groups * parts, ), dict(
        C=c, L=size, STRIDE_C=stride_c, STRIDE_L=stride_l, ROWS=n * c,
        PARTS=parts, BLOCK_C=channels, BLOCK_L=pixels, TILES=share),
        parts, triton.next_power_of_2(parts), stride_c, stride_l)


@functools.lru_cache(1024)
def _columns(n: int, c: int) -> _Layout:
    """That of a kernel over tables, which sums over the samples."""
    block = min(64, triton.next_power_of_2(n))
    return _Layout((triton.cdiv(c, 16), ), dict(
        BLOCK_N=block, BLOCK_C=16,
        CHUNKS=triton.next_power_of_2(triton.cdiv(n, block))))


@functools.lru_cache(1024)
def _rows_of(count: int) -> _Layout:
    """That of a kernel over tables as one row."""
    return _Layout((triton.cdiv(count, 256), ), dict(BLOCK=256))


def _launch(kernel, layout: _Layout, *args, **flags) -> None:
    with torch.cuda.device_of(args[0]):
        kernel[layout.programs](*args, **layout.arguments, **flags)


def _like(x: Tensor, z: Tensor) -> Tensor:
    """x in the memory format of z."""
    if x.stride() == z.stride():
        return x
    return torch.empty_like(z).copy_(x)


@triton.jit
def _place(C: tl.constexpr, PARTS, BLOCK_C: tl.constexpr):
    """This program's sample, its channels, which of them exist, its part."""
    groups = tl.cdiv(C, BLOCK_C)
    i = tl.program_id(0) // PARTS
    channel = (i % groups) * BLOCK_C + tl.arange(0, BLOCK_C)
    return i // groups, channel, channel < C, tl.program_id(0) % PARTS


@triton.jit
def _tile(n, channel, inside, i, C: tl.constexpr, L, STRIDE_C, STRIDE_L,
          BLOCK_L: tl.constexpr):
    """Offsets and mask of a tile's elements, (BLOCK_L, BLOCK_C)."""
    pixel = i * BLOCK_L + tl.arange(0, BLOCK_L)
    start = n.to(tl.int64) * C * L
    offset = start + pixel[:, None] * STRIDE_L + channel[None] * STRIDE_C
    return offset, (pixel < L)[:, None] & inside[None]


@triton.jit(do_not_specialize=['MIDDLE', 'ROWS', 'PARTS'])
def _moments_kernel(z, x, parts, MIDDLE, C: tl.constexpr, L, STRIDE_C,
                    STRIDE_L, ROWS, PARTS,
                    BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                    TILES: tl.constexpr, HAS_SQUARE: tl.constexpr,
                    HAS_X: tl.constexpr):
    n, channel, inside, part = _place(C, PARTS, BLOCK_C)
    middle = tl.zeros([BLOCK_C], tl.float32)
    if HAS_SQUARE:  # about a value that keeps Σz² from cancelling
        middle = _middle(z, n, channel, inside, MIDDLE, C, L, STRIDE_C,
                         STRIDE_L)
    one = tl.zeros([BLOCK_L, BLOCK_C], tl.float32)
    two = tl.zeros([BLOCK_L, BLOCK_C], tl.float32)
    three = tl.zeros([BLOCK_L, BLOCK_C], tl.float32)
    for i in range(TILES):
        offset, mask = _tile(n, channel, inside, part * TILES + i,
                             C, L, STRIDE_C, STRIDE_L, BLOCK_L)
        v = tl.load(z + offset, mask, 0.).to(tl.float32) - middle[None]
        v = tl.where(mask, v, 0.)
        one += v
        if HAS_SQUARE:
            two += v * v
        if HAS_X:
            three += tl.load(x + offset, mask, 0.).to(tl.float32)
    row = part * ROWS + n * C + channel
    tl.store(parts + row, tl.sum(one, 0), inside)
    row += PARTS * ROWS
    if HAS_SQUARE:
        tl.store(parts + row, tl.sum(two, 0), inside)
    if HAS_X:
        tl.store(parts + PARTS * ROWS + row, tl.sum(three, 0), inside)


@triton.jit
def _middle(z, n, channel, inside, MIDDLE, C, L, STRIDE_C, STRIDE_L):
    """The middle value of samples' channels."""
    offset = n.to(tl.int64) * C * L + MIDDLE * STRIDE_L + channel * STRIDE_C
    return tl.load(z + offset, inside, 0.).to(tl.float32)


@triton.jit(do_not_specialize=[
    'MIDDLE', 'N', 'C', 'L', 'STRIDE_C', 'STRIDE_L', 'PARTS'])
def _normalize_kernel(z, parts, weight, bias, running_mean, running_var,
                      tables, identity_mean, mean_f, rows, EPS, MIDDLE, N, C,
                      L, STRIDE_C, STRIDE_L, PARTS, BLOCK_N: tl.constexpr,
                      BLOCK_C: tl.constexpr, CHUNKS: tl.constexpr,
                      MOST_PARTS: tl.constexpr, HAS_WEIGHT: tl.constexpr,
                      HAS_BIAS: tl.constexpr, RUNNING: tl.constexpr,
                      HAS_X: tl.constexpr):
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = channel < C
    size = N * C  # tables: mean, variance
    total = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
    for i in range(CHUNKS):
        n, row, mask = _rows(i, channel, inside, N, C, BLOCK_N)
        one = _sum(parts + row, mask, size, PARTS, MOST_PARTS) / L
        m = one
        if not RUNNING:
            m += _middle(z, n[:, None], channel[None], mask, MIDDLE, C, L,
                         STRIDE_C, STRIDE_L)
        tl.store(tables + row, m, mask)
        total += tl.where(mask, m, 0.)
        if not RUNNING:
            two = _sum(parts + PARTS * size + row, mask, size, PARTS,
                       MOST_PARTS)
            v = two / L - one * one
            # Not tl.maximum, which makes 0 of a NaN.
            tl.store(tables + size + row, tl.where(v < 0, 0., v), mask)
        if HAS_X:
            three = _sum(parts + 2 * PARTS * size + row, mask, size, PARTS,
                         MOST_PARTS)
            tl.store(identity_mean + row, three / L, mask)
    tl.debug_barrier()  # other threads may read what these have written
    if RUNNING:
        about = tl.load(running_mean + channel, inside, 0.).to(tl.float32)
        var = tl.load(running_var + channel, inside, 0.).to(tl.float32)
    else:
        about = tl.sum(total, 0) / N
        total = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
        for i in range(CHUNKS):
            n, row, mask = _rows(i, channel, inside, N, C, BLOCK_N)
            d = tl.load(tables + row, mask, 0.) - about[None]
            v = tl.load(tables + size + row, mask, 0.) + d * d
            total += tl.where(mask, v, 0.)
        var = tl.sum(total, 0) / N
    inverted = 1 / tl.sqrt(var + EPS)
    a = inverted
    if HAS_WEIGHT:
        a *= tl.load(weight + channel, inside, 0.).to(tl.float32)
    b = -about * a
    if HAS_BIAS:
        b += tl.load(bias + channel, inside, 0.).to(tl.float32)
    tl.store(rows + channel, a, inside)
    tl.store(rows + C + channel, b, inside)
    tl.store(rows + 2 * C + channel, about, inside)
    tl.store(rows + 3 * C + channel, var, inside)
    tl.store(rows + 4 * C + channel, inverted, inside)
    for i in range(CHUNKS):
        n, row, mask = _rows(i, channel, inside, N, C, BLOCK_N)
        m = tl.load(tables + row, mask, 0.)
        tl.store(mean_f + row, m * a[None] + b[None], mask)


@triton.jit
def _sum(first, inside, size, PARTS, MOST_PARTS: tl.constexpr):
    """A sum over space, of its parts in tables of a size."""
    total = tl.load(first, inside, 0.)
    for part in range(1, MOST_PARTS):
        total += tl.load(first + part * size, inside & (part < PARTS), 0.)
    return total


@triton.jit
def _rows(i, channel, inside, N, C, BLOCK_N: tl.constexpr):
    """Samples, their channels' places in a table, and which of these exist."""
    n = i * BLOCK_N + tl.arange(0, BLOCK_N)
    return (n, n[:, None] * C + channel[None], (n < N)[:, None] & inside[None])


@triton.jit
def _output_kernel(z, x, scale, shift, step, y, C: tl.constexpr,
                   L, STRIDE_C, STRIDE_L, ROWS, PARTS,
                   BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                   TILES: tl.constexpr):
    n, channel, inside, part = _place(C, PARTS, BLOCK_C)
    dt = tl.load(step + n * C + channel, inside, 0.)
    a = (tl.load(scale + channel, inside, 0.) * dt)[None]
    b = (tl.load(shift + channel, inside, 0.) * dt)[None]
    offset, mask = _tile(n, channel, inside, part, C, L, STRIDE_C,
                         STRIDE_L, BLOCK_L)
    f = tl.load(z + offset, mask, 0.).to(tl.float32) * a + b
    out = f + tl.load(x + offset, mask, 0.).to(tl.float32)
    # Not tl.maximum, which makes 0 of a NaN.
    tl.store(y + offset, tl.where(out <= 0, 0., out), mask)


@triton.jit
def _mask_and_sum_kernel(z, grad, y, mean, masked, parts,
                         C: tl.constexpr, L, STRIDE_C, STRIDE_L, ROWS, PARTS,
                         BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                         TILES: tl.constexpr):
    n, channel, inside, part = _place(C, PARTS, BLOCK_C)
    row = n * C + channel
    centre = tl.load(mean + row, inside, 0.)
    one = tl.zeros([BLOCK_L, BLOCK_C], tl.float32)
    two = tl.zeros([BLOCK_L, BLOCK_C], tl.float32)
    for i in range(TILES):
        offset, mask = _tile(n, channel, inside, part * TILES + i,
                             C, L, STRIDE_C, STRIDE_L, BLOCK_L)
        g = tl.load(grad + offset, mask, 0.)
        g = tl.where(tl.load(y + offset, mask, 0.) <= 0, 0., g)
        tl.store(masked + offset, g, mask)
        g = g.to(tl.float32)
        one += g
        v = tl.load(z + offset, mask, 0.).to(tl.float32) - centre[None]
        two += tl.where(mask, g * v, 0.)
    row += part * ROWS
    tl.store(parts + row, tl.sum(one, 0), inside)
    tl.store(parts + PARTS * ROWS + row, tl.sum(two, 0), inside)


@triton.jit(do_not_specialize=['C', 'ROWS', 'PARTS'])
def _step_gradient_kernel(parts, mean, scale, shift, tables, C, ROWS, PARTS,
                          MOST_PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = row < ROWS
    one = _sum(parts + row, inside, ROWS, PARTS, MOST_PARTS)
    two = _sum(parts + PARTS * ROWS + row, inside, ROWS, PARTS, MOST_PARTS)
    a = tl.load(scale + row % C, inside, 0.)
    m = tl.load(shift + row % C, inside, 0.)
    m += a * tl.load(mean + row, inside, 0.)
    tl.store(tables + row, one, inside)
    tl.store(tables + ROWS + row, two, inside)
    tl.store(tables + 2 * ROWS + row, a * two + m * one, inside)


@triton.jit(do_not_specialize=['N', 'C', 'L'])
def _input_tables_kernel(total, moment, step, d_mean_f, mean, scale,
                         centre, inverse, tables, rows, N, C, L,
                         BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
                         CHUNKS: tl.constexpr, HAS_MEAN: tl.constexpr,
                         BATCH: tl.constexpr):
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = channel < C
    about = tl.load(centre + channel, inside, 0.)
    p_sum = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
    q_sum = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
    for i in range(CHUNKS):
        n, row, mask = _rows(i, channel, inside, N, C, BLOCK_N)
        dt = tl.load(step + row, mask, 0.)
        p = dt * tl.load(total + row, mask, 0.)
        if HAS_MEAN:
            p += tl.load(d_mean_f + row, mask, 0.)
        off = tl.load(mean + row, mask, 0.) - about[None]
        p_sum += p
        q_sum += dt * tl.load(moment + row, mask, 0.) + tl.where(
            mask, off * p, 0.)
    bias = tl.sum(p_sum, 0)
    factor = tl.load(scale + channel, inside, 0.)
    inverted = tl.load(inverse + channel, inside, 0.)
    weight = tl.sum(q_sum, 0) * inverted
    tl.store(rows + channel, weight, inside)
    tl.store(rows + C + channel, bias, inside)
    share = factor / N / L
    slope = share * inverted * weight
    shift = slope * about - share * bias
    for i in range(CHUNKS):
        n, row, mask = _rows(i, channel, inside, N, C, BLOCK_N)
        tl.store(tables + row, tl.load(step + row, mask, 0.) * factor[None],
                 mask)
        added = tl.zeros([BLOCK_N, BLOCK_C], tl.float32)
        if BATCH:
            tl.store(tables + N * C + row, added - slope[None], mask)
            added += shift[None]
        if HAS_MEAN:
            d = tl.load(d_mean_f + row, mask, 0.)
            added += d * (factor / L)[None]
        tl.store(tables + 2 * N * C + row, added, mask)


@triton.jit
def _input_gradients_kernel(z, masked, tables, d, dz, C: tl.constexpr,
                            L, STRIDE_C, STRIDE_L, ROWS, PARTS,
                            BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr,
                            TILES: tl.constexpr,
                            HAS_B: tl.constexpr, HAS_D: tl.constexpr):
    n, channel, inside, part = _place(C, PARTS, BLOCK_C)
    row = n * C + channel
    offset, mask = _tile(n, channel, inside, part, C, L, STRIDE_C,
                         STRIDE_L, BLOCK_L)
    g = tl.load(masked + offset, mask, 0.).to(tl.float32)
    out = (g * tl.load(tables + row, inside, 0.)[None]
           + tl.load(tables + 2 * ROWS + row, inside, 0.)[None])
    if HAS_B:
        value = tl.load(z + offset, mask, 0.).to(tl.float32)
        out += value * tl.load(tables + ROWS + row, inside, 0.)[None]
    tl.store(dz + offset, out, mask)
    if HAS_D:
        d_row = tl.load(d + row, inside, 0.) / L
        tl.store(masked + offset, g + d_row[None], mask)
