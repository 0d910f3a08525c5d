import base64
import re
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest
import torch
from made_records import make_attention_record, make_record
from report_page import render_report

HOSTILE = '<script>alert("1")</script> & $title'
CURVE = [
    dict(step=step, tns=2. - step / 99, nsi_stage1_mean=.5,
         nsi_stage1_max=.8, nonfinite=0.) for step in (50, 100, 150)
]


@pytest.mark.long
@pytest.mark.core
def test_the_page_is_whole_and_asks_for_nothing():
    """One model has a hostile name, and no gates."""
    records = [make_record(
        (2, 3, 0, 2), bad=1, seed=seed, gates=[gates] * 6 + [False],
        meta=dict(name=name, config=name, checkpoint=None), **blocks)
        for seed, (name, gates, blocks) in enumerate((
            (HOSTILE, False, dict(blocks=[HOSTILE] * 7)),
            ('stepnet', True, {})))]
    page = render_report(
        HOSTILE, records, dict(stiffness=CURVE), dict(
            attention=[make_attention_record(0, layers=1),
                       *map(make_attention_record, (5, 10))]))
    # Every element is closed, but those that never are.
    found = ElementTree.fromstring(
        re.sub('<((?:meta|img) .*?)>', r'<\1/>', page, flags=re.S))
    assert not {'script', 'link', 'iframe', 'object'} & {
        element.tag for element in found.iter()}
    pictures = [picture.attrib for picture in found.iter('img')]
    assert len(pictures) == 8
    assert all(picture['alt'] for picture in pictures)
    for picture in pictures:
        kind, _, data = picture['src'].partition(',')
        assert kind == 'data:image/png;base64'
        assert 300 < int(picture['width']) <= 1040
        pixels = np.frombuffer(base64.b64decode(data), np.uint8)
        assert cv2.imdecode(pixels, 1).std() > 5
    assert not re.search(r'https?://|url\(|@import', page)

    texts = [text.strip() for text in found.itertext()]
    for key in ('tns', 'tns_q95', 'nsi_stage4_mean', 'proportion_0.5_0'):
        row = texts.index(key)
        assert texts[row + 1:row + 3] == [
            f'{record.summary()[key]:#.4g}' for record in records], key
    row = texts.index('nonfinite')
    assert texts[row + 1:row + 3] == ['1', '1']
    assert 'layer4.2' in texts and 'own area' in texts


def test_records_of_one_definition_are_shown(
        monkeypatch, tool, write_record, write_log, tmp_path, capsys):
    monkeypatch.setattr('report_page.picture', lambda figure: dict(
        url='', width=300))  # they take long
    work_dir = tmp_path / 'resnet20_plain'
    write_log(work_dir, 'run', [dict(step=1, tns=1., nonfinite=0)], 'probe')
    blocks = dict(stage=[1, 1, 2], position=[1, 2, 1],
                  blocks=['layer1.1', 'layer1.2', 'layer2.1'])
    for name in ('start', 'last'):
        write_record(f'{work_dir.name}/{name}', torch.rand(8, 3) + .1,
                     meta=dict(name='r20'), **blocks)
    # A measurement that was cut, and is not shown.
    cut = write_record(f'{work_dir.name}/b', torch.rand(8, 3),
                       definition='update', **blocks)
    cut.write_text(cut.read_text()[:-2])
    tool('analysis/plot', 'report', work_dir)
    page = (work_dir / 'report.html').read_text()
    assert '<h1>Neural stiffness of resnet20_plain</h1>' in page
    assert 'While training: probe' in page and 'stiff at (0.5, 0)' in page
    for name in ('r20, start.jsonl', 'r20, last.jsonl'):
        assert f'<h3>{name}</h3>' in page
    assert '<h3>b</h3>' not in page
    said = capsys.readouterr().out
    assert 'NSI: residual; of others, not shown: b.jsonl' in said
    with pytest.raises(ValueError, match='expected 8 samples, got 0'):
        tool('analysis/plot', 'report', work_dir, '--definition', 'update')
    assert (work_dir / 'report.html').read_text() == page
