"""MkDocs hook: pages written for the repository become pages of the site.

Links between them are relative to where they lie in the repository. Here each
gets the place of its target on the site; what is no page, such as a module,
is shown there as a page of code. Links to what does not exist stay as they
are, and strict mode stops at them.
"""
import json
import logging
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url
from notebooks import as_markdown

log = logging.getLogger('mkdocs.hooks.pages')
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / 'docs'
#: Files that lie outside docs/ -> their place on the site.
OUTSIDE = {
    'README.md': 'index.md',
    'README_zh-CN.md': 'zh/index.md',
    'CHANGELOG.md': 'changelog.md',
    'CONTRIBUTING.md': 'contributing.md',
    'configs/README.md': 'configs.md',
    '.ci/site/site.css': 'site.css',
}
CODE = re.compile(
    r'(^ *````.*?^ *````$|^ *```.*?^ *```$|`[^`\n]+`)', re.M | re.S)
#: A link that shows a page's name, [studies.md](studies.md).
NAME = re.compile(r'\[([\w./-]+\.md)\](?=\(([^)\s"#:]+))')
LINK = re.compile(r'(\]\()([^)\s"#:]+)(?=[)\s#])')
HTML_LINK = re.compile(r'(\b(?:src|href|srcset)=")([^"#:]+)(?=["#])')
#: In the name of a page in Chinese, tutorials/NAME.zh_CN.ipynb.
CHINESE = '.zh_CN'
LANGUAGES = {'.py': 'python', '.sh': 'bash', '.yml': 'yaml', '.jsonl': 'json'}


def on_files(files, config):
    """Add what lies outside docs/, notebooks, and code that pages link to."""
    for name in OUTSIDE:
        if (ROOT / name).exists():
            _add(files, config, ROOT / name, abs_src_path=str(ROOT / name))
        else:
            log.warning('%s: expected in the repository, got no file', name)
    for path in sorted(DOCS.rglob('[!.]*.ipynb')):
        _add_notebook(files, config, path)
    for path in sorted(DOCS.rglob(f'*{CHINESE}.md')):
        files.remove(files.get_file_from_path(_name(path, DOCS)))
        _add(files, config, path, abs_src_path=str(path))
    for path in sorted(_linked_code(files)):
        _add(files, config, path, content=_page_of_code(path))
    return files


def _add(files, config, path: Path, **content) -> None:
    files.append(File.generated(config, _uri(path), **content))


def _add_notebook(files, config, path: Path) -> None:
    files.remove(files.get_file_from_path(_name(path, DOCS)))
    place = PurePosixPath(_uri(path))
    text, pictures = as_markdown(json.loads(path.read_text()), place.stem)
    _add(files, config, path, content=text)
    for name, content in pictures.items():
        files.append(File.generated(
            config, str(place.with_name(name)), content=content))


def _linked_code(files) -> set[Path]:
    return {path for file in files.documentation_pages()
            for _, link in LINK.findall(_prose(file.content_string))
            if (path := _target(file, link)) and _is_code(path)}


def _prose(text: str) -> str:
    return ''.join(CODE.split(text)[::2])


def _is_code(path: Path) -> bool:
    return not path.is_relative_to(DOCS) and _name(path) not in OUTSIDE


def _target(file, link: str) -> Path | None:
    """The file of the repository that a page's link leads to."""
    path = Path(os.path.normpath(_folder(file.src_uri) / link))
    return path if path.is_file() and path.is_relative_to(ROOT) else None


def _folder(uri: str) -> Path:
    """The folder of the repository in which a page of the site lies."""
    for name, place in OUTSIDE.items():
        if place == uri:
            return (ROOT / name).parent
    return (DOCS / uri.removeprefix('zh/')).parent


def _name(path: Path, folder: Path = ROOT) -> str:
    return path.relative_to(folder).as_posix()


def _uri(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if not path.is_relative_to(DOCS):
        return OUTSIDE.get(_name(path), f'sources/{_name(path)}.md')
    name = _name(path, DOCS)
    if path.suffix == '.ipynb':
        name = path.with_suffix('.md').relative_to(DOCS).as_posix()
    return f'zh/{name.replace(CHINESE, "")}' if CHINESE in name else name


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
