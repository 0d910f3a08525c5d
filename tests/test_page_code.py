"""What a reader pastes from README and docs/ into a config works."""
import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import HOOKS, MODELS, VISUALIZERS, init_default_scope

from stepnet_mm.config.lookup import all_dicts
from stepnet_mm.steps import SEAttention

ROOT = Path(__file__).resolve().parents[1]
BASES = dict(
    faster_rcnn='mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
    detr='mmdet::detr/detr_r50_8xb2-150e_coco.py',
    classifier='mmpretrain::resnet/resnet50_8xb32_in1k.py',
    vit='mmpretrain::deit/deit-small_4xb256_in1k.py')
IMPORTS = '''custom_imports = dict(
    imports='stepnet_mm', allow_failed_imports=False)
'''


def code_of(text):
    return re.findall(r'^```python\n(.*?)^```$', text, re.M | re.S)


def questions():
    """Title -> the Python code of each question of the FAQ."""
    page = (ROOT / 'docs/reference/troubleshooting.md').read_text()
    _, *parts = re.split(
        r'^### (.*)\n', page.partition('\n## Questions\n')[2], flags=re.M)
    return dict(zip(parts[::2], map(code_of, parts[1::2])))


def config(text, folder, base='faster_rcnn'):
    """The config that lines of a page make, under a base if they name none."""
    if '_base_' not in text:
        text = f'_base_ = {BASES[base]!r}\n{IMPORTS}{text}'
    path = folder / 'config.py'
    path.write_text(text)
    return Config.fromfile(path)


def build_backbone(cfg, **changes):
    init_default_scope(cfg.default_scope)
    return MODELS.build(dict(cfg.model.backbone, init_cfg=None, **changes))


def gates(net):
    return [m for m in net.modules() if isinstance(m, SEAttention)]


@pytest.mark.parametrize('page, word, base, count', [
    ('README.md', '_base_ =', '', lambda net: len(net.steps()) == 12),
    ('docs/attention_modules.md', 'mmdet', '', lambda n: len(gates(n)) == 16),
    ('docs/attention_modules.md', 'plugins', '',
     lambda net: len(gates(net)) == 13),
    ('docs/backbones.md', 'StepVisionTransformer', 'vit', lambda net: all(
        hasattr(layer.attn, 'qkv') for layer in net.layers))])
def test_a_config_has_its_steps(page, word, base, count, tmp_path):
    text = next(code for code in code_of((ROOT / page).read_text())
                if word in code and (base or '_base_ =' in code))
    cfg = config(text, tmp_path, base)
    small = {} if base else dict(base_channels=16)
    assert count(build_backbone(cfg, **small))
    for hook in cfg.get('custom_hooks', []):
        assert HOOKS.build(hook)


@pytest.mark.parametrize('base', ['faster_rcnn', 'classifier'])
def test_the_initialisation_of_the_readme(base, tmp_path):
    text, = (code for code in code_of((ROOT / 'README.md').read_text())
             if 'LastNorm' in code)
    cfg = config(text, tmp_path, base)
    init_default_scope(cfg.default_scope)
    net = MODELS.build(dict(cfg.model.backbone, base_channels=8,
                            stem_channels=8))
    net.init_weights()
    starts = [block.norm3.weight.unique().tolist() for block in net.layer2]
    assert starts == [[1.]] + 3 * [pytest.approx([.27])]
    net.train()
    assert all(value.requires_grad for value in net.parameters())


def test_the_chinese_readme_has_the_same_commands():
    english, chinese = (
        re.findall(r'^```.*?^```$', (ROOT / name).read_text(), re.M | re.S)
        for name in ('README.md', 'README_zh-CN.md'))
    assert english and english == chinese


#: Each answer under one base, one answer under every base.
PAIRS = [
    *((title, 'faster_rcnn') for title, found in questions().items() if found),
    ('SyncBN', 'detr'), ('SyncBN', 'classifier')]


@pytest.mark.parametrize('title, base', [pytest.param(*pair, marks=(
    [pytest.mark.core] if pair[0] == 'SyncBN' else [])) for pair in PAIRS])
def test_the_lines_of_an_answer_make_a_config(title, base, tmp_path):
    text, = questions()[title]
    cfg = config(text, tmp_path, base)
    net = build_backbone(cfg, base_channels=16)
    assert title != 'SyncBN' or all(isinstance(
        step.norm, torch.nn.SyncBatchNorm) for step in net.steps())
    for hook in cfg.get('custom_hooks', []):
        assert HOOKS.build(hook)
    assert VISUALIZERS.build(dict(
        cfg.visualizer, name='faq', save_dir=str(tmp_path)))
    assert not any('_delete_' in node for node in all_dicts(cfg.to_dict()))
    assert not {'type', 'by_epoch'} <= {*cfg.train_cfg}  # mmengine's error


def test_a_trick_goes_on_top_of_a_config_of_mmpretrain(tmp_path):
    text, = code_of((ROOT / 'configs/README.md').read_text())
    cfg = config(text, tmp_path)
    assert cfg.model.backbone.type == 'ResNet_CIFAR'
    assert cfg.model.train_cfg == dict(augments=[dict(type='Mixup', alpha=1.)])
