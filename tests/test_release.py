"""What a release brings beside the code."""
import re
from pathlib import Path

import stepnet_mm

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / '.github'


def test_the_changelog_has_this_version_or_is_on_its_way_to_it():
    heads = re.findall(r'^## (\S+)', (ROOT / 'CHANGELOG.md').read_text(),
                       re.M)
    assert heads[0] in ('Unreleased', stepnet_mm.__version__)


def test_nothing_names_the_host_of_a_package_registry():
    texts = [path.read_text() for path in (
        *GITHUB.rglob('*.yml'), *(ROOT / 'requirements').glob('*.txt'),
        *ROOT.glob('tools/*.sh'), ROOT / 'setup.py', ROOT / '.ci' / 'run')]
    assert not [text for text in texts if re.search(
        r'https?://|index-url|find-links', text)]
