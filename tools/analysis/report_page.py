"""One self-contained HTML page about the stiffness of a run."""
import base64
import io
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from paper_figures import has_steps, step_figure, tns_figure

from stepnet_mm import visualization
from stepnet_mm.stiffness import DEGREE

#: Of a figure in an inch, and of the page in an inch of a figure.
DPI, PIXELS = 150, 114


def render_report(title: str, records: list, curves: dict,
                  attention: dict) -> str:
    """HTML5 that needs no other file: origin of the numbers, tables, figures.

    The records are of one run, or of models to compare; curves and attention
    are as :func:`read_stiffness_curves` and :func:`read_attention_histories`
    give them.

    Raises:
        ValueError: on records that do not go together.
    """
    visualization.check_records(records)
    return TEMPLATES.get_template('report.html').render(
        title=title, names=[r.name for r in records],
        degree='({:g}, {:g})'.format(*DEGREE), about=_about(records),
        numbers=_rows([record.summary() for record in records]),
        blocks=[(r.name, [list(row.values())
                          for row in r.summary_by_block()])
                for r in records],
        curves={name: picture(visualization.training_figure(rows))
                for name, rows in curves.items()},
        tns=picture(tns_figure(records)) if len(records) > 1 else None,
        survival=picture(visualization.survival_figure(records)),
        depth=picture(visualization.depth_figure(records)),
        proportion=picture(visualization.proportion_figure(records)),
        steps=[(record.name, picture(step_figure(record)))
               for record in records if has_steps(record)],
        attention={name: _heads(some) for name, some in attention.items()})


def picture(figure) -> dict:
    """A figure inside the page: its ``url``, and its ``width`` in px.

    All are of one scale, so that all text is of one size.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=DPI, bbox_inches='tight')
    png = buffer.getvalue()
    # A PNG has its width in bytes 16 to 19.
    return dict(url='data:image/png;base64,' + base64.b64encode(png).decode(),
                width=int.from_bytes(png[16:20], 'big') * PIXELS // DPI)


def _heads(records: list) -> dict[str, dict]:
    """Of one AttentionMapHook; of records that compare with the last."""
    alike = [r for r in records if r.view == records[-1].view]
    return {key: picture(figure)
            for key, figure in visualization.attention_figures(alike).items()}


def _about(records: list) -> list[list]:
    """Where the numbers come from."""
    rows = _rows([{**record.header.meta, 'samples': record.header.samples,
                   'definition of NSI': record.header.definition}
                  for record in records])
    return [[key, *('' if value is None else str(value) for value in values)]
            for key, *values in rows if key != 'name']  # above the column


def _rows(columns: list[dict]) -> list[list]:
    """A row per key, a value per record, '' where it has none."""
    keys = dict.fromkeys(key for column in columns for key in column)
    return [[key, *(column.get(key, '') for column in columns)]
            for key in keys]


def number(value) -> str:
    """Of a table: four digits, but an int with all of its own."""
    text = str(value) if isinstance(value, int) else f'{value:#.4g}'
    return text.replace('nan', '–')


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name('templates')),
    autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True)
TEMPLATES.filters['number'] = number
