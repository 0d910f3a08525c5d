"""The list of faults fits the code, and the examination says what it found."""
import shutil
from pathlib import Path

import pytest
from by_path import load

ROOT = Path(__file__).resolve().parents[1]
FAULTS = load(Path(__file__).with_name('faults.py'))
LISTED = FAULTS.read_faults()


def test_each_fault_fits_its_file_compiles_and_names_tests(tmp_path):
    assert len({fault.name for fault in LISTED}) == len(LISTED)
    for listed in LISTED:
        copy = tmp_path / listed.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / listed.file, copy)
        compile(listed.write(tmp_path), listed.file, 'exec')
        assert copy.read_text() != (ROOT / listed.file).read_text()
        for path, _, test in (name.partition('::') for name in listed.tests):
            assert f'def {test}(' in (ROOT / path).read_text() or not test


def test_it_goes_on_with_faults_that_were_not_found():
    seen, found = [], dict(own=['a.py::a'], short=['', 'b.py::b'])

    def run(arguments, limit, fault=None):
        seen.append(arguments if fault is None else fault.name)
        tests = found.get(fault.name, []) if fault else []
        turn = seen.count(seen[-1]) - 1
        return tests[turn] if turn < len(tests) else ''

    faults = [FAULTS.Fault(name, 'file.py', 'what', 'a', 'b', ['own.py'])
              for name in ('own', 'short', 'lost')]
    results = FAULTS.examine(faults, FAULTS.STAGES, run, 1)
    assert seen == ['own', *['short'] * 2, *['lost'] * 3,
                    ['a.py::a', 'b.py::b']]
    assert FAULTS.summary(results).startswith(
        '3 faults, 2 of them found: 1 by the own tests of the module that is '
        'wrong, 2 by the short run')
    with pytest.raises(FAULTS.CannotExamine, match='a.py::a fails without'):
        FAULTS.examine(faults[:1], FAULTS.STAGES, lambda *_: 'a.py::a', 1)


@pytest.mark.long
@pytest.mark.parametrize('test, limit, found', [
    ('assert 1 + 1 == 3', 60, 'test_it.py::test_it'),
    ('time.sleep(60); assert False', .1, '')])
def test_a_run(tmp_path, test, limit, found):
    checkout = tmp_path / 'checkout'
    checkout.mkdir()
    (checkout / 'test_it.py').write_text(
        f'import time\n\n\ndef test_it():\n    {test}\n')
    assert FAULTS.run_pytest(checkout, [], limit) == found
    assert [*tmp_path.iterdir()] == [checkout]
