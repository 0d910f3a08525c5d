import re
from unittest.mock import Mock

import cv2
import pytest
import torch

from stepnet_mm.launch import measurement
from stepnet_mm.stiffness import (
    read_stiffness_record,
    stiffness_proportion,
    stiffness_survival,
)

pytest.importorskip('mmpretrain')
pytest.importorskip('matplotlib')
TOOL = 'analysis/stiffness_properties'
FIGURES = ['depth', 'properties', 'proportion', 'survival']


@pytest.fixture
def networks(classifier, tmp_path):
    """Configs of R-34, plain and with a step, and checkpoints of each."""
    from mmengine.config import Config

    from stepnet_mm.launch.entry import build_model
    text = classifier.read_text().replace(
        "type='StepResNet'",
        "type='StepResNet', depth=34, zero_init_residual=False")
    classifier.write_text(text)
    (tmp_path / 'plain.py').write_text(
        text.replace("type='StepResNet'", "type='StepResNet', step=None"))
    found = {}
    for config in (tmp_path / 'plain.py', classifier):
        model = build_model(Config.fromfile(config))
        for seed in (0, 1):
            for parameter in model.parameters():
                parameter.data.mul_(1 + seed)
            path = tmp_path / f'{config.stem}_seed{seed}' / 'epoch_1.pth'
            path.parent.mkdir()
            torch.save(dict(state_dict=model.state_dict()), path)
            found.setdefault(config, []).append(path)
    return found


def words(networks):
    """The networks on the command line."""
    return [word for config, checkpoints in networks.items()
            for word in ('--network', config, *checkpoints)]


def measure(tool, out, *arguments):
    tool(TOOL, '--out', out, '--device', 'cpu', '--batch-size', 4, *arguments)
    return (out / 'summary.md').read_text()


@pytest.mark.long
@pytest.mark.core
def test_from_checkpoints_to_figures(tool, networks, tmp_path, capsys,
                                     monkeypatch):
    out = tmp_path / 'out'
    build = Mock(wraps=measurement.build_model)
    monkeypatch.setattr(measurement, 'build_model', build)
    text = measure(tool, out, *words(networks), '--names', 'plain', 'my net',
                   '--m1', .2, '--m2', .1)
    assert sorted(path.stem for path in out.glob('*.png')) == sorted(
        [*FIGURES, 'seeds_my_net', 'seeds_plain', 'step_my_net'])
    for path in out.glob('*.png'):
        assert cv2.imread(str(path)).std() > 5
    rows = [line.split(' | ') for line in text.splitlines()
            if line.startswith('|')][2:]
    assert len(rows) == build.call_count == 4
    for row, path in zip(rows, sum(networks.values(), [])):
        record = read_stiffness_record(
            path.with_name('epoch_1_stiffness.jsonl'))
        samples, blocks = (
            share(record.nsi, record.stage, [.2], [.1]).item()
            for share in (stiffness_survival, stiffness_proportion))
        assert row[1] == str(path) and row[2] == '8'
        assert row[4] == f'{record.tns().mean():.4g}'
        assert row[6] == f'{record.tns().quantile(.95):.4g}'
        assert row[7:] == [f'{samples:.1%}', f'{blocks:.1%} |']
    assert 'M1 = 0.2, M2 = 0.1' in text
    assert re.search(r'\*\*my net\*\*.*12 measured blocks.*in 2 checkpoints'
                     r'.*r over the samples is negative in \d+ of \d+ blocks',
                     text, re.DOTALL)
    assert text in capsys.readouterr().out


@pytest.mark.long
def test_records_are_reused(tool, networks, tmp_path):
    (config, (checkpoint, _)), _ = networks.items()
    record = checkpoint.with_name('epoch_1_stiffness.jsonl')
    # A label, and another spelling of the path, make it no other one.
    tool('analysis/measure_stiffness', config.parent / '.' / '..' /
         config.parent.name / config.name, checkpoint, '--device', 'cpu',
         '--batch-size', 4, '--name', 'X_seed0')
    lines = record.read_bytes().splitlines(keepends=True)
    # Another number there would not come from a measurement.
    lines[1] = re.sub(rb'"nsi": \[\[[\d.]+', b'"nsi": [[123.5', lines[1])
    record.write_bytes(b''.join(lines))
    text = measure(tool, tmp_path / 'out', '--network', config, checkpoint)
    assert record.read_bytes() == b''.join(lines)
    assert 'negative in' not in text  # no step
    assert '**plain**' in text
    assert sorted(path.stem for path in (tmp_path / 'out').glob('*.png')
                  ) == FIGURES


def test_a_record_of_other_settings_is_refused(tool, networks, tmp_path):
    config, (checkpoint, _) = next(iter(networks.items()))
    arguments = '--network', config, checkpoint
    measure(tool, tmp_path / 'out', *arguments, '--num-samples', 4)
    with pytest.raises(ValueError, match='epoch_1_stiffness.jsonl: expected '
                       'its .* another measurement; measure into .*--records'):
        measure(tool, tmp_path / 'new', *arguments)
    assert not (tmp_path / 'new').exists()


def test_records_that_cannot_be_told_apart_are_refused(
        tool, networks, tmp_path):
    config, (first, second) = next(iter(networks.items()))
    other = tmp_path / 'b' / first.parent.name / first.name
    other.parent.mkdir(parents=True)
    second.rename(other)
    with pytest.raises(ValueError, match='--network: .* different names, got '
                       f'.*{first} and .*{other}, both'):
        measure(tool, tmp_path / 'out', '--network', config, first, other,
                '--records', tmp_path / 'records')
    assert not list(tmp_path.rglob('*.jsonl'))


def test_a_record_that_cannot_be_written_is_found_before_the_network(
        tool, networks, tmp_path, monkeypatch):
    build = Mock()
    monkeypatch.setattr(measurement, 'build_model', build)
    config, (checkpoint, _) = next(iter(networks.items()))
    name = f'{config.stem}_{checkpoint.parent.name}_epoch_1_stiffness.jsonl'
    for path, key, options in (
            (checkpoint.with_name('epoch_1_stiffness.jsonl'), '--network', []),
            (tmp_path / 'records' / name, '--records',
             ['--records', tmp_path / 'records'])):
        path.mkdir(parents=True)
        with pytest.raises(ValueError, match=f'^{key}: expected a file'):
            measure(tool, tmp_path / 'out', '--network', config, checkpoint,
                    *options)
    assert not build.called


def test_weights_of_another_network_are_found_before_a_measurement(
        tool, networks, tmp_path):
    (plain, (weights, _)), (config, _) = networks.items()
    with pytest.raises(ValueError, match='--network: expected weights of .*'
                       'classifier.py, got .*epoch_1.pth, which are not; '):
        measure(tool, tmp_path / 'out', '--network', plain, weights,
                '--network', config, weights)
    assert not list(tmp_path.rglob('*.jsonl'))


@pytest.mark.parametrize('arguments, match', [
    (['--network', '{config}'], '--network: expected CONFIG CHECKPOINT..., '
     'got .* alone'),
    (['--network', '{config}', 'gone.pth'], '--network: .*got gone.pth'),
    (['--network', 'gone.py', '{weights}'], '--network: .*got gone.py'),
    (['--network', '{config}', '{weights}', '{weights}'],
     '--network: expected different checkpoints'),
    (2 * ['--network', '{config}', '{weights}'],
     '--names: expected different names, one for each of the 2')])
def test_bad_input_is_found_before_a_measurement(
        tool, classifier, tmp_path, arguments, match):
    names = dict(config=classifier, weights=tmp_path / 'a.pth')
    torch.save({}, names['weights'])
    with pytest.raises(ValueError, match=match):
        measure(tool, tmp_path / 'out', *(
            word.format(**names) for word in arguments))
    assert not (tmp_path / 'out').exists()
    assert not list(tmp_path.rglob('*.jsonl'))
