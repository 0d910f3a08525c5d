import pytest


def test_rows_and_what_is_beyond_the_libraries(load_tool, monkeypatch,
                                               capsys):
    start_up = load_tool('benchmarks/start_up')
    # Two small modules of Python's own.
    monkeypatch.setattr(start_up, 'BASE', ('json', 'unittest'))
    start_up.main(['--rounds', '1', '--imports', 'email', '--tools',
                   'tools/make_mini_coco.py'])
    _, *found = [line.rsplit(maxsplit=3)
                 for line in capsys.readouterr().out.splitlines()]
    names = [row[0] for row in found]
    assert names == ['json', 'unittest', 'email',
                     'tools/make_mini_coco.py --help']
    first, second = (float(row[1]) for row in found[:2])
    assert first > 0 and second > 0
    for row in found[2:]:
        all_of_it, beyond_first, beyond_second = map(float, row[1:])
        assert beyond_first == pytest.approx(all_of_it - first, abs=.011)
        assert beyond_second == pytest.approx(all_of_it - second, abs=.011)
