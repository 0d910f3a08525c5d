"""Records NSI by sample and measured block, by one of its definitions."""
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter

import torch
from torch import Tensor, nn

from ..residual import first_tensor
from ..steps.pooling import AffineMap, BuiltMap, ScaledMap
from ..stiffness import DEFINITIONS, norm_ratio, sample_norm
from ..stiffness.nsi import widened
from ..utils.compilation import in_backward, refuse_compiled
from ..utils.hook_helpers import unwrap
from .residual_blocks import InputOf, ResidualBlock, find_residual_blocks

CHOOSE_OTHERS = 'choose other blocks by a regular expression, blocks=...'
TELL_APART = ('tell stages that share a container apart by '
              'blocks=find_residual_blocks(model, inputs=...), or '
              f'{CHOOSE_OTHERS}')


class TrajectoryRecorder:
    r"""Reads the NSI of every sample while a model runs.

    Eq. 4 of https://arxiv.org/abs/2308.09939, by one of three definitions,
    never mixed (docs/stiffness.md):
    ``'residual'``, :math:`\|f\|_2 / \|x_t\|_2`; for blocks whose f is not
    known ``'output'``, :math:`\|x_{t+1} - x_t\|_2 / \|x_t\|_2` of the block's
    output and input; and ``'update'``, which does not divide by the step
    size, :math:`\|f Δt\|_2 / \|x_t\|_2`. A stage's first block is left out
    (§2.2).

    One number per sample and block is kept, no feature map. Nothing that the
    model computes changes, and the hooks are removed when the context ends.

    Example:
        >>> with TrajectoryRecorder(model) as recorder:
        ...     model(images)
        >>> total_neural_stiffness(recorder.nsi, recorder.stage)

    Several forwards in one context add their samples as further rows.

    Args:
        model (nn.Module): a model with residual blocks; of DDP and averaged
            (EMA) models the one inside.
        blocks (str | list[ResidualBlock], optional): a regular expression
            for their names, or a list of :func:`find_residual_blocks`; left
            out, all that it finds.
        definition (str, optional): left out, ``'residual'`` if every block
            allows it.

    Attributes:
        blocks (list[str]): names of the L measured blocks.
        stage (Tensor): (L,), the stage of each, from 1.
        position (Tensor): (L,), the index of each in its stage, from 0.
        found (list[ResidualBlock]): all blocks, including the first of each
            stage.
        definition (str): which definition of NSI is used.

    Raises:
        ValueError: if the model has no residual block, only first ones, does
            not allow the definition, or is compiled.
    """

    def __init__(self, model: nn.Module,
                 blocks: str | list[ResidualBlock] | None = None,
                 definition: str | None = None):
        model = unwrap(model)
        refuse_compiled(model)
        self.found: list[ResidualBlock] = blocks if isinstance(
            blocks, list) else find_residual_blocks(model, blocks)
        measured = [block for block in self.found if block.position]
        if not measured:
            raise ValueError(
                'blocks: expected some after the first of their stage, got '
                f'first blocks only in {type(model).__name__}; set a greater '
                'backbone.depth, or do not measure')
        self.definition = _choose(definition, measured)
        self.blocks = [block.name for block in measured]
        self.stage = torch.tensor([block.stage for block in measured])
        self.position = torch.tensor([block.position for block in measured])
        if self.definition == 'output':
            measured = [replace(block, identity=None, residual=None,
                                step=None) for block in measured]
        self._block_hooks = [
            _BlockHooks(block, self.definition == 'update')
            for block in measured]

    def __enter__(self):
        for hooks in self._block_hooks:
            hooks.attach()
        return self

    def __exit__(self, *error):
        for hooks in self._block_hooks:
            hooks.detach()

    def call(self, method: Callable, *args, **kwargs):
        """Record a call; as a replacement for :class:`ReplacedMethod`."""
        with self:
            return method(*args, **kwargs)

    @property
    def nsi(self) -> Tensor:
        """NSI, shape (N, L), float32 or wider, on the CPU."""
        return norm_ratio(self._table(itemgetter('f')),
                          self._table(itemgetter('x'))).cpu()

    @property
    def step(self) -> Tensor:
        """Mean Δt over channels and space, (N, L); NaN without a gate."""
        return self._table(itemgetter('step')).cpu()

    def check(self) -> None:
        """Check what was recorded; reading it does so too.

        Raises:
            ValueError: if not all blocks have the same samples, or blocks of a
                stage other shapes.
        """
        self._check_counts()
        self._check_shapes()

    def clear(self) -> None:
        """Forget the samples recorded so far."""
        for hooks in self._block_hooks:
            hooks.rows = []

    def _table(self, column: Callable[[dict], Tensor]) -> Tensor:
        """(N, L), of a column of every forward in every block."""
        self.check()
        if not self._block_hooks[0].rows:
            return torch.zeros(0, len(self._block_hooks))
        return torch.stack([torch.cat([*map(column, hooks.rows)])
                            for hooks in self._block_hooks], 1)

    def _check_counts(self) -> None:
        counts: dict[int, str] = {}
        for hooks in self._block_hooks:
            number = sum(len(row['x']) for row in hooks.rows)
            counts.setdefault(number, hooks.block.name)
        if len(counts) > 1:
            raise ValueError(
                'blocks: expected blocks that every forward runs, got '
                f'different numbers of samples, {counts}; {CHOOSE_OTHERS}')

    def _check_shapes(self) -> None:
        first: dict[tuple, tuple] = {}
        for hooks in self._block_hooks:
            name, stage = hooks.block.name, hooks.block.stage
            for forward, row in enumerate(hooks.rows):
                other, shape = first.setdefault(
                    (stage, forward), (name, row['shape']))
                if row['shape'] != shape:
                    raise ValueError(
                        f'{name}: expected the shape of {other} in the same '
                        f"stage, {shape}, got {row['shape']}; {TELL_APART}")


def _reads_pooled(hook):
    """Marks a hook with which a fused block stays fused."""
    hook.reads_pooled = True
    return hook


class _BlockHooks:
    """The hooks of one block, on its parts where these show x_t, f and Δt.

    Inner hooks count only between the block's own start and end, and nothing
    counts inside a backward pass: activation checkpointing, of the block's
    inside or of a whole stage, runs it there again, and each forward is read
    once.

    Norms are kept as they come; their ratios are taken of all blocks at once.
    By definition ``'output'`` the block is one without parts; with ``update``
    f ⊗ Δt takes the place of f.
    """

    def __init__(self, block: ResidualBlock, update: bool):
        self.block, self.update = block, update
        #: Of each forward the norms of x_t and f, the mean Δt and the shape.
        self.rows: list[dict] = []
        self.current: dict | None = None
        self.handles: list = []
        # torch.compile can trace the flag, but not the handles.
        self.on = False

    def __getstate__(self) -> dict:
        # A copy of the model takes its hooks along, and nobody could remove
        # them there: they stay off.
        return dict(handles=[], on=False, current=None)

    def attach(self) -> None:
        """Put the hooks on the model."""
        block, module = self.block, self.block.module
        hooks = [
            module.register_forward_pre_hook(self._start, with_kwargs=True)]
        if block.identity is not None:
            hooks.append(block.identity.register_forward_hook(self._identity))
        if block.step is not None:
            hooks.append(block.step.delta.register_forward_hook(self._delta))
            hooks.append(
                block.step.module.register_forward_hook(self._update)
                if self.update else
                block.step.module.register_forward_pre_hook(
                    self._step_input))
        elif isinstance(block.residual, InputOf):
            hooks.append(
                block.residual.module.register_forward_pre_hook(self._taken))
        elif block.residual is not None:
            hooks.append(block.residual.register_forward_hook(self._residual))
        self.handles += [*hooks, module.register_forward_hook(self._end)]
        self.on = True

    def detach(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles, self.on, self.current = [], False, None

    def _start(self, module, args, kwargs):
        if in_backward() or not self.on:
            return
        x = first_tensor([*args, *kwargs.values()]).detach()
        if self.block.step is None and self.block.residual is None:
            version = None if x.is_inference() else x._version
            self.current = dict(state=x, version=version)
        else:
            self.current = dict(
                x=self._read(x)) if self.block.identity is None else {}

    def _end(self, module, args, output):
        if self.current is None:
            return
        found, self.current = self.current, None
        output = first_tensor(output).detach()
        if 'state' in found:
            found = self._norms(output=output, **found)
        if 'x' not in found or 'f' not in found:
            raise ValueError(
                f'{self.block.name}: expected its parts to be called with '
                'it, got a call without one of them (torch.compile had it '
                'from before the recorder, or the forward leaves it out); '
                'measure the model without torch.compile')
        self.rows.append(dict(self._row(**found),
                              shape=tuple(output.shape[1:])))

    def _row(self, x, f, step=None) -> dict[str, Tensor]:
        """What is kept of a forward; ``x`` has a value for each sample."""
        step = x.new_tensor(torch.nan) if step is None else step
        return dict(x=x, f=f, step=step.expand_as(x))

    def _norms(self, state: Tensor, version: int | None,
               output: Tensor) -> dict[str, Tensor]:
        """Of x_t, and of the output less x_t."""
        if version is not None and state._version != version:
            raise ValueError(
                f'{self.block.name}: expected a block that keeps its input '
                f'x_t, got one that changes it in place; {CHOOSE_OTHERS}')
        if state.shape != output.shape:
            raise ValueError(
                f'{self.block.name}: expected a block whose output has the '
                f'shape of its input, {tuple(state.shape)}, got '
                f'{tuple(output.shape)}; {TELL_APART}')
        return dict(x=self._read(state),
                    f=self._read(widened(output) - widened(state)))

    def _identity(self, module, args, output):
        self._note('x', output)

    def _residual(self, module, args, output):
        self._note('f', output)

    def _taken(self, module, args):
        self._note('f', first_tensor(args))

    @_reads_pooled
    def _step_input(self, module, args):
        self._note('f', args[-1])

    @_reads_pooled
    def _update(self, module, args, output):
        self._note('f', output)

    def _note(self, key, value):
        if self.current is not None:
            self.current[key] = self._read(value)

    def _read(self, x: Tensor | AffineMap | BuiltMap | ScaledMap) -> Tensor:
        """2-norm of each sample of a map, also of a fused block's parts."""
        if isinstance(x, AffineMap):
            return x.norm()
        if isinstance(x, BuiltMap):
            x = x.values
        elif isinstance(x, ScaledMap):
            if isinstance(x.values, AffineMap):
                return x.values.norm(x.step_size)
            x = x.values * x.step_size.to(x.values.dtype)
        return sample_norm(x.detach())

    def _delta(self, module, args, output):
        if self.current is not None:
            step = output.detach().flatten(1)
            self.current['step'] = step.float().mean(1)


def _choose(definition, measured: list) -> str:
    hidden = [b.name for b in measured if b.definition != 'residual']
    if definition is None:
        return 'output' if hidden else 'residual'
    if definition not in DEFINITIONS:
        raise ValueError(f'definition: expected one of {DEFINITIONS}, got '
                         f'{definition!r}')
    if definition != 'output' and hidden:
        raise ValueError(
            "definition: expected 'output', as f is not known in the blocks "
            f'{hidden}, got {definition!r}')
    return definition
