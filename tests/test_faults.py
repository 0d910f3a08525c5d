"""The list of faults fits the code."""
import shutil
from pathlib import Path

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
