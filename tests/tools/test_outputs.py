"""No tool writes onto what it reads."""
import re

import pytest
import torch

ONTO = 'expected a file that is not read, got'
#: A tool -> its arguments, KEY=FILE being the output that is an input.
FILES = {
    'test': ('CONFIG weights.pkl', '--out=weights.pkl'),
    'export_onnx': ('CONFIG weights', '--out=weights'),
    'analysis/measure_stiffness': ('CONFIG weights', '--out=weights'),
    'analysis/robustness': ('CONFIG weights', '--out=CONFIG'),
    'analysis/plot runs': ('table.csv', '--figure=table.csv'),
    'analysis/plot training': ('folder', '--out=folder/run/vis_data/s.json'),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_report_is_not_written_onto_a_record(tool, folder, write_record):
    pytest.importorskip('matplotlib')
    path = write_record('run/a', torch.rand(8, 2), blocks=['a', 'b'],
                        stage=[1, 1], position=[1, 2])
    before = path.read_text()
    (folder / 'link.html').symlink_to(path)
    for out in (path, 'link.html'):
        with pytest.raises(SystemExit, match=f'--out: {ONTO}'):
            tool('analysis/plot', 'report', 'run', '--out', out)
    assert path.read_text() == before


@pytest.mark.long
@pytest.mark.parametrize('name', FILES)
def test_no_input_is_written_onto(tool, folder, request, name, capsys):
    config = folder / 'cifar.py'
    base = request.config.rootpath / 'configs'
    config.write_text(f"_base_ = '{base}/resnet20_stepnet_cifar10.py'")
    there = ['weights', 'weights.pkl', 'table.csv', 'folder/a.png',
             'folder/run/vis_data/s.json', 'cifar.py']
    for path in map(folder.joinpath, there):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    before = {path: (folder / path).read_bytes() for path in there}
    arguments, output = (
        text.replace('CONFIG', 'cifar.py') for text in FILES[name])
    with pytest.raises((ValueError, SystemExit)) as error:
        tool(*name.split(), *arguments.split(), output)
    key = output.partition('=')[0] if '=' in output else 'out'
    said = str(error.value) + capsys.readouterr().err
    assert re.search(f'{key}: {ONTO}', said)
    assert before == {path: (folder / path).read_bytes() for path in there}
