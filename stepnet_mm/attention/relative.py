"""Multi-head self-attention over maps, with relative positions."""
import torch
import torch.nn.functional as F
from mmengine.registry import MODELS
from torch import Tensor, nn

from .encodings import build_encoding

#: nn.Conv2d's padding modes -> those of torch.nn.functional.pad.
PADDING_MODES = dict(zeros='constant', reflect='reflect',
                     replicate='replicate', circular='circular')


@MODELS.register_module()
class RelativeSelfAttention2d(nn.Module):
    r"""Multi-head self-attention on (N, C, H, W).

    With absolute positions P a score has four terms (Cordonnier et al. 2020),

    .. math:: A_{q,k} = X_q W_q W_k^T X_k^T + X_q W_q W_k^T P_k^T
        + P_q W_q W_k^T X_k^T + P_q W_q W_k^T P_k^T,

    and in its relative form, with the shift :math:`\delta = k - q`,

    .. math:: A_{q,k} = X_q W_q W_k^T X_k^T
        + X_q W_q \hat W_k r_\delta + u^T W_k X_k^T + v^T \hat W_k r_\delta

    for each head; the terms with X are divided by :math:`\sqrt{d}`, and the
    head's vector c is :math:`\hat W_k^T v`. By position alone
    (``content=False``) the last term is left, which depends on the shift
    alone; a layer with enough such heads expresses any convolution
    (:func:`~.convolution.conv_to_attention`).

    Cost, for n heads of width d on T = H·W pixels: by position alone the
    softmax is one over rows times one over columns, n·d·T·(H + W)
    multiplications and n·d·T values, no T x T tensor. With content the
    positions are written as H + W further dimensions of queries and keys, so
    that ``scaled_dot_product_attention`` can run without a T x T tensor too,
    where torch has such a kernel; 2·n·T²·(d + H + W) multiplications.

    Args:
        in_channels (int): C.
        num_heads (int): heads. Defaults to 9.
        head_dim (int, optional): width of each head's values, queries and
            keys, free of C. Defaults to C, the full width; the values are the
            map itself then, for what would project them is absorbed by the
            output's projection.
        out_channels (int, optional): defaults to C.
        encoding (str, optional): ``'quadratic'``, a centre and a width a head
            (:class:`~.encodings.QuadraticEncoding`); ``'learned'``, vectors
            of row and column shifts (:class:`~.encodings.LearnedEncoding`);
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
                 head_dim: int | None = None,
                 out_channels: int | None = None,
                 encoding: str = 'quadratic',
                 content: bool = False,
                 max_size: int | None = None,
                 encoding_dim: int | None = None,
                 padding=0,
                 padding_mode: str = 'zeros',
                 crop=0,
                 bias: bool = True):
        super().__init__()
        out_channels = in_channels if out_channels is None else out_channels
        width = in_channels if head_dim is None else head_dim
        check_counts('RelativeSelfAttention2d: ', in_channels=in_channels,
                     num_heads=num_heads, head_dim=width,
                     out_channels=out_channels)
        _check_choices(encoding, content, padding_mode)
        self.num_heads, self.head_dim = num_heads, width
        self.padding, self.padding_mode = (
            _two_counts('padding', padding), padding_mode)
        self.crop = _two_counts('crop', crop)
        self.positions = build_encoding(
            encoding, num_heads, max_size, encoding_dim)
        width *= num_heads
        self.value = None if head_dim is None else nn.Conv2d(
            in_channels, width, 1, bias=False)
        self.output = nn.Conv2d(width, out_channels, 1, bias=bias)
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
        sizes = [len(queries) for queries in self._queries(x)]
        if len(query) != 2 or not all(
                0 <= i < size for i, size in zip(query, sizes)):
            raise ValueError(f'query: got {query}, expected row and column '
                             f'of a pixel in an output of {tuple(sizes)}')
        at = [range(i + margin, i + margin + 1)
              for i, margin in zip(query, self.crop)]
        return self._attention(x, self._keys(x), *at)[:, :, 0, 0]

    @torch.no_grad()
    def attention_by_row(self, x: Tensor, stride: int = 1):
        """Where the heads look from every pixel, a row of them at a time.

        Args:
            x (Tensor): (N, C, H, W).
            stride (int): only every so manieth row and column of the output
                is a query. Defaults to 1.

        Yields:
            Tensor: of each row of queries, (N, heads, queries, H, W), padding
            included.
        """
        x = self._pad(x)
        keys = self._keys(x)
        rows, columns = [queries[::stride] for queries in self._queries(x)]
        for row in rows:
            of_row = self._attention(x, keys, range(row, row + 1), columns)
            yield of_row[:, :, 0]

    @torch.no_grad()
    def attention_by_axis(self, x: Tensor) -> tuple:
        """By position alone the attention is that of rows times of columns.

        Args:
            x (Tensor): (N, C, H, W); its size counts alone.

        Returns:
            tuple[Tensor, Tensor]: (heads, H', H) and (heads, W', W), padding
            included.

        Raises:
            ValueError: if the scores depend on the content.
        """
        if self.content:
            raise ValueError('attention_by_axis: got a layer with content='
                             'True, expected one by position alone')
        return self._axis_softmax(self._pad(x))

    def extra_repr(self) -> str:
        return (f'num_heads={self.num_heads}, head_dim={self.head_dim}, '
                f'content={self.content}, padding={self.padding}, '
                f'padding_mode={self.padding_mode!r}, crop={self.crop}')

    def _keys(self, x):
        """(N, heads, d, H, W) of a padded map; None by position alone."""
        return self._heads(self.key(x)) if self.content else None

    def _attention(self, x, keys, rows: range, columns: range) -> Tensor:
        """Of these query pixels, (N, heads, rows, columns, H, W)."""
        query, scores = None, 0
        if self.content:
            query = self._query(x, rows, columns)
            scores = torch.einsum(
                'nhqpd,nhdkl->nhqpkl', self._biased(query), keys)
        if self.positions is not None:
            c = self._coefficients(query)
            along = [self._axis_scores(c, axis, at, x.shape[2 + axis])
                     for axis, at in enumerate((rows, columns))]
            scores = scores + along[0][..., None] + along[1][..., None, :]
        attention = scores.flatten(4).softmax(-1).unflatten(-1, x.shape[2:])
        return attention.expand(len(x), *[-1] * 5)

    def _mix_by_position(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        rows, columns = [t.to(x.dtype) for t in self._axis_softmax(x)]
        mixed = torch.einsum('hpl,nhdkl->nhdkp', columns, self._values(x))
        return torch.einsum('hqk,nhdkp->nhdqp', rows, mixed)

    def _axis_softmax(self, x: Tensor) -> tuple:
        """By position, of a padded map: (heads, H', H), (heads, W', W)."""
        c = self._coefficients(None)
        rows, columns = [
            self._axis_scores(c, axis, at, x.shape[2 + axis])[0].softmax(-1)
            for axis, at in enumerate(self._queries(x))]
        return rows[:, :, 0], columns[:, 0]

    def _mix_by_content(self, x: Tensor) -> Tensor:
        """Padded map -> each head's, (N, heads, d, H', W')."""
        at = self._queries(x)
        query = self._query(x, *at)
        queries, keys = [self._biased(query)], [_tokens(self._keys(x))]
        if self.positions is not None:
            c = self._coefficients(query)
            queries += [self._axis_scores(c, axis, own, x.shape[2 + axis])
                        for axis, own in enumerate(at)]
            keys += [t.expand(*keys[0].shape[:2], -1, -1)
                     for t in _one_hot_positions(x)]
        queries = torch.cat(
            [t.to(query.dtype) for t in queries], -1).flatten(2, 3)
        keys = torch.cat([t.to(query.dtype) for t in keys], -1)
        values = _tokens(self._values(x)).to(query.dtype)
        values = values.expand(-1, self.num_heads, -1, -1)
        # One width for all and a multiple of 8, and dense: what torch's
        # kernels without a T x T tensor want.
        width = -(-max(keys.size(-1), values.size(-1)) // 8) * 8
        mixed = F.scaled_dot_product_attention(
            *[F.pad(t, (0, width - t.size(-1))).contiguous()
              for t in (queries, keys, values)], scale=1.)
        mixed = mixed[..., :self.head_dim].transpose(2, 3)
        return mixed.unflatten(-1, tuple(map(len, at))).to(x.dtype)

    def _query(self, x: Tensor, rows: range, columns: range) -> Tensor:
        """X W_q / √d: (N, C, H, W) -> (N, heads, H', W', d)."""
        x = x[:, :, rows.start:rows.stop:rows.step,
              columns.start:columns.stop:columns.step]
        query = self._heads(self.query(x)) * self.head_dim**-.5
        return query.permute(0, 1, 3, 4, 2)

    def _biased(self, query: Tensor) -> Tensor:
        """Queries plus u / √d, what meets the keys."""
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
        which = 'nhqpd,qkd->nhqpk' if axis == 0 else 'nhqpd,pkd->nhqpk'
        with torch.autocast(c.device.type, enabled=False):
            scores = torch.einsum(
                which, c, self.positions(shifts, axis).to(c.dtype))
        largest = scores.detach().amax(-1, keepdim=True)
        return (scores - largest).clamp_min(-1e4)

    def _values(self, x: Tensor) -> Tensor:
        """(N, heads, d, H, W), or (N, 1, C, H, W) where it is the map."""
        return x[:, None] if self.value is None else self._heads(self.value(x))

    def _heads(self, x: Tensor) -> Tensor:
        """(N, heads · d, H, W) -> (N, heads, d, H, W)."""
        return x.unflatten(1, (self.num_heads, self.head_dim))

    def _pad(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise ValueError('RelativeSelfAttention2d: got a tensor of '
                             f'{tuple(x.shape)}, expected (N, C, H, W)')
        if any(self.padding):
            rows, columns = self.padding
            x = F.pad(x, (columns, columns, rows, rows),
                      PADDING_MODES[self.padding_mode])
        limit = None if self.positions is None else self.positions.max_size
        if limit is not None and max(x.shape[2:]) > limit:
            raise ValueError(
                f'RelativeSelfAttention2d: got a map of {tuple(x.shape[2:])} '
                f'px, padding included, expected sides of at most max_size='
                f'{limit}: raise max_size, or downsample before')
        return x

    def _queries(self, x: Tensor) -> list:
        """Rows and columns of the padded map that are queries."""
        found = [range(margin, size - margin)
                 for size, margin in zip(x.shape[2:], self.crop)]
        if not all(map(len, found)):
            raise ValueError(
                f'RelativeSelfAttention2d: got a map of {tuple(x.shape[2:])} '
                'px, padding included, expected more than twice the crop of '
                f'{self.crop}')
        return found


def _tokens(x: Tensor) -> Tensor:
    """(N, heads, d, H, W) -> (N, heads, T, d)."""
    return x.flatten(3).transpose(2, 3)


def _one_hot_positions(x: Tensor):
    """Which row and which column each pixel is in: (T, H) and (T, W)."""
    height, width = x.shape[2:]
    rows = torch.eye(height, device=x.device).repeat_interleave(width, 0)
    return rows, torch.eye(width, device=x.device).repeat(height, 1)


def check_counts(owner: str, **counts) -> None:
    """Raise ValueError, which names owner and key, for what counts nothing."""
    for key, value in counts.items():
        if type(value) is not int or value < 1:
            raise ValueError(f'{owner}{key}: got {value!r}, expected a '
                             'positive whole number')


def _check_choices(encoding, content, padding_mode) -> None:
    if encoding is None and not content:
        raise ValueError(
            'RelativeSelfAttention2d: got encoding=None and content=False, '
            'which is a mean over the map; expected one of them at least')
    if padding_mode not in PADDING_MODES:
        raise ValueError(
            f'RelativeSelfAttention2d: padding_mode: got {padding_mode!r}, '
            f'expected one of {[*PADDING_MODES]}')


def _two_counts(key: str, value) -> tuple:
    pair = (value, value) if type(value) is int else value
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(
            type(v) is int and v >= 0 for v in pair):
        raise ValueError(
            f'RelativeSelfAttention2d: {key}: got {value!r}, expected pixels, '
            'a whole number from 0 or two of them, rows first')
    return tuple(pair)
