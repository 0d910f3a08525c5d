"""MkDocs hook: what pages in Chinese need."""
import re

FOLDER = 'zh/'
CHARACTER = r'[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]'
#: A line break within a sentence, which a browser shows as a space.
BREAK = re.compile(rf'^(?!#)(.*{CHARACTER})\n *(?={CHARACTER})', re.M)


def on_page_markdown(markdown, page, config, files):
    """Join a sentence's lines."""
    if page.file.src_uri.startswith(FOLDER):
        return BREAK.sub(r'\1', markdown)
    return markdown


def on_post_page(output, page, config):
    """Name the language, for fonts and screen readers."""
    if page.file.src_uri.startswith(FOLDER):
        return output.replace('<html lang="en"', '<html lang="zh-CN"', 1)
    return output
