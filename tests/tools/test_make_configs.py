from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make_configs(load_tool):
    return load_tool('make_configs')


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr('sys.argv', ['make_configs.py', *arguments])
    module.main()


def test_what_is_committed_is_up_to_date(make_configs, monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        run(make_configs, monkeypatch, '--check')
    assert end.value.code == 0, capsys.readouterr().out


@pytest.fixture
def elsewhere(make_configs, monkeypatch, tmp_path):
    """All files in a folder of their own, measured by a stand-in."""
    monkeypatch.setattr(make_configs, 'ROOT', tmp_path)
    monkeypatch.setattr(make_configs, 'CONFIGS', tmp_path / 'configs')
    monkeypatch.setattr(make_configs, 'measure',
                        lambda row: dict(Parameters=1, FLOPs=2))
    run(make_configs, monkeypatch)
    return tmp_path / 'configs'


def test_a_change_is_found_and_a_users_config_kept(make_configs, monkeypatch,
                                                   capsys, elsewhere):
    with open(elsewhere / 'vit/vit_plain_cifar10.py', 'a') as file:
        file.write('# edited\n')
    (elsewhere / 'vit/mine.py').write_text('')
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        run(make_configs, monkeypatch, '--check')
    out = capsys.readouterr().out
    assert end.value.code == 1 and len(out.splitlines()) == 1
    assert 'vit_plain_cifar10.py' in out
    run(make_configs, monkeypatch)
    assert (elsewhere / 'vit/mine.py').exists()
    assert 'edited' not in (elsewhere / 'vit/vit_plain_cifar10.py').read_text()


def made_record(config, seed, last, **fields):
    """A record of a run of a config just as it is, as a study makes it."""
    from stepnet_mm.studies.records import StudyRecord
    from stepnet_mm.studies.run import config_digest
    from stepnet_mm.studies.training_log import dataset_of
    return StudyRecord(**{**dict(
        study='made', method='plain', seed=seed, settings='s',
        config=config_digest(config), dataset=dataset_of(config),
        metric='accuracy/top1', last=last, best=last, date='2026-11-23',
        epochs=[{'epoch': 1 + i, 'loss': 1.} for i in range(164)]), **fields})


@pytest.fixture
def trained(elsewhere, tmp_path):
    """trained(path, **options): the config of a run, as a study keeps it."""
    from mmengine.config import Config

    from stepnet_mm.config import read_config
    (elsewhere / '_base_').symlink_to(ROOT / 'configs/_base_')

    def trained(path, **options):
        cfg = read_config(str(elsewhere / path), str(tmp_path / 'run'),
                          options)
        cfg.merge_from_dict({'randomness.seed': 3})
        (tmp_path / 'begun.py').write_text(cfg.pretty_text)
        return Config.fromfile(str(tmp_path / 'begun.py'))

    return trained


@pytest.mark.long
def test_results_come_from_the_records(make_configs, monkeypatch, elsewhere,
                                       trained, tmp_path, capsys):
    from stepnet_mm.studies.records import append_record
    path = 'resnet164/resnet164_se_cifar10.py'
    same, other = trained(path), trained(path, **{'train_cfg.max_epochs': 5})
    for i, (config, last) in enumerate(
            [(same, 94.), (same, 95.), (other, 12.)]):
        append_record(tmp_path / 'results/made.jsonl', made_record(
            config, i, last, method='short' if config is other else 'se'))
    append_record(tmp_path / 'results/made.jsonl', made_record(
        same, 9, None, method='se', diverged=True, best=None))
    some = [row for row in make_configs.rows()
            if row.path in (path, path.replace('se', 'plain'))]
    monkeypatch.setattr(make_configs, 'rows', lambda: some)
    run(make_configs, monkeypatch)
    text = ('accuracy/top1 94.50 ± 0.71 after the last epoch, 2 runs, '
            '1 diverged, 2026-11-23')
    assert f'Result here: {text}.' in ' '.join(
        (elsewhere / path).read_text().split())
    page = (elsewhere / 'README.md').read_text()
    assert page.count(text) == 1 and f'`{path}`' in next(
        line for line in page.splitlines() if text in line)
    metafile = (elsewhere / 'resnet164/metafile.yml').read_text()
    assert metafile.count('(here, mean of 2 runs): 94.5') == 1
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        run(make_configs, monkeypatch, '--check')
    assert end.value.code == 0, capsys.readouterr().out


def test_a_run_in_two_files_counts_once(tmp_path):
    from dataclasses import replace

    from stepnet_mm.config import read_config
    from stepnet_mm.studies.config_results import records_of_configs
    from stepnet_mm.studies.records import append_record
    path = ROOT / 'configs/tricks/resnet164_plain_cutout_cifar10.py'
    record = made_record(read_config(str(path)), 0, 94., machine='one')
    elsewhere = replace(record, machine='two', last=93.)
    files = [tmp_path / 'a.jsonl', tmp_path / 'again.jsonl']
    for file in files:
        append_record(file, record)
    append_record(tmp_path / 'b.jsonl', elsewhere)
    assert records_of_configs([*files, tmp_path / 'b.jsonl'], {
        ROOT / 'configs/_base_/resnet164_cifar10.py': [path]}) == {
            path: [record, elsewhere]}


def test_a_records_digest_is_of_a_config_as_a_study_keeps_it(trained):
    from stepnet_mm.config import read_config
    from stepnet_mm.studies.run import config_digest
    path = 'resnet164/resnet164_se_cifar10.py'
    assert config_digest(trained(path)) == config_digest(
        read_config(str(ROOT / 'configs' / path)))
    changed = trained(path, **{'model.backbone.depth': 56})
    assert config_digest(changed) != config_digest(trained(path))
