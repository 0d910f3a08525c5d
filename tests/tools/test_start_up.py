import importlib.util

import pytest


@pytest.fixture
def rows(request, monkeypatch, capsys):
    """rows(*arguments): those beyond two small modules of Python's own."""
    path = request.config.rootpath / 'tools/benchmarks/start_up.py'
    spec = importlib.util.spec_from_file_location('start_up', path)
    start_up = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start_up)
    monkeypatch.setattr(start_up, 'BASE', ('json', 'unittest'))

    def run(*arguments):
        start_up.main(['--rounds', '1', *arguments])
        return [line.rsplit(maxsplit=3)
                for line in capsys.readouterr().out.splitlines()]

    return run


def test_rows_and_what_is_beyond_the_libraries(rows):
    _, *found = rows(
        '--imports', 'email', '--tools', 'tools/make_mini_coco.py')
    names = [row[0] for row in found]
    assert names == ['json', 'unittest', 'email',
                     'tools/make_mini_coco.py --help']
    first, second = (float(row[1]) for row in found[:2])
    assert first > 0 and second > 0
    for row in found[2:]:
        all_of_it, beyond_first, beyond_second = map(float, row[1:])
        assert beyond_first == pytest.approx(all_of_it - first, abs=.011)
        assert beyond_second == pytest.approx(all_of_it - second, abs=.011)


def test_a_command_that_fails(rows):
    with pytest.raises(
            RuntimeError, match="'import no_such_module']: exit code 1"):
        rows('--imports', 'no_such_module', '--tools')
