import pytest
import torch
from held_lock import held_lock
from measure_stiffness import settings_digest
from mmengine.config import Config

from stepnet_mm.launch.entry import build_model
from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils.file_lock import lock_beside

TOOL = 'analysis/measure_stiffness'


@pytest.mark.parametrize('change, changes', [
    ({'data_preprocessor': dict(mean=1)}, True),
    ({'randomness.seed': 1}, True),
    ({'val_dataloader.dataset.ann_file': 'b'}, True),
    ({'val_dataloader.dataset.data_root': '/here/other'}, True),
    ({'val_dataloader.dataset.data_root': '/there/coco'}, False),
    ({'val_dataloader.num_workers': 0}, False)])
def test_what_changes_a_measurement(change, changes):
    cfg = Config(dict(
        model=dict(type='A'),
        val_dataloader=dict(
            num_workers=2,
            dataset=dict(type='B', data_root='/here/coco', ann_file='a'))))
    before = settings_digest(cfg, 'val')
    cfg.merge_from_dict(change)
    assert (settings_digest(cfg, 'val') != before) == changes


def measure(tool, config, out, *arguments):
    tool(TOOL, config, '--out', out, '--batch-size', 3, '--device', 'cpu',
         *arguments)
    return read_stiffness_record(out)


@pytest.mark.long
@pytest.mark.core
def test_the_start_a_cut_some_of_it_and_a_checkpoint(
        tool, classifier, tmp_path, capsys):
    """A cut one goes on bit for bit, where the data were moved to, too."""
    # Unlike a plain network at its start: TNS is not 0.
    classifier.write_text(classifier.read_text().replace(
        "type='StepResNet'", "type='StepResNet', depth=34, "
        'zero_init_residual=False'))
    out = tmp_path / 'a.jsonl'
    start = measure(tool, classifier, out, '--name', 'start')
    assert 'tns_q95  ' in capsys.readouterr().out
    assert start.nsi.shape == (8, 12) and start.nsi.isfinite().all()
    # The published start of the adaptor is sigma(-1).
    torch.testing.assert_close(
        start.step[:, 0], torch.full((8, ), .2689).double(), atol=1e-4,
        rtol=0)
    header = start.header
    assert (start.name, header.samples, header.stages) == ('start', 8, 4)
    assert header.blocks[0] == 'backbone.layer1.1'
    assert header.meta['checkpoint'] == 'none'
    assert '8 of 8 samples' in header.meta['dataset']

    text = out.read_bytes()
    out.write_bytes(text[:text.index(b'\n', text.index(b'\n') + 1) + 40])
    (tmp_path / 'disk').mkdir()
    (tmp_path / 'images').rename(tmp_path / 'disk/images')
    moved = '--data-root', tmp_path / 'disk/images'
    again = '--name', 'start', *moved
    with held_lock(tmp_path, lock_beside(out)), pytest.raises(
            ValueError, match='a.jsonl.lock: expected to be'):
        measure(tool, classifier, out, *again)
    measure(tool, classifier, out, *again)
    assert out.read_bytes() == text
    with pytest.raises(ValueError, match='settings.*another'):
        measure(tool, classifier, out, *again, '--image-scale', 48, 48)
    assert out.read_bytes() == text

    some = measure(tool, classifier, tmp_path / 'some.jsonl', '--blocks',
                   r'backbone\.layer3\.[2-5]', '--num-samples', 4, *moved)
    assert some.header.position == [2, 3, 4, 5]
    chosen = [header.blocks.index(name) for name in some.header.blocks]
    torch.testing.assert_close(
        some.nsi, start.nsi[::2, chosen], rtol=1e-5, atol=0)

    weights = build_model(Config.fromfile(classifier)).state_dict()
    weights['backbone.layer3.1.conv2.weight'] *= 2
    checkpoint = tmp_path / 'epoch_2.pth'
    torch.save(dict(state_dict=weights), checkpoint)
    tool(TOOL, classifier, checkpoint, '--device', 'cpu', *moved)
    trained = read_stiffness_record(tmp_path / 'epoch_2_stiffness.jsonl')
    assert not torch.equal(trained.nsi, start.nsi)
    assert trained.header.meta['checkpoint'] == str(checkpoint)
    assert len(trained.header.meta['sha256']) == 12
