"""MkDocs hook: equations become MathML, which browsers draw by themselves."""
import html
import logging
import re

from latex2mathml.converter import convert

log = logging.getLogger('mkdocs.hooks.equations')
#: What arithmatex makes of $...$ and of $$...$$.
EQUATION = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


def on_page_content(content, page, config, files):
    """Replace the TeX of a page."""

    def mathml(match):
        display = {'span': 'inline', 'div': 'block'}[match[1]]
        tex = html.unescape(match[2]).strip()
        found = convert(tex, display=display)
        if re.search(r'>\\', found):  # a command that it does not know
            log.warning('%s: no MathML for %s', page.file.src_uri, tex)
        return found

    return EQUATION.sub(mathml, content)
