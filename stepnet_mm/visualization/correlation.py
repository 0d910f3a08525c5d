"""TNS against the performance of many runs (Fig. 7)."""
from ..analysis import method_of
from .canvas import legend_below, new_figure
from .style import mark, styled


@styled
def plot_correlation(runs: list, metric: str, title: str | None = None,
                     label: str = 'TNS (Eq. 5)'):
    """Scatter of the metric over TNS, a colour and marker per method.

    Args:
        runs (list[dict]): ``name``, ``tns`` and ``metric`` of each run.
        metric (str): what the metric is called.
        title (str, optional): heading.
        label (str): of the axis of TNS.

    Returns:
        matplotlib.figure.Figure: to save or to show.
    """
    methods = list(dict.fromkeys(method_of(run['name']) for run in runs))
    figure = new_figure(7, 5)
    axes = figure.subplots()
    for i, method in enumerate(methods):
        own = [run for run in runs if method_of(run['name']) == method]
        axes.scatter([run['tns'] for run in own],
                     [run['metric'] for run in own], label=method, **mark(i))
    axes.set(xlabel=label, ylabel=metric, title=title)
    legend_below(figure, list(axes.collections))
    return figure
