"""One self-contained HTML page about the stiffness of a run."""
import io
from typing import NamedTuple

from html_pages import data_url, render
from step_figures import has_steps, step_figure
from tns_by_method import tns_figure

from stepnet_mm.stiffness import (
    DEGREES,
    StiffnessRecord,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)
from stepnet_mm.visualization import (
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
    check_records,
    curve_figure,
    depth_figure,
    proportion_figure,
    survival_figure,
)

#: Of a figure in an inch, and of the page in an inch of a figure.
DPI, PIXELS = 150, 114


def render_report(title: str,
                  records: list,
                  curves: dict | None = None,
                  attention: dict | None = None) -> str:
    """The page: where the numbers come from, tables, figures.

    Args:
        title (str): heading.
        records (list[StiffnessRecord]): of one run or of models to compare,
            all of one definition of NSI.
        curves (dict, optional): as ``read_stiffness_curves`` gives them.
        attention (dict, optional): as ``read_attention_histories`` gives it.

    Returns:
        str: HTML5 that needs no other file.

    Raises:
        ValueError: on records that do not go together, or one without a
            finite sample.
    """
    check_records(records)
    return render(
        'report.html', title=title, names=[r.name for r in records],
        degree='({:g}, {:g})'.format(*DEGREES[0]), about=_about(records),
        totals=[*map(_totals, records)],
        stages=[row for record in records for row in _stages(record)],
        blocks=[(r.name, [list(row.values())
                          for row in r.summary_by_block(DEGREES[0])])
                for r in records],
        curves={name: Picture.of(curve_figure(rows))
                for name, rows in (curves or {}).items()},
        tns=Picture.of(tns_figure(records)) if len(records) > 1 else None,
        survival=Picture.of(survival_figure(records)),
        depth=Picture.of(depth_figure(records)),
        proportion=Picture.of(proportion_figure(records)),
        steps=[(record.name, Picture.of(step_figure(record)))
               for record in records if has_steps(record)],
        attention={name: _heads(some)
                   for name, some in (attention or {}).items()})


class Picture(NamedTuple):
    """A figure inside the page."""

    url: str
    width: int  # in px; of one scale, so that all text is of one size

    @classmethod
    def of(cls, figure) -> 'Picture':
        """A matplotlib figure."""
        buffer = io.BytesIO()
        # Tight, since titles of 3-D axes reach beyond the figure.
        figure.savefig(buffer, format='png', dpi=DPI, bbox_inches='tight')
        png = buffer.getvalue()
        # A PNG has its width in bytes 16 to 19.
        width = int.from_bytes(png[16:20], 'big') * PIXELS // DPI
        return cls(data_url(png), width)


def _heads(records: list) -> dict[str, Picture]:
    """Of one AttentionMapHook; of records that compare with the last."""
    alike = [r for r in records if r.view == records[-1].view]
    return dict(
        maps=Picture.of(attention_map_figure(alike[-1])),
        paths=Picture.of(attention_path_figure(alike)),
        range=Picture.of(attention_range_figure(alike)))


def _about(records: list) -> list[list[str]]:
    """Where the numbers come from: a row per key, a column per record."""
    abouts = [_about_one(record.header) for record in records]
    keys = dict.fromkeys(key for about in abouts for key in about)
    return [[key, *(about.get(key, '') for about in abouts)] for key in keys]


def _about_one(header) -> dict[str, str]:
    stages = [header.stage.count(s) for s in range(1, header.stages + 1)]
    return {
        **{key: _text(value) for key, value in header.meta.items()
           if key != 'name' and _text(value)},
        'samples': str(header.samples),
        'definition of NSI': header.definition,
        'measured blocks, by stage': _text(stages)
    }


def _text(value) -> str:
    if isinstance(value, dict):
        return ', '.join(f'{k} {_text(v)}' for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ', '.join(map(_text, value))
    return '' if value is None else str(value)


def _totals(record: StiffnessRecord) -> list:
    """TNS and what goes with it."""
    tns, (m1, m2) = record.tns().numpy(), DEGREES[0]
    return [
        record.name, *record.tns_summary().values(), tns.std().item(),
        len(tns), record.lost,
        *(share(record.nsi, record.stage, [m1], [m2]).item()
          for share in (stiffness_survival, stiffness_proportion))
    ]


def _stages(record: StiffnessRecord) -> list[list]:
    """Mean and mean maximum of NSI, a row per stage."""
    found = stage_summary(record.nsi, record.stage)
    columns = (found.stages, found.mean[found.finite].mean(0),
               found.maximum[found.finite].mean(0))
    return [[record.name, *row]
            for row in zip(*(column.tolist() for column in columns))]
