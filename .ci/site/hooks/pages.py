"""MkDocs hook: pages written for the repository become pages of the site.

Links between them are relative to where they lie in the repository. Here each
gets the place of its target on the site; what is no page, such as a module,
is shown there as a page of code. Links to what does not exist stay as they
are, and strict mode stops at them.
"""
import logging
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

log = logging.getLogger('mkdocs.hooks.pages')
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / 'docs'
#: Pages that lie outside docs/ -> their place on the site.
OUTSIDE = {
    'README.md': 'index.md',
    'README_zh-CN.md': 'zh/index.md',
    'CHANGELOG.md': 'changelog.md',
    'CONTRIBUTING.md': 'contributing.md',
    'configs/README.md': 'configs.md',
}
CODE = re.compile(r'(^ *```.*?^ *```$|`[^`\n]+`)', re.M | re.S)
#: A link that shows a page's name, [studies.md](studies.md).
NAME = re.compile(r'\[([\w./-]+\.md)\](?=\(([^)\s"#:]+))')
LINK = re.compile(r'(\]\()([^)\s"#:]+)(?=[)\s#])')
HTML_LINK = re.compile(r'(\b(?:src|href|srcset)=")([^"#:]+)(?=["#])')
LANGUAGES = {'.py': 'python', '.sh': 'bash', '.yml': 'yaml', '.jsonl': 'json'}


def on_files(files, config):
    """Add the pages outside docs/ and the code that pages link to."""
    for name, uri in OUTSIDE.items():
        if (ROOT / name).exists():
            files.append(File.generated(
                config, uri, abs_src_path=str(ROOT / name)))
        else:
            log.warning('%s: expected in the repository, got no file', name)
    files.append(File.generated(
        config, 'site.css', abs_src_path=str(ROOT / '.ci/site/site.css')))
    for path in sorted(_linked_code(files)):
        files.append(File.generated(
            config, _uri(path), content=_page_of_code(path)))
    return files


def _linked_code(files) -> set[Path]:
    return {path for file in files.documentation_pages()
            for _, link in LINK.findall(_prose(file.content_string))
            if (path := _target(file, link)) and _is_code(path)}


def _prose(text: str) -> str:
    return ''.join(CODE.split(text)[::2])


def _source(file) -> Path:
    """Where a page's file, by its place on the site, is in the repository."""
    return {uri: ROOT / name for name, uri in OUTSIDE.items()}.get(
        file.src_uri, DOCS / file.src_uri)


def _target(file, link: str) -> Path | None:
    path = Path(os.path.normpath(_source(file).parent / link))
    return path if path.is_file() and path.is_relative_to(ROOT) else None


def _is_code(path: Path) -> bool:
    return not path.is_relative_to(DOCS) and _name(path) not in OUTSIDE


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _uri(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return OUTSIDE.get(_name(path), f'sources/{_name(path)}.md')


def _page_of_code(path: Path) -> str:
    language = LANGUAGES.get(path.suffix, 'text')
    return (f'# {_name(path)}\n\n````{language}\n'
            f'{path.read_text().rstrip()}\n````\n')


def on_page_markdown(markdown, page, config, files):
    """Have the links lead to their targets' places on the site."""
    if page.file.src_uri in ('index.md', 'zh/index.md'):
        page.meta['hide'] = ['navigation']
    parts = CODE.split(markdown)
    parts[::2] = [_with_links(part, page.file, files) for part in parts[::2]]
    return ''.join(parts)


def _with_links(text: str, file, files) -> str:
    here = PurePosixPath(file.src_uri).parent

    def title(match):
        path = _target(file, match[2])
        return f'[{_title(path)}]' if path else match[0]

    def relative(match):
        path = _target(file, match[2])
        return match[1] + (os.path.relpath(_uri(path), here) if path
                           else match[2])

    def url(match):  # MkDocs leaves HTML as it is
        path = _target(file, match[2])
        found = path and files.get_file_from_path(_uri(path))
        if not found:
            log.warning('%s: no file for %s"', file.src_uri, match[0])
            return match[0]
        return match[1] + get_relative_url(found.url, file.url)

    return HTML_LINK.sub(url, LINK.sub(relative, NAME.sub(title, text)))


def _title(path: Path) -> str:
    """A page's first heading; elsewhere its name says what it is."""
    found = re.search('^# (.*)', path.read_text(), re.M)
    return found[1] if found else path.name
