#!/usr/bin/env python
"""Write the configs of the paper's tables, their README and metafiles.

python tools/make_configs.py            # write what is not up to date
python tools/make_configs.py --check    # fail where something is not
python tools/make_configs.py --measure  # count parameters and FLOPs anew

A row of a table is a line here; a figure of a run of ours goes into MEASURED.
"""
import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / 'configs'
DATASETS = dict(cifar10='CIFAR-10', cifar100='CIFAR-100', stl10='STL-10')
PAPER = dict(
    Title='Understanding Self-attention Mechanism via Dynamical System '
    'Perspective',
    URL='https://arxiv.org/abs/2308.09939')
PAPER_OF_ATTENTION = dict(
    Title='On the Relationship between Self-Attention and Convolutional '
    'Layers',
    URL='https://arxiv.org/abs/1911.03584')
#: Title, architecture and paper of a folder's collection, where they differ.
COLLECTIONS = {
    '': ('StepNet detection', ['ResNet', 'StepNet'], PAPER),
    'vit': ('StepNet vit', ['ViT', 'StepNet'], PAPER),
    'self_attention': ('Self-attention', ['Self-Attention', 'ResNet'],
                       PAPER_OF_ATTENTION),
}
TASKS = {
    'COCO': ('Object Detection', 'box AP'),
    'ImageNet-1k': ('Image Classification', 'Top 1 Accuracy'),
}

#: A figure that a run of a config gave, by config path: '94.9 last, ...'.
MEASURED = {
    'faster_rcnn_r50_stepnet.py':
    'not yet run on COCO; 50 iterations on 50 of its images: '
    '[docs/results.md](../docs/results.md)',
    **{
        f'self_attention/{name}_cifar10.py':
        'not yet run in full; 3 epochs on 2,000 images: '
        '[docs/results.md](../docs/results.md)'
        for name in ('self_attention_plain', 'resnet18_plain')
    }
}

LABEL = dict(
    plain='', se='+ SE', cbam='+ CBAM', eca='+ ECA', sem='+ SEM',
    srm='+ SRM', fca='+ FCA', iebn='+ IEBN', sge='+ SGE',
    stepnet='+ StepNet',
    stepnet_current='+ StepNet, F(x_t)',
    stepnet_next='+ StepNet, F(x_{t+1})',
    stepnet_difference='+ StepNet, F(x_{t+1} - x_t)',
    stepnet_adaptor_a='+ StepNet, adaptor a (max pooling)',
    stepnet_adaptor_b='+ StepNet, adaptor b (sum, no convolution)',
    stepnet_adaptor_c='+ StepNet, adaptor c (no BatchNorm)',
    stepnet_adaptor_d='+ StepNet, adaptor d (softmax)',
    stepnet_gate='+ StepNet behind the attention',
    quadratic='by quadratic positions',
    content='by content and learned positions')

#: The backbone arguments that make each method.
BACKBONE = dict(
    plain='step=None',
    iebn="step=None,\n        norm_cfg=dict(type='IEBN'),\n"
    "        downsample_norm_cfg=dict(type='BN')",
    stepnet_gate="step=dict(type='StepAdaptor'), step_mode='gate'",
    quadratic="attention=dict(encoding='quadratic')",
    content="attention=dict(encoding='learned', max_size=16, content=True)",
    **{
        f'stepnet_{inputs}': f"step=dict(type='StepAdaptor', "
        f"inputs='{inputs}')"
        for inputs in ('current', 'next', 'difference')
    },
    **{
        name: f"step=dict(type='{kind}')"
        for name, kind in dict(
            se='SEAttention', cbam='CBAMAttention', eca='ECAAttention',
            sem='SEMAttention', srm='SRMAttention', sge='SGEAttention',
            stepnet='StepAdaptor',
            stepnet_adaptor_a='MaxPoolStepAdaptor',
            stepnet_adaptor_b='SumStepAdaptor',
            stepnet_adaptor_c='UnnormalizedStepAdaptor',
            stepnet_adaptor_d='SoftmaxStepAdaptor').items()
    })

#: Top-1 accuracy in % on CIFAR-10, CIFAR-100 and STL-10.
TABLE_1 = dict(
    plain=('93.35 ± 0.18', '74.30 ± 0.30', '82.66 ± 1.05'),
    se=('94.26 ± 0.14', '75.25 ± 0.31', '83.96 ± 0.92'),
    cbam=('93.91 ± 0.14', '74.68 ± 0.22', '84.11 ± 0.49'),
    eca=('94.15 ± 0.23', '74.41 ± 0.27', '83.89 ± 1.21'),
    sem=('94.52 ± 0.11', '76.49 ± 0.26', '85.73 ± 0.16'),
    srm=('94.59 ± 0.12', '75.49 ± 0.31', '84.73 ± 0.12'),
    fca=('94.66 ± 0.12', '76.52 ± 0.19', '85.34 ± 0.25'),
    iebn=('94.70 ± 0.13', '76.32 ± 0.14', '85.13 ± 0.04'),
    stepnet=('95.14 ± 0.24', '77.04 ± 0.22', '86.08 ± 0.11'))
TABLE_4 = dict(
    stepnet_current=('94.59 ± 0.14', '76.34 ± 0.14', '84.74 ± 0.64'),
    stepnet_next=('94.32 ± 0.23', '76.53 ± 0.04', '85.12 ± 0.54'),
    stepnet_difference=('94.69 ± 0.33', '76.42 ± 0.10', '85.26 ± 0.72'),
    stepnet_adaptor_a=('94.39 ± 0.12', '76.19 ± 0.14', '84.21 ± 0.12'),
    stepnet_adaptor_b=('94.05 ± 0.11', '75.45 ± 0.12', '84.10 ± 0.24'),
    stepnet_adaptor_c=('94.19 ± 0.24', '75.12 ± 0.08', '84.12 ± 0.44'),
    stepnet_adaptor_d=('94.92 ± 0.24', '76.83 ± 0.14', '85.62 ± 0.44'))
TABLE_7 = dict(
    plain=('89.08 ± 0.84', '66.32 ± 1.03', '62.58 ± 1.02'),
    stepnet=('90.32 ± 0.48', '68.88 ± 0.25', '65.58 ± 0.59'),
    stepnet_gate=(None, None, None))
#: Top-1 accuracy in % of R-34 and R-50 on ImageNet.
TABLE_2 = dict(
    plain=('73.99 ± 0.04', '76.02 ± 0.09'),
    se=('74.37 ± 0.10', '76.62 ± 0.02'),
    eca=('74.56 ± 0.08', '77.07 ± 0.09'),
    cbam=('74.89 ± 0.11', '76.38 ± 0.10'),
    srm=('74.79 ± 0.04', '76.49 ± 0.03'),
    fca=('75.08 ± 0.19', '77.22 ± 0.15'),
    sge=('74.50 ± 0.03', '77.13 ± 0.06'),
    stepnet=('75.01 ± 0.09', '77.52 ± 0.04'))
#: AP, AP50, AP75, APS, APM, APL of R-50 and R-101 on COCO.
TABLE_3 = dict(
    plain=((36.9, 57.5, 39.4, 22.1, 39.6, 46.4),
           (38.9, 60.3, 41.4, 22.1, 43.9, 50.0)),
    se=((38.3, 60.1, 41.5, 23.0, 42.1, 49.2),
        (39.8, 61.2, 43.4, 23.6, 44.2, 51.1)),
    eca=((38.5, 60.4, 41.5, 23.2, 42.2, 48.9),
         (40.4, 62.7, 44.5, 24.1, 45.1, 51.8)),
    sge=((38.9, 60.0, 42.0, 23.2, 41.9, 49.0),
         (40.2, 61.4, 43.2, 24.1, 44.5, 51.2)),
    stepnet=((39.8, 61.2, 41.9, 23.8, 43.1, 51.0),
             (41.9, 62.6, 44.4, 25.4, 46.8, 53.2)))
AP_NAMES = ('AP', 'AP50', 'AP75', 'APS', 'APM', 'APL')

#: Rows that are of another source, and what it is called.
SOURCES = dict(attention='Cordonnier et al. 2020')
#: Top-1 accuracy in % on CIFAR-10, the article's.
SELF_ATTENTION = dict(plain='94', quadratic=None, content=None, stepnet=None)

OF_THE_WEIGHTS = '''
The backbone starts from weights trained with the module: those that
`tools/train.py configs/imagenet/{source}.py` leaves, or
yours, --cfg-options model.backbone.init_cfg.checkpoint=FILE.
'''
OF_THE_START = '''
The weights are a plain ResNet's: a step of 1 keeps its features. Only the
stem is frozen, so that the new steps of stage 1 learn too. norm_eval=True
comes with the base config and covers the adaptors' BatchNorm: its statistics
stay at mean 0 and variance 1, its γ and β learn. With two images a GPU a
training BatchNorm over pooled values would be nearly a sign.
'''
OF_THE_DEPTH = '''
mmdet's plugins refuse the BasicBlocks of this depth; steps do not. Not a row
of the paper.
'''
OF_THE_PRETRAINING = '''
Not a row of the paper: the backbone weights that Table 3's R-101 starts from.
'''


@dataclass
class Row:
    """One config: where it is, what it is, what the paper gives for it."""
    folder: str  # under configs/, '' for its top
    base: str  # file in configs/_base_
    suffix: str  # of the file name, the dataset; '' for detection
    method: str
    network: str
    dataset: str
    table: int | str  # of the paper, 0: no row of it; or in SOURCES
    paper: str  # its figure, None where it has none
    metric: float  # the number of it
    backbone: str  # arguments of model.backbone
    notes: str = ''

    @property
    def path(self) -> str:
        network = self.base.rpartition('_')[0]
        name = '_'.join(filter(None, (network, self.method, self.suffix)))
        return f'{self.folder}/{name}.py'.lstrip('/')

    @property
    def title(self) -> str:
        return ' '.join(filter(None, (self.network, LABEL[self.method])))


def rows() -> list:
    """All configs of the paper's tables, table by table."""
    return [
        *_small_images(1, 'resnet164', 'ResNet-164', TABLE_1),
        *_imagenet(),
        *_detection(),
        *_small_images(4, 'resnet164', 'ResNet-164', TABLE_4),
        *_small_images(7, 'vit', 'ViT', TABLE_7),
        *_self_attention(),
    ]


def _small_images(table: int, network: str, name: str, figures: dict):
    for method, values in figures.items():
        for dataset, value in zip(DATASETS, values):
            yield Row(
                folder=network,
                base=f'{network}_{dataset}',
                suffix=dataset,
                method=method,
                network=name,
                dataset=DATASETS[dataset],
                table=table if value else 0,
                paper=value and f'top-1 {value} %, 5 runs',
                metric=value and float(value.split()[0]),
                backbone=_small_backbone(method, dataset))


def _small_backbone(method: str, dataset: str) -> str:
    if method != 'fca':
        return BACKBONE[method]
    size = 96 if dataset == 'stl10' else 32
    return _fca((size, size // 2, size // 4), ', bias=True')


def _fca(sizes: tuple, more: str = '') -> str:
    return ("step=[\n            dict(type='FCAAttention', dct_size=size"
            f'{more})\n            for size in {sizes}\n        ]')


def _self_attention():
    """The second document's network, and the stock one to compare with."""
    networks = [('self_attention', 'SelfAttentionNet', method, value,
                 BACKBONE[method]) for method, value in SELF_ATTENTION.items()]
    networks.append(('resnet18', 'ResNet-18', 'plain', None, ''))
    for network, name, method, value, backbone in networks:
        yield Row(
            folder='self_attention',
            base=f'{network}_cifar10',
            suffix='cifar10',
            method=method,
            network=name,
            dataset='CIFAR-10',
            table='attention',
            paper=value and f'top-1 {value} % in an article on it',
            metric=value and float(value),
            backbone=backbone)


def _imagenet():
    more = {method: (None, None, None) for method in ('se', 'eca', 'sge')}
    for i, depth in enumerate((34, 50, 101)):
        for method, values in (TABLE_2 if i < 2 else more).items():
            sizes = (56, 28, 14, 7)
            yield Row(
                folder='imagenet',
                base=f'resnet{depth}_imagenet',
                suffix='imagenet',
                method=method,
                network=f'ResNet-{depth}',
                dataset='ImageNet-1k',
                table=2 if values[i] else 0,
                paper=values[i] and f'top-1 {values[i]} %, 5 runs',
                metric=values[i] and float(values[i].split()[0]),
                backbone=_fca(sizes) if method == 'fca' else BACKBONE[method],
                notes='' if values[i] else OF_THE_PRETRAINING)


def _detection():
    for (method, values), i in itertools.product(TABLE_3.items(), (0, 1)):
        yield _detector((50, 101)[i], method, values[i])
    for depth in (18, 34):
        yield _detector(depth, 'stepnet', None)


def _detector(depth: int, method: str, values: tuple) -> Row:
    network = f'faster_rcnn_r{depth}'
    backbone, notes = BACKBONE[method], ''
    if method == 'stepnet':
        backbone = ("step=dict(type='StepAdaptor', init_step=1), "
                    'frozen_stages=0')
        notes = OF_THE_START if values else OF_THE_START + OF_THE_DEPTH
    elif method != 'plain':
        source = f'resnet{depth}_{method}_imagenet'
        notes = OF_THE_WEIGHTS.format(source=source)
        backbone += (
            ",\n        init_cfg=dict(\n            prefix='backbone.',\n"
            f"            checkpoint='work_dirs/{source}/epoch_120.pth')")
    return Row(
        folder='',
        base=f'{network}_coco',
        suffix='',
        method=method,
        network=f'Faster R-CNN R-{depth} FPN',
        dataset='COCO',
        table=3 if values else 0,
        paper=values and ', '.join(f'{name} {value}'
                                   for name, value in zip(AP_NAMES, values)),
        metric=values and values[0],
        backbone=backbone,
        notes=notes)


def config_text(row: Row) -> str:
    """The thin config file of a row."""
    source = SOURCES.get(row.table) or (
        f'Table {row.table}' if row.table else 'no row of the paper')
    up = '../' if row.folder else './'
    paper = row.paper or 'no figure'
    return f'''"""{row.title} on {row.dataset} ({source}).

Paper: {paper}.
Command: {_command(row)}
Result here: {_result(row)}.
{row.notes}"""
_base_ = '{up}_base_/{row.base}.py'
{_model_text(row.backbone)}'''


def _command(row: Row) -> str:
    """As the paper trained it: eight GPUs where one has not the batch."""
    if row.dataset in TASKS:
        return ('torchrun --nproc_per_node 8 tools/train.py '
                f'configs/{row.path} --launcher pytorch')
    return f'python tools/train.py configs/{row.path}'


def _model_text(backbone: str) -> str:
    if not backbone:
        return ''
    short = f'model = dict(backbone=dict({backbone}))'
    if len(short) < 80 and '\n' not in short:
        return f'\n{short}\n'
    return f'\nmodel = dict(\n    backbone=dict(\n        {backbone}))\n'


def _result(row: Row) -> str:
    return MEASURED.get(row.path, 'not yet run').partition(';')[0]


README = '''# Configs

`python tools/train.py configs/PATH`. Each file's docstring gives its source,
expected figure and command; what several share is in `_base_`. These files,
this page and the metafiles are written by `tools/make_configs.py`: change a
row there, or write a config of your own over any of them.

Data lies where `data_root` says, `data/cifar10`, `data/cifar100`,
`data/stl10`, `data/imagenet`, `data/coco`, or where `--data-root` says.
CIFAR may be the usual pickles (downloaded where they are absent) or folders
of images by class (`train/cat/*.jpg`, `test/cat/*.jpg`); STL-10 is its
official binary files (downloaded too). `--cfg-options randomness.seed=1`
fixes the seed: the paper's figures are means of 5 runs.

The learning rates are for a batch of 128 (CIFAR, STL-10), 256 (ImageNet, 8
GPUs x 32) and 16 (COCO, 8 GPUs x 2). With another number of GPUs add
`--auto-scale-lr`: on one GPU `python tools/train.py configs/imagenet/NAME
--auto-scale-lr`.

The demo: `faster_rcnn_r34_stepnet_mini_coco.py`
([docs/results.md](../docs/results.md)).
'''
TITLES = {
    1: '## Table 1: ResNet-164 on CIFAR-10, CIFAR-100 and STL-10',
    2: '## Table 2: ImageNet',
    3: '## Table 3: Faster R-CNN on COCO',
    4: '## Table 4: the inputs and the parts of the adaptor\n\n'
    'Its rows without and with StepNet are those of Table 1. What the '
    "paper's\nadaptors a to d are, only a figure says; these are ours "
    '([docs/deviations.md](../docs/deviations.md)).',
    7: '## Table 7: ViT',
    'attention': '## Self-attention and convolution\n\nCordonnier et al. '
    '2020: [docs/self_attention.md](../docs/self_attention.md).',
    0: '## Beside the paper',
}


def readme_text(all_rows: list) -> str:
    """The page that lists every config."""
    parts = [README]
    for table, title in TITLES.items():
        lines = [
            f'| {row.title}, {row.dataset} | `{row.path}` | '
            f'{row.paper or "none"} | {MEASURED.get(row.path, "not yet run")}'
            ' |' for row in all_rows if row.table == table
        ]
        parts.append('\n'.join([
            title, '', '| what | config | paper | here |', '|---|---|---|---|',
            *lines, ''
        ]))
    return '\n'.join(parts)


def metafile_text(folder: str, some: list, complexity: dict) -> str:
    """A folder's metafile, in OpenMMLab's format."""
    name, architecture, paper = COLLECTIONS.get(
        folder, (f'StepNet {folder}', ['ResNet', 'StepNet'], PAPER))
    collection = dict(
        Name=name,
        Metadata=dict(Architecture=architecture),
        Paper=paper,
        README='configs/README.md')
    models = [_model_entry(row, name, complexity.get(row.path, {}))
              for row in some]
    return yaml.safe_dump(
        dict(Collections=[collection], Models=models),
        sort_keys=False,
        allow_unicode=True)


def _model_entry(row: Row, collection: str, complexity: dict) -> dict:
    task, metric = TASKS.get(row.dataset, TASKS['ImageNet-1k'])
    entry = {
        'Name': Path(row.path).stem,
        'In Collection': collection,
        'Metadata': {'Training Data': row.dataset, **complexity},
        'Config': f'configs/{row.path}',
    }
    if row.metric:
        # mim expects figures under Results; no run of ours is behind them.
        source = 'article' if row.table in SOURCES else 'paper'
        entry['Results'] = [
            dict(
                Task=task,
                Dataset=row.dataset,
                Metrics={f'{metric} ({source})': row.metric})
        ]
    return entry


def read_complexity() -> dict:
    """Parameters and FLOPs by config path, from the metafiles."""
    found = {}
    for path in CONFIGS.rglob('metafile.yml'):
        for model in yaml.safe_load(path.read_text())['Models']:
            found[model['Config'].partition('/')[2]] = {
                key: model['Metadata'][key]
                for key in ('Parameters', 'FLOPs')
            }
    return found


def measure(row: Row) -> dict:
    """Parameters and FLOPs of a row's model, as the model report has them."""
    sys.path.insert(0, str(ROOT / 'tools/analysis'))
    import model_report as report
    cfg = report.C.read_config(str(CONFIGS / row.path))
    report.init_default_scope(cfg.default_scope)
    size, _ = report.image_size(cfg)
    total = report.count(cfg, size, report.torch.device('cpu'))['parts'][-1]
    return dict(
        Parameters=total['parameters'], FLOPs=total['mmengine_flops'])


def config_files(everything: list) -> dict:
    """Path -> text of every thin config."""
    return {CONFIGS / row.path: config_text(row) for row in everything}


def page_files(everything: list, complexity: dict) -> dict:
    """Path -> text of the README, the metafiles and the model index."""
    folders = sorted({row.folder for row in everything})
    pages = {
        CONFIGS / folder / 'metafile.yml':
        metafile_text(folder,
                      [row for row in everything if row.folder == folder],
                      complexity)
        for folder in folders
    }
    pages[CONFIGS / 'README.md'] = readme_text(everything)
    pages[CONFIGS / 'model-index.yml'] = index_text(folders)
    return pages


def index_text(folders: list) -> str:
    """The model index, as it lies beside configs/ once installed."""
    paths = [Path('configs', folder, 'metafile.yml') for folder in folders]
    return yaml.safe_dump(dict(Import=[str(path) for path in paths]))


def differing_files(files: dict) -> list:
    """Those whose text is not what the file holds."""
    return [
        path for path, text in files.items()
        if not path.exists() or path.read_text() != text
    ]


def write(files: dict) -> None:
    for path in differing_files(files):
        print(f'writing {path.relative_to(ROOT)}')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])


def check() -> None:
    """Exit with 1 and the names of what is not up to date."""
    everything = rows()
    wrong = differing_files({
        **config_files(everything),
        **page_files(everything, read_complexity())
    })
    for path in wrong:
        print(f'not up to date: {path.relative_to(ROOT)}')
    sys.exit(int(bool(wrong)))


def update(anew: bool) -> None:
    """Write everything; measure the new models, or all of them."""
    everything = rows()
    write(config_files(everything))
    known = {} if anew else read_complexity()
    for row in everything:
        if row.path not in known:
            known[row.path] = measure(row)
            print(row.path, known[row.path], flush=True)
    write(page_files(everything, known))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--check', action='store_true', help='write nothing')
    parser.add_argument(
        '--measure', action='store_true', help='every model, not the new ones')
    args = parser.parse_args()
    check() if args.check else update(args.measure)


if __name__ == '__main__':
    main()
