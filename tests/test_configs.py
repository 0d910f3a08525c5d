"""Every config of the paper's tables is what the paper says."""
import copy
import functools
import itertools
import re
from pathlib import Path

import pytest
import yaml
from equality import undrawn
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope

# One worker, which reads each config once.
pytestmark = pytest.mark.xdist_group('configs')

CONFIGS = Path(__file__).resolve().parents[1] / 'configs'
PATHS = sorted(
    str(path.relative_to(CONFIGS)) for path in CONFIGS.rglob('*.py')
    if not {'_base_', 'studies'} & set(path.parts))
METAFILES = sorted(CONFIGS.rglob('metafile.yml'))
MODELS_LISTED = {
    model['Config'].partition('/')[2]: model
    for path in METAFILES
    for model in yaml.safe_load(path.read_text())['Models']
}
@functools.cache
def read(path):
    return Config.fromfile(CONFIGS / path)


def load(path):
    cfg = copy.deepcopy(read(path))
    init_default_scope(cfg.default_scope)
    return cfg


#: A method -> the type of its step; None for all others.
STEPS = dict(
    **{name: f'{name.upper()}Attention' for name in (
        'se', 'cbam', 'eca', 'sem', 'srm', 'fca', 'sge')},
    stepnet='StepAdaptor', stepnet_adaptor_a='MaxPoolStepAdaptor',
    stepnet_adaptor_b='SumStepAdaptor',
    stepnet_adaptor_c='UnnormalizedStepAdaptor',
    stepnet_adaptor_d='SoftmaxStepAdaptor')
#: What a name may add to its method.
ADDED = '^preact_|_(k5|from_stepnet|gate|current|next|difference)$'


def rows_of(name, cells):
    """Each config of a row, `a_{b,c}.py`, and what the paper has of it."""
    parts = [part.split(',') for part in re.split(r'[{}]', name)]
    paths = [''.join(path) for path in itertools.product(*parts)]
    cells = cells.split(' | ')
    if '±' in cells[0] and 'top' not in cells[0]:
        cells = [f'top-1 {cell} %, 5 runs' for cell in cells]
        assert len(cells) == len(paths)
    else:
        cells = cells[:1] * len(paths)
    return zip(paths, cells)


def test_metafiles_index_and_readme_say_what_the_configs_are():
    """All of them, parameters as counted, the paper's figures as quoted.

    tests/test_contract.py compares the counts with the built networks.
    """
    others = {path for path in PATHS if re.search('mini_coco|blood_', path)}
    assert set(MODELS_LISTED) == set(PATHS) - others
    index = yaml.safe_load((CONFIGS / 'model-index.yml').read_text())
    assert sorted(index['Import']) == [
        str(Path('configs') / path.relative_to(CONFIGS)) for path in METAFILES
    ]
    counts = {path: int(count) for path, count in re.findall(
        r'^(\S+\.py): (\d+) parameters', Path(__file__).with_name(
            'contract.txt').read_text(), re.M)}
    page = (CONFIGS / 'README.md').read_text()
    listed_on_page = [pair for row in re.findall(
        r'\| `(\S+\.py)` \| (.*) \|', page) for pair in rows_of(*row)]
    rows = dict(listed_on_page)
    assert len(rows) == len(listed_on_page) and not {*PATHS} - {*rows}
    for path, listed in MODELS_LISTED.items():
        assert counts[path] == listed['Metadata']['Parameters'], path
        assert listed['Metadata']['FLOPs'] > 0
        figure, = re.findall(
            r'^Paper: (.*)\.$', (CONFIGS / path).read_text(), re.M)
        assert rows[path] == ('none' if figure == 'no figure' else figure)
        metrics, = [result['Metrics'] for result in listed.get(
            'Results', [dict(Metrics={})])]
        assert [*metrics.values()] == [*map(float, re.findall(
            r'^(?:top-1|AP) ([\d.]+)', figure))]


@pytest.mark.parametrize('path', [pytest.param(
    path, marks=() if '_r50_' in path else pytest.mark.long)
    for path in MODELS_LISTED])
def test_the_name_says_which_method_it_is(path):
    backbone = load(path).model.backbone
    name = re.sub('^(faster_rcnn_r[0-9]+|resnet[0-9]+|vit|self_attention)_',
                  '', Path(path).stem)
    method = re.sub('_(cifar10|cifar100|stl10|imagenet)$', '', name)
    if path.startswith('tricks/'):
        method = method.partition('_')[0]
    step = backbone.get('step')
    for each in step if isinstance(step, list) else [step]:
        assert (each and each.type) == STEPS.get(re.sub(ADDED, '', method))
    inputs = re.search('_(current|next|difference)$', method)
    assert not inputs or step.inputs == inputs[1]
    norm = backbone.get('norm_cfg', dict(type='BN'))['type']
    assert (norm == 'IEBN') == (method == 'iebn')
    assert (backbone.get('step_mode') == 'gate') == method.endswith('_gate')
    assert backbone.get('preact', False) == method.startswith('preact_')


SGD = dict(type='SGD', lr=.1, momentum=.9, weight_decay=1e-4)
ADAMW = dict(type='AdamW', lr=5e-4, weight_decay=.06)


#: A dataset -> its classes, edge of its images, and the padding of crops.
DATASETS = dict(cifar10=(10, 32, 4), cifar100=(100, 32, 4), stl10=(10, 96, 12))


@pytest.mark.parametrize('path, batch, backbone, optimizer, epochs', [
    *((f'resnet164/resnet164_stepnet_{dataset}.py', 128, dict(depth=164), SGD,
       [81, 122, 164]) for dataset in DATASETS),
    ('imagenet/resnet34_se_imagenet.py', 256 // 8, dict(depth=34), SGD,
     [30, 60, 90, 120]),
    ('vit/vit_stepnet_cifar10.py', 128, dict(img_size=32, patch_size=4),
     ADAMW, [200]),
    ('vit/vit_stepnet_stl10.py', 128, dict(img_size=96, patch_size=12),
     ADAMW, [200])])
def test_recipes(path, batch, backbone, optimizer, epochs):
    cfg = load(path)
    assert cfg.train_dataloader.batch_size == batch
    assert {key: cfg.model.backbone[key] for key in backbone} == backbone
    dataset = Path(path).stem.rpartition('_')[2]
    if dataset in DATASETS:
        crop = cfg.train_dataloader.dataset.pipeline[0]
        assert DATASETS[dataset] == (
            cfg.model.head.num_classes, crop.crop_size, crop.padding)
        assert cfg.data_preprocessor.num_classes == cfg.model.head.num_classes
    found = dict(cfg.optim_wrapper.optimizer)
    found.pop('_scope_', None)
    assert found == optimizer
    assert cfg.train_cfg.max_epochs == epochs[-1]
    if optimizer is ADAMW:
        warm_up, cosine = cfg.param_scheduler
        assert (warm_up.end, cosine.end) == (cosine.begin, epochs[-1])
    else:
        assert cfg.param_scheduler.milestones == epochs[:-1]
        assert cfg.param_scheduler.get('gamma', .1) == .1


@pytest.mark.parametrize('path', [
    'vit/vit_stepnet_cifar10.py',
    'self_attention/self_attention_absolute_cifar10.py'])
def test_matrices_decay_but_positions_and_steps_do_not(path):
    cfg = load(path)
    with undrawn():
        model = MODELS.build(cfg.model)
    optimizer = build_optim_wrapper(model, cfg.optim_wrapper).optimizer
    decay = {id(group['params'][0]): group['weight_decay']
             for group in optimizer.param_groups}
    for name, parameter in model.named_parameters():
        free = re.search('.step.|pos_embed|.positions.|.absolute.', name)
        matrix = parameter.dim() > 1 and not free
        assert decay[id(parameter)] == (.06 if matrix else 0), name


def test_fca_transforms_each_stage_at_its_own_size():
    for path, sizes in (('imagenet/resnet50_fca_imagenet.py',
                         [56, 28, 14, 7]),
                        ('resnet164/resnet164_fca_stl10.py', [96, 48, 24])):
        steps = load(path).model.backbone.step
        assert [step.dct_size for step in steps] == sizes
