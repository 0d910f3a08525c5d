"""The text of a config in a checkpoint, reduced to plain settings.

An inferencer that is given weights alone builds its network and its test
pipeline from it. Only those settings are kept, as plain values: mmengine
executes a config, and its registries import the path of a dotted type.
"""
import ast
import builtins
import math
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
from keyword import iskeyword

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
#: In code, paths and hosts: the libraries evaluate or open some settings.
_NO_WORD = re.compile(
    r'[()\[\]\\{}\n*%:]|<<|^\.\.$|^(?!\d+/\d+\Z).*/|'
    r'\.(?i:py|json|ya?ml|pth?|pkl|pickle|bin|np[yz]|txt|csv|ckpt|onnx)$')
#: The transforms of the libraries' test pipelines (mmseg's, mmrotate's and
#: mmpose's too): others build objects of other libraries, open files, or may
#: never end.
_TRANSFORMS = frozenset("""
    ApplyToList BottomupResize CenterCrop CleanCaption Compose
    ConcatCDInput ConvertBoxType EfficientNetCenterCrop FixScaleResize
    GetBBoxCenterScale ImageToTensor KeyMapper LoadAnnotations
    LoadDepthAnnotation LoadImage LoadImageFromFile LoadImageFromNDArray
    LoadMultipleRSImageFromFile LoadPanopticAnnotations LoadProposals
    LoadSingleRSImageFromFile LoadTextAnnotations LoadTrackAnnotations
    MultiScaleFlipAug Normalize OFAAddObjects PackDetInputs PackInputs
    PackPoseInputs PackReIDInputs PackSegInputs PackTrackInputs Pad
    ProposalBroadcaster RandomCenterCropPad RandomFlip Resize ResizeEdge
    ResizeToMultiple TestTimeAug ToTensor TopdownAffine
    TransformBroadcaster""".split())
#: The registries that an inferencer builds from.
_KINDS = ('model', 'task util', 'transform', 'dataset', 'visualizer', 'loop')
#: The most keys that may have one hash, and runs of a test pipeline; the most
#: transforms.
_FEW, _FEWER = 1000, 100
#: The largest integer, which may be a count, and the largest float.
_LARGEST = (10**6 - 1, 10**8)
#: Keys whose number would be a file descriptor.
_OF_FILE = re.compile(r'(file|file_?name|(?<!drop_)path|dir)$')
#: Modules in these folders may be imported.
_PYTHON = osp.dirname(os.__file__)
_INSTALLED = {*site.getsitepackages(), site.getusersitepackages(),
              *map(sysconfig.get_path, ('purelib', 'platlib'))}
#: Characters of a text.
_LONGEST = 5 * 10**5
#: The tokens of a config as mmengine writes it.
_TOKEN = re.compile(r"""
    (?P<space>\s+|\#[^\r\n]*)|(?P<open>[\[({])|(?P<close>[\])}])
    |(?P<mark>[,:]|=(?!=))|(?P<sign>-(?=[\d.]))|(?P<word>[^\W\d]\w*(?![\w"']))
    |(?P<number>(?:0[xXoObB][\da-fA-F_]+|(?:[\d_]+(?:\.[\d_]*)?|\.[\d_]+)
                (?:[eE][+-]?\d+)?)(?![\w.]))
    |(?P<text>[rRbBuU]{0,2}(?:"{3}[^\\]*?(?:\\.[^\\]*?)*"{3}
              |'{3}[^\\]*?(?:\\.[^\\]*?)*'{3}
              |"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"
              |'[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'))""", re.VERBOSE | re.DOTALL)
#: The tokens before each token; a line begins with a word, after nothing.
_BEHIND = dict(
    word=('', 'open', 'mark'), number=('open', 'mark', 'sign'),
    text=('open', 'mark', 'text'), open=('open', 'mark', 'word'),
    sign=('open', 'mark'), mark=('word', 'number', 'text', 'close'),
    close=('open', 'mark', 'word', 'number', 'text', 'close'))
#: Brackets within brackets.
_DEEPEST = 50


class _Refused(Exception):
    """A config text is refused; the message says why."""


def without_code(checkpoint, filename: str):
    """Reduce the config texts in a checkpoint to :func:`inferencer_text`.

    Args:
        checkpoint: what was loaded; changed in place.
        filename (str): for the warning.
    """
    for place in TEXTS:
        text = at(checkpoint, place)
        if isinstance(text, str):
            try:
                at(checkpoint, place[:-1])[place[-1]] = inferencer_text(text)
            except _Refused as error:
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
    holder = at(checkpoint, place[:-1])
    if isinstance(holder, dict):
        holder.pop(place[-1], None)


def at(holder, path):
    """The value behind a path of keys, None if there is none."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder


def inferencer_text(text: str) -> str:
    """A config of the settings that an inferencer needs, in plain values.

    Args:
        text (str): a config as mmengine writes it.

    Returns:
        str: its ``model`` without starts, dataset type, classes and pipeline
        of its test data, ``default_scope``, ``test_cfg``, and the type of its
        visualizer.

    Raises:
        _Refused: if it is more than settings, or a setting names code, a
            path, or a type that is in no registry.
    """
    if len(text) > _LONGEST:
        raise _Refused(f'{len(text)} characters')
    try:
        cfg = settings_of(text)
    except ValueError as error:
        raise _Refused(error) from None
    kept = {key: cfg[key] for key in ('default_scope', 'model', 'test_cfg')
            if key in cfg}
    dataset = at(cfg, ('test_dataloader', 'dataset'))
    if isinstance(dataset, dict):
        kept['test_dataloader'] = dict(dataset=_some(dataset, _OF_DATASET))
    if isinstance(cfg.get('visualizer'), dict):
        kept['visualizer'] = _some(cfg['visualizer'], _OF_VISUALIZER)
    kept = _without(kept)
    _check(kept)
    if math.prod(_choices(kept)) > _FEW:
        raise _Refused('too many pipelines')
    text = ''.join(f'{key} = {value!r}\n' for key, value in kept.items())
    if '{{' in text:  # which mmengine replaces before it reads the rest
        raise _Refused('double braces')
    return text


def _some(settings: dict, names: tuple) -> dict:
    return {name: settings[name] for name in names if name in settings}


def _name_of(path: str) -> str:
    """The registered name of the class that a path names, or the path."""
    for owner in (path.partition('.')[0], 'mmengine') if '.' in path else ():
        registries = [*_registries(owner)]
        named = _named(path)  # now that its library is imported
        for registry in registries:
            for name, part in registry.module_dict.items():
                if part is named:
                    return f'{owner}.{name}'
    return path


def settings_of(text: str | bytes) -> dict:
    """The settings of a config as mmengine writes it, which is not executed.

    Raises:
        ValueError: if it holds more than settings.
    """
    settings = {}
    try:
        text = text if isinstance(text, str) else text.decode()
        _look_over(text)
        for line in _Displays().visit(ast.parse(text)).body:
            name, = line.targets
            settings[name.id] = ast.literal_eval(line.value)
    except Exception as error:  # no Python, or too deep
        raise ValueError('more than settings '
                         f'({type(error).__name__}: {error!s:.80})') from None
    return settings


def _look_over(text: str) -> None:
    """Refuse chains and deep nesting, which may crash Python's parser."""
    at, depth, last = 0, 0, ''
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f'{text[at:at + 20]!r}')
        at, kind = token.end(), str(token.lastgroup)
        if kind == 'space':
            last = last if depth or '\n' not in token[0] else ''
            continue
        depth += (kind == 'open') - (kind == 'close')
        if (not 0 <= depth <= _DEEPEST or last not in _BEHIND[kind]
                or iskeyword(token[0])
                and token[0] not in ('True', 'False', 'None')):
            raise ValueError(f'{token[0]!r:.40} behind a {last}')
        last = kind


class _Displays(ast.NodeTransformer):
    """``dict(a=1)`` and ``dict({'a': 1})`` -> ``{'a': 1}``, a literal."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == 'dict'):
            return node
        if node.args and not node.keywords:
            return node.args[0]
        return ast.Dict([ast.Constant(word.arg) for word in node.keywords],
                        [word.value for word in node.keywords])

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        return self._with_quick_keys(node, node.keys)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        return self._with_quick_keys(node, node.elts)

    def _with_quick_keys(self, node, keys) -> ast.AST:
        """Refuse many keys that may have one hash."""
        if len(keys) > _FEW and not all(
                isinstance(key, ast.Constant) and (
                    isinstance(key.value, str)
                    or isinstance(key.value, int)
                    and key.value < sys.hash_info.modulus) for key in keys):
            raise ValueError(f'{len(keys)} keys that are no text or number')
        return self.generic_visit(node)


def _without(value):
    """A copy without :data:`_TAKEN_OUT` and paths to classes, at any depth."""
    if isinstance(value, dict):
        return {key: _without(part) for key, part in value.items()
                if key not in _TAKEN_OUT}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without, value))
    return _name_of(value) if isinstance(value, str) else value


def _choices(value, within=None) -> Iterator:
    """Sizes of lists of settings in lists; a pipeline takes one of each."""
    if isinstance(value, (list, tuple)) and isinstance(within, (list, tuple)):
        yield sum(isinstance(part, dict) for part in value) or 1
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        yield from _choices(part, value)


def _check(value, key=None) -> None:
    """Refuse values that would be imported, evaluated or opened."""
    if isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                _check(name)
            _CHECKS.get(name, _check)(part, name)
    elif isinstance(value, (list, tuple, set)):
        for part in value:
            _check(part, key)
    elif isinstance(value, (int, float)):
        is_float = isinstance(value, float)
        if not abs(value) <= _LARGEST[is_float] or (
                not is_float and _OF_FILE.search(str(key))):
            raise _Refused(f'for {key!r:.60} a number that is too large, or '
                           'an open file')
    elif isinstance(value, str):
        _check_word(value, key)
    elif value is not None:
        raise _Refused(f'{key!r:.60}={value!r:.60}')


def _check_word(text: str, key) -> None:
    """Under any key, for many settings are built as types are."""
    scope, dot, _ = text.partition('.')
    token = re.fullmatch(r'\[[A-Z]+\]', text)  # of a language model
    is_file = osp.lexists(text) and not osp.isdir(text)
    if (not token and _NO_WORD.search(text) or is_file
            or not dot and _runs(text)):
        raise _Refused(f'{key!r:.60}={text!r:.60}')
    if dot and scope and not _is_unknown(scope):
        _check_type(text, key)


def _check_classes(metainfo, key) -> None:
    """Refuse text that would be a file; names in lists may be anything."""
    if not isinstance(metainfo, dict) or any(
            isinstance(value, str) for value in metainfo.values()):
        raise _Refused(f'{key}={metainfo!r:.60}')
    for part in metainfo.values():
        _check([name for name in part if not isinstance(name, str)]
               if isinstance(part, (list, tuple)) else part)


def _check_scope(scope, key) -> None:
    if not isinstance(scope, str) or not [*_registries(scope, False)]:
        raise _Refused(f'{key}={scope!r:.60}, which is not imported')


def _check_type(name, key) -> None:
    """Refuse a type that a registry would have to import."""
    if not isinstance(name, str):
        return _check(name, key)
    scope, _, rest = name.partition('.')
    known = (_holds(scope, rest) if rest else _is_word(name)
             or _holds('mmdet', name) or _holds('mmengine', name))
    # A registry of another kind imports it, and EncHead writes 1d for 2d.
    if not known or any(
            _runs((rest or name).replace('2d', dimensions))
            for dimensions in ('2d', '1d')):
        raise _Refused(f'the type {name!r:.60}, which no registry holds')


def _check_pipeline(steps, key) -> None:
    """Refuse transforms of the libraries beside :data:`_TRANSFORMS`, and
    many runs.
    """
    _check(steps, key)
    found = [*_settings(steps)]
    for settings in found:
        name = settings.get('type', 'Compose')
        short = str(name).rpartition('.')[2]
        if short not in _TRANSFORMS and not _is_own(short):
            raise _Refused(f'the transform {name!r:.60} in its test pipeline')
        runs = math.prod(len(part) or 1 for part in settings.values()
                         if isinstance(part, (list, tuple)))
        within = [*_settings(settings.get('transforms'))]
        if runs > _FEW or any('transforms' in inner for inner in within):
            raise _Refused(f'a {name!r:.60} of many runs')
    if len(found) > _FEWER:
        raise _Refused(f'{len(found)} transforms')


def _settings(value) -> Iterator[dict]:
    """All dicts in a value, itself included."""
    if isinstance(value, dict):
        yield value
        value = [*value.values()]
    for part in value if isinstance(value, (list, tuple)) else ():
        yield from _settings(part)


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


def _check_evaluated(value, key) -> None:
    """Refuse all that the libraries evaluate but one name."""
    if isinstance(value, str) and re.fullmatch(r'cv2\.MOTION_[A-Z]+', value):
        return
    if isinstance(value, str) and not re.fullmatch(r'\w+', value, re.A):
        raise _Refused(f'{key}={value!r:.60}')
    _check(value, key)


_CHECKS = dict(dtype=_check_evaluated, warp_mode=_check_evaluated,
               type=_check_type, metainfo=_check_classes,
               pipeline=_check_pipeline, default_scope=_check_scope,
               _scope_=_check_scope)


def _holds(scope: str, name: str) -> bool:
    return any(name in registry.module_dict for filled in (False, True)
               for registry in _registries(scope, filled))


def _named(path: str):
    """The object that a path names; None if its module is not imported."""
    module, _, name = path.rpartition('.')
    # Not getattr, for which some modules import.
    return vars(sys.modules.get(module, object)).get(name)


def _is_word(name: str) -> bool:
    """Whether nothing that a registry or eval could find has that name."""
    return (name.isidentifier() and name.isascii()  # as eval reads others
            and _is_unknown(name))


def _is_unknown(name: str) -> bool:
    return (not hasattr(builtins, name)
            and name not in sys.modules and find_spec(name) is None)


def _runs(name: str) -> bool:
    """Whether to import that name runs a file that is not Python's own."""
    if not name or name in sys.modules:
        return False
    file = getattr(find_spec(name), 'origin', None)  # of a folder None
    return file not in (None, 'built-in', 'frozen') and (
        name == 'antigravity' or osp.dirname(file) not in (
            _PYTHON, f'{_PYTHON}/lib-dynload', f'{_PYTHON}/{name}'))


def _registries(scope: str, filled: bool = True) -> Iterator:
    """The registries of an installed library; to fill them takes seconds."""
    from mmengine import registry as of_mmengine
    _import_library(scope)
    for root in list(vars(of_mmengine).values()):
        if isinstance(root, of_mmengine.Registry) and root.name in _KINDS:
            for registry in (root, *root.children.values()):
                if registry.scope == scope:
                    if filled:
                        with suppress(Exception):  # the library says it itself
                            registry.import_from_location()
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
