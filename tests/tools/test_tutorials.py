"""docs/tutorials: the pages are whole, and the notebooks run as they stand."""
import os
from pathlib import Path

import pytest
from drawn_cifar import draw_cifar
from fork_server import ForkServer

nbformat = pytest.importorskip('nbformat')
ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path for path in (ROOT / 'docs/tutorials').glob('*.ipynb')}
ENGLISH = sorted(name for name in PAGES if '.zh_CN' not in name)
#: NAME: its constants, and smaller ones with which the same code is shown.
SMALLER = {
    'from_mmdet': {'--train 48 --val 12': '--train 8 --val 4',
                   'interval=4': 'interval=1',
                   r'12\/12': r'2\/2'},
    'own_data': {'--train 160 --val 40': '--train 8 --val 4',
                 '--image-scale 128 128': '--image-scale 64 64 --cfg-options '
                 'train_cfg.max_iters=2 train_cfg.val_interval=2 '
                 'custom_hooks.0.interval=1'},
    'own_step_size': {'seeds = [0, 1]': 'seeds = [1]',
                      "max_epochs': 2": "max_epochs': 1",
                      'total_steps=2': 'total_steps=1',
                      'num_samples=200':
                      "num_samples=8, definitions=['residual']",
                      "    se=dict(config=configs.format('se')),\n": ''},
    'reading_a_network': {'epochs=3': 'epochs=1', 'steps=3': 'steps=1',
                          'epoch_3': 'epoch_1', '512': '8'},
}
#: What a reader has to find in a tutorial's outputs, and how many pictures.
SHOWN = {
    'from_mmdet': (["type='StepResNet'", 'stiffness/tns', 'loss: ',
                    'Average Precision', 'tns_median', 'StepConvNeXt'], 4),
    'own_data': (['COCO in', 'Average Precision', 'tools/predict.py',
                  '_steps.png'], 3),
    'own_step_size': (['unchanged at the start: True', 'solver_seed1',
                       'solver'], 1),
    'reading_a_network': (['no (first)', 'nsi_stage3_mean', 'own area',
                           'step_blocks='], 4),
}


def code_cells(page):
    return [cell for cell in page.cells if cell.cell_type == 'code']


def check_what_is_shown(name, cells):
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == 'error'
                or output.get('name') == 'stderr']
    data = [output.get('data', {}) for output in outputs]
    text = ''.join(output.get('text') or own.get('text/markdown')
                   or own.get('text/plain', '')
                   for output, own in zip(outputs, data))
    parts, pictures = SHOWN[name]
    assert not [part for part in parts if part not in text]
    assert sum('image/png' in own for own in data) == pictures


@pytest.mark.parametrize('name', ENGLISH)
def test_a_page_is_whole_and_the_same_in_both_languages(name):
    pages = [code_cells(nbformat.read(PAGES[page], 4))
             for page in (name, f'{name}.zh_CN')]
    for cells in pages:
        check_what_is_shown(name, cells)
    english, chinese = ([cell.source for cell in cells] for cells in pages)
    assert english == chinese


@pytest.mark.long
@pytest.mark.parametrize('name', ENGLISH)
def test_a_tutorial_runs(name, tmp_path, monkeypatch, request):
    """For a shorter time, and CIFAR-10 is a drawn one."""
    from nbclient import NotebookClient
    draw_cifar(tmp_path / 'data/cifar10', train=16, test=4)
    for folder in ('configs', 'requirements', 'tools'):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / 'docs/tutorials').mkdir(parents=True)
    text = PAGES[name].read_text()
    if 'study.sh' in text:
        monkeypatch.setenv('STUDIES_VENV',
                           request.getfixturevalue('studies_venv'))
    for constant, smaller in SMALLER[name].items():
        constant, smaller = (t.replace('\\', '\\\\').replace('\n', '\\n')
                             for t in (constant, smaller))
        assert constant in text
        text = text.replace(constant, smaller)
    page = nbformat.reads(text, 4)
    for variable in ('IPYTHONDIR', 'JUPYTER_RUNTIME_DIR'):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    with ForkServer(tmp_path):
        NotebookClient(page, timeout=None, kernel_name='python3',
                       resources=dict(metadata=dict(
                           path=str(tmp_path / 'docs/tutorials')))).execute()
    check_what_is_shown(name, code_cells(page))
