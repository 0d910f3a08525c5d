"""Whether all text of a figure can be read, and nothing hides its data."""
import itertools
from unittest import mock

from matplotlib.text import Text

from stepnet_mm.visualization import as_image

#: What a box may lose to rounding, and an accent may reach out, in px.
SLACK = 2


def written(figure) -> list:
    """Each text that drawing the figure puts on paper, with its box in px."""
    drawn, draw = {}, Text.draw

    def spy(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        draw(text, renderer)

    with mock.patch.object(Text, 'draw', spy):
        as_image(figure)
    return [(text.get_text(), text.get_window_extent())
            for text in drawn.values()]


def overlapping(texts) -> list:
    """Pairs of written texts that lie over each other."""
    return [(one, other) for (one, a), (other, b)
            in itertools.combinations(texts, 2) if _overlap(a, b)]


def _overlap(a, b) -> bool:
    return (min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK
            and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK)


def cut_off(figure, texts) -> list:
    """Written texts that reach out of the picture."""
    edge = figure.bbox
    return [text for text, box in texts
            if box.x0 < edge.x0 - SLACK or box.x1 > edge.x1 + SLACK
            or box.y0 < edge.y0 - SLACK or box.y1 > edge.y1 + SLACK]


def hidden(figure) -> list:
    """Panels of a drawn figure that a legend lies over."""
    own = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    boxes = [legend.get_window_extent() for legend in [*figure.legends, *own]]
    return [axes.get_title() or axes.get_ylabel() for axes in figure.axes
            for box in boxes if _overlap(axes.get_window_extent(), box)]


def assert_legible(figure) -> None:
    """Nothing is cut, nothing lies over text, no legend over data."""
    texts = written(figure)
    assert texts
    found = overlapping(texts), cut_off(figure, texts), hidden(figure)
    assert found == ([], [], []), found
