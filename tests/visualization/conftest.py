"""A real browser for pages, where the machine has one."""
import json
import shutil
import subprocess
import tempfile
from html import escape, unescape

import pytest

NAMES = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
         '--no-first-run', '--disable-background-networking',
         '--disable-component-update', '--disable-sync')
#: A browser's window has a least width, a frame in it has none.
FRAME = '''<!DOCTYPE html><meta charset="utf-8">
<iframe style="width: {width}px; height: 800px; border: 0"
        srcdoc="{page}"></iframe>
<script>
addEventListener('load', () => {{
  const inner = document.querySelector('iframe').contentDocument;
  const found = {{
    width: inner.documentElement.clientWidth,
    needed: inner.documentElement.scrollWidth,
    text: inner.body.innerText,
    images: [...inner.images].map(image => image.naturalWidth),
    outer: inner.defaultView.performance.getEntriesByType('resource')
      .map(entry => entry.name).filter(name => !name.startsWith('data:'))
  }};
  const out = document.createElement('pre');
  out.textContent = JSON.stringify(found);
  document.body.replaceChildren(out);
}});
</script>
'''


@pytest.fixture
def browser(tmp_path):
    """browser('--dump-dom', url): what it prints; it has no profile."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f'none of {NAMES} is installed')

    def browser(*arguments):
        profile = tempfile.mkdtemp(dir=tmp_path)
        result = subprocess.run(
            [program, *FLAGS, f'--user-data-dir={profile}', *arguments],
            capture_output=True, text=True, timeout=240)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return browser


@pytest.fixture
def look(browser, tmp_path):
    """look(page, 400): how a page comes out at a width in px."""

    def look(page, width):
        path = tmp_path / 'frame.html'
        path.write_text(FRAME.format(width=width, page=escape(page)))
        dom = browser('--dump-dom', path.as_uri())
        return json.loads(unescape(dom.split('<pre>')[1].split('</pre>')[0]))

    return look
