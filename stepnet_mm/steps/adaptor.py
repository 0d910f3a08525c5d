"""StepNet's adaptor (Fig. 4b, Eq. 12, Appendix F), and a to d of Table 4.

These four are ours, for Fig. 5 was not available: docs/deviations.md.
"""
import math

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .initial_step import InitialStep
from .layers import InstanceEnhancement, apply_norm, build_norm
from .pooling import global_max, global_mean

INPUTS = ('both', 'current', 'next', 'difference')


@MODELS.register_module()
class StepAdaptor(InitialStep):
    r"""Step size from both adjacent states, Eq. 12.

    .. math:: x_t + f \otimes \tilde F(x_t + f, x_t)

    Paper: <https://arxiv.org/abs/2308.09939>.
    GAP of x_t and of the coarse x_{t+1} = x_t + f, a 1x1 group convolution
    with C groups, BatchNorm, IE (w ⊗ z + b) and a sigmoid (Fig. 4b,
    Appendix F); 6C parameters, 5C for one input. Pooling is linear,
    GAP(x_t + f) = GAP(x_t) + GAP(f), so x_{t+1} is never built.

    The gate is ``max_step * sigmoid(IE)`` with b such that it starts at
    ``init_step``, and ``max_step = max(1, 2 * init_step)`` (a buffer, so a
    checkpoint keeps it; docs/deviations.md says why).

    Args:
        channels (int): C.
        inputs (str): the adaptor's inputs (Table 4): ``'both'``,
            ``'current'`` (x_t), ``'next'`` (x_{t+1}) or ``'difference'``
            (f). Defaults to ``'both'``.
        init_step (float, optional): the step size at the start, in (0, 1].
            Defaults to the published σ(-1) = 0.2689 from scratch, and to 1
            where a checkpoint without steps sets the block's weights, so that
            the block is the pretrained one.
        norm_cfg (dict, optional): norm layer. Defaults to BatchNorm.
        in_channels (int, optional): the argument of ``plugins``; an error,
            for a plugin does not see x_t.

    Raises:
        ValueError: on an unknown ``inputs``, an ``init_step`` outside (0, 1],
            an unknown norm layer, or when used as a plugin.

    Examples:
        >>> x, f = torch.rand(2, 2, 64, 7, 7)
        >>> StepAdaptor(64).step_size(x, f).shape
        torch.Size([2, 64, 1, 1])
    """
    pools_only = True
    max_step: Tensor
    conv_weight: Tensor  # a buffer in SumStepAdaptor

    def __init__(self, channels: int | None = None, inputs: str = 'both',
                 init_step: float | None = None, norm_cfg: dict | None = None,
                 in_channels: int | None = None):
        super().__init__(init_step)
        if channels is None or in_channels is not None:
            raise ValueError(
                'backbone.plugins: expected modules that look at f alone, got '
                'StepAdaptor, which looks at x_t too; set backbone.step, as '
                "in backbone=dict(type='StepResNet', step='StepAdaptor')")
        if inputs not in INPUTS:
            raise ValueError(
                f'backbone.step.inputs: expected one of {INPUTS}, got '
                f'{inputs!r}; choose one of these')
        if init_step is not None and not 0 < init_step <= 1:
            raise ValueError(
                'backbone.step.init_step: expected a number in (0, 1], got '
                f'{init_step!r}; leave it out for the published start')
        self.channels = channels
        self.inputs = inputs
        self.needs_identity = inputs != 'difference'
        self.register_buffer('max_step', torch.tensor(1.))
        # A bare parameter: the group convolution in elementwise arithmetic
        # costs a fraction of a Conv2d call on (N, 2C, 1, 1).
        columns = 2 if inputs == 'both' else 1
        self.conv_weight = nn.Parameter(torch.empty(channels, columns))
        self.norm = build_norm('backbone.step.norm_cfg', norm_cfg
                               or dict(type='BN'), channels)
        self.ie = InstanceEnhancement(channels)
        self.init_weights()

    def init_weights(self) -> None:
        """The published starts: w = 0 and b for ``init_step``."""
        super().init_weights()
        # nn.Conv2d's own start for a fan-in of `columns`.
        bound = self.conv_weight.size(1)**-0.5
        nn.init.uniform_(self.conv_weight, -bound, bound)

    def set_start(self) -> None:
        """w = 0 and b for ``init_step``."""
        share = self.init_step / max(1., 2. * self.init_step)
        nn.init.zeros_(self.ie.weight)
        nn.init.constant_(self.ie.bias, math.log(share / (1 - share)))
        self.max_step.fill_(self._max_step_size())

    def _max_step_size(self) -> float:
        return max(1., 2. * self.init_step)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, max_step)."""
        z = self._mix(self._pool(identity, residual))
        return self._gate(self.ie(apply_norm(self.norm, z)))

    def _pool(self, identity: Tensor, residual: Tensor) -> list[Tensor]:
        """GAP of each input: 2 x (N, C, H, W) -> 1 or 2 x (N, C, 1, 1)."""
        if self.inputs == 'current':
            return [global_mean(identity)]
        change = global_mean(residual)
        if self.inputs == 'difference':
            return [change]
        current = global_mean(identity)
        following = current + change
        return [following] if self.inputs == 'next' else [current, following]

    def _mix(self, pooled: list[Tensor]) -> Tensor:
        """The group convolution: 1 or 2 x (N, C, 1, 1) -> (N, C, 1, 1)."""
        row = self.conv_weight.view(-1, 1, len(pooled))
        return (torch.cat(pooled, 3) * row).sum(3, keepdim=True)

    def _gate(self, logits: Tensor) -> Tensor:
        """(N, C, 1, 1) -> (N, C, 1, 1), in (0, max_step)."""
        return self.max_step * logits.sigmoid()


@MODELS.register_module()
class MaxPoolStepAdaptor(StepAdaptor):
    """Adaptor a: global max pooling instead of average pooling; 6C.

    Max pooling is not linear, so the coarse x_{t+1} is built. Arguments as in
    :class:`StepAdaptor`.

    Examples:
        >>> x, f = torch.rand(2, 2, 64, 7, 7)
        >>> MaxPoolStepAdaptor(64).step_size(x, f).shape
        torch.Size([2, 64, 1, 1])
    """

    def _pool(self, identity: Tensor, residual: Tensor) -> list[Tensor]:
        if self.inputs == 'difference':
            return [global_max(residual)]
        if self.inputs == 'current':
            return [global_max(identity)]
        following = global_max(identity + residual)
        if self.inputs == 'next':
            return [following]
        return [global_max(identity), following]


@MODELS.register_module()
class SumStepAdaptor(StepAdaptor):
    """Adaptor b: the pooled states are added, without a convolution; 4C.

    Arguments as in :class:`StepAdaptor`.

    Examples:
        >>> x, f = torch.rand(2, 2, 64, 7, 7)
        >>> SumStepAdaptor(64).step_size(x, f).shape
        torch.Size([2, 64, 1, 1])
    """
    pools_only = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        ones = torch.ones_like(self.conv_weight.data)
        del self.conv_weight
        self.register_buffer('conv_weight', ones, persistent=False)

    def init_weights(self) -> None:
        """As StepAdaptor's, with weights of 1 in the sum."""
        super().init_weights()
        nn.init.ones_(self.conv_weight)


@MODELS.register_module()
class UnnormalizedStepAdaptor(StepAdaptor):
    """Adaptor c: IE without the BatchNorm before it; 4C.

    Arguments as in :class:`StepAdaptor`, without ``norm_cfg``.

    Examples:
        >>> x, f = torch.rand(2, 2, 64, 7, 7)
        >>> UnnormalizedStepAdaptor(64).step_size(x, f).shape
        torch.Size([2, 64, 1, 1])
    """
    pools_only = True

    def __init__(self, channels: int | None = None, inputs: str = 'both',
                 init_step: float | None = None,
                 in_channels: int | None = None):
        super().__init__(channels, inputs, init_step, in_channels=in_channels)
        self.norm = nn.Identity()


@MODELS.register_module()
class SoftmaxStepAdaptor(StepAdaptor):
    """Adaptor d: a softmax over the channels instead of the sigmoid; 6C.

    Δt = C · ``init_step`` · softmax(IE): the channels share a fixed sum, so
    their mean stays at ``init_step``. That of one channel is bounded by
    C · ``init_step``, from scratch C · 0.27, not by 1. Arguments as in
    :class:`StepAdaptor`.

    Examples:
        >>> x, f = torch.rand(2, 2, 64, 7, 7)
        >>> SoftmaxStepAdaptor(64).step_size(x, f).shape
        torch.Size([2, 64, 1, 1])
    """
    pools_only = True

    def _max_step_size(self) -> float:
        return self.channels * self.init_step

    def _gate(self, logits: Tensor) -> Tensor:
        return self.max_step * logits.softmax(1)
