"""docs/tutorials: the pages are whole, and the notebooks run as they stand."""
import base64
import re
import struct
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = sorted(path for path in (ROOT / 'docs/tutorials').glob('*.ipynb')
                 if '.zh_CN.' not in path.name)
PAGES = sorted((ROOT / 'docs/tutorials').glob('*.ipynb'))
CLASSES = ('airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog',
           'horse', 'ship', 'truck')
#: NAME: its constants, and smaller ones with which the same code is shown.
SMALLER = {
    'from_mmdet': {'--train 48 --val 12': '--train 8 --val 4',
                   'interval=4': 'interval=1', 'nsi_40': 'nsi_10',
                   r'12\/12': r'2\/2'},
    'own_step_size': {'seeds = [0, 1]': 'seeds = [1]',
                      "    se=dict(config=configs.format('se')),\n": ''},
    'reading_a_network': {'epochs=3': 'epochs=2', 'steps=3': 'steps=2',
                          'epoch_3': 'epoch_2', '512': '32'},
}
#: A folder of a machine, not a link or a part of a path.
ABSOLUTE = re.compile(r'(?<![\w.:/)}*])/(?:[\w.-]+/)+[\w.-]+')
#: What a reader has to find in a tutorial's outputs.
SHOWN = {
    'from_mmdet': ["type='StepResNet'", 'stiffness/tns', 'loss: ',
                   'Average Precision', 'tns_median'],
    'own_step_size': ['unchanged at the start: True', 'solver_seed1',
                      'solver'],
    'reading_a_network': ['no (first)', 'nsi_stage3_mean', 'own area',
                          'step_blocks=', 'resnet32_stiffest3.py'],
}
PICTURES = {'from_mmdet': 4, 'own_step_size': 1, 'reading_a_network': 4}


@pytest.fixture
def tutorials(load_tool):
    pytest.importorskip('nbformat')
    return load_tool('run_tutorials')


def outputs(tutorials, page):
    return [output for cell in tutorials.code_cells(page)
            for output in cell.outputs]


def printed(tutorials, page):
    """All text that a page's cells show."""
    return '\n'.join(
        output.get('text') or output.get('data', {}).get('text/plain', '')
        for output in outputs(tutorials, page))


def pictures(tutorials, page):
    found = (output.get('data', {}).get('image/png')
             for output in outputs(tutorials, page))
    return [base64.b64decode(picture) for picture in found if picture]


def width_and_height(picture):
    assert picture.startswith(b'\x89PNG')
    return struct.unpack('>II', picture[16:24])


def check_what_is_shown(tutorials, name, page):
    text = printed(tutorials, page)
    assert not [part for part in SHOWN[name] if part not in text]
    assert len(pictures(tutorials, page)) == PICTURES[name]
    assert all(min(width_and_height(picture)) > 100
               for picture in pictures(tutorials, page))


def test_stale_code_gets_no_outputs(tutorials):
    source, target = (tutorials.read(ENGLISH[0]) for _ in range(2))
    tutorials.code_cells(target)[0].source += '\n# changed'
    with pytest.raises(ValueError, match='code: expected the same cells'):
        tutorials.copy_outputs(source, target)


def draw_cifar(root):
    """Noise in the layout of CIFAR-10, brighter from class to class."""
    import cv2
    import numpy as np
    rng = np.random.default_rng(0)
    for split, count in dict(train=16, test=4).items():
        for label, name in enumerate(CLASSES):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                image = rng.integers(0, 100, (32, 32, 3)) + 15 * label
                cv2.imwrite(str(folder / f'{i}.png'), image.astype('uint8'))


@pytest.mark.parametrize('path', PAGES, ids=lambda path: path.stem)
def test_a_page_is_whole_and_of_no_machine(tutorials, path):
    page = tutorials.read(path)
    assert page.metadata.stepnet_mm.code == tutorials.code_digest(page), (
        'run tools/run_tutorials.py')
    assert not [output for output in outputs(tutorials, page)
                if output.output_type == 'error'
                or output.get('name') == 'stderr']
    check_what_is_shown(tutorials, path.stem.removesuffix('.zh_CN'), page)
    code = ''.join(cell.source for cell in tutorials.code_cells(page))
    assert not ABSOLUTE.findall(printed(tutorials, page) + code)


@pytest.mark.long
@pytest.mark.parametrize('path', ENGLISH, ids=lambda path: path.stem)
def test_a_tutorial_runs(tutorials, path, tmp_path):
    """For a shorter time, and CIFAR-10 is a drawn one."""
    for module in ('nbclient', 'ipykernel', 'mmdet', 'mmpretrain'):
        pytest.importorskip(module)
    draw_cifar(tmp_path / 'data/cifar10')
    page = tutorials.read(path)
    for constant, smaller in SMALLER[path.stem].items():
        cells = [cell for cell in tutorials.code_cells(page)
                 if constant in cell.source]
        assert cells, constant
        for cell in cells:
            cell.source = cell.source.replace(constant, smaller)
    for cell in tutorials.code_cells(page):
        cell.outputs = []
    tutorials.run(page, tmp_path)
    check_what_is_shown(tutorials, path.stem, page)
