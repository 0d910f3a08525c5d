"""Instance enhancement BatchNorm."""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .layers import InstanceEnhancement, apply_norm
from .pooling import global_mean


@MODELS.register_module()
class IEBN(nn.Module):
    r"""A norm layer with a gate per sample (Liang et al., AAAI 2020, Eq. 5).

    .. math:: BN_0(x) \otimes (\gamma \otimes \delta) + \beta, \quad
        \delta = \sigma(w \otimes GAP(x) + b)

    Paper: <https://arxiv.org/abs/1908.04008>.
    BN_0 is BatchNorm without γ and β; δ gates γ alone and looks at the
    layer's input. w = 0 and b = -1 at the start. 4C parameters.

    The BatchNorm is a module inside this one, not its base, so ``norm_eval``,
    frozen stages and ``sync_bn='torch'`` work (``sync_bn='mmcv'`` cannot).
    mmengine's ``paramwise_cfg.norm_decay_mult`` does not know γ and β as a
    norm's: name them in ``custom_keys``.

    Args:
        num_features (int): C.
        eps (float): added to the variance. Defaults to 1e-5.
        momentum (float): of the running statistics. Defaults to 0.1.

    Examples:
        >>> norm = MODELS.build(dict(type='IEBN', num_features=64))
        >>> norm(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    _abbr_ = 'bn'  # mmcv then names the layers bn1, bn2, ...

    def __init__(self, num_features: int, eps: float = 1e-5,
                 momentum: float = .1):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features, eps, momentum, affine=False)
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.ie = InstanceEnhancement(num_features)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H, W)."""
        delta = self.ie(global_mean(x)).sigmoid()
        gate = self.weight[:, None, None] * delta
        bias = self.bias[:, None, None]
        return apply_norm(self.bn, x) * gate.to(x.dtype) + bias.to(x.dtype)
