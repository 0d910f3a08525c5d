"""One self-contained HTML page about the stiffness of a run."""
import io

from html_pages import data_url, render
from paper_figures import has_steps, step_figure, tns_figure

from stepnet_mm import visualization
from stepnet_mm.stiffness import (
    DEGREES,
    StiffnessRecord,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)

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
    return render(
        'report.html', title=title, names=[r.name for r in records],
        degree='({:g}, {:g})'.format(*DEGREES[0]), about=_about(records),
        totals=[*map(_totals, records)],
        stages=[row for record in records for row in _stages(record)],
        blocks=[(r.name, [list(row.values())
                          for row in r.summary_by_block(DEGREES[0])])
                for r in records],
        curves={name: picture(visualization.curve_figure(rows))
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
    # Tight, since titles of 3-D axes reach beyond the figure.
    figure.savefig(buffer, format='png', dpi=DPI, bbox_inches='tight')
    png = buffer.getvalue()
    # A PNG has its width in bytes 16 to 19.
    return dict(url=data_url(png),
                width=int.from_bytes(png[16:20], 'big') * PIXELS // DPI)


def shares(record: StiffnessRecord, m1: float, m2: float) -> list[float]:
    """δ(M1, M2) of samples, and p̂(M1, M2) of blocks."""
    return [share(record.nsi, record.stage, [m1], [m2]).item()
            for share in (stiffness_survival, stiffness_proportion)]


def _heads(records: list) -> dict[str, dict]:
    """Of one AttentionMapHook; of records that compare with the last."""
    alike = [r for r in records if r.view == records[-1].view]
    return {key: picture(figure)
            for key, figure in visualization.attention_figures(alike).items()}


def _about(records: list) -> list[list]:
    """Where the numbers come from: a row per key, a column per record."""
    abouts = [_about_one(record.header) for record in records]
    keys = dict.fromkeys(key for about in abouts for key in about)
    rows = [[key, *(str(about.get(key) or '') for about in abouts)]
            for key in keys if key != 'name']  # it is above the column
    return [row for row in rows if any(row[1:])]


def _about_one(header) -> dict:
    blocks = map(header.stage.count, range(1, header.stages + 1))
    return {**header.meta, 'samples': header.samples,
            'definition of NSI': header.definition,
            'measured blocks, by stage': ', '.join(map(str, blocks))}


def _totals(record: StiffnessRecord) -> list:
    """TNS and what goes with it."""
    tns = record.tns().numpy()
    return [record.name, *record.tns_summary().values(), tns.std().item(),
            len(tns), record.lost, *shares(record, *DEGREES[0])]


def _stages(record: StiffnessRecord) -> list[list]:
    """Mean and mean maximum of NSI, a row per stage."""
    found = stage_summary(record.nsi, record.stage)
    columns = (found.stages, found.mean[found.finite].mean(0),
               found.maximum[found.finite].mean(0))
    return [[record.name, *row]
            for row in zip(*(column.tolist() for column in columns))]
