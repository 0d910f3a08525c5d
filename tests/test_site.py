"""The documentation site: its hooks, and what was built."""
import base64
import importlib
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from by_path import load

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / '.ci' / 'site'


def hook(name):
    """A hook's module, where it needs nothing that is not here."""
    return load(SITE / 'hooks' / f'{name}.py')


def test_the_api_has_the_public_names():
    api = hook('api')
    assert len(api.packages()) > 15
    for package in api.packages():
        module = importlib.import_module(package)
        names = set(getattr(module, '__all__', ()))
        found = set(api.public_names(package))
        assert found <= names
        page = api.page(package)
        assert all(f'.{name}\n' in page for name in found)
        # What it gives from another folder stands on that folder's page.
        assert not [name for name in names - found if getattr(
            module, name).__module__.startswith(package)]


def test_lines_of_a_chinese_sentence_are_joined():
    def markdown(uri):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=uri))
        return hook('language').on_page_markdown(text, page, None, None)

    text = '# 标题\n文字，\n  文字。\nx 文\n\n- 一\n- b\n二\n'
    assert markdown('index.md') == text
    assert markdown('zh/index.md') == (
        '# 标题\n文字，文字。\nx 文\n\n- 一\n- b\n二\n')


def test_a_notebook_becomes_a_page_with_its_outputs():
    picture = base64.b64encode(b'PNG').decode()
    cells = [
        dict(cell_type='markdown', source=['# Title\n', 'text']),
        dict(cell_type='code', source='%cd -q ..', outputs=[]),
        dict(cell_type='code', source='%%bash\nls', outputs=[
            dict(output_type='stream', text=['\x1b[1ma\x1b[0m\n']),
            dict(output_type='stream', text=['b\n'])]),
        dict(cell_type='code', source='%%writefile a/b.py\nc = 1',
             outputs=[]),
        dict(cell_type='code', source='draw()', outputs=[
            dict(output_type='display_data',
                 data={'image/png': picture, 'text/plain': 'Figure'})])]
    text, pictures = hook('notebooks').as_markdown(dict(cells=cells), 'name')
    assert pictures == {'name_1.png': b'PNG'}
    assert text.split('\n\n') == [
        '# Title\ntext', '````bash\nls\n````',
        '````{.text .output}\na\nb\n````',
        '````python title="a/b.py"\nc = 1\n````',
        '````python\ndraw()\n````', '![output](name_1.png)\n']


@pytest.fixture
def site():
    """The folder of the site that .ci/run has built."""
    if built := os.environ.get('BUILT_SITE'):
        return Path(built)
    pytest.skip('bash tools/build_docs.sh && BUILT_SITE=build/site ...')


@pytest.mark.long
def test_the_site_has_all_pages_and_asks_no_other_host(site):
    pages = {str(path.relative_to(site)): path.read_text()
             for path in site.rglob('*.html')}
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
