#!/usr/bin/env python
"""What users rely on, one line for each promise: contract.txt.

python tests/contract.py             # shows what the code has otherwise
python tests/contract.py --accept    # writes what the code has

Registered names and public ones with their arguments and defaults, the options
of all tools, the fields of records, the digests of what was run for results/,
and of every config's network the number of its parameters with a digest of its
keys and shapes. The names of scalars are in the goldens. Exit code 1 where the
two differ. Takes a minute, nearly all of it for the networks.
"""
import argparse
import difflib
import hashlib
import inspect
import json
import pkgutil
import re
import runpy
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from unittest import mock

import mmengine.config.utils
import numpy as np
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import MODELS, init_default_scope

import stepnet_mm
from stepnet_mm.attention import save_attention
from stepnet_mm.doctor import __main__ as doctor
from stepnet_mm.models.any_network import AnyStepBackbone
from stepnet_mm.registered_names import BINDINGS, NAMES
from stepnet_mm.stiffness import append_rows, begin_record
from stepnet_mm.utils.command_line import command_parser

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [f'{ROOT}/{folder}' for folder in (
    'tools/studies', 'tests/models', 'tests/visualization')]
from equality import undrawn
from made_records import make_attention_record, make_record
from records import FORMAT, StudyRecord, read_records
from study_file import config_digest, read_study, runs_of

FILE = Path(__file__).with_suffix('.txt')
CONFIGS = ROOT / 'configs'
NETWORKS = sorted(
    str(path.relative_to(CONFIGS)) for path in CONFIGS.rglob('*.py')
    if not {'_base_', 'studies'} & set(path.parts))
RESULTS = sorted(path.stem for path in (ROOT / 'results').glob('*.jsonl'))


# Names

def classes() -> dict[str, list[type]]:
    """Registry -> its classes of ours, sorted by name."""
    found = {registry: [getattr(import_module(module), name)
                        for module, names in modules.items()
                        for name in names]
             for registry, modules in NAMES.items()}
    for library, bindings in BINDINGS.items():
        registries = import_module(f'{library}.registry')
        for registry, module in bindings.items():
            import_module(module)
            found[f'{library}.{registry}'] = [
                cls for cls in getattr(registries, registry).module_dict
                .values() if cls.__module__.startswith('stepnet_mm.')]
    return {registry: sorted(classes, key=lambda c: c.__name__.lower())
            for registry, classes in found.items()}


def signature(name: str, thing) -> Iterator[str]:
    """A name, and a line for each argument that our code gives it.

    Annotations and the libraries' arguments differ between stacks.
    """
    yield name
    seen = set()
    for parameter in parameters(thing):
        if parameter.name not in seen:
            seen.add(parameter.name)
            star = '*, ' * (parameter.kind is parameter.KEYWORD_ONLY)
            parameter = parameter.replace(annotation=parameter.empty)
            yield f'{name}({star}{parameter})'


def parameters(thing) -> Iterator[inspect.Parameter]:
    """Of a function, or of our constructors that take a class's arguments."""
    if inspect.isfunction(thing):
        yield from inspect.signature(thing).parameters.values()
    for cls in thing.__mro__ if inspect.isclass(thing) else ():
        if '__init__' in vars(cls):
            if not cls.__module__.startswith('stepnet_mm.'):
                return
            _, *own = inspect.signature(
                vars(cls)['__init__']).parameters.values()
            yield from own
            if not any(p.kind is p.VAR_KEYWORD for p in own):
                return


def registered() -> Iterator[str]:
    """What a config may name."""
    for registry, own in sorted(classes().items()):
        for cls in own:
            name = f'{registry}.{cls.__name__}'
            # The arguments of those made by step_backbone are those of one.
            yield from ([name] if AnyStepBackbone in cls.__bases__
                        else signature(name, cls))


def public() -> Iterator[str]:
    """What each folder exports; of what is registered the name."""
    known = [cls for own in classes().values() for cls in own]
    folders = pkgutil.iter_modules(stepnet_mm.__path__, 'stepnet_mm.')
    for folder in ('stepnet_mm', *(f.name for f in folders if f.ispkg)):
        module = import_module(folder)
        for name in getattr(module, '__all__', ()):
            thing = getattr(module, name)
            yield from signature(f'{folder}.{name}',
                                 None if thing in known else thing)


# Tools

def parser_of(command: Callable, *args) -> argparse.ArgumentParser:
    """The parser with which a command reads its arguments, and ends."""
    found = []

    def stop(parser, *_, **__):
        found.append(parser)
        sys.exit()

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with suppress(SystemExit), mock.patch.object(
                argparse.ArgumentParser, 'parse_args', stop):
            command(*args)
    finally:  # signals that a tool holds back come again
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if not found:
        raise ValueError(f'{args}: expected a command with a parser, got none')
    return found[0]


def run_file(path: Path) -> None:
    """As `python PATH` does."""
    with mock.patch.object(sys, 'path', [str(path.parent), *sys.path]):
        runpy.run_path(str(path), run_name='__main__')


def options() -> Iterator[str]:
    """The options of all tools, and the variables of the shell scripts."""
    yield from parsed('python -m stepnet_mm.doctor',
                      parser_of(doctor.main, []))
    paths = [path for folder in ('', 'analysis', 'benchmarks', 'studies')
             for path in sorted((ROOT / 'tools' / folder).glob('*.py'))]
    for path in paths:
        text = path.read_text()
        # The other commands pass all arguments on.
        if 'parser' in text and '__main__' in text:
            yield from parsed(f'{path.relative_to(ROOT)}',
                              parser_of(run_file, path))
    for path in sorted((ROOT / 'tools').glob('*.sh')):
        for name in sorted({*re.findall(r'\$\{(\w+):-', path.read_text())}):
            yield f'{path.relative_to(ROOT)} ${name}'


def parsed(command: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A line for each option: `--size: dest='size', nargs=2`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsed(f'{command} {name}', inner)
        elif not isinstance(action, argparse._HelpAction):
            facts = ', '.join(
                f'{key}={plain(getattr(action, key))}'
                for key in ('dest', 'nargs', 'default', 'choices', 'required')
                if getattr(action, key) not in (None, False))
            name = ', '.join(action.option_strings) or action.dest
            yield f'{command} {name}: {facts}'


def plain(value) -> str:
    """As repr, without what depends on where the checkout is."""
    text = re.sub(r"\w+Path\(('.*?')\)", r'\1', repr(value))
    return 'files of the checkout' if f'{ROOT}' in text else text


# What is written

def records() -> Iterator[str]:
    yield from signature(FORMAT, StudyRecord)
    made = make_record()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'record.jsonl')
        begin_record(path, made.header)
        append_rows(path, 0, made.nsi, made.step)
        header, rows = map(json.loads, path.read_text().splitlines())
        yield from fields(header['format'], {'header: ': header,
                                             'rows: ': rows})
        path = path.with_suffix('.npz')
        save_attention(make_attention_record(layers=1), path)
        with np.load(path) as arrays:
            header = json.loads(str(arrays['header']))
            yield from (f'{header["format"]}: {key}' for key in arrays)
        yield from fields(header['format'], {
            'header: ': header, 'layers: ': header['layers'][0]})


def fields(name: str, parts: dict) -> Iterator[str]:
    for part, content in parts.items():
        yield from (f'{name}, {part}{key}' for key in content)


def runs(results: Iterable[str]) -> Iterator[str]:
    """The digests of what was run for the records, as they are today."""
    for name in results:
        study = read_study(CONFIGS / f'studies/{name}.py')
        found = {run.method.name: run
                 for run in runs_of(study, Path('work_dirs'))}
        for method, digest in sorted({
                (record.method, record.config) for record in read_records(
                    ROOT / f'results/{name}.jsonl')}):
            run = found.get(method)
            today = config_digest(run.config()) if run else 'gone'
            yield (f'{name}, {method}: config {today}, recorded as '
                   f'{digest}; settings {study.settings}')


def networks(paths: Iterable[str]) -> Iterator[str]:
    found: dict[str, str] = {}
    for path in paths:
        cfg = Config.fromfile(CONFIGS / path)
        init_default_scope(cfg.default_scope)
        # A loss, and Mixup, change no network.
        model = cfg.model.to_dict()
        model.pop('train_cfg', None)
        model.get('head', {}).pop('loss', None)
        key = f'{cfg.default_scope} {model}'
        if key not in found:
            found[key] = facts(build(cfg.model))
        yield f'{path}: {found[key]}'


def facts(model: torch.nn.Module) -> str:
    shapes = [f'{key} {[*value.shape]}'
              for key, value in sorted(model.state_dict().items())]
    digest = hashlib.sha256('\n'.join(shapes).encode()).hexdigest()[:12]
    count = sum(p.numel() for p in model.parameters())
    return f'{count} parameters, keys and shapes {digest}'


def build(model: dict) -> torch.nn.Module:
    """Without memory for weights, and without the time to draw them."""
    # mmpretrain reads the rates of its DropPath off a tensor.
    with torch.device('meta'), undrawn(), mock.patch(
            'torch.linspace', partial(torch.linspace, device='cpu')):
        return MODELS.build(model)


# The file

#: Section -> what gives its lines.
SECTIONS: dict[str, Callable[[], Iterator[str]]] = dict(
    registered=registered, public=public, options=options, records=records,
    runs=partial(runs, RESULTS),
    networks=partial(networks, NETWORKS))


def changes(section: str, lines: Iterable[str], only: Collection[str] = ()
            ) -> str:
    """A diff of a section of the file and the code's lines, '' if equal.

    ``only`` are the words before a line's first ``,`` or ``:`` that were
    looked at; left out, all.
    """
    accepted = {head.strip('[]'): lines for head, *lines in map(
        str.splitlines, FILE.read_text().strip().split('\n\n'))}
    before = [line for line in accepted.get(section, ())
              if not only or re.split('[,:]', line)[0] in only]
    return '\n'.join(difflib.unified_diff(
        before, [*lines], f'{FILE.relative_to(ROOT)} [{section}]', 'the code',
        n=0, lineterm=''))


def main() -> None:
    parser = command_parser(__doc__)
    parser.add_argument(
        '--accept', action='store_true', help='write what the code has')
    args = parser.parse_args()
    MMLogger.get_instance('contract', log_level='ERROR')
    # As tests/conftest.py: each config of a library reads all its metafiles.
    mmengine.config.utils.load = cache(mmengine.config.utils.load)
    if args.accept:
        FILE.write_text('\n\n'.join(
            '\n'.join([f'[{section}]', *lines()])
            for section, lines in SECTIONS.items()) + '\n')
        return
    found = [changes(section, lines()) for section, lines in SECTIONS.items()]
    print('\n'.join(filter(None, found)))
    sys.exit(int(any(found)))


if __name__ == '__main__':
    main()
