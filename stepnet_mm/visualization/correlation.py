"""TNS against the performance of many runs (Fig. 7)."""
from ..analysis import method_of


def plot_correlation(runs: list, metric: str, title: str | None = None,
                     label: str = 'TNS (Eq. 5)'):
    """Scatter of the metric over TNS, one colour per method.

    Args:
        runs (list[dict]): ``name``, ``tns`` and ``metric`` of each run.
        metric (str): what the metric is called.
        title (str, optional): heading.
        label (str): of the axis of TNS.

    Returns:
        matplotlib.figure.Figure: to save or to show.
    """
    from matplotlib import color_sequences
    from matplotlib.figure import Figure
    figure = Figure(figsize=(7, 5), layout='constrained')
    axes = figure.subplots()
    colors = color_sequences['tab20']
    methods = list(dict.fromkeys(method_of(run['name']) for run in runs))
    for i, method in enumerate(methods):
        own = [run for run in runs if method_of(run['name']) == method]
        axes.scatter([run['tns'] for run in own],
                     [run['metric'] for run in own],
                     color=colors[2 * i % 20 + i // 10 % 2],
                     marker='os^D'[i // 20 % 4],
                     label=method)
    axes.set(xlabel=label, ylabel=metric, title=title)
    axes.grid(alpha=.3)
    axes.legend(fontsize='small', ncols=1 + len(methods) // 16)
    return figure
