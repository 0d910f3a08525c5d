"""The text of a config in a checkpoint, reduced to plain settings.

An inferencer that is given weights alone builds its network and its test
pipeline from it. Only those settings are kept, as plain values: mmengine
executes a config, and its registries import the path of a dotted type.
"""
import ast
import builtins
import os
import os.path as osp
import re
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
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
#: Text that is no code, path or host: words; patch/stride, 1.6gf, a full stop
#: and [CLS].
_WORDS = re.compile(
    r'[\w \'",?!&+-]{,200}|\d+/\d+|\w*\d\.\d\w*|\.|\[[A-Z]+\]')
#: The libraries evaluate some settings.
_EVALUATED = dict.fromkeys(
    ('dtype', 'warp_mode'), re.compile(r'[a-zA-Z0-9_]+|cv2\.MOTION_[A-Z]+'))
#: The transforms of the libraries' test pipelines (mmseg's, mmrotate's and
#: mmpose's too) that do no more: others build objects of other libraries, or
#: open files.
_TRANSFORMS = frozenset("""
    BottomupResize CenterCrop CleanCaption ConcatCDInput ConvertBoxType
    EfficientNetCenterCrop FixScaleResize GetBBoxCenterScale ImageToTensor
    LoadAnnotations LoadDepthAnnotation LoadImage LoadImageFromFile
    LoadImageFromNDArray LoadMultipleRSImageFromFile LoadPanopticAnnotations
    LoadProposals LoadSingleRSImageFromFile LoadTextAnnotations
    LoadTrackAnnotations Normalize OFAAddObjects PackDetInputs PackInputs
    PackPoseInputs PackReIDInputs PackSegInputs PackTrackInputs Pad
    RandomCenterCropPad RandomFlip Resize ResizeEdge ResizeToMultiple ToTensor
    TopdownAffine""".split())
#: The registries that an inferencer builds from.
_KINDS = ('model', 'task util', 'transform', 'dataset', 'visualizer', 'loop')
#: Keys whose number would be a file descriptor.
_OF_FILE = re.compile(r'(file|file_?name|(?<!drop_)path|dir)$')
#: Modules in these folders may be imported.
_PYTHON = osp.dirname(os.__file__)
_INSTALLED = {*site.getsitepackages(), site.getusersitepackages(),
              *map(sysconfig.get_path, ('purelib', 'platlib'))}


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
    kept = _without(kept)
    _check(kept)
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


def _without(value):
    """A copy without :data:`_TAKEN_OUT` and paths to classes, at any depth."""
    if isinstance(value, dict):
        return {key: _without(part) for key, part in value.items()
                if key not in _TAKEN_OUT}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without, value))
    return _registered(value) if isinstance(value, str) else value


def _registered(path: str) -> str:
    """``'mmdet.models.x.Y'`` -> ``'mmdet.Y'``, if a registry holds that."""
    parts = path.split('.')
    for scope in (parts[0], 'mmengine') if len(parts) > 2 else ():
        if _holds(scope, parts[-1]):
            return f'{scope}.{parts[-1]}'
    return path


def _check(value, key=None) -> None:
    """Refuse values that would be imported, evaluated or opened."""
    if isinstance(value, dict):
        for name, part in value.items():
            _CHECKS.get(name, _check)(part, name)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _check(part, key)
    elif isinstance(value, int) and _OF_FILE.search(str(key)):
        raise _Refused(f'for {key!r:.60} an open file')
    elif isinstance(value, str) and not _is_allowed(value, key):
        raise _Refused(f'{key!r:.60}={value!r:.60}, which is no plain word '
                       'and in no registry')


def _is_allowed(text: str, key) -> bool:
    """Under any key a type or a word, for many settings are built as types."""
    scope, _, name = text.partition('.')
    if key in ('default_scope', '_scope_'):
        return next(_registries(text), None) is not None
    if name and _holds(scope, name):
        return not _runs(name)
    if key == 'type':
        return (_is_word(text) or _holds('mmdet', text)
                or _holds('mmengine', text)) and not _runs(text)
    return bool(_EVALUATED.get(key, _WORDS).fullmatch(text)) and (
        scope == 'cv2' or not _runs(scope)) and (
        osp.isdir(text) or not osp.lexists(text))


def _check_classes(metainfo, key) -> None:
    """Refuse text that would be a file; names in lists may be anything."""
    if not isinstance(metainfo, dict) or any(
            isinstance(value, str) for value in metainfo.values()):
        raise _Refused(f'{key}={metainfo!r:.60}')
    for part in metainfo.values():
        _check([name for name in part if not isinstance(name, str)]
               if isinstance(part, (list, tuple)) else part)


def _check_pipeline(steps, key) -> None:
    """Refuse transforms that may run code."""
    _check(steps, key)
    for step in steps if isinstance(steps, (list, tuple)) else [steps]:
        name = step.get('type') if isinstance(step, dict) else step
        short = str(name).rpartition('.')[2]
        if short not in _TRANSFORMS and not _is_own(short):
            raise _Refused(f'the transform {name!r:.60} in its test pipeline')


def _is_own(name: str) -> bool:
    """Whether a user's module registered a transform."""
    from mmengine.config.utils import MODULE2PACKAGE
    from mmengine.registry import TRANSFORMS
    libraries = {'mmcv', 'mmengine', *MODULE2PACKAGE}
    made = [registry.module_dict[name]
            for registry in (TRANSFORMS, *TRANSFORMS.children.values())
            if name in registry.module_dict]
    return bool(made) and not any(
        part.__module__.partition('.')[0] in libraries for part in made)


_CHECKS = dict(metainfo=_check_classes, pipeline=_check_pipeline,
               transforms=_check_pipeline)


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
    _import_library(scope)
    for root in list(vars(of_mmengine).values()):
        if isinstance(root, of_mmengine.Registry) and root.name in _KINDS:
            for registry in (root, *root.children.values()):
                if registry.scope == scope:
                    yield registry


@lru_cache(None)
def _import_library(scope: str) -> None:
    """Import an installed library, but no folder that has its name."""
    from mmengine.config.utils import MODULE2PACKAGE
    if scope in MODULE2PACKAGE and scope not in sys.modules:
        # Metadata beside a user's script name a folder there, too.
        file = getattr(find_spec(scope), 'origin', None) or ''
        if osp.dirname(osp.dirname(file)) in _INSTALLED:
            with suppress(Exception):  # as above
                import_module(f'{scope}.registry')


def _is_word(name: str) -> bool:
    """Whether nothing that a registry or eval could find has that name."""
    return (name.isidentifier() and name.isascii()  # as eval reads others
            and not hasattr(builtins, name)
            and name not in sys.modules and find_spec(name) is None)


def _runs(name: str) -> bool:
    """Whether to import a name runs a file that is not Python's own."""
    # EncHead writes 1d for 2d.
    return any(map(_is_file_of_others, {name, name.replace('2d', '1d')}))


def _is_file_of_others(name: str) -> bool:
    if not name or name in sys.modules:
        return False
    file = getattr(find_spec(name), 'origin', None)  # of a folder None
    return file not in (None, 'built-in', 'frozen') and (
        name == 'antigravity' or osp.dirname(file) not in (
            _PYTHON, f'{_PYTHON}/lib-dynload', f'{_PYTHON}/{name}'))
