"""docs/reference/costs.md has the figures of the runs, and no others."""
import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs/reference/costs.md').read_text()
RUNS = (ROOT / 'docs/results/cost.md').read_text()
MODELS = yaml.safe_load((ROOT / 'configs/imagenet/metafile.yml').read_text())
#: First cell -> the method of a config.
METHODS = {'plain': 'plain', 'StepNet': 'stepnet', '`SEAttention`': 'se',
           '`ECAAttention`': 'eca', '`CBAMAttention`': 'cbam',
           '`SRMAttention`': 'srm', '`FCAAttention`': 'fca',
           '`SGEAttention`': 'sge'}


def section(text, title):
    return text.partition(f'## {title}\n')[2].partition('\n## ')[0]


def rows(text):
    """First cell -> the other cells."""
    lines = [[cell.strip() for cell in line.strip('|').split('|')]
             for line in text.splitlines() if line.startswith('|')]
    return {first.strip('* '): rest for first, *rest in lines}


@pytest.mark.parametrize('name', METHODS)
def test_parameters_are_those_of_the_configs(name):
    model, = [m['Metadata'] for m in MODELS['Models']
              if m['Name'] == f'resnet50_{METHODS[name]}_imagenet']
    assert rows(section(PAGE, 'Modules'))[name][3:] == [
        f'{model[key]:,}' for key in ('Parameters', 'FLOPs')]


@pytest.mark.parametrize('here, there', [
    ('StepNet', 'StepNet, fused'), ('`SEAttention`', '`SEAttention`, fused'),
    ('`ECAAttention`', '`ECAAttention`, fused'),
    ('`CBAMAttention`', '`CBAMAttention`'),
    ('SE of mmpretrain', 'SE of mmpretrain'), ('SE of timm', 'SE of timm')])
def test_ratios_are_those_of_the_run(here, there):
    measured = rows(section(RUNS, 'What a step size costs'))[there]
    assert rows(section(PAGE, 'Modules'))[here][:3] == [
        re.search(r'\d\.\d+', cell)[0] for cell in measured]


def test_every_other_ratio_is_in_the_results():
    text = (section(PAGE, 'What moves the price of a step')
            + section(PAGE, 'Hooks and measurements'))
    ratios = re.findall(r'\b[01]\.\d{3}\b', text)
    assert len(ratios) > 12
    assert not [ratio for ratio in ratios if ratio not in RUNS]
