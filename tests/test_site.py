"""The documentation site: its hooks, what was built, and what is refused."""
import base64
import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from by_path import load

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / '.ci' / 'site'
#: Read from the hook's source, which imports MkDocs.
OUTSIDE = dict(re.findall(
    r"^    '([\w./-]+)': '([\w./-]+)',$",
    (SITE / 'hooks' / 'pages.py').read_text(), re.M))
NO_PACKAGES = 69


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


def build(root, out):
    result = subprocess.run(
        ['bash', 'tools/build_docs.sh', '-d', out], cwd=root, text=True,
        capture_output=True, env=dict(
            os.environ, DOCS_VENV=str(ROOT / '.venv' / 'docs')))
    if result.returncode == NO_PACKAGES:
        pytest.skip(f'requirements/docs.txt: {result.stderr[-300:]}')
    return result


@pytest.fixture
def site():
    """The folder of the site that .ci/run has built."""
    if built := os.environ.get('BUILT_SITE'):
        return Path(built)
    pytest.skip('bash tools/build_docs.sh && BUILT_SITE=build/site ...')


def tree_of_one_page(root, text):
    """A repository with the site's hooks and settings, and one page."""
    shutil.copytree(SITE, root / '.ci' / 'site')
    for name in ('tools/build_docs.sh', 'requirements/docs.txt'):
        (root / name).parent.mkdir()
        shutil.copy(ROOT / name, root / name)
    for name in (*OUTSIDE, 'stepnet_mm/__init__.py'):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text('')
    (root / 'docs').mkdir()
    (root / 'docs' / 'page.md').write_text(text)
    (root / 'docs' / '.nav.yml').write_text('nav: ["*.md", "zh/*"]')


@pytest.mark.long
@pytest.mark.xdist_group('site')
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


@pytest.mark.long
@pytest.mark.xdist_group('site')
def test_each_broken_thing_is_reported(tmp_path):
    tree_of_one_page(tmp_path / 'tree', '''# A page
[a](gone.md) [b](../stepnet_mm/gone.py) [c](../README.md#gone)
[`d`][stepnet_mm.stiffness.gone] $\\gone$ <img src="gone.png">
''')
    other = tmp_path / 'tree' / 'docs' / 'other' / 'not_in_nav.md'
    other.parent.mkdir()
    other.write_text('# Another page')
    result = build(tmp_path / 'tree', tmp_path / 'out')
    assert result.returncode != 0
    for found in ("a link 'gone.md'", "a link '../stepnet_mm/gone.py'",
                  'index.md#gone', 'stepnet_mm.stiffness.gone',
                  r'in \\gone', 'src="gone.png"', 'other/not_in_nav.md'):
        assert re.search(found, result.stderr), (found, result.stderr)
    # And nothing else is wrong with this tree.
    assert result.stderr.count('WARNING -') == 7, result.stderr
