"""What stays of a config in a checkpoint is plain, and an inferencer's."""
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, TRANSFORMS
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading import config_text
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
    a_method='a = dict.fromkeys(map(__import__("os").mkdir, ["it_ran"]))',
    an_f_string='a = f"{open(\'it_ran\', chr(119))}"',
    to_an_attribute='_base_.b = "it_ran"', an_ellipsis='model = dict(a=...)',
    # mmengine replaces these before it reads the rest.
    a_variable=f'model = "{BRACES}"',
    a_variable_in_a_class='test_dataloader = dict(dataset=dict(metainfo=dict('
    f'classes=["{BRACES}"])))',
    # What mmengine does not write.
    formatted='model = dict(a=f"{1}")', complex='model = dict(a=1j)',
    a_set='model = dict(a={1, 2})', a_sum='model = dict(a=1 + 1)',
    # Transforms in others, which are built too.
    nested_pipelines=pipeline(
        'dict(type="Pad", transforms=[dict(type="Albu")])'),
    a_pipeline_that_is_none=pipeline(
        'dict(type="Pad", transforms=dict(type="Albu"))'),
    # A registry imports the path of a type, under any key.
    a_type='model = dict(type="os.mkdir", path="it_ran")',
    a_type_within='model = dict(a=[(1, dict(type="os.mkdir"))])',
    a_type_behind_a_scope='model = dict(type="mmengine.os.mkdir")',
    a_type_under_another_key='model = dict(padding_mode="os.mkdir")',
    of_a_pipeline=pipeline('dict(type="os.mkdir")'),
    within_a_step=pipeline('dict(type="Pad", size=dict(type="os.mkdir"))'),
    of_a_visualizer='visualizer = dict(type="os.mkdir")',
    of_a_dataset='test_dataloader = dict(dataset=dict(type="os.mkdir"))',
    of_a_test='test_cfg = dict(type="os.mkdir")',
    a_runner='model = dict(type="mmengine.runner.runner.Runner")',
    this_module='model = dict(type="__main__")',
    a_builtin='model = dict(test_cfg=dict(nms=dict(type="exit")))',
    behind_a_builtin='model = dict(a="exec.x")',
    another_alphabet='model = dict(type="\uff45xec")',
    a_module_that_acts='model = dict(norm_layer="antigravity")',
    # mmcv and mmdet evaluate such words.
    evaluated='model = dict(test_cfg=dict(nms=dict(type="open(1)")))',
    by_a_subscript='model = dict(warp_mode="[a[1] for a.b in [open]]")',
    a_condition='model = dict(warp_mode="a or b")',
    of_attributes='model = dict(dtype="ctypes.cdll.evil")',
    a_condition_for_a_type='model = dict(dtype="a or b")',
    bytes_to_evaluate='model = dict(warp_mode=b"ident")',
    bytes_as_a_key='model = dict(a={b"a": 1})',
    classes_in_a_file='test_dataloader = dict(dataset=dict(metainfo=dict('
    'classes="names")))',
    bytes_of_a_class='model = dict(metainfo=dict(classes=[b"a"]))',
    # Files, hosts and open files.
    a_path='model = dict(a="/a")',
    of_a_host='model = dict(model_name="hf-hub:gpt2")',
    a_repository='model = dict(a="owner0/0repo")',
    an_open_file='model = dict(ann_file=0)',
    an_open_folder='model = dict(cutout_dir=True)',
    of_another_library=pipeline('dict(type="TestTimeAug", transforms=[['
                                'dict(type="ImageAug")]])'),
    a_transform_beside_the_list=pipeline('dict(type="mmdet.Albu")'))


@pytest.mark.parametrize('text', REFUSED.values(), ids=REFUSED)
def test_more_than_plain_settings_is_refused(text):
    with pytest.raises(_Refused):
        inferencer_text(text)


def test_a_text_that_is_refused_is_dropped_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match=r'a\.pth.*meta\.cfg'):
        found = loaded(tmp_path, REFUSED['a_call'])
    assert found == dict(meta=dict(epoch=3),
                         message_hub=dict(runtime_info={}))
    assert not (tmp_path / 'it_ran').exists()


def test_a_file_that_is_there_is_named(tmp_path, monkeypatch):
    """mmpretrain's retriever hands such a name to torch.load."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path('train').mkdir()  # no module either
    Path('weights').touch()
    text = 'model = dict(type="BN", mode="train", words="weights")'
    with pytest.raises(_Refused, match='weights'):
        inferencer_text(text)
    Path('weights').unlink()
    assert kept(text).model.words == 'weights'


@pytest.mark.parametrize('text', [
    'model = dict(type="mine")', 'default_scope = "mine"',
    'model = dict(type="mine.Net")', 'model = dict(_scope_="mine")',
    'visualizer = dict(_scope_="mine")',
    # Many settings are types, and some names another registry has.
    'model = dict(norm_layer="mine")', 'model = dict(type="zero_mine")',
    'model = dict(a=[("b", dict(conv_type="mine"))])',
    'model = dict(type="mmengine.zero_mine")',
    'model = dict(norm_cfg=dict(type="mine2d"))'])
def test_a_module_beside_is_not_imported(tmp_path, monkeypatch, text):
    """It lies where Python looks, as with PYTHONPATH=."""
    (tmp_path / 'mine').mkdir()
    for name in ('mine/__init__', 'mine/registry', 'zero_mine', 'mine1d'):
        (tmp_path / f'{name}.py').write_text('raise SystemExit(3)')
    monkeypatch.setitem(MODELS.module_dict, 'zero_mine', object)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(_Refused, match='mine'):
        inferencer_text(text)
    assert 'mine' not in sys.modules


def test_a_folder_with_the_name_of_a_library_is_none(tmp_path, monkeypatch):
    """Metadata beside it say so, too, as those of an unpacked archive.

    Where packages are installed it is one, and is imported.
    """
    for name, lines in {
            'mmocr/__init__.py': '', 'mmocr/registry.py': 'from mmengine '
            'import registry\nNETS = registry.Registry("model", scope="mmocr",'
            ' parent=registry.MODELS)',
            'mmocr-9.dist-info/METADATA': 'Name: mmocr\nVersion: 9\n',
            'mmocr-9.dist-info/top_level.txt': 'mmocr\n'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    for text in ('model = dict(a="mmocr.Net")', 'default_scope = "mmocr"',
                 'model = dict(_scope_="mmocr")'):
        config_text._import_library.cache_clear()
        with pytest.raises(_Refused, match='mmocr'):
            inferencer_text(text)
        assert 'mmocr' not in sys.modules
    config_text._import_library.cache_clear()
    monkeypatch.setattr(config_text, '_INSTALLED', {str(tmp_path)})
    monkeypatch.setattr(MODELS, '_children', dict(MODELS.children))
    assert kept('default_scope = "mmocr"').default_scope == 'mmocr'
    for name in ('mmocr', 'mmocr.registry'):
        monkeypatch.delitem(sys.modules, name)


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
        ann_file='a/b.json', metainfo=dict(classes=('dog/cat (both)', )),
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
    pytest.importorskip(cfg.default_scope)
    dataset = cfg.test_dataloader.dataset
    dataset.pipeline = [*dataset.pipeline, dict(type='OwnOfThisTest')]
    found = kept(cfg.pretty_text)
    backbone = dict(cfg.model.backbone)
    backbone.pop('init_cfg', None)
    assert found.model.backbone == backbone
    assert found.default_scope == cfg.default_scope
    assert [step.type for step in found.test_dataloader.dataset.pipeline
            ] == [step['type'] for step in dataset.pipeline]


WRITTEN_OUT = """
model = dict(type='mmdet.models.detectors.faster_rcnn.FasterRCNN',
             act=dict(type='torch.nn.modules.activation.ReLU'))
test_dataloader = dict(dataset=dict(pipeline=[
    dict(type='mmdet.datasets.transforms.formatting.PackDetInputs')]))
"""


def test_a_class_by_its_path_is_that_of_a_registry():
    """As configs in mmengine's newer style are written out."""
    pytest.importorskip('mmdet')
    found = kept(WRITTEN_OUT)
    assert found.model == dict(
        type='mmdet.FasterRCNN', act=dict(type='mmengine.ReLU'))
    step, = found.test_dataloader.dataset.pipeline
    assert step.type == 'mmdet.PackDetInputs'
