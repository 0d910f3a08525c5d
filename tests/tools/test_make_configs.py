import pytest

pytestmark = pytest.mark.core


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


def test_every_row_of_the_tables_is_there(make_configs):
    rows = make_configs.rows()
    assert len({row.path for row in rows}) == len(rows)
    by_table = {
        table: sum(row.table == table for row in rows)
        for table in make_configs.TITLES
    }
    assert by_table == {
        1: 27, 2: 16, 3: 12, 4: 21, 7: 6, 'attention': 7, 'tricks': 36,
        0: 12}


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


def test_known_models_are_not_measured_again(make_configs, monkeypatch,
                                             elsewhere):
    measured = []
    monkeypatch.setattr(
        make_configs, 'measure',
        lambda row: measured.append(row.path) or dict(Parameters=3, FLOPs=4))
    run(make_configs, monkeypatch)
    assert not measured
    run(make_configs, monkeypatch, '--measure')
    assert len(measured) == len(make_configs.rows())
    assert 'Parameters: 3' in (elsewhere / 'vit/metafile.yml').read_text()
