"""What users rely on is as contract.txt has it."""
import re
from pathlib import Path

import pytest
from by_path import load

CONTRACT = load(Path(__file__).with_name('contract.py'))
#: The first one of each folder of configs.
SOME = [*{Path(path).parent: path for path in reversed(CONTRACT.NETWORKS)
          if 'stepnet' in path}.values()]


def assert_kept(section, lines, only=()):
    found = CONTRACT.changes(section, lines, only)
    assert not found, (
        f'a promise to users changed:\n{found}\naccept with `python '
        'tests/contract.py --accept`, and say it in CHANGELOG.md')


@pytest.mark.parametrize(
    'section', sorted({*CONTRACT.SECTIONS} - {'runs', 'networks'}))
def test_a_section_is_as_accepted(section):
    assert_kept(section, CONTRACT.SECTIONS[section]())


@pytest.mark.parametrize('name', CONTRACT.RESULTS)
def test_what_was_run_still_counts(name):
    lines = [*CONTRACT.runs([name])]
    assert all(re.search(r'config (\w+), recorded as \1;', x) for x in lines)
    assert_kept('runs', lines, [name])


@pytest.mark.core
@pytest.mark.parametrize('path', SOME)
def test_a_network_is_as_accepted(path):
    assert_kept('networks', CONTRACT.networks([path]), [path])


@pytest.mark.long
def test_all_networks_are_as_accepted():
    assert_kept('networks', CONTRACT.networks(CONTRACT.NETWORKS))
