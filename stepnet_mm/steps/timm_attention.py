"""timm's gates as step-size modules."""
import functools
import operator

from mmengine.registry import MODELS
from torch import Tensor

from .base import StepSize, reset_parameters

#: timm's names -> the layers of its modules whose outputs are the gates. All
#: but lcbam's first, which gives logits, end in their non-linearity.
GATES = {
    **dict.fromkeys(('se', 'ese', 'eca', 'ecam', 'ceca', 'gc', 'coord',
                     'scoord', 'ela', 'strip'), ('gate', )),
    'cbam': ('channel.gate', 'spatial.gate'),
    'lcbam': ('channel.fc2', 'spatial.gate'),
}
#: Arguments of theirs that add something to f ⊗ Δt.
ADDING = {'fuse_add', 'fuse_scale', 'has_skip'}


@MODELS.register_module()
class TimmAttention(StepSize):
    r"""Any gate that ``timm.layers.create_attn`` makes.

    .. math:: f \otimes \Delta t, \quad \Delta t = \prod_i g_i(f)

    The output is that of timm's module, bit for bit. f is its input and Δt
    the product of its gates g_i: one per channel (se, ese, eca, ecam, ceca,
    gc), one per channel and one per pixel (cbam, lcbam), one per channel and
    row or column (coord, ela), or one value for each element of the map
    (scoord, strip). NSI is that of f, as for every step.

    Args:
        in_channels (int): C.
        name (str): timm's name of it.
        **kwargs: timm's arguments, such as ``rd_ratio``.

    Raises:
        ImportError: if timm is not installed.
        ValueError: if ``name`` is no gate, or an argument makes it none.

    Examples:
        >>> step = build_step(dict(type='TimmAttention', name='gc'), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    needs_space = True

    def __init__(self, in_channels: int, name: str | None = None, **kwargs):
        super().__init__()
        if name not in GATES or ADDING & {*kwargs}:
            raise ValueError(
                f'backbone.step.name: expected one of {sorted(GATES)} '
                f'without {sorted(ADDING)}, got {name!r} with {kwargs}; '
                'choose one of these: no other module of '
                'timm.layers.create_attn is a gate alone')
        self.name = name
        from timm.layers import create_attn  # optional, and takes seconds
        self.attention = create_attn(name, in_channels, **kwargs)

    def init_weights(self) -> None:
        """timm's starts, a module after its parts."""
        self.loaded = False
        reset_parameters(reversed([*self.attention.modules()]))

    def forward(self, *states: Tensor,  # type: ignore[override]
                ) -> Tensor:
        """(x_t, f) or (f, ), each (N, C, H, W) -> f ⊗ Δt."""
        residual = states[-1]
        if not self.delta._forward_hooks:
            return self.attention(residual).to(residual.dtype)
        scaled, step_size = self._run(residual)
        given = self.delta(step_size)
        if given is not step_size:  # a hook has put another one in its place
            scaled = residual * given
        return scaled.to(residual.dtype)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt, broadcastable to (N, C, H, W)."""
        return self._run(residual)[1]

    def _run(self, residual: Tensor) -> tuple[Tensor, Tensor]:
        """f ⊗ Δt and Δt."""
        gates: list[Tensor] = []
        handles = [
            self.attention.get_submodule(layer).register_forward_hook(
                lambda module, args, output: gates.append(output))
            for layer in GATES[self.name]]
        try:
            scaled = self.attention(residual)
        finally:
            for handle in handles:
                handle.remove()
        if self.name == 'lcbam':
            gates[0] = gates[0].sigmoid()
        return scaled, functools.reduce(operator.mul, map(_as_map, gates))


def _as_map(gate: Tensor) -> Tensor:
    """ECA's gates are (N, 1, C)."""
    return gate if gate.dim() == 4 else gate.flatten(1)[:, :, None, None]
