import base64
import math
import re

import cv2
import numpy as np
import pytest
import torch
from html_page import HTMLPage
from html_pages import TEMPLATES
from made_records import make_attention_record
from stiffness_page import render_report

from stepnet_mm.stiffness import (
    RecordHeader,
    StiffnessRecord,
    stiffness_proportion,
    total_neural_stiffness,
)

pytest.importorskip('matplotlib')
# One worker: the pages are drawn once.
pytestmark = pytest.mark.xdist_group('report')

CURVE = [
    dict(step=step, tns=2. - step / 99, nsi_stage1_mean=.5,
         nsi_stage1_max=.8, nonfinite=0.) for step in (50, 100, 150)
]


def record(name='plain', gates=False, samples=40, **changes):
    """Seven measured blocks in three of four stages."""
    torch.manual_seed(len(name))
    stage = [1, 1, 2, 2, 2, 4, 4]
    fields = dict(
        definition='residual',
        blocks=[f'backbone.layer{s}.{i}' for i, s in enumerate(stage)],
        stage=stage, position=[1, 2, 1, 2, 3, 1, 2], samples=samples,
        meta=dict(
            name=name, config='configs/resnet164/resnet164_plain_cifar10.py',
            dataset='CIFAR-10 test, first 40', image_scale=None, options={},
            versions=dict(torch='2.11', mmengine='0.10.12')),
        stages=4)
    header = RecordHeader(**{**fields, **changes})
    nsi = torch.rand(samples, 7).double() + .1
    nsi[0, 3] = math.inf
    step = torch.full_like(nsi, math.nan)
    if gates:
        step[:, :6] = .2 + .3 * torch.rand(samples, 6).double()
    return StiffnessRecord(header, nsi, step)


def texts_of(page):
    """Its texts, but for the style."""
    return [text.strip() for tag, text in HTMLPage(page).texts
            if tag != 'style' and text.strip()]


table = TEMPLATES.get_template('macros.html').module.table
HOSTILE = '<script>alert("1")</script> & $title'


@pytest.fixture(scope='module')
def page():
    return render_report('Stiffness of a run',
                         [record('plain'), record('stepnet', gates=True)],
                         dict(stiffness=CURVE))


@pytest.fixture(scope='module')
def alone():
    """One model with a hostile name and heads, without gates or a curve."""
    own = record(HOSTILE, meta=dict(name=HOSTILE, config=HOSTILE),
                 blocks=[HOSTILE] * 7)
    return render_report(HOSTILE, [own], attention=dict(attention=[
        make_attention_record(0, color=3),
        *map(make_attention_record, (5, 10))]))


@pytest.mark.long
def test_the_page_is_whole_and_asks_for_nothing(page):
    found = HTMLPage(page)
    assert page.startswith('<!DOCTYPE html>')
    for tag, count in dict(h1=1, title=1, script=0, link=0, iframe=0,
                           object=0).items():
        assert len(found.attributes(tag)) == count, tag
    sources = [source for key in ('src', 'srcset', 'href')
               for source in found.values(key)]
    assert sources and all(found.values('alt'))
    assert all(s.startswith('data:image/png;base64,') for s in sources)
    assert not re.search(r'https?://|url\(|@import', page)


@pytest.mark.long
def test_dark_pages_have_pictures_of_their_own(page):
    found = re.findall(
        r'<source srcset="([^"]*)" media="screen and '
        r'\(prefers-color-scheme: dark\)">'
        r'<img alt="[^"]*" width="(\d+)" src="([^"]*)">', page)
    assert len(found) == page.count('<img') >= 5
    for dark, width, light in found:
        assert dark != light and 300 < int(width) <= 1040
        assert pixels(dark).mean() < 100 < 200 < pixels(light).mean()


def pixels(source):
    data = base64.b64decode(source.partition(',')[2])
    return cv2.imdecode(np.frombuffer(data, np.uint8), 1)


@pytest.mark.long
@pytest.mark.core
def test_the_numbers_are_those_of_the_pure_functions(page):
    texts = texts_of(page)
    for name, gates in (('plain', False), ('stepnet', True)):
        own = record(name, gates)
        tns = total_neural_stiffness(own.nsi, own.stage)[1:]
        share = stiffness_proportion(own.nsi, own.stage, [.5], [0.]).item()
        row = texts.index(f'{tns.mean().item():#.4g}')
        assert texts[row - 1] == name
        assert texts[row + 1:row + 6] == [
            f'{tns.median().item():#.4g}',
            f'{torch.quantile(tns, .95).item():#.4g}',
            f'{tns.std(correction=0).item():#.4g}', '39', '1'
        ]
        assert texts[row + 7] == f'{share:#.4g}'
    for part in ('backbone.layer4.6', 'own area', 'CIFAR-10 test, first 40',
                 'torch 2.11, mmengine 0.10.12', '2, 3, 0, 2'):
        assert texts.count(part) == 2, part


@pytest.mark.long
def test_what_a_run_has_is_there(page, alone):
    for heading in ('While training', 'Step size', 'TNS of each network'):
        assert heading in page and heading not in alone
    assert 'Where the heads look: attention' in texts_of(alone)
    assert 'Where the heads look' not in page


@pytest.mark.long
def test_text_is_escaped(alone):
    assert '<script' not in alone
    assert texts_of(alone).count(HOSTILE) >= 4


def test_cells():
    cells = texts_of(table([HOSTILE], [[HOSTILE, 123456, .9, math.nan]]))
    assert cells == [HOSTILE, HOSTILE, '123456', '0.9000', '–']


@pytest.mark.long
def test_a_browser_shows_all_of_it(page, look):
    found = look(page, 400)
    assert 380 < found['width'] == found['needed'] <= 400
    assert len(found['images']) == page.count('<img') >= 5
    assert min(found['images']) > 300
    assert found['outer'] == []
    for part in ('Stiffness of a run', 'backbone.layer4.6', 'TNS (Eq. 5)'):
        assert part in found['text']
