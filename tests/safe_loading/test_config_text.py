"""What stays of a config in a checkpoint is plain, and an inferencer's."""
import ast
import copy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from drawn import bounded, places
from hypothesis import given
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.registry import MODELS, TRANSFORMS
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading.config_text import (
    _Refused,
    drop_texts,
    inferencer_text,
)

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'


def loaded(folder, text):
    torch.save(dict(meta=dict(cfg=text, config=text, epoch=3),
                    message_hub=dict(runtime_info=dict(cfg=text))),
               folder / 'a.pth')
    return CheckpointLoader.load_checkpoint(str(folder / 'a.pth'))


def kept(folder, text):
    """What mmengine makes of the text."""
    found = loaded(folder, text)
    assert found['meta'].keys() == {'cfg', 'epoch'}
    assert found['meta']['cfg'] == found['message_hub']['runtime_info']['cfg']
    return Config.fromstring(found['meta']['cfg'], '.py')._cfg_dict


CODE = dict(
    a_call='a = open({!r}, "w")', a_statement='import os\nos.mkdir({!r})',
    another_function='a = dict(b=__import__("os").mkdir({!r}))',
    a_method='a = dict.fromkeys(map(__import__("os").mkdir, [{!r}]))',
    another_file='_base_.b = {!r}',
    an_f_string='a = f"{{open({!r}, chr(119))}}"',
    to_an_attribute='a = dict()\na.b = {!r}', a_long_one='a = ' + '-' * 10**5,
    a_variable_in_a_string='model = "{{{{$NO_VARIABLE:x|\\042+open({!r},'
    '\'w\').name+\\042}}}}"',
    a_variable_in_a_class='test_dataloader = dict(dataset=dict(metainfo=dict('
    'classes=["{{{{$NO_VARIABLE:x|\\042+open({!r},\'w\').name+\\042}}}}"])))',
    a_type='model = dict(type="os.mkdir", path={!r})',
    a_type_within='model = dict(type="mmdet.FasterRCNN", backbone=[dict('
    'type="os.mkdir", path={!r})])',
    a_runner='model = dict(type="mmengine.runner.runner.Runner", a={!r})',
    a_hook='model = dict(type="mmengine.hooks.checkpoint_hook.CheckpointHook",'
    'a={!r})', a_long_number='model = 0x' + 'f' * 5000,
    a_type_behind_a_scope='model = dict(type="mmengine.os.mkdir", path={!r})',
    of_a_pipeline='test_dataloader = dict(dataset=dict(pipeline=[dict('
    'type="os.mkdir", path={!r})]))',
    of_a_visualizer='visualizer = dict(type="os.mkdir", path={!r})',
    # mmcv and mmdet evaluate such words.
    evaluated='model = dict(test_cfg=dict(nms=dict(type="open({!r}, 1)")))',
    this_module='model = dict(type="__main__", path={!r})',
    a_builtin='model = dict(test_cfg=dict(nms=dict(type="exit", a={!r})))',
    evaluated_too='model = dict(warp_mode="open({!r})")',
    evaluated_by_a_subscript='model = dict(warp_mode="[a[{!r}] for '
    'a.__class_getitem__ in [open]]")',
    of_attributes='model = dict(dtype="ctypes.cdll.evil", a="{0!s:.0}")',
    a_long_loop='model = dict(max_attempts=10000000000, a="{0!s:.0}")',
    a_long_key='model = dict(a={{{{0x' + 'f' * 5000 + ': 1}}}})',
    another_alphabet='model = dict(type="\uff45xec", a="{0!s:.0}")',
    endless_to_evaluate='model = dict(warp_mode="9**9**9**9")',
    a_config='model = dict(teacher_config=[{!r}])\nmodel = dict(a={!r})',
    one_hash=f'a = {{{{{str([k << 61 for k in range(2000)])[1:-1]}}}}}',
    bytes_to_evaluate='model = dict(warp_mode=b"ident", a="{0!s:.0}")',
    a_type_under_another_key='model = dict(padding_mode="os.mkdir", '
    'a="{0!s:.0}")',
    of_a_host='model = dict(model_name="hf-hub:gpt2", a="{0!s:.0}")',
    # Of which 3.10's parser dies.
    a_long_sum='model = 1' + '+1' * 150000,
    of_another_library='test_dataloader = dict(dataset=dict(pipeline=[dict('
    'type="TestTimeAug", transforms=[[dict(type="ImageAug", '
    'a="{0!s:.0}")]])]))',
    an_open_file='model = dict(ann_file=0, a="{0!s:.0}")',
    many_pipelines='model = dict(transforms=['
    + '[dict(), dict()], ' * 10 + '], a="{0!s:.0}")')
PIPELINE = ('test_dataloader = dict(dataset=dict('
            'pipeline=[dict(type="NAME")]))')
#: Steps of a pipeline whose runs are too many, or multiply.
RUNS = ('"Compose", transforms=[dict(type="Compose", transforms=[])]',
        '"MultiScaleFlipAug", scales=' + str([1] * 32) + ', flip_direction='
        + str(['horizontal'] * 32), '"Pad"), ' + 'dict(type="Pad"), ' * 100
        + 'dict(type="Pad"')
#: More of the same kinds.
MORE = {str(number): pytest.param(code, marks=pytest.mark.long)
        for number, code in enumerate((
            'model = dict(a=[{{b"a"}}])', 'model = dict(a={{b"a": 1}})',
            'model = dict(metainfo=dict(classes=[b"a"]))',
            'model = dict(resize_type="torch.hub.load")',
            'model = dict(a=[dict(target=("numpy.savez", ))])',
            'model = dict(norm_layer="antigravity")',
            PIPELINE.replace('NAME', 'mmdet.Albu'),
            PIPELINE.replace('NAME', 'mmpretrain.BEiTMaskGenerator'),
            PIPELINE.replace('NAME', 'NotRegistered'),
            *(PIPELINE.replace('"NAME"', step) for step in RUNS),
            'model = dict(a="exec.x")', 'model = dict(a="owner0/0repo")',
            'model = dict(a="1/2/3")', 'model = dict(cutout_dir=True)',
            'model = dict(n_holes=1000000)', 'model = dict(a=1e300)',
            'model = dict(a=1e999)',
            'model = dict(a=2j)', 'model = dict(a=...)',
            'a = b' + '.b' * 300000, 'a = b' + '()' * 200000,
            'a = (b' + '()#\n' * 100000 + ')', 'a = b' + '[0]' * 100000,
            'a = 1' + ' -1' * 100000, 'a = 1' + '==1' * 100000,
            'a = f"{{1' + '+1' * 100000 + '}}"',
            'a = ' + 'not ' * 100000 + '1',
            'a = 1#\r+1' + '+1' * 100000, 'a = 1e+1' + 'e+1' * 100000,
            'a ' * 150000, 'a = ' + '[' * 51 + ']' * 51,
            'a = ' + '[' * 150000))}


@pytest.mark.parametrize('code', [*CODE.values(), *MORE.values()],
                         ids=[*CODE, *MORE])
def test_code_drops_the_whole_text(tmp_path, code):
    code = code.format(*[str(tmp_path / 'it_ran')] * 2)
    with pytest.warns(UserWarning, match=r'a\.pth.*meta\.cfg'):
        found = loaded(tmp_path, code)
    assert found == dict(meta=dict(epoch=3),
                         message_hub=dict(runtime_info={}))
    assert not (tmp_path / 'it_ran').exists()


def test_a_file_that_is_there_is_named(tmp_path, monkeypatch):
    """mmpretrain's retriever hands such a name to torch.load."""
    monkeypatch.chdir(tmp_path)
    Path('train').mkdir()
    Path('weights').touch()
    text = 'model = dict(type="BN", mode="train", words="weights")'
    with pytest.warns(UserWarning, match='weights'):
        loaded(tmp_path, text)
    Path('weights').unlink()
    assert kept(tmp_path, text).model.words == 'weights'


@pytest.mark.parametrize('text', [
    'model = dict(type="mine")', 'default_scope = "mine"',
    'model = dict(type="mine.Net")', 'model = dict(_scope_="mine")',
    'visualizer = dict(_scope_="mine")',
    # Many settings are types, and some names another registry has.
    'model = dict(norm_layer="mine")', 'model = dict(type="zero_mine")',
    *(pytest.param(text, marks=pytest.mark.long) for text in (
        'model = dict(a=[("b", dict(conv_type="mine"))])',
        'model = dict(a="mine.Net")', 'model = dict(a={"mine"})',
        'model = dict(type="mmengine.zero_mine")',
        'model = dict(norm_cfg=dict(type="mine2d"))'))])
def test_a_module_beside_is_not_imported(tmp_path, monkeypatch, text):
    """It lies where Python looks, as with PYTHONPATH=."""
    (tmp_path / 'mine').mkdir()
    for name in ('mine/__init__', 'mine/registry', 'zero_mine', 'mine1d'):
        (tmp_path / f'{name}.py').write_text('raise SystemExit(3)')
    monkeypatch.setitem(MODELS.module_dict, 'zero_mine', object)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match='mine'):
        assert 'cfg' not in loaded(tmp_path, text)['meta']
    assert 'mine' not in sys.modules


@pytest.mark.parametrize('text', [
    'model = dict(a="mmocr.X")', 'default_scope = "mmocr"',
    'model = dict(_scope_="mmocr")'])
def test_a_folder_with_the_name_of_a_library_is_none(tmp_path, monkeypatch,
                                                     text):
    """Though metadata beside it say so, as those of an unpacked archive."""
    for name, lines in {
            'mmocr/__init__.py': '', 'mmocr/registry.py': 'raise SystemExit',
            'mmocr-9.dist-info/METADATA': 'Name: mmocr\nVersion: 9\n',
            'mmocr-9.dist-info/top_level.txt': 'mmocr\n'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match='mmocr'):
        loaded(tmp_path, text)
    assert 'mmocr' not in sys.modules


def test_a_text_of_megabytes(tmp_path):
    with pytest.warns(UserWarning, match='2000010 characters'):
        loaded(tmp_path, f'model = [{"1," * 10**6}]')


@pytest.mark.parametrize('word', ['token', 'test', 'torch', 'a_folder'])
def test_a_word_is_none_of_a_module_beside(tmp_path, monkeypatch, word):
    """Python's own and what is imported may have its name, and a folder."""
    (tmp_path / 'a_folder').mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    text = f'model = dict(type="BN", a="{word}")'
    assert kept(tmp_path, text).model.a == word
    if word == 'test':
        (tmp_path / 'test.py').touch()
        sys.path_importer_cache.clear()
        with pytest.warns(UserWarning, match="a'='test'"):
            loaded(tmp_path, text)


@pytest.mark.parametrize('plain', [
    (1e8, -1e-05, 999999, True), ('a' * 100, "it's", '"', ''),
    dict(drop_path=0, arch='768/32', name='regnetx_1.6gf'), '1024/20',
    dict(warp_mode='cv2.MOTION_EUCLIDEAN', tokens=['[CLS]', '[SEP]']),
    [[dict(a=1)] * 10] * 3])
def test_what_is_plain_stays(tmp_path, plain):
    """As mmengine writes it."""
    text = Config(dict(model=dict(type='BN', a=plain))).pretty_text
    assert kept(tmp_path, text).model.a == plain


SETTINGS = """
custom_imports = dict(imports=['antigravity'])
load_from = 'x'
model = dict(
    type='StepNet', pretrained='x.pth', init_cfg=dict(checkpoint='x'),
    layers=[dict(type='BN', init_cfg=[dict(type='x.y')], checkpoint='a/b'),
            dict(type='nms', eps=-1e-5, seen={1, 2}, size=(1, None))])
test_cfg = dict()
test_dataloader = dict(
    collate_fn=dict(type='x.y'), dataset=dict(
        ann_file='a/b.json', metainfo=dict(classes=('dog/cat (both)', )),
        pipeline=[dict(type='LoadImageFromFile', backend_args=dict(a='b/c'))]))
train_dataloader = dict(dataset=dict(type='x.y'))
vis_backends = [dict(type='LocalVisBackend', save_dir='/x')]
visualizer = dict(type='Visualizer', vis_backends=vis_backends, save_dir='/x')
""".replace('backends=vis_backends', 'backends=[dict(type="x.y")]')


def test_what_an_inferencer_builds_is_kept(tmp_path, recwarn):
    assert kept(tmp_path, SETTINGS) == dict(
        model=dict(type='StepNet', layers=[
            dict(type='BN'),
            dict(type='nms', eps=-1e-5, seen={1, 2}, size=(1, None))]),
        test_cfg={},
        test_dataloader=dict(dataset=dict(
            metainfo=dict(classes=('dog/cat (both)', )),
            pipeline=[dict(type='LoadImageFromFile')])),
        visualizer=dict(type='Visualizer'))
    assert not [w for w in recwarn if 'a.pth' in str(w.message)]


@pytest.mark.core
@pytest.mark.parametrize('name', [
    'faster_rcnn_r50_stepnet.py', 'resnet164/resnet164_stepnet_cifar10.py'])
def test_of_our_configs_the_model_stays(tmp_path, recwarn, name):
    cfg = Config.fromfile(CONFIGS / name)
    library = pytest.importorskip(cfg.default_scope)
    assert library
    found = kept(tmp_path, cfg.pretty_text)
    backbone = dict(cfg.model.backbone)
    backbone.pop('init_cfg', None)
    assert found.model.backbone == backbone
    assert found.default_scope == cfg.default_scope
    pipeline = found.test_dataloader.dataset.pipeline
    assert [step.type for step in pipeline] == [
        step.type for step in cfg.test_dataloader.dataset.pipeline]
    assert not [w for w in recwarn if 'a.pth' in str(w.message)]


def test_a_pipeline_of_mmseg_stays(tmp_path):
    text = PIPELINE.replace('NAME', 'PackSegInputs')
    assert kept(tmp_path, text).test_dataloader.dataset.pipeline


def test_a_transform_of_ones_own_stays(tmp_path, monkeypatch):
    monkeypatch.setitem(TRANSFORMS.module_dict, 'OwnOfThisTest',
                        type('OwnOfThisTest', (), {}))
    text = PIPELINE.replace('NAME', 'OwnOfThisTest')
    step, = kept(tmp_path, text).test_dataloader.dataset.pipeline
    assert step == dict(type='OwnOfThisTest')


def test_a_class_by_its_path_is_that_of_a_registry(tmp_path):
    """As configs in mmengine's newer style are written out."""
    pytest.importorskip('mmcv.cnn')  # registers it
    text = 'model = dict(type="torch.nn.modules.activation.ReLU")'
    assert kept(tmp_path, text).model.type.endswith('ReLU')
    with pytest.warns(UserWarning, match='torch.hub.load'):
        loaded(tmp_path, 'model = dict(type="torch.hub.load")')


WRITTEN_OUT = """
model = dict(type='mmdet.models.detectors.faster_rcnn.FasterRCNN',
             backbone=dict(type='mmpretrain.ConvNeXt'))
test_dataloader = dict(dataset=dict(
    type='mmdet.datasets.coco.CocoDataset', pipeline=[
        dict(type='mmdet.datasets.transforms.formatting.PackDetInputs')]))
visualizer = dict(
    type='mmdet.visualization.local_visualizer.DetLocalVisualizer')
"""


@pytest.mark.long
def test_installed_libraries_are_imported():
    """In a new process, as mmengine does for a scope."""
    for library in ('mmdet', 'mmpretrain'):
        pytest.importorskip(library)
    done = subprocess.run([
        sys.executable, '-c',
        'from stepnet_mm.safe_loading.config_text import inferencer_text; '
        f'print(inferencer_text({WRITTEN_OUT!r}))'],
        capture_output=True, text=True, check=True)
    for name in ('FasterRCNN', "'mmpretrain.ConvNeXt'", "'mmdet.CocoDataset'",
                 'PackDetInputs', "'mmdet.DetLocalVisualizer'"):
        assert name in done.stdout


@pytest.mark.parametrize('text', ['', None])
def test_no_text(tmp_path, text):
    assert loaded(tmp_path, text)['meta']['cfg'] == text


def test_a_resume_has_a_config_of_its_own():
    found = dict(meta=dict(cfg='a', config='b', iter=1), message_hub=dict(
        runtime_info=dict(cfg='c', seed=2)))
    drop_texts(found)
    assert found == dict(meta=dict(iter=1),
                         message_hub=dict(runtime_info=dict(seed=2)))


WHOLE = dict(
    default_scope='mmengine',
    model=dict(type='BN', _scope_='mmengine', layers=[
        dict(type='ReLU', a=(1, 'same')), dict(type='nms', b=dict(c=2.))]),
    test_cfg=dict(type='TestLoop'), visualizer=dict(type='Visualizer'),
    test_dataloader=dict(dataset=dict(
        type='ConcatDataset', pipeline=[dict(type='LoadImageFromFile')])))
EVIL = ['os.mkdir', 'os', 'evil', 'mmengine.os.mkdir', 'evil.BN', 'exit',
        'open("evil")', '/evil', 'evil.py', '{{evil}}', '..', '__main__',
        'torch.hub.load', 'lambda: evil()', b'evil()', '\\evil', 'evil\n']


def harmless(text):
    """Whether no type or scope is evil, and no value a path or code."""
    cfg = {key: ast.literal_eval(value) for key, _, value in (
        line.partition(' = ') for line in text.splitlines())}
    return '{{' not in text and not any(
        key == 'init_cfg' or isinstance(value, bytes)
        or (key in ('type', '_scope_', 'default_scope') and value in EVIL)
        or (isinstance(value, str) and value in EVIL
            and value not in ('os', 'exit', '__main__'))
        for holder, key in places(cfg) for value in [holder[key]])


@pytest.mark.parametrize('count', [
    150, pytest.param(1000, marks=pytest.mark.long)])
def test_any_setting_that_is_evil(count, monkeypatch):
    monkeypatch.setattr(
        'stepnet_mm.safe_loading.config_text.find_spec',
        lambda name: SimpleNamespace(origin=dict(evil='evil.py').get(name))
        if name in ('os', 'evil', 'same') else None)
    drawn = []

    @bounded(count)
    @given(st.data())
    def put(data):
        cfg = copy.deepcopy(WHOLE)
        holder, key = data.draw(st.sampled_from([*places(cfg)]))
        evil = data.draw(st.sampled_from(EVIL))
        if data.draw(st.booleans()) and isinstance(holder, dict):
            holder[data.draw(st.sampled_from(
                ['type', '_scope_', 'init_cfg', 'b', 'nms']))] = evil
        else:
            holder[key] = evil
        try:
            text = inferencer_text(
                '\n'.join(f'{k} = {v!r}' for k, v in cfg.items()))
        except _Refused:
            drawn.append('refused')
        else:
            drawn.append('kept')
            assert harmless(text), text

    put()
    assert {'refused', 'kept'} == set(drawn)
    assert inferencer_text(
        '\n'.join(f'{k} = {v!r}' for k, v in WHOLE.items()))
