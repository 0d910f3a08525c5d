import pytest
import torch

from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils.file_lock import file_lock, lock_beside

pytest.importorskip('mmpretrain')
TOOL = 'analysis/measure_stiffness'


@pytest.fixture
def deep(classifier):
    """Two measured blocks in stages 2 and 3: TNS is not 0."""
    text = classifier.read_text()
    classifier.write_text(text.replace(
        "type='StepResNet'", "type='StepResNet', depth=34, "
        'zero_init_residual=False'))
    return classifier


def measure(tool, config, out, *arguments):
    tool(TOOL, config, '--out', out, '--batch-size', 3, '--device', 'cpu',
         *arguments)
    return read_stiffness_record(out)


@pytest.mark.long
def test_the_start_of_a_network(tool, deep, tmp_path, capsys):
    record = measure(tool, deep, tmp_path / 'a.jsonl', '--name', 'start')
    assert record.nsi.shape == (8, 12) and record.nsi.isfinite().all()
    # The published start of the adaptor is sigma(-1).
    torch.testing.assert_close(
        record.step[:, 0], torch.full((8, ), .2689).double(), atol=1e-4,
        rtol=0)
    header = record.header
    assert record.name == 'start' and header.samples == 8
    assert header.stages == 4 and header.definition == 'residual'
    assert header.blocks[0] == 'backbone.layer1.1'
    assert header.meta['checkpoint'] == 'none'
    assert '8 of 8 samples' in header.meta['dataset']
    assert 'tns_q95  ' in capsys.readouterr().out


def test_a_checkpoint_is_measured_and_named(tool, deep, tmp_path):
    work_dir = tmp_path / 'work'
    tool('train', deep, '--work-dir', work_dir)
    checkpoint = work_dir / 'epoch_2.pth'
    tool(TOOL, deep, checkpoint, '--device', 'cpu')
    record = read_stiffness_record(work_dir / 'epoch_2_stiffness.jsonl')
    start = measure(tool, deep, tmp_path / 'start.jsonl')
    assert not torch.equal(record.nsi, start.nsi)
    assert record.header.meta['checkpoint'] == str(checkpoint)
    assert len(record.header.meta['sha256']) == 12


@pytest.mark.long
@pytest.mark.core
def test_a_cut_measurement_goes_on_bit_for_bit(tool, deep, tmp_path):
    """Where the data were moved to, too."""
    whole = measure(tool, deep, tmp_path / 'whole.jsonl')
    text = (tmp_path / 'whole.jsonl').read_bytes()
    cut = tmp_path / 'cut.jsonl'
    cut.write_bytes(text[:text.index(b'\n', text.index(b'\n') + 1) + 40])
    (tmp_path / 'disk').mkdir()
    (tmp_path / 'images').rename(tmp_path / 'disk/images')
    moved = '--data-root', tmp_path / 'disk/images'
    record = measure(tool, deep, cut, *moved, '--cfg-options',
                     'val_dataloader.num_workers=1')
    assert torch.equal(record.nsi, whole.nsi) and cut.read_bytes() == text
    done = measure(tool, deep, cut, *moved)
    assert torch.equal(done.nsi, whole.nsi)
    (tmp_path / 'other').symlink_to('disk/images')
    for other in (('--data-root', tmp_path / 'other'),
                  (*moved, '--image-scale', 48, 48)):
        with pytest.raises(ValueError, match='settings.*another'):
            measure(tool, deep, cut, *other)


def test_another_model_or_data_is_refused_and_nothing_overwritten(
        tool, deep, tmp_path):
    out = tmp_path / 'a.jsonl'
    measure(tool, deep, out)
    before = out.read_bytes()
    for arguments, key in ((['--num-samples', 5], 'samples'),
                           (['--blocks', r'backbone\.layer3\.\d'], 'blocks'),
                           (['--definition', 'output'], 'definition')):
        with pytest.raises(ValueError, match=f'another.*{key}'):
            measure(tool, deep, out, *arguments)
        assert out.read_bytes() == before


@pytest.mark.long
def test_samples_are_spread_and_a_pattern_chooses_blocks(
        tool, deep, tmp_path):
    whole = measure(tool, deep, tmp_path / 'whole.jsonl')
    some = measure(tool, deep, tmp_path / 'some.jsonl', '--num-samples', 4,
                   '--blocks', r'backbone\.layer3\.[2-5]')
    assert some.header.blocks == [
        f'backbone.layer3.{i}' for i in (2, 3, 4, 5)]
    assert some.header.position == [2, 3, 4, 5]
    chosen = [whole.header.blocks.index(name) for name in some.header.blocks]
    torch.testing.assert_close(
        some.nsi, whole.nsi[::2, chosen], rtol=1e-5, atol=0)


def test_list_measures_nothing(tool, deep, tmp_path, capsys):
    tool(TOOL, deep, '--list', '--work-dir', tmp_path / 'work',
         '--cfg-options', 'model.backbone.init_cfg.type=Pretrained',
         'model.backbone.init_cfg.checkpoint=nowhere.pth')
    assert 'backbone.layer4.2' in capsys.readouterr().out
    assert not list(tmp_path.rglob('*.jsonl'))


def test_a_detector(tool, detector, tmp_path):
    config, data = detector
    record = measure(tool, config, tmp_path / 'a.jsonl', '--data-root', data,
                     '--num-samples', 2)
    assert record.nsi.shape == (2, 4)
    assert record.header.blocks[0] == 'backbone.layer1.1'


@pytest.mark.parametrize('key, arguments', [
    ('expected a test_dataloader', ('--split', 'test', '--cfg-options',
                                    'test_dataloader=None')),
    ('first blocks|no residual', ('--blocks', 'head.*'))])
def test_wrong_arguments(tool, deep, tmp_path, key, arguments):
    with pytest.raises(ValueError, match=key):
        measure(tool, deep, tmp_path / 'a.jsonl', *arguments)
    assert not (tmp_path / 'a.jsonl').exists()


def test_a_file_that_cannot_be_written_is_found_before_the_network(
        tool, deep, tmp_path):
    out = tmp_path / 'a.jsonl'
    with file_lock(lock_beside(out)), pytest.raises(
            ValueError, match='a.jsonl: expected a file that nobody writes'):
        measure(tool, deep, out)
    assert not out.exists()
    path = tmp_path / 'none.pth'
    path.write_text('no weights')
    path.with_name('none_stiffness.jsonl').mkdir()
    with pytest.raises(ValueError, match='^--out: expected a file'):
        tool(TOOL, deep, path, '--device', 'cpu')
