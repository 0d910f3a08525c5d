"""Finds the blocks of any model by one pass, on blank images if need be.

The graph that autograd records says what a class's name cannot: a module is a
block y = x + f(x) if its output is a sum, its input reaches that sum through
additions alone, and the other addends come from it. An activation may stand
behind the sum, as in a ResNet, if one module inside gives f.

The pass runs a copy of the model without numbers, on torch's meta device, and
a second one in training mode checks what it found; where that device fails, a
true copy runs. No random number is drawn, nothing is changed.
"""
import copy
import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import FunctionType
from typing import Any

import torch
import torch.fx
from torch import Tensor, nn

#: Changes of layout: nodes whose gradient is its own change of layout.
LAYOUT = {f'{name}Backward{i}' for i in range(5) for name in (
    'Alias', 'AsStrided', 'Clone', 'Permute', 'ReshapeAlias', 'Squeeze',
    'Transpose', 'UnsafeView', 'Unsqueeze', 'View')}
#: A change of a view in place.
ON_VIEW = 'torch::autograd::CopySlices'
#: Layers, by the axis of their output that has the channels.
CHANNELS = {
    **dict.fromkeys(('AddmmBackward0', 'MmBackward0', 'LinearBackward0',
                     'NativeLayerNormBackward0'), -1),
    **dict.fromkeys(('ConvolutionBackward0', 'NativeBatchNormBackward0',
                     'CudnnBatchNormBackward0', 'NativeGroupNormBackward0',
                     'MkldnnConvolutionBackward0'), 1)
}
TENSORS = Tensor, torch.fx.Proxy
#: Switches of modules that run a part of them again in the backward pass.
CHECKPOINTED = 'with_cp', 'use_checkpoint'
#: Edges of images that networks are asked to take, in this order.
EDGES = (224, 256, 384, 512, 640, 64, 32, 112, 336, 448, 518)


@dataclass(frozen=True)
class Place:
    """Where a residual block shows f.

    Attributes:
        child (str | None): the child of the block that gives f; None where f
            is the block's output minus its input.
        f_is_input (bool): whether the child takes f instead, as a
            ``drop_path`` behind a scale does.
        shape (tuple): of x_t without the axis of the samples.
        axis (int | None): of x_t, that of the channels; None if unknown.
        identity (str | None): the module inside whose output is x_t; None
            where x_t is the block's input.
    """
    child: str | None
    f_is_input: bool
    shape: tuple
    axis: int | None
    identity: str | None = None

    @property
    def channels(self) -> int:
        """C, of a place whose axis is known."""
        assert self.axis is not None
        return self.shape[self.axis - 1]


@dataclass
class SearchResult:
    """What one pass of a model shows, by names of its modules.

    Attributes:
        blocks (dict): the residual blocks, in the order of the modules.
        shapes (dict): of each called module, the shapes of a sample that
            goes in and that comes out.
        refused (dict): why each other called module is no block.
        readable (dict): where all modules x + f show f, blocks, their parts
            and rows of them, projected shortcuts too; ``child`` may be the
            name of a module deeper inside.
    """
    blocks: dict[str, Place] = field(default_factory=dict)
    shapes: dict[str, tuple] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    readable: dict[str, Place] = field(default_factory=dict)


@torch.inference_mode(False)  # which records no graph
def search(model: nn.Module, inputs: Any = None,
           partial: bool = False) -> SearchResult:
    """Find the residual blocks of a model.

    Args:
        model (nn.Module): any model.
        inputs: what it is called with: a tensor, a tuple of arguments or a
            dict of them; or a function that calls the model it is given.
            Defaults to images of the first size that it takes.
        partial (bool): whether a pass counts that fails behind some blocks,
            as one that wants labels for its loss.

    Raises:
        ValueError: if no pass succeeds.
    """
    best, error = SearchResult(), None
    for device in ('meta', None):
        for run in _runs(model, inputs):
            try:
                ghost = _ghost(model, device)
                watch, error = _watched(ghost, run, device)
                found = _read(watch)
                if error is None:
                    if device is not None:
                        _look_in_training(found, ghost, run, device)
                    return found
                if len(found.blocks) > len(best.blocks):
                    best = found
            except Exception as problem:  # of a model that is not copied
                error = problem
        if partial and best.blocks:
            return best
    raise ValueError(
        f'{type(model).__name__}: expected a model that takes images or the '
        f'given inputs, got {type(error).__name__}: {error}; give inputs that '
        'it takes') from error


def _runs(model, inputs) -> Iterator[Callable]:
    """Functions (model, device) that run a pass."""
    if callable(inputs) and not isinstance(inputs, Tensor):
        yield lambda ghost, device: inputs(ghost)
    elif inputs is not None:
        yield partial(_call, inputs)
    else:
        own = getattr(model, 'img_size', ())
        own = own if isinstance(own, (tuple, list)) else (own, )
        first = next((m.in_channels for m in model.modules()
                      if isinstance(m, nn.Conv2d)), 3)
        for channels in {3: 0, first: 0}:
            for edge in (*own[:1], *EDGES):
                if isinstance(edge, int):
                    yield partial(_call_with_images, edge, channels)


def _call(inputs, model, device):
    def moved(value):
        return value.to(device) if isinstance(value, Tensor) else value
    if isinstance(inputs, dict):
        return model(**{key: moved(v) for key, v in inputs.items()})
    args = inputs if isinstance(inputs, tuple) else (inputs, )
    return model(*map(moved, args))


def _call_with_images(edge: int, channels: int, model, device):
    like = next((p for p in model.parameters() if p.is_floating_point()),
                torch.zeros(0, device=device))
    images = like.new_zeros(2, channels, edge, edge)
    # A mask of a self-supervised network: none.
    others = [p for p in [*inspect.signature(model.forward).parameters
                          .values()][1:]
              if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
              or p.name == 'mask']
    return model(images, **{p.name: None for p in others})


def _ghost(model: nn.Module, device: str | None) -> nn.Module:
    """A copy in eval mode; on meta one without numbers."""
    tensors = chain(model.parameters(), model.buffers(), (
        value for module in model.modules() for value in vars(module).values()
        if isinstance(value, Tensor)))
    memo = {} if device is None else {
        id(t): nn.Parameter(t.detach().to(device), t.requires_grad)
        if isinstance(t, nn.Parameter) else t.detach().to(device)
        for t in tensors}
    ghost = copy.deepcopy(model, memo)
    _strip(ghost)
    parts: list[Any] = [*ghost.modules()]
    for module in parts:
        if _is_function(vars(module).get('forward')):
            del module.forward
        if device and isinstance(module, nn.modules.batchnorm._BatchNorm):
            # Without numbers it takes milliseconds, hundreds of times.
            vars(module)['forward'] = _elementwise
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [k for k, hook in hooks.items() if _is_function(hook)]:
                del hooks[key]
    ghost.eval()  # of which some return nothing
    return ghost


def _is_function(value) -> bool:
    """Whether it is not copied, so that its variables are the model's own."""
    while isinstance(value, partial):
        value = value.func
    return isinstance(value, FunctionType)


def _strip(model: nn.Module) -> None:
    """Leave out checkpointing, and steps of placed blocks."""
    modules: list[Any] = [*model.modules()]
    for module in modules:
        for key in CHECKPOINTED:
            if getattr(module, key, False) is True:
                setattr(module, key, False)
        if isinstance(getattr(module, 'place', None), Place):
            module.step = None


def _elementwise(x: Tensor) -> Tensor:
    return x * 1.


@dataclass
class _Call:
    """One call of a module, by the nodes of its first tensors."""
    taken: Any = None
    given: Any = None
    start: Any = None
    shape: tuple = ()
    output_shape: tuple = ()
    changed: bool = False  # its input, in place


class _Watch:
    """Hooks on all modules of a model that keep the nodes of their calls."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.calls: dict[str, list[_Call]] = defaultdict(list)
        #: Sizes of the samples' axis: of a list of images, its length too.
        self.samples: set[int] = set()
        #: Of modules without parts, by the node that they give.
        self.ends: dict[Any, list[tuple[str, _Call]]] = defaultdict(list)
        self._open: list[_Call] = []
        self._kept: list[Tensor] = []

    def start(self, name, module, args, kwargs):
        call = _Call()
        self._open.append(call)
        self.calls[name].append(call)
        x = first_tensor([*args, *kwargs.values()])
        if x is None:
            return None
        call.taken, call.shape = x.grad_fn, tuple(x.shape)
        if not self.samples:
            self.samples = {*x.shape[:1], *(
                len(arg) for arg in args if isinstance(arg, (list, tuple)))}
        if not (x.is_floating_point() and module._modules
                and torch.is_grad_enabled()):
            return None
        if not x.requires_grad:
            x = (x.clone() if x.is_inference() else x.detach()
                 ).requires_grad_()
        marked = x.clone()  # whose node is that of x_t
        call.start = marked.grad_fn
        return with_first((args, kwargs), marked)

    def end(self, name, module, args, kwargs, output):
        call = self._open.pop()
        y = first_tensor(output)
        if y is not None:
            call.given, call.output_shape = y.grad_fn, tuple(y.shape)
            if isinstance(call.given, torch.autograd.function.FunctionCtx):
                self._kept.append(y)  # a node made in Python does not last
            x = first_tensor([*args, *kwargs.values()])
            call.changed = call.start is not None and x._version > 0
            if not module._modules:
                self.ends[y.grad_fn].append((name, call))


def _watched(model: nn.Module, run, device) -> tuple:
    """What a pass shows, and the error in which it ends, if any."""
    watch, error = _Watch(model), None
    handles: list = []
    for name, module in model.named_modules():
        handles += (module.register_forward_pre_hook(
            partial(watch.start, name), with_kwargs=True),
            module.register_forward_hook(
                partial(watch.end, name), with_kwargs=True))
    try:
        with torch.enable_grad(), _apart(device):
            run(model, device)
    except Exception as problem:  # of the model's own code
        error = problem
    finally:
        for handle in handles:
            handle.remove()
    return watch, error


@contextmanager
def _apart(device) -> Iterator[None]:
    """Where new tensors are on a device, and no random number is drawn."""
    with torch.random.fork_rng(devices=[]), (
            torch.device(device) if device else nullcontext()):
        yield


def _read(watch: _Watch) -> SearchResult:
    found = SearchResult()
    sums: dict[str, set] = {}
    for name, calls in watch.calls.items():
        module = watch.model.get_submodule(name)
        if calls[0].start is None:
            if calls[0].shape and module._modules:
                found.refused[name] = (
                    'no gradient reaches its input (is it checkpointed? '
                    'switch that off until it has its step)')
            continue
        found.shapes[name] = calls[0].shape[1:], calls[0].output_shape[1:]
        block = _Block(module, name, watch)
        try:
            with torch.device('cpu'):
                found.blocks[name] = block.place()
            sums[name] = block.addends
        except _NoBlock as reason:
            found.refused[name] = str(reason)
        if block.readable is not None:
            found.readable[name] = block.readable
    _choose(found, sums)
    found.blocks = {name: found.blocks[name] for name, _
                    in watch.model.named_modules() if name in found.blocks}
    return found


def _look_in_training(found: SearchResult, ghost, run, device) -> None:
    """Leave out blocks that call for f otherwise than once in training."""
    blocks: Counter[str] = Counter()
    parts: Counter[str] = Counter()

    def count(name, block, args, kwargs, output):
        x = first_tensor([*args, *kwargs.values()])
        blocks[name] += first_tensor(output) is not x  # it may be skipped

    ghost.train()
    children = {name: place.child for name, place in found.readable.items()
                if place.child}
    for name, child in children.items():
        block = ghost.get_submodule(name)
        block.register_forward_hook(partial(count, name), with_kwargs=True)
        block.get_submodule(child).register_forward_hook(
            lambda *_, name=name: parts.update([name]))
    with suppress(Exception), torch.no_grad(), _apart(device):
        run(ghost, device)  # it may want what comes with a batch alone
    for name, child in children.items():
        if parts[name] > max(blocks[name], 1) or parts[name] < blocks[name]:
            found.blocks.pop(name, None)
            del found.readable[name]
            found.refused[name] = (
                f'{child} is called {parts[name]} times in training, the '
                f'block {blocks[name]}')


def _choose(found: SearchResult, sums: dict[str, set]) -> None:
    """Of nested blocks keep the outermost that adds something of its own.

    A stage without an activation is a sum too, of its blocks' addends.
    """
    for name in sorted(sums, key=lambda name: name.count('.') + bool(name)):
        if name not in found.blocks:
            continue
        inner = [key for key in sums if key != name and (
            not name or key.startswith(f'{name}.'))]
        if not name and inner or not sums[name] - set().union(
                *(sums[key] for key in inner)):
            found.refused[name] = 'a row of blocks'
            del found.blocks[name]
            continue
        for key in inner:
            found.refused[key] = f'a part of {name}'
            found.blocks.pop(key, None)


class _NoBlock(Exception):
    """The reason why a module is no residual block."""


class _Block:
    """A module that may be a residual block."""

    def __init__(self, module, name: str, watch: _Watch):
        self.module, self.name = module, name
        self.calls, self.ends = calls, _ = watch.calls, watch.ends
        self.call = calls[name][0]
        self.samples = watch.samples
        self.addends: set = set()
        #: Where it shows f to one who only looks.
        self.readable: Place | None = None
        self.prefix = f'{name}.' if name else ''

    def place(self) -> Place:
        """Where it shows f; raises :class:`_NoBlock`."""
        call = self.call
        if len(self.calls[self.name]) > 1:
            raise _NoBlock('it is called several times in a pass')
        # Another size: patches, or time, are folded into the first axis.
        if self.samples and self.samples.isdisjoint(call.shape[:1]):
            raise _NoBlock('its first axis is not that of the samples')
        if call.shape != call.output_shape:
            self.readable = self._projected()
            raise _NoBlock('its output has another shape than its input')
        if _layers_with_weights(self.module) < 2:
            raise _NoBlock('its residual is one layer')
        try:
            terms, activated = self._terms()
        except _NoBlock:
            self.readable = self._projected()
            raise
        self.addends = {term for term, _ in terms
                        if _way(term, call.start) is not None}
        if not self.addends:
            raise _NoBlock('what it adds does not come from its input')
        top = terms[0][0] if len(terms) == 1 else None
        child, takes = self._giver(top, self._children())
        place = Place(child, takes, call.shape[1:],
                      _channel_axis(terms, call.shape))
        self.readable = self._readable(place, top, activated)
        if _walks_over_itself(self.module):
            raise _NoBlock('its forward runs all that it holds')
        if child is None and call.changed:
            raise _NoBlock('it changes its input in place')
        if child is None and activated:
            raise _NoBlock('an activation follows its sum, and f is not the '
                           'output of a module directly inside')
        return place

    def _readable(self, place: Place, top, activated: bool) -> Place | None:
        """The place for one who only looks, deeper inside too."""
        child, takes = (place.child, place.f_is_input) if place.child else (
            self._giver(top, self._inside()))
        if takes and not activated:
            child, takes = None, False  # f is output - input as well
        if child or not (activated or self.call.changed):
            return replace(place, child=child, f_is_input=takes)
        return None

    def _projected(self) -> Place | None:
        """Where it shows f if it is a sum of what two modules give.

        That of the shorter way from its input gives x_t.
        """
        if _layers_with_weights(self.module) < 2:
            return None
        with suppress(_NoBlock):
            for node, _ in self._sums():
                ways = [(_way(addend, self.call.start), addend)
                        for addend in _addends(node)]
                if len(ways) != 2 or None in dict(ways):
                    continue
                (_, x), (_, f) = sorted(ways, key=lambda way: way[0] or 0)
                identity, _ = self._giver(x, self._inside())
                child, takes = self._giver(f, self._inside())
                if identity and child:
                    return Place(child, takes, self.call.output_shape[1:],
                                 None, identity)
        return None

    def _terms(self) -> tuple[list, bool]:
        """What is added to x, and whether an activation follows the sum.

        Each term comes with the changes of layout from the sum to it.
        """
        x = self.call.start
        for node, activated in self._sums():
            spine = _spine(node, x) if node is not None else None
            path: list = []
            terms = []
            for node, following in zip(spine or (), (spine or ())[1:]):
                moves = _name(node) in (*LAYOUT, ON_VIEW)
                terms += [(term, (*path, *[(node, term)] * moves))
                          for term in _summed(node) if term is not following]
                path += [(node, following)] * moves
            if terms and _keeps_places(path, self.call.shape):
                return terms, activated
        raise _NoBlock('its input does not reach its output by additions '
                       'alone')

    def _sums(self) -> Iterator[tuple]:
        """The nodes that may be the sum."""
        node = self.call.given
        if node is None:
            raise _NoBlock('no gradient reaches its output')
        yield node, False
        for key, call in self.ends.get(node, ()):
            if key.startswith(self.prefix):  # an activation; or a function
                yield call.taken, True
        if len(node.next_functions) == 1:
            yield node.next_functions[0][0], True

    def _children(self) -> list[str]:
        # A Sequential does not call its children by name.
        return [] if isinstance(self.module, nn.Sequential) else [
            key for key, _ in self.module.named_children()]

    def _inside(self) -> list[str]:
        return [key[len(self.prefix):] for key in self.calls
                if key.startswith(self.prefix) and key != self.name]

    def _giver(self, top, names: list[str]) -> tuple[str | None, bool]:
        """The module of some that gives, or takes, what is added."""
        taking = None
        for name in names if top is not None else ():
            calls = self.calls.get(self.prefix + name, [])
            if len(calls) != 1 or calls[0].given is not top:
                continue
            if calls[0].output_shape != self.call.output_shape:
                continue
            if calls[0].taken is not top and not _is_identity(calls[0]):
                return name, False
            taking = taking or name
        return taking, taking is not None


def _is_identity(call: _Call) -> bool:
    return call.given is call.start


def _walks_over_itself(module) -> bool:
    """Whether it would run a step as one more layer."""
    names = getattr(type(module).forward, '__code__', _elementwise.__code__)
    return isinstance(module, (nn.ModuleList, nn.ModuleDict)) or not {
        'children', 'named_children', '_modules'}.isdisjoint(names.co_names)


def _layers_with_weights(module: nn.Module) -> int:
    return len({name.rpartition('.')[0]
                for name, _ in module.named_parameters()})


def _spine(node, x) -> list | None:
    """The nodes from a sum to x, through additions and changes of layout."""
    before, waiting = {node: None}, [node]
    while waiting and x not in before:
        node = waiting.pop()
        for following in _summed(node):
            if following is not None and following not in before:
                before[following] = node
                waiting.append(following)
    if x not in before:
        return None
    spine = [x]
    while before[spine[-1]] is not None:
        spine.append(before[spine[-1]])
    return spine[::-1]


def _summed(node) -> list:
    """The nodes that a sum adds, or whose layout a node changes."""
    if _name(node) in {*LAYOUT, 'ToCopyBackward0'}:
        return [following for following, _ in node.next_functions]
    return _addends(node)


def _name(node) -> str:
    return node.name() if node is not None else ''


def _addends(node) -> list:
    name = _name(node)
    if name == 'AddBackward0' and node._saved_alpha == 1 or (
            name == ON_VIEW and _adds(node)):
        return [following for following, _ in node.next_functions]
    return []


def _adds(node) -> bool:
    """Whether a change of a view in place adds all: by its gradients."""
    # Torch 2.1 may not say a shape; a factor is on another device.
    with suppress(AttributeError, RuntimeError):
        shape = torch.Size(node._input_metadata[0].shape)
        numbers = torch.arange(shape.numel(), dtype=torch.float64)
        parts = node(numbers.view(shape))
        return len(parts) == 2 and all(torch.equal(
            part.flatten().sort()[0], numbers) for part in parts)
    return False


def _keeps_places(path: Sequence, shape: tuple) -> bool:
    """Whether changes of layout lead every number back to its place."""
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    numbers = numbers.reshape(shape)
    return torch.equal(_undone(path, numbers), numbers)


def _undone(path: Sequence, values: Tensor) -> Tensor:
    for node, following in path:
        parts = node(values)
        values = parts if isinstance(parts, Tensor) else parts[
            [*dict(node.next_functions)].index(following)]
    return values


def _way(node, start) -> int | None:
    """How many nodes lead from x to a node at least; None without a way."""
    seen, row, length = {None}, {node}, 0
    while row - {None}:
        if start in row:
            return length
        seen |= row
        row = {following for node in row - {None}
               for following, _ in node.next_functions} - seen
        length += 1
    return None


def _channel_axis(terms: list, shape: tuple) -> int | None:
    """The axis of the sum that is that of the channels of a layer of f."""
    for term, path in terms:
        for axis in range(1, len(shape)):
            size = shape[axis]
            index = torch.arange(size, dtype=torch.float64)
            index = index.view(-1, *[1] * (len(shape) - axis - 1))
            if size > 1 and _is_channel_axis(
                    term, _undone(path, index.expand(shape))):
                return axis
    return None


def _is_channel_axis(node, index: Tensor) -> bool:
    """Whether an index runs along the channels of the layer before a node."""
    waiting = [(node, index)]
    for _ in range(64):
        if not waiting:
            return False
        node, index = waiting.pop()
        name = _name(node)
        if name in CHANNELS:
            along = index.movedim(CHANNELS[name], -1)
            return torch.equal(along, torch.arange(
                along.size(-1), dtype=along.dtype).expand_as(along))
        if name in LAYOUT or name == 'CatBackward0':
            with suppress(RuntimeError):  # a gate has another shape
                parts = node(index)
                parts = parts if isinstance(parts, tuple) else (parts, )
                waiting += [(following, part) for (following, _), part in zip(
                    node.next_functions, parts)][::-1]
        elif name and name != 'torch::autograd::AccumulateGrad':
            # Elementwise; of a product with a gate the map comes first.
            waiting += [(following, index)
                        for following, _ in node.next_functions[::-1]]
    return False


def first_tensor(values) -> Any:
    """The first tensor of a module's inputs or outputs, if any.

    One that torch.fx traces counts.
    """
    if isinstance(values, TENSORS):
        return values
    if isinstance(values, dict):
        values = tuple(values.values())
    for value in values if isinstance(values, (tuple, list)) else ():
        found = first_tensor(value)
        if found is not None:
            return found
    return None


def with_first(values, new: Tensor):
    """The same inputs or outputs with another first tensor."""
    if isinstance(values, TENSORS):
        return new
    items = values.items() if isinstance(values, dict) else enumerate(values)
    key = next(k for k, v in items if first_tensor(v) is not None)
    changed = list(values) if isinstance(values, tuple) else copy.copy(values)
    changed[key] = with_first(values[key], new)
    if not isinstance(values, tuple):
        return changed
    named = getattr(values, '_make', tuple)  # of a named tuple
    return named(changed)
