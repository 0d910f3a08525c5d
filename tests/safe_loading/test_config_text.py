"""What stays of a config in a checkpoint is plain, and an inferencer's."""
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import TRANSFORMS
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading.config_text import _Refused, inferencer_text

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'


def loaded(folder, text):
    torch.save(dict(meta=dict(cfg=text, config=text, epoch=3),
                    message_hub=dict(runtime_info=dict(cfg=text))),
               folder / 'a.pth')
    return CheckpointLoader.load_checkpoint(str(folder / 'a.pth'))


def kept(text):
    """What mmengine makes of the text."""
    return Config.fromstring(inferencer_text(text), '.py')._cfg_dict


def pipeline(steps):
    return f'test_dataloader = dict(dataset=dict(pipeline=[{steps}]))'


BRACES = '{{$NO:x|\\042+open(\'it_ran\', \'w\').name+\\042}}'
REFUSED = dict(
    # More than settings.
    a_call='a = open("it_ran", "w")',
    a_statement='import os\nos.mkdir("it_ran")',
    an_f_string='a = f"{open(\'it_ran\', chr(119))}"',
    to_an_attribute='_base_.b = "it_ran"', an_ellipsis='model = dict(a=...)',
    # mmengine replaces these before it reads the rest.
    a_variable=f'model = "{BRACES}"',
    a_variable_in_a_class='test_dataloader = dict(dataset=dict(metainfo=dict('
    f'classes=["{BRACES}"])))',
    # What mmengine does not write.
    a_set='model = dict(a={1, 2})', a_sum='model = dict(a=1 + 1)',
    # A registry imports the path of a type, under any key.
    a_type='model = dict(type="os.mkdir", path="it_ran")',
    a_module='model = dict(type="antigravity")',
    a_type_within='model = dict(a=[(1, dict(type="os.mkdir"))])',
    a_type_under_another_key='model = dict(padding_mode="os.mkdir")',
    of_a_pipeline=pipeline('dict(type="os.mkdir")'),
    within_a_step=pipeline('dict(type="Pad", size=dict(type="os.mkdir"))'),
    of_a_visualizer='visualizer = dict(type="os.mkdir")',
    of_a_dataset='test_dataloader = dict(dataset=dict(type="os.mkdir"))',
    a_runner='model = dict(type="mmengine.runner.runner.Runner")',
    behind_a_builtin='model = dict(a="exec.x")',
    # mmcv and mmdet evaluate such words.
    evaluated='model = dict(test_cfg=dict(nms=dict(type="open(1)")))',
    by_a_subscript='model = dict(warp_mode="[a[1] for a.b in [open]]")',
    of_attributes='model = dict(dtype="ctypes.cdll.evil")',
    bytes_to_evaluate='model = dict(warp_mode=b"ident")',
    # Files and hosts.
    a_path='model = dict(a="/a")',
    of_a_host='model = dict(model_name="hf-hub:gpt2")',
    a_repository='model = dict(a="owner0/0repo")')


@pytest.mark.parametrize('text', REFUSED.values(), ids=REFUSED)
def test_more_than_plain_settings_is_refused(text):
    with pytest.raises(_Refused):
        inferencer_text(text)


def test_a_text_that_is_refused_is_dropped_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r'a\.pth.*meta\.cfg'):
        found = loaded(tmp_path, REFUSED['a_call'])
    assert found == dict(meta=dict(epoch=3), message_hub=dict(runtime_info={}))
    assert not (tmp_path / 'it_ran').exists()


@pytest.mark.parametrize('plain', [
    ['token', 'torch'],  # of Python's own, and what is imported
    (1e8, -1e-05, 999999, True), ('a' * 100, "it's", '"', ''),
    dict(drop_path=0, arch='768/32', name='regnetx_1.6gf'), '1024/20',
    dict(warp_mode='cv2.MOTION_EUCLIDEAN', tokens=['[CLS]', '[SEP]']),
    [[dict(a=1)] * 10] * 3])
def test_what_is_plain_stays(plain):
    """As mmengine writes it."""
    text = Config(dict(model=dict(type='BN', a=plain))).pretty_text
    assert kept(text).model.a == plain


SETTINGS = """
custom_imports = dict(imports=['antigravity'])
load_from = 'x'
model = dict(
    type='StepNet', pretrained='x.pth', init_cfg=dict(checkpoint='x'),
    layers=[dict(type='BN', init_cfg=[dict(type='x.y')], checkpoint='a/b'),
            dict(type='nms', eps=-1e-5, seen={1: 2}, size=(1, None))])
test_cfg = dict()
test_dataloader = dict(
    collate_fn=dict(type='x.y'), dataset=dict(
        ann_file='a/b.json', metainfo=dict(
            classes=('dog/cat (both)', ), palette='names.txt'),
        pipeline=[dict(type='LoadImageFromFile', backend_args=dict(a='b/c'))]))
train_dataloader = dict(dataset=dict(type='x.y'))
vis_backends = [dict(type='LocalVisBackend', save_dir='/x')]
visualizer = dict(type='Visualizer', vis_backends=[dict(type='x.y')],
                  save_dir='/x')
"""


def test_what_an_inferencer_builds_is_kept(tmp_path, recwarn):
    found = loaded(tmp_path, SETTINGS)
    text = found['meta']['cfg']
    assert found['meta'].keys() == {'cfg', 'epoch'}
    assert found['message_hub']['runtime_info'] == dict(cfg=text)
    assert Config.fromstring(text, '.py')._cfg_dict == dict(
        model=dict(type='StepNet', layers=[
            dict(type='BN'),
            dict(type='nms', eps=-1e-5, seen={1: 2}, size=(1, None))]),
        test_cfg={},
        test_dataloader=dict(dataset=dict(
            metainfo=dict(classes=('dog/cat (both)', )),
            pipeline=[dict(type='LoadImageFromFile')])),
        visualizer=dict(type='Visualizer'))
    assert not [w for w in recwarn if 'a.pth' in str(w.message)]


@pytest.mark.core
@pytest.mark.parametrize('name', [
    'faster_rcnn_r50_stepnet.py', 'resnet164/resnet164_stepnet_cifar10.py'])
def test_of_our_configs_the_model_stays(name, monkeypatch):
    """And a transform of one's own."""
    monkeypatch.setitem(TRANSFORMS.module_dict, 'OwnOfThisTest',
                        type('OwnOfThisTest', (), {}))
    cfg = Config.fromfile(CONFIGS / name)
    dataset = cfg.test_dataloader.dataset
    dataset.pipeline = [*dataset.pipeline, dict(type='OwnOfThisTest')]
    found = kept(cfg.pretty_text)
    backbone = dict(cfg.model.backbone)
    backbone.pop('init_cfg', None)
    assert found.model.backbone == backbone
    assert found.default_scope == cfg.default_scope
    assert [step.type for step in found.test_dataloader.dataset.pipeline
            ] == [step['type'] for step in dataset.pipeline]


def test_a_class_by_its_path_is_that_of_a_registry():
    """As configs in mmengine's newer style are written out."""
    found = kept(
        'model = dict(type="mmdet.models.detectors.faster_rcnn.FasterRCNN",'
        'act=dict(type="torch.nn.modules.activation.ReLU"))\n' + pipeline(
            'dict(type="mmdet.datasets.transforms.formatting.PackDetInputs")'))
    assert found.model == dict(
        type='mmdet.FasterRCNN', act=dict(type='mmengine.ReLU'))
    step, = found.test_dataloader.dataset.pipeline
    assert step.type == 'mmdet.PackDetInputs'
