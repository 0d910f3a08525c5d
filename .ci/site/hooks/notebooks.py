"""A notebook with its outputs as Markdown; nothing is run."""
import base64
import re
from itertools import groupby

#: The first line of a cell -> how its fence begins.
MAGICS = {
    r'%%bash$': 'bash',
    r'%%writefile (?:-a )?(\S+)$': r'python title="\1"',
}
#: Colours of a terminal.
ESCAPE = re.compile('\x1b\\[[0-9;]*m')


def as_markdown(notebook: dict, name: str) -> tuple[str, dict[str, bytes]]:
    """A page and its pictures.

    Args:
        notebook (dict): as in an .ipynb file, version 4.
        name (str): how the pictures' names begin.

    Returns:
        tuple: the Markdown, and the pictures by the names it has for them.
    """
    parts, pictures = [], {}
    for cell in notebook['cells']:
        source = ''.join(cell['source'])
        if cell['cell_type'] == 'markdown':
            parts.append(source)
        elif not re.fullmatch('(%[^%].*)?', source):  # of Jupyter alone
            parts.append(_code(source))
            parts += [_output(output, name, pictures)
                      for output in _outputs(cell)]
    return '\n\n'.join(parts) + '\n', pictures


def _code(source: str) -> str:
    first, _, rest = source.partition('\n')
    for magic, language in MAGICS.items():
        if found := re.match(magic, first):
            return _fence(found.expand(language), rest)
    return _fence('python', source)


def _outputs(cell: dict):
    """Those of a cell; what was printed bit by bit is one."""
    for kind, found in groupby(cell['outputs'],
                               lambda output: output['output_type']):
        if kind == 'stream':
            yield dict(text=[line for one in found for line in one['text']])
        else:
            yield from found


def _output(output: dict, name: str, pictures: dict[str, bytes]) -> str:
    data = output.get('data', {})
    if 'image/png' in data:
        file = f'{name}_{len(pictures) + 1}.png'
        pictures[file] = base64.b64decode(''.join(data['image/png']))
        return f'![output]({file})'
    text = ''.join(data.get('text/markdown', data.get(
        'text/plain', output.get('text', ''))))
    return _fence('{.text .output}', ESCAPE.sub('', text))


def _fence(start: str, text: str) -> str:
    return f'````{start}\n{text.rstrip()}\n````'
