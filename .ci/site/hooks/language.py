"""MkDocs hook: Chinese pages say so, for fonts and screen readers."""
CHINESE = 'zh/'


def on_post_page(output, page, config):
    """Set the language of a page in Chinese."""
    if page.file.src_uri.startswith(CHINESE):
        return output.replace('<html lang="en"', '<html lang="zh-CN"', 1)
    return output
