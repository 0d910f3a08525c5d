"""What a reader pastes from README and docs/ into a config works."""
import re
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import HOOKS, MODELS, init_default_scope

from stepnet_mm.steps import SEAttention

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / 'docs'


def snippets(page, *words):
    """The page's Python code in which all of the words stand."""
    found = re.findall(r'^```python\n(.*?)^```$', (DOCS / page).read_text(),
                       re.M | re.S)
    return [code for code in found if all(word in code for word in words)]


def backbone(text, folder, **changes):
    path = folder / 'config.py'
    path.write_text(text)
    cfg = Config.fromfile(path)
    init_default_scope(cfg.default_scope)
    return MODELS.build(dict(cfg.model.backbone, init_cfg=None, **changes))


def test_the_config_of_the_readme(tmp_path):
    text, = snippets('../README.md', '_base_ =')
    net = backbone(text, tmp_path, base_channels=4)
    assert type(net).__name__ == 'StepResNet' and len(net.steps()) == 12
    hooks = Config.fromfile(tmp_path / 'config.py').custom_hooks
    assert [type(HOOKS.build(hook)).__name__ for hook in hooks] == [
        'TNSHook', 'LoadReportHook']


def test_the_chinese_readme_has_the_same_commands():
    english, chinese = (
        re.findall(r'^```.*?^```$', (ROOT / name).read_text(), re.M | re.S)
        for name in ('README.md', 'README_zh-CN.md'))
    assert english and english == chinese


@pytest.mark.parametrize('library, blocks', [('mmdet', 16), ('plugins', 13)])
def test_each_config_has_its_gates(library, blocks, tmp_path):
    text = snippets('attention_modules.md', '_base_ =', library)[0]
    net = backbone(text, tmp_path, base_channels=16)
    gates = [type(m) for m in net.modules() if isinstance(m, SEAttention)]
    assert len(gates) == blocks


def test_a_vit_keeps_its_attention_by_the_line_of_the_page(tmp_path):
    text, = snippets('backbones.md', 'StepVisionTransformer')
    base = ("_base_ = 'mmpretrain::deit/deit-small_4xb256_in1k.py'\n"
            "custom_imports = dict(\n"
            "    imports='stepnet_mm', allow_failed_imports=False)\n")
    net = backbone(base + text, tmp_path)
    assert all(hasattr(layer.attn, 'qkv') for layer in net.layers)
