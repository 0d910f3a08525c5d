"""StepSize, the interface of all attention modules, and build_step.

A residual block is x_{t+1} = x_t + f(x_t) * Δt. A step-size module computes Δt
from f (Eq. 7: SE, ECA, ...) or from both states (Eq. 12: StepAdaptor), so all
comparisons run the same code.
"""
import inspect
from collections.abc import Iterable
from typing import Any

from mmengine.registry import MODELS
from torch import Tensor, nn

from .pooling import PooledMap, ScaledMap


class StepSize(nn.Module):
    """Base class of step-size modules.

    A subclass takes the channel count as its first argument and defines
    :meth:`step_size`. For a start other than its layers' default it overrides
    :meth:`init_weights` and calls it in its constructor.

    Attributes:
        needs_identity (bool): whether Δt depends on x_t. Otherwise the module
            may be called with f only.
        default_blocks (str): the backbone's default ``step_blocks``,
            ``'identity'`` or ``'all'``.
        init_step (float | None): the initial step size, if it is the same
            for every input. At 1 the block is a plain one.
        pools_only (bool): a promise that Δt is (N, C, 1, 1) or (1, C, 1, 1),
            that :meth:`step_size` accesses x_t and f only through
            ``global_mean`` and ``global_std`` (FCA: ``global_linear``; it
            does not read shapes either), and that :meth:`forward` is not
            overridden. It may receive a :class:`~.pooling.PooledMap`, which
            has moments but no values. Not inherited, since a subclass may
            read more.
        needs_space (bool): whether it needs height and width, which the
            tokens of a transformer lack.
        loaded (bool): whether a checkpoint has set all parameters (all
            buffers of a module without parameters) since the last
            initialisation.

    Examples:
        >>> class HalfStep(StepSize):
        ...     def step_size(self, identity, residual):
        ...         return residual.new_full((1, 1, 1, 1), .5)
        >>> HalfStep()(torch.ones(1, 64, 7, 7)).unique()
        tensor([0.5000])
    """
    needs_identity = False
    default_blocks = 'all'
    init_step: float | None = None
    pools_only = needs_space = False
    loaded = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.pools_only = vars(cls).get('pools_only', False)

    def __init__(self):
        super().__init__()
        # Δt passes through here: hooks can read or replace it.
        self.delta = nn.Identity()

    def forward(self, *states: Tensor,
                multiply: bool = True) -> Tensor | ScaledMap:
        """Scale a residual by its step size.

        Args:
            *states (Tensor): ``(identity, residual)``, x_t and f of equal
                shape (N, C, H, W); or ``(residual, )`` for a module that does
                not need x_t.
            multiply (bool): False returns a ScaledMap of a map that exists.

        Returns:
            Tensor: f ⊗ Δt, shape and dtype of the residual; for a
            :class:`~.pooling.PooledMap` a :class:`~.pooling.ScaledMap`.

        Raises:
            ValueError: if x_t is needed and not given.
        """
        # x_t is None where Δt does not depend on it.
        pair: Any = states if len(states) == 2 else (None, *states)
        identity, residual = pair
        if identity is None and self.needs_identity:
            raise ValueError(
                f'{type(self).__name__}: expected x_t and f, got f alone; set '
                'it as backbone.step, or call it as step(identity, residual)')
        step_size = self.delta(self.step_size(identity, residual))
        if isinstance(residual, PooledMap) or not multiply:
            values: Any = residual if isinstance(
                residual, Tensor) else getattr(residual, 'values', residual)
            return ScaledMap(values, step_size)
        if step_size.dtype is not residual.dtype:
            step_size = step_size.to(residual.dtype)
        return residual * step_size

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt for x_t and f, 4-D, broadcastable to (N, C, H, W)."""
        raise NotImplementedError

    def init_weights(self) -> None:
        """Initialise the parameters, by default as each layer does."""
        self.loaded = False
        reset_parameters(self.modules())

    def forget_loaded(self) -> None:
        """Discard the effect of checkpoints before a new initialisation."""
        self.loaded = False

    def start_pretrained(self) -> None:
        """Start at 1 if the module can, unless config or checkpoint say so."""

    def describe_start(self) -> str:
        """Initial step size and its reason, for the log."""
        if self.loaded:
            return 'as a checkpoint has them'
        return 'where their own layers start'

    def _load_from_state_dict(self, state_dict: dict, prefix: str,
                              *args) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        own: list[tuple[str, Tensor]] = (
            [*self.named_parameters()] or [*self.named_buffers()])
        self.loaded = self.loaded or all(
            getattr(state_dict.get(prefix + name), 'shape', None) == p.shape
            for name, p in own)


def reset_parameters(modules: Iterable[nn.Module]) -> None:
    """Reset the parameters of layers, each as its class does."""
    for module in modules:
        reset: Any = getattr(module, 'reset_parameters', None)
        if reset is not None:
            reset()


def build_step(cfg: dict | str, channels: int) -> StepSize:
    """Build a step-size module for a block of ``channels`` channels.

    Raises:
        ValueError: if ``cfg``, a config or just its type, names no step-size
            module (the scope's own come first) or has wrong arguments.
    """
    cfg = dict(cfg) if isinstance(cfg, dict) else dict(type=cfg)
    name = cfg.pop('type', None)
    cls: Any = _class_of(name)
    if not _is_step(cls):
        raise ValueError(
            f'backbone.step.type: expected one of {step_types()}, got '
            f'{name!r}{f", which is {cls}" if cls else ""}; a module of your '
            'own derives from StepSize and is registered in '
            "mmengine.registry.MODELS; where the scope has another one of a "
            "name, the package's is 'mmengine.NAME'")
    try:
        return cls(channels, **cfg)
    except TypeError as error:
        raise ValueError(
            'backbone.step: expected some of '
            f'{[*inspect.signature(cls).parameters][1:]} for {cls.__name__}, '
            f'got {cfg} ({error}); correct them') from error


def step_sizes_of(model: nn.Module) -> dict[str, StepSize]:
    """The step-size modules of a model, if it has any, by name."""
    return {name: module for name, module in model.named_modules()
            if isinstance(module, StepSize)}


def step_types() -> list[str]:
    """Names of the registered step-size modules."""
    return sorted(name for name, cls in MODELS.module_dict.items()
                  if _is_step(cls))


def default_blocks(cfg: dict | str | None) -> str:
    """The default ``step_blocks`` for the type of a step config."""
    name = cfg.get('type') if isinstance(cfg, dict) else cfg
    return getattr(_class_of(name), 'default_blocks', 'all')


def _class_of(name: Any) -> Any:
    """What a type names in the scope, or in mmengine's own registry."""
    if not isinstance(name, str):
        return name
    with MODELS.switch_scope_and_registry(None) as registry:
        return registry.get(name)


def _is_step(cls: Any) -> bool:
    return inspect.isclass(cls) and issubclass(cls, StepSize)
