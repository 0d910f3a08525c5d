"""The documentation site that .ci/run has built."""
import importlib
import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def site():
    """Its folder."""
    if built := os.environ.get('BUILT_SITE'):
        return Path(built)
    pytest.skip('bash tools/build_docs.sh && BUILT_SITE=build/site ...')


@pytest.fixture
def pages(site):
    return {str(path.relative_to(site)): path.read_text()
            for path in site.rglob('*.html')}


def test_the_site_has_all_pages_and_asks_no_other_host(site, pages):
    assert {'index.html', 'zh/index.html', 'stiffness.html', 'configs.html',
            'api/stepnet_mm.steps.html'} <= pages.keys()
    asked = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*'
                       r'(?:src|href)="(?:https?:)?//[^"]*"|@import|url\(.?//')
    assert not {name: found for name, page in pages.items()
                if (found := asked.findall(page))}
    assert not [name for name, page in pages.items()
                if 'class="arithmatex"' in page or 'class="mermaid"' in page]
    assert pages['stiffness.html'].count('class="equation"') >= 3
    assert pages['api/stepnet_mm.steps.html'].count('class="equation"') >= 8
    assert '<html lang="zh-CN"' in pages['zh/index.html']
    assert not re.search(r':(func|class|meth):`', re.sub(
        r'<details.*?</details>', '', pages['api/stepnet_mm.steps.html'],
        flags=re.S))
    assert (site / 'search' / 'search_index.json').exists()


def test_the_api_has_the_public_names(pages):
    """Each on the page of its own folder."""
    found = {name.removeprefix('api/').removesuffix('.html'): page
             for name, page in pages.items() if name.startswith('api/')}
    assert len(found) > 13
    for package, page in found.items():
        module = importlib.import_module(package)
        named = {*re.findall(rf'id="{package}\.(?:\w+\.)?(\w+)"', page)}
        own = {name for name in getattr(module, '__all__', ()) if getattr(
            getattr(module, name), '__module__', package).startswith(package)}
        assert own <= named


def test_sentences_in_chinese_and_tutorials_with_their_outputs(site, pages):
    assert not re.search('[\u3000-\u9fff]\n *[\u3000-\u9fff]', re.sub(
        '<pre.*?</pre>', '', pages['zh/index.html'], flags=re.S))
    page = pages['tutorials/own_step_size.html']
    picture, = re.findall('<img alt="output" src="(.*?)"', page)
    assert (site / 'tutorials' / picture).read_bytes()[1:4] == b'PNG'
    assert 'class="output highlight"' in page and '\x1b' not in page
    assert '<span class="filename">work_dirs/own_step/own_step.py<' in page
    assert not re.search('%cd|%%bash|%%writefile', page)
