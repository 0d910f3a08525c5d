import base64
import re

import cv2
import numpy as np
import pytest
import torch
from html_page import HTMLPage
from made_records import make_attention_record, make_record
from stiffness_page import render_report

from stepnet_mm.stiffness import (
    stiffness_proportion,
    total_neural_stiffness,
)

pytest.importorskip('matplotlib')
# One worker: the page is drawn once.
pytestmark = pytest.mark.xdist_group('report')

CURVE = [
    dict(step=step, tns=2. - step / 99, nsi_stage1_mean=.5,
         nsi_stage1_max=.8, nonfinite=0.) for step in (50, 100, 150)
]


def record(name, gates=False, **changes):
    """Seven measured blocks in three of four stages, of 40 samples."""
    meta = dict(name=name, dataset='CIFAR-10 test, first 40', checkpoint=None)
    return make_record((2, 3, 0, 2), bad=1, seed=len(name),
                       gates=[gates] * 6 + [False],
                       **{'meta': meta, **changes})


def texts_of(page):
    """Its texts, but for the style."""
    return [text.strip() for tag, text in HTMLPage(page).texts
            if tag != 'style' and text.strip()]


HOSTILE = '<script>alert("1")</script> & $title'


@pytest.fixture(scope='module')
def page():
    """One model has a hostile name, and no gates."""
    own = record(HOSTILE, meta=dict(name=HOSTILE, config=HOSTILE),
                 blocks=[HOSTILE] * 7)
    return render_report(
        HOSTILE, [own, record('stepnet', gates=True)], dict(stiffness=CURVE),
        dict(attention=[make_attention_record(0, color=3),
                        *map(make_attention_record, (5, 10))]))


@pytest.mark.long
def test_the_page_is_whole_and_asks_for_nothing(page):
    found = HTMLPage(page)
    for tag in ('script', 'link', 'iframe', 'object'):
        assert not found.attributes(tag)
    pictures = found.attributes('img')
    assert len(pictures) == 8 and all(found.values('alt'))
    for picture in pictures:
        kind, _, data = picture['src'].partition(',')
        assert kind == 'data:image/png;base64'
        assert 300 < int(picture['width']) <= 1040
        pixels = np.frombuffer(base64.b64decode(data), np.uint8)
        assert cv2.imdecode(pixels, 1).std() > 5
    assert not re.search(r'https?://|url\(|@import', page)


@pytest.mark.long
@pytest.mark.core
def test_the_numbers_are_those_of_the_pure_functions(page):
    texts = texts_of(page)
    for name, gates in ((HOSTILE, False), ('stepnet', True)):
        own = record(name, gates)
        tns = total_neural_stiffness(own.nsi, own.stage)[1:]
        share = stiffness_proportion(own.nsi, own.stage, [.5], [0.]).item()
        row = texts.index(f'{tns.mean().item():#.4g}')
        assert texts[row - 1] == name  # and no script
        assert texts[row + 1:row + 6] == [
            f'{tns.median().item():#.4g}',
            f'{torch.quantile(tns, .95).item():#.4g}',
            f'{tns.std(correction=0).item():#.4g}', '39', '1'
        ]
        assert texts[row + 7] == f'{share:#.4g}'
    for part in ('layer4.2', 'own area', 'CIFAR-10 test, first 40',
                 '2, 3, 0, 2'):
        assert part in texts, part


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without their pictures, which take long."""
    monkeypatch.setattr('stiffness_page.picture', lambda figure: dict(
        url='', width=300))


@pytest.fixture
def write(write_record):
    """write('resnet20_plain/last') -> the path of a record"""

    def write(name, **changes):
        return write_record(
            name, torch.rand(8, 3) + .1, stage=[1, 1, 2], position=[1, 2, 1],
            blocks=['layer1.1', 'layer1.2', 'layer2.1'], **changes)

    return write


def test_records_of_one_definition_are_shown(
        undrawn, tool, write, tmp_path, capsys):
    work_dir = tmp_path / 'resnet20_plain'
    log = work_dir / 'run/vis_data/probe.json'
    log.parent.mkdir(parents=True)
    log.write_text('{"step": 1, "probe/tns": 1.0, "probe/nonfinite": 0}\n')
    for name in ('start', 'last'):
        write(f'{work_dir.name}/{name}', meta=dict(name='r20'))
    # A measurement that was cut, and is not shown.
    cut = write(f'{work_dir.name}/b', definition='update')
    cut.write_text(cut.read_text()[:-1])
    tool('analysis/plot', 'report', work_dir)
    page = (work_dir / 'report.html').read_text()
    assert '<h1>Neural stiffness of resnet20_plain</h1>' in page
    assert 'While training: probe' in page and 'δ(0.5, 0)' in page
    for name in ('r20, start.jsonl', 'r20, last.jsonl'):
        assert f'<h3>{name}</h3>' in page
    assert '<h3>b</h3>' not in page
    said = capsys.readouterr().out
    assert 'NSI: residual; of others, not shown: b.jsonl' in said
    for options, match in (
            (('--definition', 'output'), "plain: expected .*'output'.*resid"),
            (('--definition', 'update'), 'expected 8 samples, got 0')):
        with pytest.raises(SystemExit, match=match):
            tool('analysis/plot', 'report', work_dir, *options)
    assert (work_dir / 'report.html').read_text() == page
