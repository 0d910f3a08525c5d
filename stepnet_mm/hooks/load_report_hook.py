"""Reports the weights that a checkpoint set, and stops where it set none.

Missing and mismatched keys are judged after the modules have loaded: many
rename keys, resize position embeddings or fill a teacher before they do.
"""
import re
from collections.abc import Callable, Sequence

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import nn
from torch.nn.parameter import is_lazy

from ..steps import StepSize
from ..utils.hook_helpers import unwrap


class LoadListener:
    """Reports each load into a model, or a part of it, from here on.

    Args:
        model (nn.Module): the model, wrapped or not.
        report (callable): is called with name and module of what took a
            state dict, and a dict of its keys. ``loaded``; ``step``, those
            of step-size modules that the source lacks; ``new``, all others
            that it lacks, or has in another shape, with both shapes;
            ``unused``, keys of the source that the module lacks.
    """

    def __init__(self, model: nn.Module, report: Callable):
        self.report = report
        self._names = {module: name for name, module in model.named_modules()}
        self._root: nn.Module | None = None
        self._mismatched: dict[str, str] = {}
        self._handles = [handle for module in self._names for handle in (
            module._register_load_state_dict_pre_hook(
                self._compare, with_module=True),
            module.register_load_state_dict_post_hook(self._end))]

    def stop(self) -> None:
        """Report no further ones."""
        for handle in self._handles:
            handle.remove()

    def _compare(self, module, state_dict, prefix, *_) -> None:
        """The last of a module's own hooks, before it copies its tensors."""
        if not prefix:  # not a part of a load
            self._root, self._mismatched = module, {}
        for name, own in (*module.named_parameters(recurse=False),
                          *module.named_buffers(recurse=False)):
            given = state_dict.get(prefix + name)
            if given is None or is_lazy(own):
                continue
            # torch takes a list of one number for a number.
            if given.shape not in (own.shape, own.shape or (1, )):
                self._mismatched[prefix + name] = (
                    f'{prefix}{name} (source {tuple(given.shape)}, model '
                    f'{tuple(own.shape)})')

    def _end(self, module: nn.Module, incompatible) -> None:
        if module is not self._root:
            return
        self._root = None
        steps = tuple(f'{name}.' if name else '' for name, child in
                      module.named_modules() if isinstance(child, StepSize))
        missing = incompatible.missing_keys
        absent = {*missing, *self._mismatched}
        self.report(self._names[module], module, dict(
            # A BatchNorm fills in its counter where there is none.
            loaded=[key for key in module.state_dict() if key not in absent
                    and not key.endswith('num_batches_tracked')],
            step=[key for key in missing if key.startswith(steps)],
            new=[key for key in missing if not key.startswith(steps)]
            + [*self._mismatched.values()],
            unused=list(incompatible.unexpected_keys)))


class _LoadHook(Hook):
    """Listens until the start."""
    # After EMAHook, which copies the model and must not copy these hooks.
    priority = 'LOW'
    _listener: LoadListener | None = None

    def before_run(self, runner) -> None:
        """Listen to every load until the start."""
        self._stop()

        def report(*load):
            if self._listener is not None:  # not a copy of the model, as EMA's
                self._report(runner, *load)

        self._listener = LoadListener(runner.model, report)

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Listen at the latest: a FlexibleRunner loads before the run."""
        if self._listener is None:
            self.before_run(runner)

    def before_train(self, runner) -> None:
        """Stop listening."""
        self._stop()

    before_val = before_test = before_train

    def _stop(self) -> None:
        if self._listener is not None:
            self._listener.stop()
        self._listener = None

    def _report(self, runner, name: str, module, report: dict) -> None:
        raise NotImplementedError


@HOOKS.register_module()
class LoadReportHook(_LoadHook):
    """Report every load of weights, and stop where a backbone got none.

    Covers ``init_cfg=dict(type='Pretrained')`` of any module, ``load_from``
    and resume. New keys of step-size modules, heads and DCN's offsets (which
    mmdet starts anew) and unused ones of the source's classifier are logged,
    all others are a warning. A tensor of another shape is a new one. A
    backbone of which nothing was loaded, which mmengine trains from random
    weights, is an error.

    Args:
        allow_new (Sequence[str]): regular expressions of further keys that
            the source may lack, searched in the key; ``['.*']`` for a
            backbone that starts anew.
        allow_unused (Sequence[str]): regular expressions of further keys of
            the source that may stay unused.

    Raises:
        ValueError: while loading, with the backbone's name.

    Examples:
        >>> custom_hooks = [dict(type='LoadReportHook', allow_new=['^neck'])]
    """

    def __init__(self, allow_new: Sequence[str] = (),
                 allow_unused: Sequence[str] = ()):
        # A head is any part of the model that is named so.
        self.allow_new = [r'head\w*\.', r'conv_offset\.',
                          'num_batches_tracked$', *allow_new]
        self.allow_unused = [r'^fc\.', 'num_batches_tracked$', *allow_unused]
        self._loaded: set[str] = set()  # backbones

    def _report(self, runner, name, module, report) -> None:
        label = f'LoadReportHook: {name or type(module).__name__}'
        new = _not_allowed(report['new'], self.allow_new)
        unused = _not_allowed(report['unused'], self.allow_unused)
        for inner, _ in module.named_modules():
            full = f'{name}.{inner}'.strip('.')
            if full.split('.')[-1] == 'backbone':
                self._check_backbone(full, inner and f'{inner}.', new, report)
        runner.logger.info(
            f'{label}: {len(report["loaded"])} keys loaded, '
            f'{len(report["step"])} new in step modules, '
            f'{len(report["new"])} other new, '
            f'{len(report["unused"])} unused in the source')
        for kind, keys in (('new', new), ('unused', unused)):
            if keys:
                runner.logger.warning(
                    f'{label}: expected a checkpoint with all weights but '
                    f'those of steps and heads, got {len(keys)} {kind}: '
                    f'{", ".join(keys)}; check init_cfg.checkpoint or '
                    f'load_from, or set allow_{kind} where they are meant')

    def _check_backbone(self, name: str, prefix: str, new: list[str],
                        report: dict) -> None:
        lacks = [key for key in new if key.startswith(prefix)]
        if any(key.startswith(prefix) for key in report['loaded']):
            self._loaded.add(name)
        elif lacks and name not in self._loaded:
            raise ValueError(
                f'{name}: expected a checkpoint with weights of the backbone, '
                f'got none of its {len(lacks)}, {", ".join(lacks[:3])} among '
                'them; check init_cfg.checkpoint or load_from, or set '
                "LoadReportHook(allow_new=['.*']) to train it from its start")


class WholeLoadHook(_LoadHook):
    """Stop at a checkpoint that does not set all of the network.

    A test of another network than the checkpoint's would give figures too.

    Args:
        allow_missing (str, optional): a regular expression for names of
            weights that need not be set, searched in them; '' for all.

    Raises:
        ValueError: while loading, with the names.
    """

    def __init__(self, allow_missing: str | None = None):
        self.allowed = ['num_batches_tracked$']
        if allow_missing is not None:
            self.allowed.append(allow_missing)

    def _report(self, runner, name, module, report) -> None:
        bad = _not_allowed(report['step'] + report['new'], self.allowed)
        if bad and module is unwrap(runner.model):
            shown = ', '.join(bad[:5]) + (', ...' if len(bad) > 5 else '')
            raise ValueError(
                f'CHECKPOINT: expected weights for all of '
                f'{type(module).__name__}, got none that fit for {len(bad)} '
                f'of its keys: {shown}; take the config that it was trained '
                'with, or allow them: tools/test.py --allow-missing [PATTERN]')


def _not_allowed(keys: list[str], patterns: list[str]) -> list[str]:
    return [k for k in keys if not any(re.search(p, k) for p in patterns)]
