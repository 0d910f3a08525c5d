import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest
from html_page import HTMLPage
from made_records import make_attention_record
from plot_attention import render_attention_page

from stepnet_mm.attention import QueryMaps, read_attention_record

pytest.importorskip('mmpretrain')
pytest.importorskip('matplotlib')

PAGE = Path(__file__).resolve().parents[2] / 'docs/self_attention.md'
HOSTILE = '''</script><script>alert(1)</script><!--<b title="'">&amp;'''


@pytest.fixture
def config(classifier):
    """A small SelfAttentionNet on the images of the toy classifier."""
    with classifier.open('a') as file:
        file.write('''
model['backbone'] = dict(
    _delete_=True, type='SelfAttentionNet', embed_dims=12, num_layers=2,
    num_heads=3, feedforward_channels=8)
model['head']['in_channels'] = 12
data['pipeline'][1]['scale'] = (32, 32)
custom_hooks = [dict(type='AttentionMapHook', figure_interval=0)]
''')
    return classifier


@pytest.mark.long
def test_a_training_and_its_checkpoint(tool, config, tmp_path, capsys,
                                       monkeypatch):
    work = tmp_path / 'work'
    tool('train', config, '--work-dir', work)
    capsys.readouterr()
    tool('analysis/plot_attention', work)
    table = capsys.readouterr().out.splitlines()[2:5]
    assert [row.split()[0] for row in table] == ['0', '2', '4']
    for name in ('maps', 'paths', 'range'):
        assert cv2.imread(str(work / f'attention_{name}.png')).std() > 5
    assert 'Iteration 4, an image of 32' in (
        work / 'attention.html').read_text()

    # The lines of the page that measure a checkpoint.
    code, = (code for code in re.findall(
        r'^```python\n(.*?)^```$', PAGE.read_text(), re.M | re.S)
        if 'measure_attention' in code)
    monkeypatch.chdir(tmp_path)
    exec(code, dict(CONFIG=config, CHECKPOINT=str(work / 'epoch_2.pth')))
    record = read_attention_record('attention.npz')
    assert record.samples == 8 and [*record.query] == [16, 16]
    tool('analysis/plot_attention', 'attention.npz')
    assert (tmp_path / 'attention_maps.png').exists()


@pytest.fixture
def record():
    """Two layers of 3 and 2 heads on (6, 8), every other pixel a query."""
    record = make_attention_record(step=40)
    random = np.random.default_rng(0)
    for layer in record.layers:
        heads = len(layer.maps)
        layer.queries = QueryMaps(
            levels=random.integers(0, 256, (heads, 3, 4, 6, 8), 'uint8'),
            largest=random.random((heads, 3, 4), 'float32'),
            rows=np.arange(0, 6, 2), columns=np.arange(0, 8, 2))
        layer.queries.levels[..., 3, 5] = 255
        layer.queries.largest[1, 2, 2] = .125
    return record


def test_the_page_has_the_records_numbers_and_runs_no_name(record):
    record.name = record.layers[1].name = HOSTILE
    page = render_attention_page(record)
    found = HTMLPage(page)
    assert len(found.attributes('script')) == 2
    assert not found.attributes('b') and '<!--' not in page
    assert ''.join(found.within('h1')).startswith(HOSTILE)
    for key in ('src', 'href', 'style', 'onclick'):
        assert not found.values(key)
    assert not re.search(r'https?:|url\(|@import|fetch\(|innerHTML', page)

    data = json.loads(found.within('script')[0])
    assert data['query'] == [7, 9]
    for own, layer in zip(data['layers'], record.layers):
        assert own['shape'] == [6, 8]
        assert own['queries'] == [[0, 2, 4], [0, 2, 4, 6]]
        # As the script counts: head, row and column of the query.
        assert base64.b64decode(
            own['levels']) == layer.queries.levels.tobytes()
        np.testing.assert_array_equal(
            np.frombuffer(base64.b64decode(own['largest']), '<f4'),
            layer.queries.largest.ravel())
    assert [own['order'] for own in data['layers']] == [[1, 2, 0], [1, 0]]
    assert data['layers'][0]['heads'][0] == '1 (3.0 px)'


def test_a_browser_shows_it(record, tmp_path):
    program = shutil.which('chromium') or shutil.which('google-chrome')
    if program is None:
        pytest.skip('no browser is installed')
    path = tmp_path / 'page.html'
    path.write_text(render_attention_page(record))
    done = subprocess.run(
        [program, '--headless', '--no-sandbox', '--disable-gpu',
         f'--user-data-dir={tmp_path / "profile"}', '--dump-dom',
         path.as_uri()], capture_output=True, text=True, timeout=240)
    assert ("Head 2 from pixel (4, 4) of the layer's map: most at (3, 5), "
            '0.125') in done.stdout, done.stderr
