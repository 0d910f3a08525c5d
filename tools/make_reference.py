#!/usr/bin/env python
"""Write docs/reference/arguments.md, every argument with its default.

python tools/make_reference.py            # write it
python tools/make_reference.py --check    # fail where it is not up to date

The arguments are those of the code: of the registered classes by their
constructors, with the lines of their docstrings; of the tools by their
parsers. An argument without a line is an error.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import ast
import importlib
import inspect
import re
import runpy
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from stepnet_mm import doctor
from stepnet_mm.launch.entry import add_config_options
from stepnet_mm.launch.measurement import add_measuring_options
from stepnet_mm.models.backbone import StepBackbone
from stepnet_mm.registration import BINDINGS, NAMES
from stepnet_mm.steps import StepSize
from stepnet_mm.studies.tables import table
from stepnet_mm.utils.files import differing_files, write_differing

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / 'docs/reference/arguments.md'
HEAD = '''\
# All arguments

Written by `tools/make_reference.py` from the code; do not edit it. Below each
class are the arguments that this package adds; "and those of" names the class
whose arguments it takes besides. A *required* one has no default.

At the top of a config one key is this package's: `exact_resume` (`True`);
`False` leaves mmengine's own loop and checkpoint hook
([distributed](../distributed.md#resume-bit-for-bit)).
'''
ARGUMENT_COLUMNS = ('argument', 'type', 'default', 'what it is')
OPTION_COLUMNS = ('option', 'default', 'what it does')
#: Registry -> title and text of its section.
SECTIONS = {
    'all': ('All step backbones of ResNets', ''),
    'mmdet.MODELS': ('Backbones of mmdet', ''),
    'mmpretrain.MODELS': ('Backbones of mmpretrain', ''),
    'steps': ('Step-size modules', '''\
For `backbone.step` and, those that look at f alone, for `plugins` of mmdet.
The backbone gives the channel count, the first argument of each.'''),
    'MODELS': ('Other layers', ''),
    'HOOKS': ('Hooks', ''),
    'LOOPS': ('Loops', 'For `train_cfg`; the Runner gives the first two.'),
    'METRICS': ('Metrics', ''),
    'TRANSFORMS': ('Transforms', ''),
    'mmpretrain.DATASETS': ('Datasets of mmpretrain', ''),
}
#: Title -> what adds the options that several tools share.
SHARED = {'The options that change a config': add_config_options,
          'The options of a measurement': add_measuring_options}


# Classes

def registered() -> dict[str, list[type]]:
    """Registry -> its classes of ours, sorted by name; steps by themselves."""
    found = {registry: [getattr(importlib.import_module(module), name)
                        for module, names in modules.items()
                        for name in names]
             for registry, modules in NAMES.items()}
    models = found['MODELS']
    found['MODELS'] = [c for c in models if not issubclass(c, StepSize)]
    found['steps'] = [c for c in models if issubclass(c, StepSize)]
    found['all'] = [StepBackbone]
    for library, bindings in BINDINGS.items():
        registries = importlib.import_module(f'{library}.registry')
        for registry, module in bindings.items():
            importlib.import_module(module)
            found[f'{library}.{registry}'] = [
                cls for cls in getattr(registries, registry).module_dict
                .values() if cls.__module__ == module]
    return {registry: sorted(classes, key=lambda c: c.__name__.lower())
            for registry, classes in found.items()}


def is_ours(cls: type) -> bool:
    return cls.__module__.startswith('stepnet_mm.')


def constructors(cls: type) -> Iterator[type]:
    """The classes whose constructors take a call's arguments, in turn."""
    for base in cls.__mro__[:-1]:
        if '__init__' in vars(base):
            yield base
            kinds = {p.kind for p in parameters(base)} if is_ours(base) else ()
            if inspect.Parameter.VAR_KEYWORD not in kinds:
                return


def parameters(cls: type) -> list[inspect.Parameter]:
    """Those of a class's own constructor, without self."""
    signature = inspect.signature(vars(cls)['__init__'])
    return list(signature.parameters.values())[1:]


def described(cls: type) -> dict[str, tuple[str, str]]:
    """Argument -> its type and its line, by a docstring's Args."""
    text = inspect.cleandoc(vars(cls).get('__doc__') or '')
    args = re.search(r'^Args:\n((?:    .*\n?|\n)+)', text, re.M)
    entries = re.findall(
        r'^    (\S+?)(?: \((.*?)\))?:\s+(.*\n?(?:      .*\n?)*)',
        args[1] if args else '', re.M)
    return {name: (kind, ' '.join(line.split()))
            for name, kind, line in entries}


def describe(cls: type, name: str) -> tuple[str, str]:
    """The type and the line of an argument, of the nearest class with one."""
    for base in cls.__mro__:
        if is_ours(base) and name in described(base):
            return described(base)[name]
    raise ValueError(f'{cls.__name__}.{name}: expected a line in the Args of '
                     'its docstring, got none; write one')


def class_text(cls: type, elsewhere: set[type]) -> str:
    """A class's heading, what it is, and its arguments.

    Args:
        cls (type): the class.
        elsewhere (set[type]): those with sections of their own.
    """
    rows, others, seen = [], [], set()
    for base in constructors(cls):
        if not is_ours(base) or base in elsewhere - {cls}:
            others.append(other(base))
            continue
        for parameter in parameters(base):
            if parameter.name not in seen and is_named(cls, parameter):
                seen.add(parameter.name)
                rows.append(argument_row(cls, parameter))
    parts = [f'### `{cls.__name__}`', summary(cls)]
    if rows:
        parts.append(table(ARGUMENT_COLUMNS, rows))
    if others:
        parts.append(f'And those of {", ".join(others)}.')
    return '\n\n'.join(parts if rows or others else [*parts, 'No arguments.'])


def other(base: type) -> str:
    """A class whose arguments another one takes too."""
    name = f'`{base.__name__}`'
    if is_ours(base):
        return f'[{name}](#{base.__name__.lower()})'
    return f'{name} of {base.__module__.partition(".")[0]}'


def is_named(cls: type, parameter: inspect.Parameter) -> bool:
    """Whether it is one argument, or some that its docstring explains."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return (str(parameter) in described(cls)
                and all(map(is_ours, constructors(cls))))
    return parameter.kind is not inspect.Parameter.VAR_POSITIONAL


def argument_row(cls: type, parameter: inspect.Parameter) -> list[str]:
    several = parameter.kind is inspect.Parameter.VAR_KEYWORD
    name = f'**{parameter.name}' if several else parameter.name
    kind, line = describe(cls, name)
    default = '' if several else '*required*'
    if parameter.default is not inspect.Parameter.empty:
        default = f'`{parameter.default!r}`'
        line = without_default(line, parameter.default)
    *first, last = kind.removesuffix(', optional').split(' | ')
    return [f'`{name}`', f'{", ".join(first)} or {last}' if first else last,
            default, as_markdown(line)]


def without_default(line: str, default) -> str:
    """A line without the sentence that repeats the default."""
    found = re.search(r' Defaults to (\S+)\.$', line)
    try:
        same = found and ast.literal_eval(found[1].strip('`')) == default
    except (SyntaxError, ValueError):
        same = False
    return line[:found.start()] if found and same else line


def summary(cls: type) -> str:
    """The docstring's first sentence."""
    text, *_ = inspect.cleandoc(cls.__doc__ or '').split('\n\n')
    return as_markdown(' '.join(text.split()))


def as_markdown(text: str) -> str:
    """Without reST's roles."""
    text = re.sub(r':\w+:`(?:[^`<]* <)?[.~]*([^`>]*)>?`',
                  lambda found: f'`{found[1].rpartition(".")[2]}`', text)
    text = re.sub(r'`([^`<]+) <(http[^>]+)>`_', r'[\1](\2)', text)
    return text.replace('``', '`')


# Tools

class Found(BaseException):
    """Ends a command at the moment in which it reads its arguments."""


def parser_of(command: Callable, *args) -> argparse.ArgumentParser:
    """The parser with which a command reads its arguments."""

    def stop(parser, *_, **__):
        raise Found(parser)

    with mock.patch.object(argparse.ArgumentParser, 'parse_args', stop):
        try:
            command(*args)
        except Found as found:
            return found.args[0]
    raise ValueError(f'{args}: expected a command with a parser, got none')


def run_file(path: Path) -> None:
    """As `python PATH` does; signals that it holds back come again."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with mock.patch.object(sys, 'path', [str(path.parent), *sys.path]):
        try:
            runpy.run_path(str(path), run_name='__main__')
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def python_tools() -> list[Path]:
    """Those with a parser; the others pass all arguments on."""
    paths = [path for folder in ('', 'analysis', 'theory', 'benchmarks')
             for path in sorted((ROOT / 'tools' / folder).glob('*.py'))]
    return [path for path in paths if 'parser' in path.read_text()]


def tools_text() -> str:
    shared = {title: options_of(add) for title, add in SHARED.items()}
    parts = [f'### {title}\n\n{option_table(actions)}'
             for title, actions in shared.items()]
    parts.append(command_text('python -m stepnet_mm.doctor',
                              parser_of(doctor.main, []), shared))
    parts += [command_text(f'{path.relative_to(ROOT)}',
                           parser_of(run_file, path), shared)
              for path in python_tools()]
    return '\n\n'.join(parts)


def options_of(add: Callable) -> list[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    add(parser)
    return parser._actions


def command_text(name: str, parser: argparse.ArgumentParser,
                 shared: dict) -> str:
    """A tool's heading, what it does, and its options by action."""
    parts = [f'### `{name}`', first_paragraph(parser.description)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice, inner in action.choices.items():
                parts += [f'`{choice}`:', options_text(inner, shared)]
            return '\n\n'.join(parts)
    return '\n\n'.join([*parts, options_text(parser, shared)])


def options_text(parser: argparse.ArgumentParser, shared: dict) -> str:
    """The parser's own options, and the names of those that it shares."""
    own = [action for action in parser._actions
           if action.dest != 'help' and action.help != argparse.SUPPRESS]
    links = []
    for title, actions in shared.items():
        keys = [option_row(action) for action in actions]
        rest = [a for a in own if option_row(a) not in keys]
        if len(rest) == len(own) - len(keys):
            own = rest
            links.append(f'[{title[0].lower()}{title[1:]}]'
                         f'(#{title.lower().replace(" ", "-")})')
    parts = [option_table(own)] if own else []
    if links:
        parts.append(f'And {", ".join(links)}.')
    return '\n\n'.join(parts)


def option_table(actions: list[argparse.Action]) -> str:
    return table(OPTION_COLUMNS, [option_row(action) for action in actions])


def option_row(action: argparse.Action) -> list[str]:
    """An option's names, its default and its line.

    Raises:
        ValueError: if it has no help.
    """
    names = ', '.join(f'`{name}`' for name in
                      action.option_strings or [action.metavar or action.dest])
    line, default = re.fullmatch(
        r'(.*?)(?:[;,]? ?\(?default: (.*?)\)?)?', action.help or '',
        re.S).groups()
    if not line:
        raise ValueError(f'{names}: expected a help, got none; write one')
    line = escaped(line)
    if action.choices:
        line += f' (one of {", ".join(f"`{c}`" for c in action.choices)})'
    default = escaped(default or '') or shown(action.default)
    if action.required and action.nargs != '*':
        default = '*required*'
    return [names, default, line]


def escaped(text: str) -> str:
    """Plain text as Markdown, on one line."""
    text = re.sub(r'([*_])', r'\\\1', ' '.join(text.split()))
    return text.replace('<', '&lt;').replace('|', '&#124;')


def shown(default) -> str:
    """A default as a user would write it."""
    if default is None or default is False or default in ('', [], {}):
        return ''
    values = default if isinstance(default, (list, tuple)) else [default]
    return f'`{" ".join(map(str, values))}`'


def scripts_text() -> str:
    """The comments at the head of the shell scripts that are run."""
    parts = []
    for path in sorted((ROOT / 'tools').glob('*.sh')):
        lines = path.read_text().splitlines()[1:]
        end = next(i for i, line in enumerate(lines)
                   if not line.startswith('#') or line.startswith('#SBATCH'))
        comment = '\n'.join(line[2:] for line in lines[:end])
        if f'tools/{path.name}' in comment:
            parts.append(f'### `tools/{path.name}`\n\n'
                         f'```text\n{comment}\n```')
    return '\n\n'.join(parts)


# The page

def first_paragraph(text: str | None) -> str:
    return as_markdown(' '.join((text or '').split('\n\n')[0].split()))


def page_text() -> str:
    classes = registered()
    elsewhere = {cls for some in classes.values() for cls in some}
    parts = [HEAD]
    for registry, (title, text) in SECTIONS.items():
        parts += [f'## {title}', text, *(
            class_text(cls, elsewhere) for cls in classes[registry])]
    parts += ['## Commands', tools_text(), '## Shell scripts', scripts_text()]
    return '\n\n'.join(part.strip() for part in parts if part) + '\n'


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--check', action='store_true', help='write nothing')
    args = parser.parse_args()
    texts = {PAGE: page_text()}
    if not args.check:
        write_differing(texts, ROOT)
    elif differing_files(texts):
        sys.exit(f'not up to date: {PAGE.relative_to(ROOT)}')


if __name__ == '__main__':
    main()
