"""One self-contained HTML page about the stiffness of a run."""
import base64
import io
from collections.abc import Callable
from functools import partial
from html import escape
from string import Template

from ..stiffness import (
    StiffnessRecord,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)
from .attention_maps import (
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
)
from .comparison import tns_figure
from .step_figures import has_steps, step_figure
from .stiffness_figures import (
    check_records,
    depth_figure,
    proportion_figure,
    survival_figure,
)
from .style import THEMES, style_sheet, use
from .training_curve import curve_figure

PAGE = Template('''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$colors
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 1040px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--muted); }
p, figcaption { max-width: 72ch; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--grid);
  text-align: left; vertical-align: top; }
thead th { background: var(--panel); }
.numbers th { white-space: nowrap; }
.numbers th + th { text-align: right; }
td.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.about td { overflow-wrap: anywhere; min-width: 8rem; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; }
figcaption { font-size: .85rem; color: var(--muted); }
@media print { body { max-width: none; padding: 0; font-size: 11px; }
  .table { overflow: visible; } figure, tr { break-inside: avoid; } }
</style>
</head>
<body>
<h1>$title</h1>
$sections
</body>
</html>
''')
NUMBERS = (
    'TNS (Eq. 5) is the mean over samples of the area of all thresholds '
    '(M1, M2) to which a sample is stiff. A few samples can dominate it, so '
    'its median and 95 % quantile over samples stand beside it. δ is the '
    'share of samples that are stiff to the degree in brackets, p̂ the mean '
    'share of blocks that make them so. Samples with an inf or NaN are left '
    'out of every number.')
STAGES = (
    'NSI (Eq. 4) of a block is the size of its step beside the size of its '
    "state. A stage's first block is not measured. The mean, and the largest "
    'of a stage, are taken in each sample and then averaged over samples.')
CURVE = ('Measured by TNSHook while the network trained. Above: TNS, its mean '
         'over samples and, where they were logged, median and 95 % quantile. '
         'Below: NSI of each stage, from its mean to its largest value.')
TOTALS = ('TNS of each network: its mean over samples (Eq. 5), its median and '
          '95 % quantile, with 95 % bootstrap intervals over samples. Where '
          'names differ in their _seedN alone, the records are seeds of one '
          'network: small dots, with their mean and their range, from five '
          'seeds on a 95 % bootstrap interval over them.')
SURVIVAL = ('δ(M1, M2) of Eq. 5: the share of samples in which some block has '
            'NSI >= max(mean of its stage · (1 + M1), M2). TNS is the volume '
            'under the surface.')
DEPTH = ('NSI of the measured blocks from the first stage to the last, over '
         'samples.')
PROPORTION = ('p̂(M1, M2) of §3.1: the mean share of the measured blocks that '
              'are stiff to a degree.')
STEPS = ('Mean step size Δt of a block over channels and space against its '
         'NSI, over samples.')
MAPS = ("Each head's attention of one query pixel, framed in black, at the "
        'last record of AttentionMapHook; the nearest-looking head first.')
PATHS = ("The mean place under each head's attention of the query pixel, over "
         'the image, from the first record to the last.')
RANGE = ("Mean attention distance: the distance of query and key, weighted by "
         'the attention, over query pixels and images.')
BLOCKS = (
    "A block's own area is that of the thresholds to which the block by "
    'itself makes a sample stiff: the mean over samples of (NSI / mean of its '
    'stage − 1)₊ · NSI. Own areas overlap, so they do not add up to TNS. '
    'Stiff is the share of samples in which its NSI is at least max(mean of '
    'its stage · (1 + M1), M2), with M1 and M2 in brackets. Δt is the mean '
    'step size (attention value) of a known gate.')

#: Of a figure in an inch, and of the page in an inch of a figure.
DPI, PIXELS = 150, 114
#: Of all records together; the first one, of several.
COMPARED = (
    ('TNS of each network', tns_figure, TOTALS),
    ('Degrees of stiffness', survival_figure, SURVIVAL),
    ('NSI along depth', depth_figure, DEPTH),
    ('How many blocks are stiff', proportion_figure, PROPORTION))


def render_report(title: str,
                  records: list,
                  curves: dict | None = None,
                  m1: float = .5,
                  m2: float = 0.,
                  attention: dict | None = None) -> str:
    """The page: where the numbers come from, tables, figures.

    Args:
        title (str): heading.
        records (list[StiffnessRecord]): of one run or of models to compare,
            all of one definition of NSI.
        curves (dict, optional): as ``read_stiffness_curves`` gives them.
        m1 (float): threshold M1 of the tables (Eq. 5).
        m2 (float): likewise, M2.
        attention (dict, optional): as ``read_attention_histories`` gives it.

    Returns:
        str: HTML5 that needs no other file.

    Raises:
        ValueError: on records that do not go together, one without a finite
            sample, or a negative threshold.
    """
    check_records(records)
    sections = [
        section('What was measured', about_table(records)),
        section('Numbers', note(NUMBERS), totals_table(records, m1, m2),
                note(STAGES), stages_table(records)),
        *figures(records, curves),
        *(section(f'Where the heads look: {name}', *attention_pictures(some))
          for name, some in (attention or {}).items()),
        section('Blocks', note(BLOCKS),
                *(blocks_table(record, m1, m2) for record in records))
    ]
    return PAGE.substitute(title=escape(title), colors=style_sheet(),
                           sections='\n'.join(sections))


def figures(records: list, curves: dict | None = None) -> list:
    """The sections with pictures."""
    gated = [record for record in records if has_steps(record)]
    steps = (picture(partial(step_figure, record), f'{record.name}. {STEPS}')
             for record in gated)
    return [
        *(section(f'While training: {name}',
                  picture(partial(curve_figure, rows), CURVE))
          for name, rows in (curves or {}).items()),
        *(section(heading, picture(partial(draw, records), caption))
          for heading, draw, caption in COMPARED[len(records) < 2:]),
        *([section('Step size against NSI', *steps)] if gated else [])
    ]


def attention_pictures(records: list) -> list[str]:
    """Of one AttentionMapHook; of records that compare with the last."""
    alike = [r for r in records if r.view == records[-1].view]
    return [
        picture(partial(attention_map_figure, alike[-1]), MAPS),
        picture(partial(attention_path_figure, alike), PATHS),
        picture(partial(attention_range_figure, alike), RANGE)
    ]


def section(heading: str, *parts: str) -> str:
    """A heading, and HTML below it."""
    return '\n'.join([f'<h2>{escape(heading)}</h2>', *parts])


def note(text: str) -> str:
    """A paragraph; the text is escaped."""
    return f'<p>{escape(text)}</p>'


def about_table(records: list) -> str:
    """Where the numbers come from: a line per key, a column per record."""
    abouts = [_about(record.header) for record in records]
    keys = dict.fromkeys(key for about in abouts for key in about)
    rows = [[key, *(about.get(key, '') for about in abouts)] for key in keys]
    return table(['', *(r.name for r in records)], rows, 'about')


def _about(header) -> dict:
    """What a header says, as text."""
    stages = [header.stage.count(s) for s in range(1, header.stages + 1)]
    meta = {key: _text(value) for key, value in header.meta.items()}
    return {
        **{key: text for key, text in meta.items() if text and key != 'name'},
        'samples': str(header.samples),
        'definition of NSI': header.definition,
        'measured blocks, by stage': ', '.join(map(str, stages))
    }


def _text(value) -> str:
    if isinstance(value, dict):
        return ', '.join(f'{k} {_text(v)}' for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ', '.join(map(_text, value))
    return '' if value is None else str(value)


def totals_table(records: list, m1: float, m2: float) -> str:
    """TNS and what goes with it, a line per record."""
    rows = []
    for record in records:
        nsi, stage = record.nsi, record.stage
        tns = record.tns().numpy()
        rows.append([
            record.name,
            *record.tns_summary().values(),
            tns.std().item(),
            len(tns),
            len(nsi) - len(tns),
            stiffness_survival(nsi, stage, [m1], [m2]).item(),
            stiffness_proportion(nsi, stage, [m1], [m2]).item()
        ])
    return table([
        'model', 'TNS', 'median', '95 % quantile', 'std over samples',
        'samples', 'not finite, left out',
        f'δ({m1:g}, {m2:g})', f'p̂({m1:g}, {m2:g})'
    ], rows)


def stages_table(records: list) -> str:
    """Mean and mean maximum of NSI, a line per record and stage."""
    rows = []
    for record in records:
        found = stage_summary(record.nsi, record.stage)
        columns = (found.stages, found.mean[found.finite].mean(0),
                   found.maximum[found.finite].mean(0))
        rows += [[record.name, *row]
                 for row in zip(*(column.tolist() for column in columns))]
    return table(['model', 'stage', 'mean NSI', 'mean of the largest'], rows)


def blocks_table(record: StiffnessRecord, m1: float, m2: float) -> str:
    """The numbers of each block, a line per block."""
    rows = [list(row.values()) for row in record.summary_by_block((m1, m2))]
    return f'<h3>{escape(record.name)}</h3>' + table([
        'block', 'stage', 'index in stage', 'mean NSI', 'own area',
        f'stiff at ({m1:g}, {m2:g})', 'mean Δt'
    ], rows)


def table(heads: list, rows: list, kind: str = 'numbers') -> str:
    """An HTML table; text is escaped, numbers are aligned."""
    head = ''.join(f'<th>{escape(name)}</th>' for name in heads)
    body = ''.join(f'<tr>{"".join(map(_cell, row))}</tr>\n' for row in rows)
    return (f'<div class="table"><table class="{kind}"><thead><tr>{head}</tr>'
            f'</thead><tbody>\n{body}</tbody></table></div>')


def _cell(value) -> str:
    if isinstance(value, str):
        return f'<td>{escape(value)}</td>'
    text = str(value) if isinstance(value, int) else f'{value:#.4g}'
    text = text.replace('nan', '–')
    return f'<td class="number">{text}</td>'


def picture(draw: Callable, caption: str) -> str:
    """A figure inside the page, drawn for light and for dark pages."""
    light, dark = (_image(draw, theme) for theme in THEMES)
    caption = escape(caption)
    # Of one scale, so that the text of all figures is of one size.
    width = int.from_bytes(light[16:20], 'big') * PIXELS // DPI
    return (f'<figure><picture><source srcset="{_link(dark)}" '
            'media="screen and (prefers-color-scheme: dark)">'
            f'<img alt="{caption}" width="{width}" src="{_link(light)}">'
            f'</picture><figcaption>{caption}</figcaption></figure>')


def _image(draw: Callable, theme: str) -> bytes:
    """A PNG, which has its width in bytes 16 to 19."""
    buffer = io.BytesIO()
    with use(theme=theme):
        # Tight, since titles of 3-D axes reach beyond the figure.
        draw().savefig(buffer, format='png', dpi=DPI,
                       bbox_inches='tight')
    return buffer.getvalue()


def _link(image: bytes) -> str:
    return f'data:image/png;base64,{base64.b64encode(image).decode()}'
