"""MkDocs hook: equations become pictures, which need no script to be seen."""
import html
import logging
import re

import ziamath
from latex2mathml.converter import convert

log = logging.getLogger('mkdocs.hooks.equations')
#: What arithmatex makes of $...$ and of $$...$$.
EQUATION = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
SIZE = 16  # what one em is drawn with
ziamath.config.svg2 = False  # no ids, which would collide on a page


def on_page_content(content, page, config, files):
    """Replace the TeX of a page."""

    def picture(match):
        tex = ' '.join(html.unescape(match[2]).split())
        if re.search(r'>\\', convert(tex)):
            log.warning('%s: a command that is not known in %s',
                        page.file.src_uri, tex)
        return _picture(match[1], tex)

    return EQUATION.sub(picture, content)


def _picture(tag: str, tex: str) -> str:
    """An SVG in the size and colour of the text around it."""
    equation = ziamath.Latex(
        tex, size=SIZE, inline=tag == 'span', color='currentColor')
    svg = re.sub(r'(width|height)="([\d.]+)"', lambda found:
                 f'{found[1]}="{float(found[2]) / SIZE:.3f}em"',
                 equation.svg(), count=2)
    below = (equation.getyofst() - 1) / SIZE  # its margin is 1
    return (f'<{tag} class="equation" role="img" '
            f'aria-label="{html.escape(tex)}">'
            + svg.replace('<svg ', f'<svg style="vertical-align: {below:.3f}'
                          'em" ', 1) + f'</{tag}>')
