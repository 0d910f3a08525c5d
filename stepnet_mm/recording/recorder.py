"""Records the NSI of every sample at every measured block."""
import torch
from torch import Tensor, nn

from ..stiffness import norm_ratio, sample_norm
from .blocks import ResidualBlock, find_residual_blocks


class TrajectoryRecorder:
    r"""Reads :math:`\|f\|_2 / \|x_t\|_2` of every sample while a model runs.

    That is Eq. 4 with x_{t+1} as in Eq. 7, the sum before the activation:
    (x_{t+1} - x_t) / Δt is f, so nothing is divided by the step size. A
    stage's first block is left out by position (§2.2). Only one number a
    sample and block is kept, no feature map. Nothing that the model computes
    changes, and the hooks are gone when the context ends, on an error too.

    Example:
        >>> with TrajectoryRecorder(model) as recorder:
        ...     model(images)
        >>> total_neural_stiffness(recorder.nsi, recorder.stage)

    Several forwards in one context add their samples as further rows.

    Args:
        model (nn.Module): a model with residual blocks.

    Attributes:
        blocks (list[str]): names of the L measured blocks.
        stage (Tensor): (L,), the stage of each, from 1.
        definition (str): ``'residual'``, the definition of NSI above.

    Raises:
        ValueError: if the model has no residual block, only first ones, or
            is compiled.
    """
    definition = 'residual'

    def __init__(self, model: nn.Module):
        _refuse_compiled(model)
        self._blocks = [
            block for block in find_residual_blocks(model) if block.position
        ]
        if not self._blocks:
            raise ValueError(
                f'{type(model).__name__}: every stage has one block only, '
                'and first blocks are left out, so nothing can be measured: '
                'set a greater backbone.depth, or take TNSHook out of '
                'custom_hooks')
        self.blocks = [block.name for block in self._blocks]
        self.stage = torch.tensor([block.stage for block in self._blocks])
        self._traces = [_BlockTrace(block) for block in self._blocks]

    def __enter__(self):
        for trace in self._traces:
            trace.attach()
        return self

    def __exit__(self, *error):
        for trace in self._traces:
            trace.detach()

    @property
    def nsi(self) -> Tensor:
        """NSI, shape (N, L), float32 or wider, on the CPU."""
        return self._table('nsi')

    @property
    def step(self) -> Tensor:
        """Mean Δt over channels and space, (N, L); NaN where none is."""
        return self._table('step')

    def _table(self, name: str) -> Tensor:
        columns = [torch.cat(getattr(t, name)) for t in self._traces
                   if getattr(t, name)]
        if not columns:
            return torch.zeros(0, len(self._traces))
        if len({len(c) for c in columns}) > 1 or len(columns) < len(
                self._traces):
            raise ValueError('the measured blocks saw different numbers of '
                             'samples: not every forward ran all of them')
        return torch.stack(columns, 1).cpu()


class _BlockTrace:
    """The hooks of one block, and its numbers.

    Inner hooks count only between the block's own start and end, and nothing
    counts inside a backward pass: activation checkpointing, of the block's
    inside or of a whole stage, runs it there again, and each forward is read
    once.
    """

    def __init__(self, block: ResidualBlock):
        self.block = block
        self.nsi, self.step = [], []
        self.handles = []
        self.current = None

    def attach(self):
        if self.handles:
            raise RuntimeError('this TrajectoryRecorder is entered already; '
                               'make a second one for a nested context')
        block = self.block
        hooks = [
            block.module.register_forward_pre_hook(self._start),
            block.module.register_forward_hook(self._end)
        ]
        if block.identity is not None:
            hooks.append(block.identity.register_forward_hook(self._identity))
        if block.step is None:
            hooks.append(block.residual.register_forward_hook(self._residual))
        else:
            hooks += [
                block.step.register_forward_pre_hook(self._step_input),
                block.step.delta.register_forward_hook(self._delta)
            ]
        self.handles = hooks

    def detach(self):
        for handle in self.handles:
            handle.remove()
        self.handles, self.current = [], None

    def _start(self, module, args):
        if _in_backward():
            return
        if not isinstance(args[0], Tensor):
            raise ValueError(
                f'{self.block.name}: expected a block that takes one tensor, '
                f'got {type(args[0]).__name__}; it cannot be measured')
        self.current = {}
        if self.block.identity is None:
            self._note('x', lambda: sample_norm(args[0].detach()))

    def _identity(self, module, args, output):
        self._note('x', lambda: sample_norm(output.detach()))

    def _residual(self, module, args, output):
        self._note('f', lambda: sample_norm(output.detach()))

    def _step_input(self, module, args):
        self._note('f', lambda: sample_norm(args[-1].detach()))

    def _delta(self, module, args, output):
        self._note('step', lambda: output.detach().flatten(1).float().mean(1))

    def _note(self, key, value):
        if self.current is not None:
            self.current[key] = value()

    def _end(self, module, args, output):
        if self.current is None:
            return
        found, self.current = self.current, None
        x, f = found['x'], found['f']
        self.nsi.append(norm_ratio(f, x))
        self.step.append(
            found['step'].expand_as(f) if 'step' in
            found else torch.full_like(f, torch.nan))


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _refuse_compiled(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if hasattr(module, '_orig_mod') or getattr(
                module, '_compiled_call_impl', None) or hasattr(
                    vars(module).get('forward'), '_torchdynamo_orig_callable'):
            raise ValueError(
                f'{name or type(module).__name__} is compiled, and a '
                'compiled module does not see hooks that come later: enter '
                'the recorder before torch.compile, or measure without it')
