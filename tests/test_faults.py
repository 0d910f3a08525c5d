"""The list of faults fits the code, and a stopped examination goes on."""
import importlib.util
import shutil
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _load():
    # tests/ itself is on no path: it has folders named as libraries are.
    spec = importlib.util.spec_from_file_location(
        'faults', ROOT / 'tests/faults.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAULTS = _load()
LISTED = FAULTS.read_faults()


@pytest.fixture
def record(tmp_path):
    """record(tree): what was found out so far, read anew."""

    def read(tree='this code'):
        return FAULTS.Record(tmp_path / 'faults.jsonl', tree, f'at {tree}')

    return read


class Runs:
    """In the place of pytest: the test that fails, by a fault's name."""

    def __init__(self, **failing):
        self.failing, self.seen = failing, []

    def __call__(self, fault, arguments):
        self.seen.append(fault and fault.name)
        failed = self.failing.get(fault.name if fault else 'none', '')
        if failed is KeyboardInterrupt:
            raise failed
        return failed


def fault(name, text='a'):
    return FAULTS.Fault(name, 'file.py', 'what', text, 'b', ['tests/own.py'])


@pytest.mark.parametrize('listed', LISTED, ids=lambda fault: fault.name)
def test_each_fault_fits_its_file_and_compiles(listed, tmp_path):
    copy = tmp_path / listed.file
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / listed.file, copy)
    compile(listed.write(tmp_path), listed.file, 'exec')
    assert copy.read_text() != (ROOT / listed.file).read_text()
    assert all((ROOT / path).is_file() for path in listed.tests)


def test_thirty_or_more_faults_spread_over_the_folders():
    assert len({fault.name for fault in LISTED}) == len(LISTED) >= 30
    folders = Counter(Path(fault.file).parent for fault in LISTED)
    assert max(folders.values()) <= 4


def test_a_text_that_is_not_there(tmp_path):
    with pytest.raises(FAULTS.CannotExamine, match='gone: .* 0 times'):
        fault('gone').write(tmp_path)


def test_it_goes_on_where_it_was_stopped(record):
    faults = [fault('one'), fault('two'), fault('three')]
    stopped = Runs(one='test_a', two=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        FAULTS.examine_all(faults, record(), stopped)
    runs = Runs(two='test_b', three='test_c')
    rows = FAULTS.examine_all(faults, record(), runs)
    assert [row['test'] for row in rows] == ['test_a', 'test_b', 'test_c']
    # The tests without a fault are known to pass, and are not run again.
    assert stopped.seen == [None, 'one', 'two'] and runs.seen == [
        'two', 'three']


def test_what_changed_is_looked_for_again(record):
    faults = [fault('found'), fault('other'), fault('lost')]
    first = Runs(found='test_a', other='test_b')
    FAULTS.examine_all(faults, record(), first)
    assert first.seen == [None, 'found', 'other', *['lost'] * 3]
    faults[1] = fault('other', 'changed')
    runs = Runs(other='test_b', lost='test_c')
    FAULTS.examine_all(faults, record('other code'), runs)
    assert runs.seen == [None, 'other', 'lost']
    anew = record('other code')
    anew.forget(faults)
    assert not anew.rows and not record().rows


def test_stages_end_where_a_test_fails():
    runs = Runs(here='test_a')
    row = FAULTS.examine(
        fault('here'), dict(zip(FAULTS.STAGES[1:], (['-m', 'x'], ))), runs)
    assert runs.seen == ['here', None] and row['found_by'] == 'short run'
    assert FAULTS.counts([row]) == [0, 1, 1]


def test_the_page_says_how_many_were_tried():
    rows = [dict(found_by=FAULTS.STAGES[0], test='test_a[x|y]', seconds=61,
                 commit='abc'),
            dict(found_by='', test='', seconds=9, commit='abc')]
    page = FAULTS.markdown([fault('one'), fault('two')], rows, 130,
                           'python tests/faults.py --only one two')
    for text in (f'2 of the {len(LISTED)} were written, **1** of them found',
                 '`python tests/faults.py --only one two`, ', ' 2 min in all',
                 '| own tests | `test_a[x\\|y]` | 61 |', '**not found**'):
        assert text in page


def test_a_test_that_is_broken_itself_finds_nothing(record):
    runs = Runs(here='test_a', none='test_a')
    with pytest.raises(FAULTS.CannotExamine, match='test_a fails without'):
        FAULTS.examine_all([fault('here')], record(), runs)
    with pytest.raises(FAULTS.CannotExamine, match='test_a fails without'):
        FAULTS.examine(fault('here'), {'short run': ['-m', 'x']}, runs)


@pytest.mark.parametrize('code, output, test', [
    (0, 'FAILED is what a log says', ''),
    (1, 'x\nFAILED tests/a.py::test_b[1 - 2] - AssertionError: c - d\n',
     'tests/a.py::test_b[1 - 2]'),
    (2, 'ERROR tests/a.py - ImportError: x\n!! stopping !!', 'tests/a.py'),
    (2, 'FAILED tests/a.py::test_b[c@d]@gpu\n', 'tests/a.py::test_b[c@d]'),
])
def test_the_first_test_that_fails(code, output, test):
    assert FAULTS.failed_test(code, output) == test


@pytest.mark.parametrize('code', [1, 2, 3, 4, 5, -9])
def test_pytest_did_not_run_the_tests(code):
    with pytest.raises(FAULTS.CannotExamine, match=f'exit code {code}'):
        FAULTS.failed_test(code, 'no tests ran')
