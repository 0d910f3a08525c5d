"""Multi-head self-attention over maps, with positional encodings."""
import functools
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.registry import MODELS
from mmengine.utils import to_2tuple
from torch import Tensor, nn

from .encodings import AbsoluteEncoding, LearnedEncoding, QuadraticEncoding

#: With content also 'absolute' and None, which have no scores without it.
ENCODINGS = ('quadratic', 'learned')


@MODELS.register_module()
class RelativeSelfAttention2d(nn.Module):
    """Multi-head self-attention on (N, C, H, W), with positional encodings.

    Of `Cordonnier et al. <https://arxiv.org/abs/1911.03584>`_. The scores
    depend on the shift from query to key alone, or, with ``content``, on the
    map too; with absolute positions on the map and on where the two pixels
    are. docs/self_attention.md has the equations and what the layer costs.

    Args:
        in_channels (int): C.
        num_heads (int): heads. Defaults to 9.
        head_dim (int, optional): width of each head's values, queries and
            keys. Left out, C, and the values are the map itself.
        out_channels (int, optional): defaults to C.
        encoding (str, optional): ``'quadratic'``, a centre and a width for
            each head; ``'learned'``, vectors of row and column shifts;
            ``'absolute'``, a learned vector of each pixel, added to the map
            that queries and keys are of (with ``content`` only); or None.
            Defaults to ``'quadratic'``.
        content (bool): whether the scores depend on the map too. Defaults to
            False.
        max_size (int, optional): for ``'learned'`` and ``'absolute'``, the
            largest side of a map, padding included.
        encoding_dim (int, optional): for ``'learned'``, the width of the
            vectors. Defaults to 64.
        padding (int | tuple[int, int]): pixels put around the map, rows
            first. Defaults to 0.
        padding_mode (str): as in nn.Conv2d. Defaults to ``'zeros'``.
        crop (int | tuple[int, int]): pixels at each edge of the padded map
            that are keys, but no queries. Defaults to 0.
        bias (bool): whether the output has a bias. Defaults to True.

    Raises:
        ValueError: on a wrong argument, or with neither encoding nor
            content, which would be a mean.
    """
    positions: Any  # a relative encoding, or None
    absolute: Any  # AbsoluteEncoding, or None
    # With content only.
    query: nn.Conv2d
    key: nn.Conv2d
    key_bias: nn.Parameter  # u, without absolute positions
    position_key: nn.Parameter  # with a relative encoding

    def __init__(self, in_channels: int, num_heads: int = 9,
                 head_dim: int | None = None, out_channels: int | None = None,
                 encoding: str | None = 'quadratic', content: bool = False,
                 max_size: int | None = None, encoding_dim: int | None = None,
                 padding=0, padding_mode: str = 'zeros', crop=0,
                 bias: bool = True):
        super().__init__()
        out_channels = in_channels if out_channels is None else out_channels
        width = in_channels if head_dim is None else head_dim
        known = (*ENCODINGS, 'absolute', None) if content else ENCODINGS
        if encoding not in known:
            raise ValueError(
                'RelativeSelfAttention2d: encoding: expected one of '
                f'{known} with content={content!r}, got {encoding!r}')
        self.num_heads, self.head_dim = num_heads, width
        self.padding, self.crop = map(tuple, map(to_2tuple, (padding, crop)))
        # As torch.nn.functional.pad has it.
        self.padding_mode = padding_mode.replace('zeros', 'constant')
        self.max_size = max_size
        self._add_encoding(encoding, in_channels, max_size, encoding_dim)
        width *= num_heads
        self.value = None if head_dim is None else nn.Conv2d(
            in_channels, width, 1, bias=False)
        self.output = nn.Conv2d(width, out_channels, 1, bias=bias)
        self.content = content
        if content:
            self._add_content(in_channels)

    def _add_encoding(self, encoding, in_channels, max_size, dim) -> None:
        self.positions = self.absolute = None
        if encoding == 'quadratic':
            self.positions = QuadraticEncoding(self.num_heads)
        elif encoding == 'learned':
            self.positions = LearnedEncoding(
                self.num_heads, max_size, 64 if dim is None else dim)
        elif encoding == 'absolute':
            self.absolute = AbsoluteEncoding(in_channels, max_size)

    def _add_content(self, in_channels: int) -> None:
        width = self.num_heads * self.head_dim
        self.query = nn.Conv2d(in_channels, width, 1, bias=False)
        self.key = nn.Conv2d(in_channels, width, 1, bias=False)
        if self.absolute is None:
            self.key_bias = nn.Parameter(
                torch.zeros(self.num_heads, self.head_dim))
        if self.positions is not None:
            self.position_key = nn.Parameter(torch.randn(
                self.num_heads, self.head_dim, self.positions.dim) * .02)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', H + 2·padding - 2·crop, ...).

        Raises:
            ValueError: if the map is larger than ``max_size``, or too small
                for the crop.
        """
        x = self._pad(x)
        mix = self._mix_by_content if self.content else self._mix_by_encoding
        return self.output(mix(x).flatten(1, 2))

    @torch.no_grad()
    def attention(self, x: Tensor, query: tuple) -> Tensor:
        """Where the heads look from one pixel.

        Args:
            x (Tensor): (N, C, H, W).
            query (tuple[int, int]): row and column of the output.

        Returns:
            Tensor: (N, heads, H, W), padding included, each head's sum 1.

        Raises:
            IndexError: if the output has no such pixel.
        """
        x = self._placed(self._pad(x))
        at = [queries[i] for i, queries in zip(query, self._queries(x))]
        row, column = [range(place, place + 1) for place in at]
        return self._attention(x, self._keys(x), row, column)[:, :, 0, 0]

    @torch.no_grad()
    def attention_by_row(self, x: Tensor, stride: int = 1):
        """Where the heads look from every pixel, a row of them at a time.

        Args:
            x (Tensor): (N, C, H, W).
            stride (int): every ``stride``-th row and column of the output
                are queries. Defaults to 1.

        Yields:
            Tensor: of each row of queries, (N, heads, queries, H, W), padding
            included.
        """
        x = self._placed(self._pad(x))
        keys = self._keys(x)
        rows, columns = [queries[::stride] for queries in self._queries(x)]
        for row in rows:
            of_row = self._attention(x, keys, range(row, row + 1), columns)
            yield of_row[:, :, 0]

    def _placed(self, x: Tensor) -> Tensor:
        """What queries and keys are of: a padded map, X + P or X."""
        return x if self.absolute is None else self.absolute(x)

    def _keys(self, x):
        """(N, heads, d, H, W) of a placed map; None without content."""
        return self._heads(self.key(x)) if self.content else None

    def _attention(self, x, keys, rows: range, columns: range) -> Tensor:
        """Of these query pixels, (N, heads, rows, columns, H, W)."""
        query, scores = None, []
        if self.content:
            query = self._query(x, rows, columns)
            scores.append(torch.einsum(
                'nhqpd,nhdkl->nhqpkl', self._biased(query), keys))
        if self.positions is not None:
            c = self._coefficients(query)
            along = [self._axis_scores(c, axis, at, x.shape[2 + axis])
                     for axis, at in enumerate((rows, columns))]
            scores += [along[0][..., None], along[1][..., None, :]]
        total = functools.reduce(torch.add, scores)
        attention = total.flatten(4).softmax(-1).unflatten(-1, x.shape[2:])
        return attention.expand(len(x), *[-1] * 5)

    def _mix_by_encoding(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        c = self._coefficients(None)
        rows, columns = [
            self._axis_scores(c, axis, at, x.shape[2 + axis])[0].softmax(
                -1).to(x.dtype) for axis, at in enumerate(self._queries(x))]
        mixed = torch.einsum(
            'hpl,nhdkl->nhdkp', columns[:, 0], self._values(x))
        return torch.einsum('hqk,nhdkp->nhdqp', rows[:, :, 0], mixed)

    def _mix_by_content(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        at, placed = self._queries(x), self._placed(x)
        query = self._query(placed, *at)
        queries, keys = self._with_encodings(placed, query, at)
        values = _tokens(self._values(x)).to(query.dtype)
        values = values.expand(-1, self.num_heads, -1, -1)
        # One width for all and a multiple of 8, and dense: what torch's
        # kernels without a T x T tensor want.
        # Of a negative number the exporter of ONNX takes no floor.
        width = (max(keys.size(-1), values.size(-1)) + 7) // 8 * 8
        q, k, v = [F.pad(t, (0, width - t.size(-1))).contiguous()
                   for t in (queries, keys, values)]
        mixed = F.scaled_dot_product_attention(q, k, v, scale=1.)
        mixed = mixed[..., :self.head_dim].transpose(2, 3)
        return mixed.unflatten(-1, tuple(map(len, at))).to(x.dtype)

    def _with_encodings(self, x: Tensor, query: Tensor, at: list) -> tuple:
        """Queries and keys, (N, heads, T', ...) and (N, heads, T, ...).

        The encodings are H + W further dimensions of both.
        """
        queries, keys = [self._biased(query)], [_tokens(self._keys(x))]
        if self.positions is not None:
            c = self._coefficients(query)
            queries += [self._axis_scores(c, axis, own, x.shape[2 + axis])
                        for axis, own in enumerate(at)]
            keys += [t.expand(*keys[0].shape[:2], -1, -1)
                     for t in _one_hot_axes(x)]
        return (torch.cat([t.to(query.dtype) for t in queries],
                          -1).flatten(2, 3),
                torch.cat([t.to(query.dtype) for t in keys], -1))

    def _query(self, x: Tensor, rows: range, columns: range) -> Tensor:
        """X W_q / √d: (N, C, H, W) -> (N, heads, H', W', d)."""
        x = x[:, :, rows.start:rows.stop:rows.step,
              columns.start:columns.stop:columns.step]
        query = self._heads(self.query(x)) * self.head_dim**-.5
        return query.permute(0, 1, 3, 4, 2)

    def _biased(self, query: Tensor) -> Tensor:
        """Queries plus u / √d, what meets the keys.

        u stands for a query's absolute position, so with that there is none.
        """
        if self.absolute is not None:
            return query
        bias = self.key_bias[:, None, None] * self.head_dim**-.5
        return query + bias.to(query.dtype)

    def _coefficients(self, query) -> Tensor:
        """c, with content c + Ŵ_kᵀ q: (N or 1, heads, H' or 1, W' or 1, D)."""
        c = self.positions.coefficients()[None, :, None, None]
        if query is None:
            return c
        return c + torch.einsum(
            'nhqpe,hed->nhqpd', query, self.position_key.to(query.dtype))

    def _axis_scores(self, c, axis: int, queries: range, size: int) -> Tensor:
        """c · r along one axis, (N or 1, heads, H' or 1, W' or 1, keys).

        Less their maximum, which a softmax does not see, so that half
        precision has its digits where the weight is; nor does it see what
        the clamp does.
        """
        own = torch.arange(
            queries.start, queries.stop, queries.step, device=c.device)
        shifts = torch.arange(size, device=c.device) - own[:, None]
        # ONNX takes a size from where it stands first, and that of c may be 1.
        which = 'qkd,nhqpd->nhqpk' if axis == 0 else 'pkd,nhqpd->nhqpk'
        with torch.autocast(c.device.type, enabled=False):
            scores = torch.einsum(
                which, self.positions(shifts, axis).to(c.dtype), c)
        largest = scores.detach().amax(-1, keepdim=True)
        return (scores - largest).clamp_min(-1e4)

    def _values(self, x: Tensor) -> Tensor:
        """(N, heads, d, H, W), or (N, 1, C, H, W) where it is the map."""
        return x[:, None] if self.value is None else self._heads(self.value(x))

    def _heads(self, x: Tensor) -> Tensor:
        """(N, heads · d, H, W) -> (N, heads, d, H, W)."""
        return x.unflatten(1, (self.num_heads, self.head_dim))

    def _pad(self, x: Tensor) -> Tensor:
        if any(self.padding):
            rows, columns = self.padding
            x = F.pad(x, (columns, columns, rows, rows), self.padding_mode)
        if self.max_size is not None and max(x.shape[2:]) > self.max_size:
            raise ValueError(
                'RelativeSelfAttention2d: expected a map with sides of at '
                f'most max_size={self.max_size} px, padding included, got '
                f'{tuple(x.shape[2:])}; raise max_size, or downsample before')
        return x

    def _queries(self, x: Tensor) -> list:
        """Rows and columns of the padded map that are queries."""
        found = [range(margin, size - margin)
                 for size, margin in zip(x.shape[2:], self.crop)]
        if not all(map(len, found)):
            raise ValueError(
                'RelativeSelfAttention2d: expected a map, padding included, '
                f'of more than twice the crop of {self.crop} px, got '
                f'{tuple(x.shape[2:])}; set a smaller crop')
        return found


def _tokens(x: Tensor) -> Tensor:
    """(N, heads, d, H, W) -> (N, heads, T, d)."""
    return x.flatten(3).transpose(2, 3)


def _one_hot_axes(x: Tensor):
    """Which row and which column each pixel is in: (T, H) and (T, W)."""
    height, width = x.shape[2:]
    rows = torch.eye(height, device=x.device).repeat_interleave(width, 0)
    return rows, torch.eye(width, device=x.device).repeat(height, 1)
