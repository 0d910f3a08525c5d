"""Multi-head self-attention over maps, with relative positions."""
import torch
import torch.nn.functional as F
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.nn.modules.utils import _pair

from .positions import build_encoding


@MODELS.register_module()
class RelativeSelfAttention2d(nn.Module):
    r"""Multi-head self-attention on (N, C, H, W).

    With absolute positions P a score has four terms (Cordonnier et al. 2020),

    .. math:: A_{q,k} = X_q W_q W_k^T X_k^T + X_q W_q W_k^T P_k^T
        + P_q W_q W_k^T X_k^T + P_q W_q W_k^T P_k^T,

    and in its relative form, with the shift :math:`\delta = k - q`,

    .. math:: A_{q,k} = X_q W_q W_k^T X_k^T
        + X_q W_q \hat W_k r_\delta + u^T W_k X_k^T + v^T \hat W_k r_\delta.

    Here q, k, u stand for a head's vectors, the content terms are divided by
    :math:`\sqrt{d}`, and c for :math:`\hat W_k^T v`. By position alone
    (``content=False``) the last term is left, which depends on the shift
    alone; a layer with enough such heads expresses any convolution
    (:func:`~.convolution.conv_to_attention`).

    Cost, for n heads of width d on T = H·W pixels: by position alone the
    softmax is one over rows times one over columns, n·d·T·(H + W)
    multiplications and n·d·T values, no T x T tensor. With content the
    positions are written as H + W further dimensions of queries and keys, so
    that ``scaled_dot_product_attention`` can run without a T x T tensor too;
    n·T²·(d + H + W) multiplications.

    Args:
        in_channels (int): C.
        num_heads (int): heads. Defaults to 9.
        head_dim (int, optional): width of each head's values, queries and
            keys, free of C. Defaults to C, the full width; the values are the
            map itself then, for what would project them is absorbed by the
            output's projection.
        out_channels (int, optional): defaults to C.
        encoding (str, optional): ``'quadratic'``, a centre and a width a head
            (:class:`~.positions.QuadraticEncoding`); ``'learned'``, vectors
            of row and column shifts (:class:`~.positions.LearnedEncoding`);
            or None. Defaults to ``'quadratic'``.
        content (bool): whether the scores depend on the map too. Defaults to
            False.
        max_size (int, optional): for ``'learned'``, the largest side of a
            map, padding included.
        encoding_dim (int, optional): for ``'learned'``, D. Defaults to 64.
        padding (int | tuple[int, int]): pixels put around the map, rows
            first. Defaults to 0.
        padding_mode (str): as in nn.Conv2d. Defaults to ``'zeros'``.
        crop (int | tuple[int, int]): pixels at each side of the padded map
            that are keys, but no queries. Defaults to 0.
        bias (bool): whether the output has a bias. Defaults to True.

    Raises:
        ValueError: on a wrong argument, or with neither positions nor
            content, which would be a mean.
    """

    def __init__(self,
                 in_channels: int,
                 num_heads: int = 9,
                 head_dim: int = None,
                 out_channels: int = None,
                 encoding: str = 'quadratic',
                 content: bool = False,
                 max_size: int = None,
                 encoding_dim: int = None,
                 padding=0,
                 padding_mode: str = 'zeros',
                 crop=0,
                 bias: bool = True):
        super().__init__()
        _check(in_channels, num_heads, head_dim, encoding, content)
        self.num_heads = num_heads
        self.head_dim = head_dim or in_channels
        self.padding, self.padding_mode = _pair(padding), padding_mode
        self.crop = _pair(crop)
        self.positions = build_encoding(
            encoding, num_heads, max_size, encoding_dim)
        width = num_heads * self.head_dim
        self.value = None if head_dim is None else nn.Conv2d(
            in_channels, width, 1, bias=False)
        self.output = nn.Conv2d(width, out_channels or in_channels, 1,
                                bias=bias)
        self.query = self.key = self.key_bias = self.position_key = None
        if content:
            self._add_content(in_channels)

    def _add_content(self, in_channels: int) -> None:
        width = self.num_heads * self.head_dim
        self.query = nn.Conv2d(in_channels, width, 1, bias=False)
        self.key = nn.Conv2d(in_channels, width, 1, bias=False)
        self.key_bias = nn.Parameter(  # u
            torch.zeros(self.num_heads, self.head_dim))
        if self.positions is not None:
            self.position_key = nn.Parameter(torch.randn(
                self.num_heads, self.head_dim, self.positions.dim) * .02)

    @property
    def content(self) -> bool:
        """Whether the scores depend on the map."""
        return self.query is not None

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C', H + 2·padding - 2·crop, ...).

        Raises:
            ValueError: if the map is larger than the learned encoding, or
                too small for the crop.
        """
        x = self._pad(x)
        mix = self._mix_by_content if self.content else self._mix_by_position
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
            ValueError: if the output has no such pixel.
        """
        x = self._pad(x)
        sizes = self._query_sizes(x)
        if len(query) != 2 or not all(
                0 <= i < size for i, size in zip(query, sizes)):
            raise ValueError(f'query: got {query}, expected row and column '
                             f'of a pixel in an output of {tuple(sizes)}')
        at = [torch.tensor([i + margin], device=x.device)
              for i, margin in zip(query, self.crop)]
        scores = self._all_scores(x, *at).flatten(2)
        scores = scores.softmax(-1).unflatten(-1, x.shape[2:])
        return scores.expand(len(x), -1, -1, -1)

    def _all_scores(self, x, row, column) -> Tensor:
        """Of one query pixel: (N or 1, heads, H, W), float32 or wider."""
        query = scores = None
        if self.content:
            pixel = x[:, :, row][..., column]
            query, keys = self._query(pixel), self._heads(self.key(x))
            scores = torch.einsum(
                'nhd,nhdkl->nhkl', (query + self._key_bias)[:, :, 0, 0], keys)
        if self.positions is None:
            return scores
        c = self._coefficients(query)
        rows, columns = [
            self._axis_scores(c, axis, at, x.shape[2 + axis])[:, :, 0, 0]
            for axis, at in enumerate((row, column))]
        position = rows[..., None] + columns[..., None, :]
        return position if scores is None else scores + position

    def _mix_by_position(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        c = self._coefficients(None)
        rows, columns = [
            self._axis_scores(c, axis, at, x.shape[2 + axis])[0]
            .softmax(-1).to(x.dtype)
            for axis, at in enumerate(self._queries(x))]
        mixed = torch.einsum(
            'hpl,nhdkl->nhdkp', columns[:, 0], self._values(x))
        return torch.einsum('hqk,nhdkp->nhdqp', rows[:, :, 0], mixed)

    def _mix_by_content(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        rows, columns = self._queries(x)
        query = self._query(x[:, :, rows][..., columns])
        keys = self._heads(self.key(x)).flatten(3).transpose(2, 3)
        queries = [query + self._key_bias]
        keys = [keys]
        if self.positions is not None:
            c = self._coefficients(query)
            queries += [self._axis_scores(c, axis, at, x.shape[2 + axis])
                        for axis, at in enumerate((rows, columns))]
            keys += [t.expand(*keys[0].shape[:2], -1, -1)
                     for t in _one_hot_positions(x)]
        queries = torch.cat(queries, -1).flatten(2, 3)
        keys = torch.cat([t.to(queries.dtype) for t in keys], -1)
        values = self._values(x).flatten(3).transpose(2, 3).to(queries.dtype)
        values = values.expand(-1, self.num_heads, -1, -1)
        # Dense and of one width, as kernels without a T x T tensor want it.
        short = keys.size(-1) - values.size(-1)
        mixed = F.scaled_dot_product_attention(
            queries, keys, F.pad(values, (0, short)).contiguous(), scale=1.)
        mixed = mixed[..., :values.size(-1)].transpose(2, 3).to(x.dtype)
        return mixed.unflatten(-1, (len(rows), len(columns)))

    def _query(self, x: Tensor) -> Tensor:
        """X W_q / √d: (N, C, H, W) -> (N, heads, H, W, d)."""
        query = self._heads(self.query(x)) * self.head_dim**-.5
        return query.permute(0, 1, 3, 4, 2)

    @property
    def _key_bias(self) -> Tensor:
        """u / √d, (heads, 1, 1, d)."""
        return self.key_bias[:, None, None] * self.head_dim**-.5

    def _coefficients(self, query) -> Tensor:
        """c, with content c + Ŵ_kᵀ q: (N or 1, heads, H' or 1, W' or 1, D)."""
        c = self.positions.coefficients()[None, :, None, None]
        if query is None:
            return c
        return c + torch.einsum('nhqpe,hed->nhqpd', query, self.position_key)

    def _axis_scores(self, c, axis: int, queries, size: int) -> Tensor:
        """c · r along one axis, (N or 1, heads, H' or 1, W' or 1, keys)."""
        shifts = torch.arange(size, device=c.device) - queries[:, None]
        which = 'nhqpd,qkd->nhqpk' if axis == 0 else 'nhqpd,pkd->nhqpk'
        # In half precision large shifts would be rounded.
        with torch.autocast(c.device.type, enabled=False):
            encoding = self.positions(shifts, axis).to(c.dtype)
            return torch.einsum(which, c, encoding)

    def _values(self, x: Tensor) -> Tensor:
        """(N, heads, d, H, W), or (N, 1, C, H, W) where it is the map."""
        return x[:, None] if self.value is None else self._heads(self.value(x))

    def _heads(self, x: Tensor) -> Tensor:
        """(N, heads · d, H, W) -> (N, heads, d, H, W)."""
        return x.unflatten(1, (self.num_heads, self.head_dim))

    def _pad(self, x: Tensor) -> Tensor:
        if any(self.padding):
            rows, columns = self.padding
            mode = 'constant' if self.padding_mode == 'zeros' else (
                self.padding_mode)
            x = F.pad(x, (columns, columns, rows, rows), mode)
        if self.positions is not None:
            self.positions.check(x.shape[2:])
        return x

    def _queries(self, x: Tensor) -> list:
        """Rows and columns of the padded map that are queries."""
        sizes = self._query_sizes(x)
        return [margin + torch.arange(size, device=x.device)
                for margin, size in zip(self.crop, sizes)]

    def _query_sizes(self, x: Tensor) -> list:
        sizes = [size - 2 * margin
                 for size, margin in zip(x.shape[2:], self.crop)]
        if min(sizes) < 1:
            raise ValueError(
                f'RelativeSelfAttention2d: got a map of {tuple(x.shape[2:])} '
                f'px, padding included, expected more than twice the crop of '
                f'{self.crop}')
        return sizes


def _one_hot_positions(x: Tensor):
    """Which row and which column each pixel is in: (T, H) and (T, W)."""
    height, width = x.shape[2:]
    rows = torch.eye(height, device=x.device).repeat_interleave(width, 0)
    return rows, torch.eye(width, device=x.device).repeat(height, 1)


def _check(in_channels, num_heads, head_dim, encoding, content) -> None:
    counts = dict(in_channels=in_channels, num_heads=num_heads)
    if head_dim is not None:
        counts['head_dim'] = head_dim
    for key, value in counts.items():
        if type(value) is not int or value < 1:
            raise ValueError(f'RelativeSelfAttention2d: {key}: got {value!r}, '
                             'expected a positive whole number')
    if encoding is None and not content:
        raise ValueError(
            'RelativeSelfAttention2d: got encoding=None and content=False, '
            'which is a mean over the map; expected one of them at least')
