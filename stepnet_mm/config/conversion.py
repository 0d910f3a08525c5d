"""Turns a config of the mm libraries into that of its StepNet."""
import os.path as osp
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.registry import MODELS
from mmengine.utils import is_installed
from yapf.yapflib.yapf_api import FormatCode

from ..steps.base import build_step
from ..utils.data_errors import in_a_line
from .image_scale import scale_changes
from .lookup import class_of
from .options import add_custom_import
from .own_data import OwnData, data_changes
from .reading import (
    INSTALLED,
    LIBRARIES,
    PYTHONIC,
    find_config,
    package_folder,
    read_file,
)


@dataclass
class Backbone:
    """A backbone in a config.

    Attributes:
        path (tuple): its keys and list indices, from ``'model'`` on.
        node (dict): its config.
        scope (str | None): the scope in which its ``type`` is looked up.
    """
    path: tuple
    node: dict
    scope: str | None

    def __post_init__(self):
        self.key = '.'.join(map(str, self.path))
        self.type = self.node.get('type')
        self.cls = class_of(self.type, MODELS, self.scope)
        self.name = getattr(self.cls, '__name__', self.type)
        self.library = _package(self.cls)
        self._built: Any = None

    @property
    def counterpart(self) -> type | None:
        """The StepNet's class; None if there is none."""
        if self.library not in LIBRARIES or self.is_step:
            return None
        return class_of(f'Step{self.name}', MODELS, self.library)

    @property
    def is_step(self) -> bool:
        """Whether it is a StepNet already."""
        own = _package(Backbone)
        return own in map(_package, getattr(self.cls, '__mro__', ()))

    @property
    def reason(self) -> str:
        """Why it has no counterpart."""
        if self.cls is None:
            return (f'no {self.type!r} is registered in the scope '
                    f'{self.scope!r}; set default_scope, write the library '
                    'before the type, as in mmdet.ResNet, or set '
                    'custom_imports if it is your own')
        if self.is_step:
            return f'{self.name} is a StepNet already'
        return (f'{self.cls.__module__}.{self.name} has no StepNet; '
                'register one by stepnet_mm.models.step_backbone')

    def refusal(self, step: dict | None) -> str:
        """Why its StepNet does not build; '' if it does."""
        try:
            self._built = self._build(step)
        except Exception as error:  # of the library, too
            return str(error)
        return ''

    @property
    def is_measured(self) -> bool:
        """Whether a stage has blocks after its first, as TNS needs them."""
        with suppress(Exception):  # that is said elsewhere
            model = self._built or self._build(None)
            return model is None or any(
                len(row) > 1 for row in model._stages())
        return False

    def _build(self, step: dict | None):
        """Its StepNet, if only building it shows the blocks."""
        if not getattr(self.counterpart or self.cls, 'finds_blocks', False):
            return None
        # Nothing is loaded for it.
        settings = {**self.node, **(
            self.changes(step) if self.counterpart else {})}
        for key in ('init_cfg', 'pretrained', 'checkpoint_path'):
            settings.pop(key, None)
        with MODELS.switch_scope_and_registry(self.scope) as registry:
            return registry.build(settings)

    def changes(self, step: dict | None) -> dict:
        """The settings of its counterpart, with its library if needed."""
        prefix = '' if (isinstance(self.type, str) and '.' not in self.type
                        and self.library == self.scope) else f'{self.library}.'
        found: dict = dict(type=f'{prefix}Step{self.name}')
        if (self.library, self.name) == ('mmpretrain', 'VisionTransformer'):
            found['step_mode'] = 'gate'
        if step:
            found['step'] = step
            if self.node.get('frozen_stages', -1) > 0 and (
                    not _starts_at_one(step)):
                found['frozen_stages'] = 0
        return found


def to_stepnet(name: str, out: str | None = None, step: dict | None = None,
               data: OwnData | None = None, plain: bool = False,
               scale: Sequence[int] | None = None) -> str:
    """The text of the config that is the StepNet of another one.

    It inherits that config and changes the types of its backbones; norms,
    frozen stages and weights stay. So does a teacher, if the steps would not
    start at 1, for its weights are those of a plain network.

    Args:
        name (str): a path, or ``'mmdet::folder/file.py'``.
        out (str, optional): where the text will be. Defaults to the folder
            of the config.
        step (dict, optional): the backbones' ``step``. Defaults to theirs.
        data (OwnData, optional): a user's data, to which the config's
            datasets, evaluators and heads are set.
        plain (bool): whether the backbones stay, for ``data`` alone.
        scale (sequence[int], optional): long and short edge of the images,
            as :func:`.set_image_scale` sets it.

    Raises:
        ValueError: if the config cannot be read, has no backbone that can
            be converted, or is a StepNet already; or on an unknown ``step``
            or key, or ``data`` or a ``scale`` that it is not for.
    """
    if step:
        build_step(step, 64)
    path = find_config(name)
    cfg = read_file(name)
    first, changes = f'# Own data for {in_a_line(name)}', {}
    # Types without a scope are of the library that the file came with.
    found = list(_backbones(cfg.get('model'), ('model', ), cfg.get(
        'default_scope') or _home(path, INSTALLED, PYTHONIC)[0]))
    if not plain:
        stays = {b.key: _why_it_stays(b, step) for b in found}
        changes = {b.path: b.changes(step) for b in found if not stays[b.key]}
        done = data and found and all(b.is_step for b in found)
        if not changes and not done:
            raise ValueError(f'{name}: ' + (
                '; '.join(f'{key}: {why}' for key, why in stays.items())
                or 'no backbone in model'))
        first = first if done else '\n'.join([
            f'# StepNet of {in_a_line(name)}{_why(step, changes.values())}',
            *(f'# {b.key} stays: {stays[b.key]}' for b in found
              if b.cls and stays[b.key] and not b.is_step)])
    variables = (dict(custom_imports=cfg.custom_imports)
                 if add_custom_import(cfg) else {})
    if data:
        others, own = data_changes(
            cfg, data, any(b.is_measured for b in found))
        variables.update(own)
        for keys, settings in others.items():
            changes[keys] = {**changes.get(keys, {}), **settings}
    for keys, settings in scale_changes(cfg, scale) if scale else ():
        changes[keys] = {**changes.get(keys, {}), **settings}
    lines = _inherit(path, Path(out or path).absolute().parent, changes,
                     variables)
    text = '\n'.join([first, *lines]) + '\n'
    # As mmengine does, which brings yapf.
    return FormatCode(text, style_config='pep8')[0] if data else text


def _backbones(node, path: tuple, scope):
    """All backbones in a part of a config, however deep."""
    if isinstance(node, (list, tuple)):
        for i, child in enumerate(node):
            yield from _backbones(child, (*path, i), scope)
    if not isinstance(node, dict):
        return
    kind, scope = node.get('type'), node.get('_scope_', scope)
    # Without a scope, the one of what is built is that of its parts.
    inner = scope
    if scope is None and isinstance(kind, str) and '.' in kind:
        inner = kind.partition('.')[0]
    found = Backbone(path, node, scope) if kind else None
    if found and (found.is_step or found.counterpart):
        yield found
        return
    parts = [part for key, child in node.items()
             for part in _backbones(child, (*path, key), inner)]
    # A wrapper, such as LoRAModel, has the backbone inside.
    yield from parts or (
        [found] if found and str(path[-1]).endswith('backbone') else [])


def _package(cls) -> str:
    return getattr(cls, '__module__', '').partition('.')[0]


def _why_it_stays(backbone: Backbone, step: dict | None) -> str:
    """Why a backbone is not converted; '' if it is."""
    if not backbone.counterpart:
        return backbone.reason
    if 'teacher' in backbone.key and not _starts_at_one(step):
        return ('a teacher, which steps that do not start at 1 would make an '
                'untrained network (by hand, if you mean it)')
    return backbone.refusal(step)


def _why(step: dict | None, changes) -> str:
    """The end of the comment: what is set, and why."""
    reasons = []
    if any('step_mode' in new for new in changes):
        reasons.append("step_mode='gate' keeps the attention")
    if any('frozen_stages' in new for new in changes):
        reasons.append('frozen_stages=0, for these steps do not start at 1 '
                       'and would never learn')
    if _starts_at_one(step):
        reasons.append('steps start at 1 where weights come without steps')
    return ': ' * bool(reasons) + '; '.join(reasons)


def _starts_at_one(step: dict | None) -> bool:
    """Whether a step starts at 1 in a block whose weights have none."""
    built = build_step(step or 'StepAdaptor', 64)
    built.start_pretrained()
    return built.init_step == 1


def _inherit(path: Path, folder: Path, changes: dict,
             variables: dict) -> list[str]:
    """The lines of a config in ``folder`` that inherits ``path``.

    ``changes``: keys and list indices of a dict in it -> what is set there.
    Of a config in the pure-Python style all is written out: mmengine does
    not mix the styles.
    """
    if Config._is_lazy_import(str(path)):
        return _written_out(path, changes, variables)
    tree: dict = dict(variables)
    inside = []
    for keys, settings in changes.items():
        if any(isinstance(key, int) for key in keys):
            # mmengine merges dicts alone, so this changes the base itself.
            inside.append(f'_base_.{_reference(keys)}.update('
                          f'{_source(settings)})')
            continue
        node = tree
        for key in keys:
            node = node.setdefault(key, {})
        node.update(settings)
    return [f'_base_ = {_base_name(path, folder)!r}',
            *(f'{key} = {_source(value)}' for key, value in tree.items()),
            *inside]


def _written_out(path: Path, changes: dict, variables: dict) -> list[str]:
    cfg = read_file(str(path))
    for keys, settings in changes.items():
        node = cfg
        for key in keys:
            node = node[key]
        node.update(settings)
    cfg.update(variables)
    return cfg.pretty_text.splitlines()


def _base_name(path: Path, folder: Path) -> str:
    """The ``_base_`` that stands for a path in a config in ``folder``."""
    library, inner = _home(path, INSTALLED)
    if not library:
        return osp.relpath(path, folder)
    # mmengine knows mmseg by a package that onedl calls otherwise.
    if not is_installed(MODULE2PACKAGE[library]):
        return str(path.resolve())
    # mmengine wants word characters up to the first slash.
    detour = '' if re.match(r'\w+/', inner) else '_base_/../'
    return f'{library}::{detour}{inner}'


def _home(path: Path, *folders: Path) -> tuple:
    """The library that has a file in one of these folders, and where."""
    for library, inner in product(LIBRARIES, folders):
        root = package_folder(library)
        folder = root and (root / inner).resolve()
        if folder and path.resolve().is_relative_to(folder):
            return library, path.resolve().relative_to(folder).as_posix()
    return None, ''


def _reference(keys: tuple) -> str:
    """('model', 'parts', 0) -> 'model.parts[0]'."""
    first, *rest = keys
    return first + ''.join(
        f'.{key}' if str(key).isidentifier() else f'[{key!r}]'
        for key in rest)


def _source(value) -> str:
    """A part of a config as Python."""
    if isinstance(value, dict) and all(str(key).isidentifier()
                                       for key in value):
        inner = (f'{key}={_source(v)}' for key, v in value.items())
        return f'dict({", ".join(inner)})'
    return repr(value)
