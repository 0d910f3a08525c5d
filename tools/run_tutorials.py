#!/usr/bin/env python
"""Run the tutorials, and write what comes out into their pages.

python tools/run_tutorials.py                                   # all of them
python tools/run_tutorials.py docs/tutorials/from_mmdet.ipynb

Each runs in a temporary folder that links to this checkout. The Chinese page,
NAME.zh_CN.ipynb, has the same code, so it gets the same outputs. Needs
nbclient and ipykernel (requirements/tests.txt), and CIFAR-10 in data/cifar10.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import base64
import hashlib
import io
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'docs/tutorials'
LINKED = ('configs', 'data', 'tools')
CHINESE = '.zh_CN.ipynb'


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        'pages', nargs='*', type=Path, default=english_pages(),
        help='English notebooks; default: all of docs/tutorials')
    return parser.parse_args()


def english_pages() -> list[Path]:
    return sorted(path for path in FOLDER.glob('*.ipynb')
                  if not path.name.endswith(CHINESE))


def chinese_page(page: Path) -> Path:
    return page.with_name(page.stem + CHINESE)


def read(page: Path):
    """A notebook, of nbformat's classes."""
    import nbformat
    return nbformat.read(page, as_version=4)


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == 'code']


def code_digest(notebook) -> str:
    """Changes when the code does: outputs of another code are stale."""
    text = '\0'.join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def make_checkout(folder: Path) -> None:
    """What a tutorial finds around it, but for what is there already."""
    (folder / 'docs/tutorials').mkdir(parents=True)
    for name in LINKED:
        if (ROOT / name).exists() and not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)


def run(notebook, folder: Path) -> None:
    """Run all cells as Jupyter does, in a folder; outputs go into them.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    from nbclient import NotebookClient
    make_checkout(folder)
    client = NotebookClient(
        notebook, timeout=None, kernel_name='python3', record_timing=False,
        coalesce_streams=True,
        resources=dict(metadata=dict(path=str(folder / 'docs/tutorials'))))
    client.execute(env=environment(folder))
    for cell in code_cells(notebook):
        for output in cell.outputs:
            tidy(output, f'{folder}/')


def environment(folder: Path) -> dict[str, str]:
    """Where ``python`` is this one, and nothing is written at home.

    One thread, so that a page made again has the numbers that its text names.
    """
    binaries = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    return dict(os.environ, PATH=binaries, OMP_NUM_THREADS='1',
                IPYTHONDIR=str(folder / 'ipython'),
                JUPYTER_RUNTIME_DIR=str(folder / 'jupyter'))


def tidy(output, folder: str) -> None:
    """Take this machine's paths out of an output, and make pictures small."""
    if 'text' in output:
        output.text = output.text.replace(folder, '')
    data = output.get('data', {})
    if 'image/png' in data:
        data['image/png'] = smaller(data['image/png'])
    if 'text/markdown' in data:  # for pages that do not show it as such
        data['text/plain'] = data['text/markdown']


def smaller(picture: str) -> str:
    """A PNG, in base64, of at most 128 colours."""
    from PIL import Image
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert('RGB')
    written = io.BytesIO()
    image.quantize(128).save(written, 'png', optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def copy_outputs(source, target) -> None:
    """Outputs of one language's page into the other's.

    Raises:
        ValueError: if their code differs.
    """
    if code_digest(source) != code_digest(target):
        raise ValueError('code: expected the same cells in both languages, '
                         'got others; copy them into the other page')
    for theirs, ours in zip(code_cells(source), code_cells(target)):
        ours.update(outputs=theirs.outputs,
                    execution_count=theirs.execution_count)


def write(notebook, page: Path) -> None:
    """With nothing of this machine around the cells."""
    import nbformat
    notebook.metadata.clear()
    notebook.metadata.update(
        kernelspec=dict(name='python3', display_name='Python 3',
                        language='python'),
        stepnet_mm=dict(code=code_digest(notebook)))
    for index, cell in enumerate(notebook.cells):
        cell.id = f'cell-{index}'
        cell.metadata.clear()
    nbformat.write(notebook, page)


def main():
    for page in parse_args().pages:
        notebook, chinese = read(page), read(chinese_page(page))
        with TemporaryDirectory() as folder:
            run(notebook, Path(folder).resolve())
        copy_outputs(notebook, chinese)
        write(notebook, page)
        write(chinese, chinese_page(page))
        print(f'{page.name}: {len(code_cells(notebook))} cells')


if __name__ == '__main__':
    main()
