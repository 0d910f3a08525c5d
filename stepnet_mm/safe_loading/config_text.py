"""The text of a config in a checkpoint, reduced to plain settings.

An inferencer that is given weights alone builds its network and its test
pipeline from it. Only those settings are kept, as plain values: mmengine
executes a config, and its registries import the path of a dotted type.
"""
import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

#: Where an inferencer looks for the text.
TEXTS = (('message_hub', 'runtime_info', 'cfg'), ('meta', 'cfg'))
#: Read by a resume alone, which does not need it.
_OF_A_RESUME = ('meta', 'config')
#: Settings that name files, code or hosts.
_TAKEN_OUT = ('init_cfg', 'pretrained', 'checkpoint', 'checkpoint_path',
              'backend_args', 'file_client_args', 'teacher_config',
              'teacher_ckpt', 'trust_remote_code', 'prototype', 'cache_dir',
              'decode_backend', 'tag_list', 'tag_list_chinese')
#: Settings that are kept of the test dataset and of the visualizer.
_OF_DATASET = ('type', 'metainfo', 'pipeline', '_scope_')
_OF_VISUALIZER = ('type', '_scope_')
#: Text that is no code, path or host: words; patch/stride, 1.6gf, a full
#: stop, [CLS], a motion of OpenCV. The libraries evaluate some of it.
_WORDS = re.compile(r'[\w \'",?!&+-]{,200}|\d+/\d+|\w*\d\.\d\w*|\.|\[[A-Z]+\]'
                    r'|cv2\.MOTION_[A-Z]+')
#: The registries that an inferencer builds from.
_KINDS = ('model', 'task util', 'transform', 'dataset', 'visualizer', 'loop')


class _Refused(ValueError):
    """A config text is refused; the message says why."""


def without_code(checkpoint, filename: str):
    """Reduce the config texts in a checkpoint to :func:`inferencer_text`."""
    for place in TEXTS:
        text = value_at(checkpoint, place)
        if isinstance(text, str):
            try:
                holder = value_at(checkpoint, place[:-1])
                holder[place[-1]] = inferencer_text(text)
            except ValueError as error:  # or a number too long to print
                _drop(checkpoint, place)
                warnings.warn(
                    f'checkpoint {filename}: the config in {".".join(place)} '
                    f'was left out, for it has {error}; an inferencer takes '
                    'one as DetInferencer(model=CONFIG, weights=...)',
                    stacklevel=2)
    _drop(checkpoint, _OF_A_RESUME)
    return checkpoint


def drop_texts(checkpoint: dict) -> None:
    """Remove all config texts, since the Runner has its config."""
    for place in (*TEXTS, _OF_A_RESUME):
        _drop(checkpoint, place)


def _drop(checkpoint, place: tuple) -> None:
    holder = value_at(checkpoint, place[:-1])
    if isinstance(holder, dict):
        holder.pop(place[-1], None)


def value_at(holder, path):
    """The value behind a path of keys, None if there is none."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder


def inferencer_text(text: str) -> str:
    """What an inferencer needs of a config, in plain values.

    Its ``model`` without starts, dataset type, classes and pipeline of its
    test data, ``default_scope``, ``test_cfg``, and the type of its visualizer.

    Raises:
        _Refused: if it is more than settings, or a setting names code, a
            path, or a type that is in no registry.
    """
    cfg = settings_of(text)
    kept = _some(cfg, ('default_scope', 'model', 'test_cfg'))
    dataset = value_at(cfg, ('test_dataloader', 'dataset'))
    if isinstance(dataset, dict):
        kept['test_dataloader'] = dict(dataset=_some(dataset, _OF_DATASET))
    if isinstance(cfg.get('visualizer'), dict):
        kept['visualizer'] = _some(cfg['visualizer'], _OF_VISUALIZER)
    kept = _reduced(kept)
    text = ''.join(f'{key} = {value!r}\n' for key, value in kept.items())
    if '{{' in text:  # which mmengine replaces before it reads the rest
        raise _Refused('double braces')
    return text


def _some(settings: dict, names: tuple) -> dict:
    return {name: settings[name] for name in names if name in settings}


def settings_of(text: str | bytes) -> dict:
    """The settings of a config as mmengine writes it, which is not executed.

    Raises:
        ValueError: if it holds more than settings.
    """
    try:
        lines: list[Any] = ast.parse(text).body
        if not all(isinstance(line, ast.Assign) for line in lines):
            raise ValueError('no settings')
        return {target.id: _plain(line.value)
                for line in lines for target in line.targets}
    except Exception as error:  # no Python, or no text
        raise _Refused('more than settings '
                       f'({type(error).__name__}: {error!s:.80})') from None


def _plain(node: Any):
    """The value of what mmengine writes: constants, containers, dict(...)."""
    if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'dict':
        items: Any = {part.arg: _plain(part.value) for part in node.keywords}
        return dict(*map(_plain, node.args), **items)
    if isinstance(node, ast.Dict):
        return dict(zip(map(_plain, node.keys), map(_plain, node.values)))
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = map(_plain, node.elts)
        return tuple(parts) if isinstance(node, ast.Tuple) else list(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_plain(node.operand)
    if isinstance(node, ast.Constant) and isinstance(
            node.value, (int, float, str, type(None))):
        return node.value
    raise ValueError(type(node).__name__)


def _reduced(value, key=None):
    """A copy of words and registered types, without :data:`_TAKEN_OUT`."""
    if key == 'metainfo' and isinstance(value, dict):  # text names a file
        return {name: part for name, part in value.items()
                if not isinstance(part, str)}
    if isinstance(value, dict):
        return {name: _reduced(part, name) for name, part in value.items()
                if name not in _TAKEN_OUT}
    if isinstance(value, (list, tuple)):
        return type(value)(_reduced(part) for part in value)
    return _word_or_type(value, key) if isinstance(value, str) else value


def _word_or_type(text: str, key) -> str:
    """``'mmdet.models.x.Y'`` -> ``'mmdet.Y'``, if a registry holds that.

    Under any key, since many settings are built as types, and a registry
    imports a path.
    """
    if _WORDS.fullmatch(text) and not (
            # Of a type in no registry mmengine imports the module.
            key == 'type' and text.isidentifier() and find_spec(text)):
        return text
    *path, name = text.split('.')
    for scope in (*path[:1], 'mmengine'):
        if _holds(scope, name):
            return f'{scope}.{name}'
    raise _Refused(f'{key!r:.60}={text!r:.60}, which is no plain word and in '
                   'no registry')


def _holds(scope: str, name: str) -> bool:
    for registry in _registries(scope):
        with suppress(Exception):  # the library says it itself
            registry.import_from_location()
        if name in registry.module_dict:
            return True
    return False


def _registries(scope: str) -> Iterator:
    """The registries of an installed library."""
    from mmengine import registry as of_mmengine
    from mmengine.config.utils import MODULE2PACKAGE
    if scope in MODULE2PACKAGE:
        with suppress(Exception):  # as above
            import_module(f'{scope}.registry')
    for root in list(vars(of_mmengine).values()):
        if isinstance(root, of_mmengine.Registry) and root.name in _KINDS:
            for registry in (root, *root.children.values()):
                if registry.scope == scope:
                    yield registry
