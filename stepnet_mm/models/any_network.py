"""add_steps and Step + NAME: steps in blocks that block_search.py finds.

residual/block_search.py finds which modules are blocks, and which child gives
f. Unlike :class:`.StepBlock`, which has a forward of its own, a block here
runs its library's. Where a child of it gives f, the forward finds in the
child's place a function that scales what the child gives; where the block
shows f by its output alone, y = x + f ⊗ Δt is taken from that. At Δt = 1 both
are the stock block bit for bit. No hook is involved: layers may be replaced,
copied and traced.
"""
import functools
import re
from collections.abc import Sequence
from itertools import chain
from threading import get_ident
from typing import Any

import torch
import torch.fx
import torch.utils.checkpoint as cp
from mmengine.model import BaseModel
from torch import Tensor, nn

from ..residual import Place, SearchResult, first_tensor, search, with_first
from ..residual.block_search import CHECKPOINTED
from ..residual.stages import refusals, residual_modules, stages_of
from ..steps.base import StepSize, build_step, step_sizes_of
from ..utils.compilation import in_backward, is_compiling, refuse_compiled
from .backbone import StepBackbone, StepOwner, check_indices, one_per_stage
from .blocks import reduce_block
from .pretrained_start import PretrainedStart

LEAVE_OUT = 'leave the block out (step_blocks; of add_steps, blocks)'


class AnyStepBlock(PretrainedStart):
    """Mixin for a residual block that keeps its own forward.

    Attributes:
        step (StepSize | None): the step-size module; None leaves the block.
        place (Place): where it shows f.
        recomputed (bool): whether its forward runs again in the backward
            pass, as its ``with_cp`` or ``use_checkpoint`` said.
    """
    place: Any
    step: Any
    recomputed = False
    #: By thread, in a forward: x_t, and a None for each call of the child.
    _states: dict[int, list]

    def forward(self, *args, **kwargs):
        """The block's own forward, with f ⊗ Δt in the place of f.

        Raises:
            RuntimeError: if f comes not once in a forward, or again in a
                backward pass.
        """
        return self._stepped(super().forward, *args, **kwargs)

    def _stepped(self, run, *args, **kwargs):
        """One of the block's functions with its step."""
        if self.step is None:
            return run(*args, **kwargs)
        if self.recomputed and torch.is_grad_enabled():
            return cp.checkpoint(
                self._advance, run, *args, use_reentrant=False, **kwargs)
        return self._advance(run, *args, **kwargs)

    def _advance(self, run, *args, **kwargs):
        x = first_tensor([*args, *kwargs.values()])
        if self.place.child is None:
            output = run(*args, **kwargs)
            return with_first(output, self._moved(x, first_tensor(output)))
        state = self._state()
        state.append(x)
        try:
            output = run(*args, **kwargs)
        finally:  # a checkpointed one ends as soon as it can
            calls = len(state) - 1
            state.clear()
        if calls != 1 and not (calls == 0 and first_tensor(output) is x):
            raise RuntimeError(
                f'{type(self).__name__}: expected {self.place.child} once in '
                f'a forward, got {calls} calls, so f is not known; '
                f'{LEAVE_OUT}')
        return output

    def _moved(self, x: Tensor, y: Tensor) -> Tensor:
        """x + f ⊗ Δt of f = y - x, as y + f ⊗ (Δt - 1): exact at Δt = 1."""
        f = _difference(y, x)
        if type(self.step).forward is not StepSize.forward:
            return (y + (self._scaled(x, f) - f)).to(y.dtype)
        product = self.step(*self._maps(x, f), multiply=False)
        return _move(y, f, self._from_map(product.step_size, f))

    def _scaled(self, x: Tensor, f: Tensor) -> Tensor:
        """f ⊗ Δt in the layout of f."""
        return self._from_map(self.step(*self._maps(x, f)), f)

    def _maps(self, *states: Tensor) -> list[Tensor]:
        """Maps or tokens as (N, C, H, W), views where they can be."""
        axis = self.place.axis
        if axis != 1:
            states = tuple(x.movedim(axis, 1) for x in states)
        if len(self.place.shape) == 3:
            return [*states]
        return [x.flatten(2)[..., None] for x in states]

    def _from_map(self, x: Tensor, f: Tensor) -> Tensor:
        """In the layout of f again; x may have one value for all places."""
        axis, rank = self.place.axis, len(self.place.shape)
        if rank != 3:
            x = x[..., 0]
        if rank > 3:
            sizes = f.movedim(axis, 1).shape[2:]
            x = x.unflatten(2, sizes if x.size(2) > 1 else [1] * len(sizes))
        return x if axis == 1 else x.movedim(1, axis)

    def _state(self) -> list:
        """That of this thread; a graph has the one."""
        return self._states[0] if is_compiling() else (
            self._states.setdefault(get_ident(), []))

    def _in_place_of(self, child):
        """What the forward finds under the child's name."""
        if self._state():
            return _InPlaceOf(child, self)
        if in_backward():
            self._refuse_recomputing()
        return child

    def _refuse_recomputing(self) -> None:
        # Without x_t the backward pass would take the block without a step.
        raise RuntimeError(
            f'{type(self).__name__}: expected a block that is checkpointed as '
            'a whole, got one whose forward runs a part of it again in the '
            f'backward pass; switch that off, or {LEAVE_OUT}')

    def _through(self, child, args: tuple, kwargs: dict):
        """What a child gives, with f ⊗ Δt in the place of f."""
        state = self._state()
        if not state:
            self._refuse_recomputing()
        state.append(None)
        if self.place.f_is_input:
            f = first_tensor([*args, *kwargs.values()])
            scaled = self._scaled(state[0], f)
            if args and args[0] is f:
                return child(scaled, *args[1:], **kwargs)
            args, kwargs = with_first((args, kwargs), scaled)
            return child(*args, **kwargs)
        output = child(*args, **kwargs)
        return with_first(output, self._scaled(state[0], first_tensor(output)))


class _InPlaceOf:
    """Calls a child with its step; all else that is asked is the child's."""

    def __init__(self, child, block):
        self.child, self.block = child, block

    def __call__(self, *args, **kwargs):
        return self.block._through(self.child, args, kwargs)

    def __getattr__(self, name: str):
        return getattr(self.child, name)


# One node each of a graph that torch.fx traces, for they read dtypes.
@torch.fx.wrap
def _difference(y: Tensor, x: Tensor) -> Tensor:
    # That of halves could be infinite.
    return (y.float() if y.dtype == torch.half else y) - x


@torch.fx.wrap
def _move(y: Tensor, f: Tensor, step_size: Tensor) -> Tensor:
    """y + f ⊗ (Δt - 1), in the dtype of y."""
    step_size = step_size.to(f.dtype)
    return torch.addcmul(y.to(f.dtype), f, step_size - 1).to(y.dtype)


@functools.lru_cache(None)
def _stepped_class(block: Any, child: str | None) -> Any:
    """The subclass of a block whose forward finds another thing for a child.

    The child itself stays where it is, under its name.
    """
    names: dict[str, Any] = dict(
        __module__=__name__, __doc__=block.__doc__, __reduce__=reduce_block,
        _origin=(_stepped_class, block, child))
    if child is not None:
        names[child] = property(
            lambda self: self._in_place_of(self._modules[child]))
    if issubclass(block, nn.Sequential):  # which runs all that it holds
        names['__len__'] = lambda self: len(self._modules) - 1
        names['__iter__'] = lambda self: (
            child for key, child in self._modules.items() if key != 'step')
    if hasattr(block, 'rfp_forward'):  # DetectoRS calls both
        names['rfp_forward'] = lambda self, *args: self._stepped(
            functools.partial(block.rfp_forward, self), *args)
    meta: Any = type(block)
    return meta(f'Step{block.__name__}', (AnyStepBlock, block), names)


def _build_step(block: Any, name: str, place: Place, cfg) -> StepSize:
    """A step for a block.

    Raises:
        ValueError: if the step does not fit the block's layout.
    """
    if place.axis is None:
        raise ValueError(f'{name}: expected a block whose axis of channels '
                         'is that of a layer in it, got none that is')
    taken = [key for key in ('step', 'place') if hasattr(block, key)]
    for key in [*taken, *{'forward'} & {*vars(block)}]:
        raise ValueError(
            f'{name}: expected a block that leaves {key!r} to its step, got '
            'one that sets it; change its class instead, or rename it')
    step = build_step(cfg, place.channels)
    if step.needs_space and len(place.shape) != 3:
        raise ValueError(
            f'backbone.step.type: expected one that needs no height and '
            f'width, which the tokens of {name} lack, got '
            f'{type(step).__name__}; choose another, such as SEAttention')
    return step


def _put_step(block: Any, place: Place, step: StepSize) -> None:
    """Give a block a step; its class becomes a subclass of its own."""
    names, first = zip(*block.named_parameters())
    kind: Any = type(block)
    block.residual_weight = names[0]
    block.__class__ = _stepped_class(kind, place.child)
    block.place, block.step = place, step.to(first[0].device)
    block._states = {0: []}
    for key in CHECKPOINTED:
        if getattr(block, key, False) is True:
            setattr(block, key, False)
            block.recomputed = True


class AnyStepBackbone(StepOwner):
    """Mixin for a backbone whose residual blocks one pass finds.

    All other arguments are the library's own. A step scales the residual of
    a whole block: in a transformer layer what attention and FFN add together.
    Steps in frozen stages are frozen too.

    Args:
        step (dict | str | list | None): the step-size module of every chosen
            block, or a list with one of these per stage. Defaults to
            StepAdaptor. None leaves the stock network, or the stock stage.
        step_blocks (list[list[int]] | str, optional): the chosen blocks of
            each stage by their indices, from 0. ``'all'``, the default, and
            ``'identity'`` are here all that take a step.

    Raises:
        ValueError: if there is no residual block that takes a step.
    """
    #: Only building it shows whether there is a block (config/conversion.py).
    finds_blocks = True
    _step_stages: Sequence[Sequence[str]] = ()

    def __init__(self, *args, step='StepAdaptor', step_blocks=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = step
        self._is_pretrained = bool(
            kwargs.get('pretrained') or kwargs.get('checkpoint_path'))
        if step is None:
            return
        found = search(self)
        try:
            stages = _all_stages(self, found)
        except ValueError as error:
            raise ValueError(f'backbone.type: {error}; set step=None for the '
                             'stock network') from None
        cfgs = one_per_stage(step, len(stages))
        self._step_stages = [
            names if cfg is not None else [] for names, cfg
            in zip(_chosen(stages, step_blocks, found), cfgs)]
        for names, cfg in zip(self._step_stages, cfgs):
            _put_steps(self, names, found, cfg)
        self._start_pretrained()
        self._follow()

    def init_weights(self) -> None:
        """Initialise as the library does, and the steps as StepOwner."""
        super().init_weights()
        self._start_pretrained()

    def train(self, mode: bool = True):
        """Set the mode as the library does."""
        super().train(mode)
        self._follow()
        return self

    def _start_pretrained(self) -> None:
        # A constructor that loads weights does so before there are steps.
        for step in self.steps() if self._is_pretrained else ():
            if not step.loaded:
                step.start_pretrained()

    def _follow(self) -> None:
        """Freeze steps in frozen stages."""
        for step in self._frozen_steps() if self.training else ():
            step.requires_grad_(False)

    def _stages(self) -> list[list[Any]]:
        return [[self.get_submodule(name) for name in names]
                for names in self._step_stages]

    def _frozen_steps(self) -> list[StepSize]:
        """Those of frozen stages, which the library sets to eval mode."""
        return [block.step for block in chain(*self._stages())
                if not block.training and not any(
                    p.requires_grad for name, p in block.named_parameters()
                    if not name.startswith('step.'))]


def step_backbone(stock: Any, module: str = __name__) -> Any:
    """``Step`` + a backbone's class: the same network with step sizes.

    Args:
        stock (type): a backbone class.
        module (str): where the class can be imported from, for pickle.
    """
    @functools.wraps(stock.forward)
    def forward(self, *args, **kwargs):
        self.check_frozen_steps()
        return stock.forward(self, *args, **kwargs)

    return _subclass(AnyStepBackbone, stock, module, forward=forward)


def _subclass(mixin: Any, stock: Any, module: str, **names) -> Any:
    doc = (f'{stock.__name__} with step sizes in its residual blocks.\n\n'
           f'Takes its arguments and those of :class:`{mixin.__name__}`.')
    meta: Any = type(stock)
    return meta(f'Step{stock.__name__}', (mixin, stock),
                dict(__module__=module, __doc__=doc, **names))


def bind_backbones(registry, names: dict, plain: tuple,
                   resnets: tuple) -> None:
    """Register Step + name for the backbones of a library that lack one.

    Args:
        registry (Registry): the library's MODELS.
        names (dict): the globals of the module that binds them, where pickle
            finds the classes.
        plain (tuple[type]): the library's plain blocks.
        resnets (tuple[str]): backbones of these, for :class:`StepBackbone`.
    """
    for name, stock in [*registry.module_dict.items()]:
        own, module = f'Step{name}', names['__name__']
        if own not in registry.module_dict and _is_backbone(stock):
            names[own] = (
                _subclass(StepBackbone, stock, module, plain_blocks=plain)
                if name in resnets else step_backbone(stock, module))
            registry.register_module(module=names[own])


def _is_backbone(cls) -> bool:
    return (isinstance(cls, type) and issubclass(cls, nn.Module)
            and not issubclass(cls, (StepOwner, BaseModel))
            and any('backbones' in base.__module__.split('.')
                    for base in cls.__mro__))


class StepReport(list):
    """Names of the blocks that took a step; as text, where f was found."""

    def __init__(self, names, rows: list[str]):
        super().__init__(names)
        self.rows = rows

    def __str__(self):
        return '\n'.join(self.rows)


@torch.inference_mode(False)  # whose parameters never learn
def add_steps(model: nn.Module, step: dict | str = 'StepAdaptor',
              images: Any = None, blocks: str | None = None) -> StepReport:
    """Put a step-size module into every residual block of a model.

    In place: weights and keys of the state_dict stay, those of the steps are
    ``<block>.step.*``. Steps start at Δt = 1, where the model computes what
    it did before, unless their ``init_step`` says otherwise.

    Args:
        model (nn.Module): any, of torchvision, timm, transformers or your
            own, not compiled.
        step (dict | str): the step-size module.
        images: what the model is called with: a tensor such as
            ``torch.randn(1, 3, 224, 224)``, a dict of arguments, or a
            function that calls the model it is given. Only shapes matter;
            the first axis is that of the samples.
        blocks (str, optional): a regular expression for whole names of
            blocks, such as ``'layer[34].*'``. Defaults to all.

    Returns:
        StepReport: the blocks; print it to see where f was found.

    Raises:
        ValueError: if the model has steps already or is compiled, no pass
            succeeds, or no block takes a step or has a name of ``blocks``.
    """
    refuse_compiled(model, 'add steps before torch.compile')
    if step_sizes_of(model):
        raise ValueError(
            f'{type(model).__name__}: expected a model without steps, got one '
            'that has some; add them once')
    found = search(model, images)
    all_names = [*chain(*_chosen(_all_stages(model, found), None, found))]
    names = [name for name in all_names if re.fullmatch(blocks or '.*', name)]
    if not names:
        raise ValueError('blocks: expected a regular expression for whole '
                         f'names, some of {all_names}, got {blocks!r}')
    _put_steps(model, names, found, step)
    for block in map(model.get_submodule, names):
        block.step.start_pretrained()  # type: ignore[union-attr, operator]
    return StepReport(names, [_describe(model, name, found.blocks[name])
                              for name in names])


def _put_steps(model, names, found: SearchResult, cfg) -> None:
    places = [(model.get_submodule(name), name, found.blocks[name])
              for name in names]
    steps = [_build_step(*place, cfg) for place in places]
    for (block, _, place), step in zip(places, steps):
        _put_step(block, place, step.train(model.training))


def _all_stages(model, found: SearchResult) -> list[list[str]]:
    """All blocks, those without a step too, as the recorder counts them."""
    if '' in found.blocks:  # the model is one block
        return [['']]
    if not found.blocks:
        raise ValueError(
            f'{type(model).__name__}: expected residual blocks, got none that '
            f'takes a step: {refusals(dict(model.named_modules()), found)}')
    return stages_of(model, residual_modules(model, found), found)


def _chosen(stages: list[list[str]], step_blocks, found: SearchResult) -> list:
    """The names that ``step_blocks`` chooses of each stage."""
    if step_blocks in (None, 'all', 'identity'):
        return [[name for name in stage if name in found.blocks]
                for stage in stages]
    check_indices(step_blocks, [*map(len, stages)])
    chosen = [[stage[i] for i in indices]
              for stage, indices in zip(stages, step_blocks)]
    for name in chain(*chosen):
        if name not in found.blocks:
            raise ValueError(
                f'backbone.step_blocks: expected blocks that take a step, got '
                f'{name}: {found.refused.get(name)}; leave it out')
    return chosen


def _describe(model, name: str, place: Place) -> str:
    f = ('output - input' if place.child is None else
         f'what {place.child} takes' if place.f_is_input else place.child)
    return (f'{name}: {type(model.get_submodule(name)).__name__}, f is {f}, '
            f'{place.channels} channels')
