"""Says what a checkpoint set, and refuses one that does not fit."""
import functools
import re
from collections.abc import Sequence

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import nn
from torch.utils.hooks import RemovableHandle

from ..steps import StepSize
from ..utils.model_wrappers import unwrap


@HOOKS.register_module()
class LoadReportHook(Hook):
    """Report every load of weights, and stop at one that does not fit.

    Covers ``init_cfg=dict(type='Pretrained')`` of any module, ``load_from``
    and resume. mmengine only logs a warning when keys do not match, so a
    backbone that was not loaded goes unnoticed. Here new keys may only be
    those of step-size modules and heads, unused keys of the source only its
    classifier's; anything else, a shape mismatch too, is an error. (The offset
    convolutions of DCN may be new as well: no classifier has them.)

    Args:
        allow_new (Sequence[str]): regular expressions of further keys that
            the source may lack, searched in the key.
        allow_unused (Sequence[str]): regular expressions of further keys of
            the source that may stay unused.

    Raises:
        ValueError: while loading, with the keys' names; or, for a step
            backbone, with the type that the weights are of.
    """
    # After EMAHook, which copies the model and must not copy these hooks.
    priority = 'LOW'

    def __init__(self,
                 allow_new: Sequence[str] = (),
                 allow_unused: Sequence[str] = ()):
        # A head is any part of the model that is named so; mmdet's DCN always
        # starts its offsets anew.
        self.allow_new = [
            r'head\w*\.', r'conv_offset\.', 'num_batches_tracked$', *allow_new
        ]
        self.allow_unused = [r'^fc\.', 'num_batches_tracked$', *allow_unused]
        self._handles: list[RemovableHandle] = []
        self._reports: list[dict] = []

    def before_run(self, runner) -> None:
        """Listen to whatever is loaded from here to the start."""
        self._stop_listening()
        self._handles = [
            module._register_load_state_dict_pre_hook(
                functools.partial(self._on_load, runner.logger, name, module))
            for name, module in runner.model.named_modules()
        ]

    def before_train(self, runner) -> None:
        """Remove the hooks on loading."""
        if not self._reports:
            runner.logger.info('LoadReportHook: nothing was loaded, all '
                               'weights are at their start')
        self._stop_listening()

    def before_val(self, runner) -> None:
        """Remove the hooks on loading, where nothing is trained."""
        self._stop_listening()

    def before_test(self, runner) -> None:
        """Remove the hooks on loading."""
        self._stop_listening()

    def _stop_listening(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _on_load(self, logger, name, module, state_dict, prefix, *_) -> None:
        if prefix:  # a part of a load that was reported at its root
            return
        for child, backbone in module.named_modules():
            if hasattr(backbone, 'check_weights'):  # names the right type
                backbone.check_weights(state_dict, child and f'{child}.')
        report = load_report(module, state_dict)
        self._reports.append(report)
        self._check(name or type(module).__name__, report)
        logger.info(f'LoadReportHook: {name or type(module).__name__}: '
                    f'{_summary(report)}')

    def _check(self, name: str, report: dict) -> None:
        bad = dict(
            missing=_not_allowed(report['new'], self.allow_new),
            unused=_not_allowed(report['unused'], self.allow_unused),
            mismatched=report['mismatched'])
        if any(bad.values()):
            found = '; '.join(f'{kind}: {", ".join(keys)}'
                              for kind, keys in bad.items() if keys)
            raise ValueError(
                f'{name}: expected a checkpoint that lacks keys of step '
                'modules and heads only, and has no unused ones but its '
                f"fc's, got one that does not fit: {found}; check "
                'init_cfg.checkpoint or load_from. Missing and unused keys '
                'that are meant can be named in '
                'LoadReportHook(allow_new=[...], allow_unused=[...]); '
                'mismatched ones must leave the checkpoint, or the model take '
                'their shape (num_classes)')


class WholeLoadHook(Hook):
    """Stop at a checkpoint that does not set all of the network.

    A test of another network than the checkpoint's would give figures too.

    Args:
        allow_missing (str, optional): a regular expression for names of
            weights that need not be set, searched in them; '' for all.

    Raises:
        ValueError: while loading, with the names.
    """
    # After EMAHook, which copies the model and must not copy these hooks.
    priority = 'LOW'

    def __init__(self, allow_missing: str | None = None):
        self.allowed = ['num_batches_tracked$']
        if allow_missing is not None:
            self.allowed.append(allow_missing)
        self._handles: list[RemovableHandle] = []
        self._mismatched: list[str] = []

    def before_run(self, runner) -> None:
        """Listen to what is loaded from here to the start."""
        model = unwrap(runner.model)
        self._handles = [
            model._register_load_state_dict_pre_hook(
                functools.partial(self._compare, model)),
            # Modules may have renamed old keys by then.
            model.register_load_state_dict_post_hook(self._check)
        ]

    def before_test(self, runner) -> None:
        """Remove the hooks on loading."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _compare(self, model, state_dict, *_) -> None:
        self._mismatched = load_report(model, state_dict)['mismatched']

    def _check(self, model, incompatible) -> None:
        missing = [*incompatible.missing_keys, *self._mismatched]
        bad = _not_allowed(missing, self.allowed)
        if bad:
            shown = ', '.join(bad[:5]) + (', ...' if len(bad) > 5 else '')
            raise ValueError(
                f'CHECKPOINT: expected weights for all of '
                f'{type(model).__name__}, got none that fit for {len(bad)} of '
                f'its keys: {shown}; take the config that it was trained '
                'with, or allow them: tools/test.py --allow-missing [PATTERN]')


def load_report(module: nn.Module, state_dict: dict) -> dict:
    """Compare a state dict with the module that takes it.

    Returns:
        dict: lists of keys. ``loaded``; ``step``, keys of step-size modules
        that the source lacks; ``new``, all others that it lacks; ``unused``,
        keys that the module lacks; ``mismatched``, with both shapes.
    """
    own, state_dict = module.state_dict(), dict(state_dict)
    steps = {f'{name}.' if name else '': child for name, child in
             module.named_modules() if isinstance(child, StepSize)}
    for prefix, step in steps.items():
        step.rename_weights(state_dict, prefix)
    missing = [key for key in own if key not in state_dict]
    mismatched = [
        f'{key} (source {tuple(state_dict[key].shape)}, model '
        f'{tuple(value.shape)})' for key, value in own.items()
        if key in state_dict and state_dict[key].shape != value.shape
    ]
    return dict(
        loaded=[key for key in own if key in state_dict],
        step=[key for key in missing if key.startswith((*steps, ))],
        new=[key for key in missing if not key.startswith((*steps, ))],
        unused=[key for key in state_dict if key not in own],
        mismatched=mismatched)


def _not_allowed(keys: list[str], patterns: list[str]) -> list[str]:
    return [k for k in keys if not any(re.search(p, k) for p in patterns)]


def _summary(report: dict) -> str:
    parts = [f'{len(report["loaded"])} keys loaded']
    for kind, text in (('step', 'new in step modules'), ('new', 'other new'),
                       ('unused', 'unused in the source')):
        if report[kind]:
            parts.append(f'{len(report[kind])} {text} '
                         f'({", ".join(report[kind])})')
    return '; '.join(parts)
