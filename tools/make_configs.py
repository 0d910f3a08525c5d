#!/usr/bin/env python
"""Write the configs of the paper's tables, their README and metafiles.

python tools/make_configs.py            # write what is not up to date
python tools/make_configs.py --check    # fail where something is not
python tools/make_configs.py --measure  # count parameters and FLOPs anew

What is in them lies in tools/config_tables: figures.yml, a line for each row
of a table and remarks on runs of ours; methods.yml, what makes each method;
tricks.yml, what makes each trick of Fig. 8; texts.yml and page.md, the texts
around them. Results of runs of ours come from results/*.jsonl, the records of
studies, where a config was trained just as it is.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
import itertools
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

import yaml

from stepnet_mm.utils.files import differing_files, write_differing

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / 'configs'
TABLES = ROOT / 'tools/config_tables'


def read_table(name: str) -> dict:
    """A file of tools/config_tables."""
    return yaml.safe_load((TABLES / name).read_text())


FIGURES = read_table('figures.yml')
METHODS = read_table('methods.yml')
FIG_8 = read_table('tricks.yml')
TEXTS = read_table('texts.yml')
DATASETS, TITLES = TEXTS['datasets'], TEXTS['titles']
AP_NAMES = ('AP', 'AP50', 'AP75', 'APS', 'APM', 'APL')
#: Depth -> methods of which Table 3 needs weights and Table 2 has no row.
BESIDE_TABLE_2 = {50: ('eca_k5', ), 101: ('se', 'eca', 'sge', 'stepnet')}
#: (depth, method) of a detector -> the method whose backbone it has, where it
#: is not its own.
BACKBONES = {
    (50, 'eca'): 'eca_k5',
    (50, 'stepnet_from_stepnet'): 'stepnet',
    (101, 'stepnet_from_stepnet'): 'stepnet',
}
#: That method -> the note on the detectors that start from it.
NOTES = {'eca_k5': 'kernels', 'stepnet': 'equal'}
#: Columns of a line of code.
WIDTH = 79


@dataclass
class Row:
    """One config: where it is, what it is, what the paper gives for it."""
    folder: str  # under configs/, '' for its top
    base: str  # file in configs/_base_
    suffix: str  # of the file name, the dataset; '' for detection
    method: str
    network: str
    dataset: str
    table: int | str  # of the paper, 0: no row of it; or another source
    paper: str | None  # its figure, None where it has none
    metric: float | None  # the number of it
    backbone: dict  # arguments of model.backbone
    notes: tuple = ()  # texts
    trick: str = ''  # of Fig. 8
    records: list = field(default_factory=list)  # of runs of ours

    @property
    def path(self) -> str:
        """Where it is under configs/."""
        network = self.base.rpartition('_')[0]
        parts = network, self.method, self.trick, self.suffix
        return f'{self.folder}/{"_".join(filter(None, parts))}.py'.lstrip('/')

    @property
    def title(self) -> str:
        """The network, the method and the trick."""
        method = METHODS[self.method]
        label = method.get('labels', {}).get(self.dataset, method['label'])
        trick = self.trick and f'with {FIG_8["tricks"][self.trick]["label"]}'
        return ' '.join(filter(None, (self.network, label, trick)))

    @property
    def ours(self) -> str:
        """Says what is ours in a network with a figure of the paper."""
        texts = TEXTS['ours'] if self.paper else {}
        return ''.join(text for name, text in texts.items()
                       if name in (self.network, self.method))


def rows() -> list[Row]:
    """All configs of the paper's tables, table by table."""
    return [
        *_small_images(1, 'resnet164', 'ResNet-164'),
        *_imagenet(),
        *_detection(),
        *_small_images(4, 'resnet164', 'ResNet-164'),
        *_small_images(7, 'vit', 'ViT'),
        *_self_attention(),
        *_tricks(),
        *_small_images(0, 'resnet164', 'ResNet-164'),
    ]


def rows_with_results() -> list[Row]:
    """All configs, each with the records of its runs."""
    everything = rows()
    files = sorted((ROOT / 'results').glob('*.jsonl'))
    if not files:  # without an import that takes a second
        return everything
    from stepnet_mm.studies.config_results import records_of_configs
    configs: dict = {}
    for row in everything:
        base = CONFIGS / '_base_' / f'{row.base}.py'
        configs.setdefault(base, []).append(CONFIGS / row.path)
    found = records_of_configs(files, configs)
    for row in everything:
        row.records = found.get(CONFIGS / row.path, [])
    return everything


def paper_figure(name: str) -> str | None:
    """The paper's figure beside a config, by the config's name.

    Raises:
        ValueError: if there is no such config.
    """
    found = {Path(row.path).stem: row for row in rows()}
    if name not in found:
        raise ValueError(
            f'paper: expected the name of a config of the tables, such as '
            f'{next(iter(found))}, got {name}; correct it')
    return found[name].paper


def _small_images(table: int, network: str, name: str):
    for method, values in FIGURES[table].items():
        for dataset, value in zip(DATASETS, values):
            size = 96 if dataset == 'stl10' else 32
            yield Row(
                folder=network,
                base=f'{network}_{dataset}',
                suffix=dataset,
                method=method,
                network=name,
                dataset=DATASETS[dataset],
                table=table if value else 0,
                **_top1(value),
                backbone=_backbone(
                    method, name, (size, size // 2, size // 4), bias=True))


def _top1(value: str | None) -> dict:
    return dict(paper=value and f'top-1 {value} %, 5 runs',
                metric=value and float(value.split()[0]))


def _backbone(method: str, network: str, sizes: tuple = (), **more) -> dict:
    """The arguments of a method, for maps of these sizes by stage."""
    networks = METHODS[method].get('networks', {})
    arguments = networks.get(network, METHODS[method]['backbone'])
    if method != 'fca':
        return arguments
    return dict(step=dict(each={**arguments['step']['each'], **more},
                          size=sizes))


def _self_attention():
    """The second document's network, and the stock one to compare with."""
    networks = [
        ('self_attention', 'SelfAttentionNet', method, value,
         _backbone(method, 'SelfAttentionNet'))
        for method, value in FIGURES['attention'].items()
    ]
    networks.append(('resnet18', 'ResNet-18', 'plain', None, {}))
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


def _tricks():
    """Fig. 8: each trick on top of configs of Table 1."""
    choices = FIG_8['tricks'], FIG_8['methods'], FIG_8['datasets']
    for trick, method, dataset in itertools.product(*choices):
        yield Row(
            folder='tricks',
            base=f'resnet164_{dataset}',
            suffix=dataset,
            method=method,
            network='ResNet-164',
            dataset=DATASETS[dataset],
            table='tricks',
            paper='a picture of TNS, not at hand',
            metric=None,
            backbone={},
            notes=('\n' + FIG_8['tricks'][trick]['about'], ),
            trick=trick)


def _imagenet():
    for i, depth in enumerate((34, 50)):
        for method, values in FIGURES[2].items():
            yield _classifier(depth, method, values[i])
    for depth, methods in BESIDE_TABLE_2.items():
        for method in methods:
            yield _classifier(depth, method, None)


def _classifier(depth: int, method: str, value: str | None) -> Row:
    network = f'ResNet-{depth}'
    return Row(
        folder='imagenet',
        base=f'resnet{depth}_imagenet',
        suffix='imagenet',
        method=method,
        network=network,
        dataset='ImageNet-1k',
        table=2 if value else 0,
        **_top1(value),
        backbone=_backbone(method, network, (56, 28, 14, 7)),
        notes=() if value else (_note('pretraining', depth=depth), ))


def _detection():
    for (method, values), i in itertools.product(FIGURES[3].items(), (0, 1)):
        yield _detector((50, 101)[i], method, values[i])
    for depth in (18, 34):
        yield _detector(depth, 'stepnet', None)


def _detector(depth: int, method: str, values: list | None) -> Row:
    backbone, notes = _of_detector(depth, method)
    return Row(
        folder='',
        base=f'faster_rcnn_r{depth}_coco',
        suffix='',
        method=method,
        network=f'Faster R-CNN R-{depth} FPN',
        dataset='COCO',
        table=3 if values else 0,
        paper=values and ', '.join(f'{name} {value}'
                                   for name, value in zip(AP_NAMES, values)),
        metric=values and values[0],
        backbone=backbone,
        notes=notes if values else (*notes, _note('depth')))


def _of_detector(depth: int, method: str) -> tuple[dict, tuple]:
    """The backbone of a detector, and where its weights come from."""
    start = BACKBONES.get((depth, method), method)
    backbone = _backbone(start, f'ResNet-{depth}')
    if method == 'plain':
        return backbone, ()
    if method == 'stepnet':
        step = dict(backbone['step'], init_step=1)
        return dict(step=step, frozen_stages=0), (_note('start'), )
    source = f'resnet{depth}_{start}_imagenet'
    weights = dict(prefix='backbone.',
                   checkpoint=f'work_dirs/{source}/best.pth')
    about = [_note(NOTES[start], depth=depth)] if start in NOTES else []
    return (dict(backbone, init_cfg=weights),
            (*about, _note('weights', source=source)))


def _note(name: str, **names) -> str:
    return '\n' + _filled(TEXTS['notes'][name], **names)


def _filled(text: str, **names) -> str:
    return Template(text).substitute(names)


def config_text(row: Row) -> str:
    """The thin config file of a row."""
    source = TEXTS['sources'].get(row.table) or (
        f'Table {row.table}' if row.table else 'no row of the paper')
    command = 'command_of_many' if row.dataset in TEXTS['tasks'] else 'command'
    return _filled(
        TEXTS['config'],
        title=row.title,
        dataset=row.dataset,
        source=source,
        paper=row.paper or 'no figure',
        command=_filled(TEXTS[command], path=row.path),
        result=_result(row).partition(';')[0],
        notes=''.join([row.ours and f'\n{row.ours}', *row.notes]),
        base=_base_text(row),
        lines=_trick_text(row) or _model_text(row.backbone))


def _result(row: Row) -> str:
    if row.records:
        from stepnet_mm.studies.config_results import result_text
        return result_text(row.records)
    return FIGURES['measured'].get(row.path, 'not yet run')


def _base_text(row: Row) -> str:
    """What a config inherits, as Python."""
    if not row.trick:
        return repr(f'{"../" if row.folder else "./"}_base_/{row.base}.py')
    under = replace(row, folder='resnet164', trick='')
    return _filled(TEXTS['two_bases'], path=under.path, trick=row.trick)


def _trick_text(row: Row) -> str:
    """The lines that put a trick into a config, if the row has one."""
    if not row.trick:
        return ''
    trick = FIG_8['tricks'][row.trick]
    value = trick.get('values', {}).get(row.suffix, row.trick)
    return f'\n{_filled(trick["lines"], value=value)}\n'


def _model_text(backbone: dict) -> str:
    if not backbone:
        return ''
    short = _filled(TEXTS['model'], arguments=_arguments(backbone))
    if len(short) <= WIDTH:
        return f'\n{short}\n'
    long = _filled(TEXTS['broken_model'],
                   arguments=_broken_arguments(backbone, 8, ')))'))
    return f'\n{long}\n'


def _source(value) -> str:
    """A value as Python, on one line."""
    if isinstance(value, str) and value.startswith('$'):
        return value[1:]
    if not isinstance(value, dict):
        return repr(value)
    if 'each' in value:
        return f'[{" ".join(_comprehension(value))}]'
    return f'dict({_arguments(value)})'


def _comprehension(value: dict) -> tuple[str, str]:
    (name, values), = [item for item in value.items() if item[0] != 'each']
    return _source(value['each']), f'for {name} in {tuple(values)}'


def _arguments(values: dict) -> str:
    return ', '.join(f'{key}={_source(v)}' for key, v in values.items())


def _broken_arguments(values: dict, indent: int, end: str) -> str:
    """Arguments on the line of an indent, or on one line each.

    Args:
        values (dict): the arguments.
        indent (int): columns before them.
        end (str): what follows the last one.
    """
    short = _arguments(values)
    if indent + len(short + end) <= WIDTH:
        return short
    lines = [_broken_argument(*item, indent) for item in values.items()]
    return f',\n{" " * indent}'.join(lines)


def _broken_argument(key: str, value, indent: int) -> str:
    short = f'{key}={_source(value)}'
    if indent + len(short) < WIDTH or not isinstance(value, dict):
        return short
    line, inner = '\n' + ' ' * indent, '\n' + ' ' * (indent + 4)
    if 'each' in value:
        return f'{key}=[{inner}{inner.join(_comprehension(value))}{line}]'
    inside = _broken_arguments(value, indent + 4, '))))')
    return f'{key}=dict({inner}{inside})'


def readme_text(all_rows: list[Row]) -> str:
    """The page that lists every config."""
    parts = [(TABLES / 'page.md').read_text()]
    for table, title in TITLES.items():
        lines = [
            f'| {row.title}, {row.dataset} | `{row.path}` | '
            f'{row.paper or "none"} | {_result(row)} |'
            for row in all_rows if row.table == table
        ]
        parts.append('\n'.join([
            title, '', '| what | config | paper | here |', '|---|---|---|---|',
            *lines, ''
        ]))
    return '\n'.join(parts)


def metafile_text(folder: str, some: list, complexity: dict) -> str:
    """A folder's metafile, in OpenMMLab's format."""
    name, architecture, paper = TEXTS['collections'].get(
        folder, (f'StepNet {folder}', ['ResNet', 'StepNet'], 'stepnet'))
    collection = dict(
        Name=name,
        Metadata=dict(Architecture=architecture),
        Paper=TEXTS['papers'][paper],
        README='configs/README.md')
    models = [_model_entry(row, name, complexity.get(row.path, {}))
              for row in some]
    return yaml.safe_dump(
        dict(Collections=[collection], Models=models),
        sort_keys=False,
        allow_unicode=True)


def _model_entry(row: Row, collection: str, complexity: dict) -> dict:
    tasks = TEXTS['tasks']
    task, metric = tasks.get(row.dataset, tasks['ImageNet-1k'])
    entry = {
        'Name': Path(row.path).stem,
        'In Collection': collection,
        'Metadata': {'Training Data': row.dataset, **complexity},
        'Config': f'configs/{row.path}',
    }
    if row.ours:
        entry['Metadata']['Note'] = ' '.join(row.ours.split())
    if metrics := _metrics(row, metric):
        entry['Results'] = [
            dict(Task=task, Dataset=row.dataset, Metrics=metrics)]
    return entry


def _metrics(row: Row, metric: str) -> dict:
    """What mim expects under Results: the paper's figure, and ours."""
    found = {}
    if row.metric:
        source = 'article' if row.table in TEXTS['sources'] else 'paper'
        found[f'{metric} ({source})'] = row.metric
    ours = [record.last for record in row.records if not record.diverged]
    if ours:
        name = f'{metric} (here, mean of {len(ours)} runs)'
        found[name] = round(sum(ours) / len(ours), 4)
    return found


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
    import torch

    from stepnet_mm.config import read_config
    from stepnet_mm.profiling import count, image_size, prepare
    cfg = read_config(str(CONFIGS / row.path))
    size, _ = image_size(cfg)
    total = count(*prepare(cfg, size, 1, torch.device('cpu')))['parts'][-1]
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


def check() -> None:
    """Exit with 1 and the names of what is not up to date."""
    everything = rows_with_results()
    wrong = differing_files({
        **config_files(everything),
        **page_files(everything, read_complexity())
    })
    for path in wrong:
        print(f'not up to date: {path.relative_to(ROOT)}')
    sys.exit(int(bool(wrong)))


def update(anew: bool) -> None:
    """Write everything; measure the new models, or all of them."""
    everything = rows_with_results()
    write_differing(config_files(everything), ROOT)
    known = {} if anew else read_complexity()
    for row in everything:
        if row.path not in known:
            known[row.path] = measure(row)
            print(row.path, known[row.path], flush=True)
    write_differing(page_files(everything, known), ROOT)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--check', action='store_true', help='write nothing')
    parser.add_argument(
        '--measure', action='store_true', help='every model, not the new ones')
    args = parser.parse_args()
    try:
        check() if args.check else update(args.measure)
    except (OSError, ValueError) as error:
        parser.exit(2, f'{parser.prog}: error: {error}\n')


if __name__ == '__main__':
    main()
