import base64
import hashlib
import json
import re

import numpy as np
import pytest
from attention_page import render_attention_page
from html_page import HTMLPage
from made_records import make_attention_record

from stepnet_mm.attention import QueryMaps

pytest.importorskip('matplotlib')
HOSTILE = '''</script><script>alert(1)</script><!--<b title="'">&amp;'''


def make_record(**changes):
    """Two layers of 3 and 2 heads on (6, 8), every other pixel a query."""
    record = make_attention_record(step=40, **changes)
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


def data_of(page):
    return json.loads(HTMLPage(page).within('script')[0])


def decode(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def test_the_page_is_whole_and_asks_for_nothing():
    page = render_attention_page(make_record())
    assert page.startswith('<!DOCTYPE html>')
    found = HTMLPage(page)
    assert found.within('h1') == found.within('title') == [
        'net: where the heads look']
    assert 'Iteration 40, an image of 12 × 16 px' in ' '.join(page.split())
    for key in ('src', 'href', 'style', 'onclick'):
        assert not found.values(key)
    assert not re.search(r'https?:|url\(|@import|fetch\(|innerHTML', page)
    policy, = [a['content'] for a in found.attributes('meta')
               if a.get('http-equiv') == 'Content-Security-Policy']
    assert "default-src 'none'" in policy and 'unsafe' not in policy
    for kind, text in (('style', found.within('style')[0]),
                       ('script', found.within('script')[-1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
        assert f"{kind}-src 'sha256-{digest.decode()}'" in policy


def test_the_numbers_are_those_of_the_record():
    record = make_record()
    data = data_of(render_attention_page(record))
    assert data['query'] == [7, 9]
    for own, layer in zip(data['layers'], record.layers):
        assert own['shape'] == [6, 8]
        assert own['queries'] == [[0, 2, 4], [0, 2, 4, 6]]
        assert (own['pixel'], own['padding']) == ([2, 2], [0, 0])
        levels = decode(own['levels'], 'uint8').reshape(-1, 6 * 8)
        largest = decode(own['largest'], '<f4')
        for head, i, j in np.ndindex(*layer.queries.largest.shape):
            number = (head * 3 + i) * 4 + j  # as the script counts
            np.testing.assert_array_equal(
                levels[number], layer.queries.levels[head, i, j].ravel())
            assert largest[number] == layer.queries.largest[head, i, j]
    assert [own['order'] for own in data['layers']] == [[1, 2, 0], [1, 0]]
    assert data['layers'][0]['heads'] == [
        '1 (3.0 px)', '2 (1.0 px)', '3 (2.0 px)']


def test_names_are_shown_as_they_are_and_never_run():
    record = make_record()
    record.name = record.layers[1].name = HOSTILE
    page = render_attention_page(record)
    found = HTMLPage(page)
    assert len(found.attributes('script')) == 2
    assert not found.attributes('b') and '<!--' not in page
    assert ''.join(found.within('h1')).startswith(HOSTILE)
    assert data_of(page)['layers'][1]['name'] == f'2: {HOSTILE}'


def test_a_browser_shows_it(browser):
    assert ("Head 2 from pixel (4, 4) of the layer's map: most at (3, 5), "
            '0.125') in browser(render_attention_page(make_record()))
