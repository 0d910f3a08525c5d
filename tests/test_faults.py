"""The list of faults fits the code, and the examination says what it found."""
import asyncio
import json
import shutil
from pathlib import Path

import pytest
from by_path import load

ROOT = Path(__file__).resolve().parents[1]
FAULTS = load(Path(__file__).with_name('faults.py'))
LISTED = FAULTS.read_faults()


class Runs:
    """In the place of pytest: a stage's test that fails, by a fault's name."""
    workers = 2

    def __init__(self, broken='', **failing):
        self.broken, self.failing, self.seen = broken, failing, []

    async def find(self, fault, stage):
        self.seen.append((fault.name, stage.name))
        return self.failing.get(fault.name, {}).get(stage.name, '')

    async def run(self, tests, limit):
        self.seen.append(tests)
        return self.broken


def fault(name, text='a'):
    return FAULTS.Fault(name, 'file.py', 'what', text, 'b', ['tests/own.py'])


def examine(runs, *names):
    return asyncio.run(FAULTS.examine(
        [*map(fault, names)], FAULTS.STAGES, runs))


def test_each_fault_fits_its_file_and_compiles(tmp_path):
    assert len({fault.name for fault in LISTED}) == len(LISTED)
    for listed in LISTED:
        copy = tmp_path / listed.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / listed.file, copy)
        compile(listed.write(tmp_path), listed.file, 'exec')
        assert copy.read_text() != (ROOT / listed.file).read_text()


def test_the_tests_that_a_fault_names_are_there():
    named = {test for fault in LISTED for test in fault.tests}
    for path, _, test in (name.partition('::') for name in named):
        assert f'def {test}(' in (ROOT / path).read_text() or not test


def test_a_text_that_is_not_there(tmp_path):
    with pytest.raises(FAULTS.CannotExamine, match='gone: .* 0 times'):
        fault('gone').write(tmp_path)


def test_an_unknown_name():
    with pytest.raises(FAULTS.CannotExamine, match=r"no fault \['unknown'\]"):
        FAULTS.read_faults(['unknown', LISTED[0].name])


def test_it_goes_on_with_those_that_were_not_found():
    runs = Runs(own={'own tests': 'a.py::a'}, short={'short run': 'b.py::b'})
    results = examine(runs, 'own', 'short', 'lost')
    assert runs.seen == [
        ('own', 'own tests'), ('short', 'own tests'), ('lost', 'own tests'),
        ('short', 'short run'), ('lost', 'short run'), ('lost', 'long tests'),
        ['a.py::a', 'b.py::b']]
    assert [(r.stage, r.test) for r in results.values()] == [
        ('own tests', 'a.py::a'), ('short run', 'b.py::b'), ('', '')]
    assert FAULTS.summary(results) == (
        '3 faults, 2 of them found: 1 by the own tests of the module that is '
        'wrong, 2 by the short run')


def test_a_test_that_is_broken_itself_finds_nothing():
    with pytest.raises(FAULTS.CannotExamine, match='a.py::a fails without'):
        examine(Runs(broken='a.py::a', own={'own tests': 'a.py::a'}), 'own')


def test_the_page():
    faults = [fault('one'), fault('two')]
    results = dict(
        one=FAULTS.Result('own tests', 'test_a[x|y]', 61.2),
        two=FAULTS.Result('', '', 9))
    page = FAULTS.markdown(faults, results, 130,
                           'python tests/faults.py --only one two')
    for text in ('- 2 faults, 1 of them found',
                 '`python tests/faults.py --only one two`, ', ' 2 min in all',
                 '| own tests | `test_a[x\\|y]` | 61 |', '**not found**'):
        assert text in page


@pytest.fixture
def copy(tmp_path):
    """copy(*tests): where pytest has run, and these have failed."""

    def run(*tests):
        cache = tmp_path / '.pytest_cache/v/cache'
        cache.mkdir(parents=True)
        (cache / 'lastfailed').write_text(json.dumps(dict.fromkeys(
            tests, True)))
        return tmp_path

    return run


@pytest.mark.parametrize('code, failed, test', [
    (1, 'a.py::test_b[1 - 2]', 'a.py::test_b[1 - 2]'), (2, 'a.py', 'a.py'),
    (2, 'a.py::test_b[c@d]@gpu', 'a.py::test_b[c@d]')])
def test_a_test_that_fails(copy, code, failed, test):
    assert FAULTS.failed_test(code, '', copy(failed)) == test
    assert FAULTS.failed_test(0, '', copy) == ''


@pytest.mark.parametrize('code', [2, 5, -9])
def test_pytest_did_not_run_the_tests(code, tmp_path):
    with pytest.raises(FAULTS.CannotExamine, match=f'exit code {code}'):
        FAULTS.failed_test(code, 'no tests ran', tmp_path)


@pytest.mark.parametrize('test, limit, found', [
    ('assert 1 + 1 == 3', 60, 'test_it.py::test_it'),
    ('time.sleep(60); assert False', .1, '')])
def test_a_run(tmp_path, test, limit, found):
    checkout = tmp_path / 'checkout'
    checkout.mkdir()
    (checkout / 'test_it.py').write_text(
        f'import time\n\n\ndef test_it():\n    {test}\n')
    assert asyncio.run(FAULTS.Pytest(checkout, 0).run([], limit)) == found
    assert [*tmp_path.iterdir()] == [checkout]
