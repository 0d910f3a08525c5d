"""What the pages name is there: files, functions, folders, links."""
import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'stepnet_mm'
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md',
         *sorted((ROOT / 'docs').rglob('*.md'))]
#: Pages of what ran at some commit name the files of that commit.
PAST = {ROOT / 'docs/results.md', ROOT / 'docs/faults.md',
        *(ROOT / 'docs/results').glob('*.md')}
ARCHITECTURE = (ROOT / 'docs/architecture.md').read_text()
PAPER_MAP = (ROOT / 'docs/paper_map.md').read_text()
#: What the first paper numbers, and the last number of each.
NUMBERED = {'Definition': 3, 'Eq.': 33, 'Fig.': 11, 'Lemma': 1, 'Table': 7,
            'Theorem': 2}
#: What the other pages say in full before they abbreviate it.
FULL = {'NSI': 'neural stiffness ind', 'TNS': 'total neural stiffness'}
#: Pages that a tool writes, or in Chinese.
OTHER = {'arguments.md', 'faults.md', 'cifar10_16px_modules.md',
         'README.zh_CN.md'}
FOLDERS = {path.parent.name for path in PACKAGE.glob('*/__init__.py')}


def named_code(text):
    """(path, name) of each `folder/file.py` or `file.py: name` in a text."""
    spans = re.findall(r'`([\w/*]+\.(?:py|sh|yml))(?:: ([\w.]+))?`', text)
    return [(path, name) for path, name in spans if '/' in path or name]


def files(path):
    """Files by their path from the root or under the package."""
    found = (p for root in (ROOT, PACKAGE) for p in root.glob(path))
    return [*filter(Path.is_file, found)]


def find(path):
    """The first of :func:`files`, or None."""
    return next(iter(files(path)), None)


@lru_cache(None)
def definitions(path):
    """Names of a file's classes, functions and methods."""

    def visit(body, prefix=''):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f'{prefix}{node.name}.')

    return set(visit(ast.parse(path.read_text()).body))


def is_there(path, name):
    file = find(path)
    return file is not None and (not name or name in definitions(file))


def sections(text):
    """Heading -> what stands below it."""
    parts = re.split(r'^## (.*)\n', text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def rows(text):
    """The cells of each row of a text's tables, without their heads."""
    lines = re.findall(r'^\| (.*) \|$', text, re.M)
    return [[cell.strip() for cell in line.split('|')] for line in lines
            if not line.startswith('item ')]


def numbers(kind, text):
    """What the first cells of its rows count: Eq. of `| Eq. 18, 21 |`."""
    lists = re.findall(rf'{re.escape(kind)} (\d+(?:, \d+)*)',
                       '\n'.join(cells[0] for cells in rows(text)))
    return sorted(int(n) for found in lists for n in found.split(', '))


def anchors(text):
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r'^#+ (.*)', without_code(text), re.M)
    return {re.sub(r'[^\w\- ]', '', h.lower()).replace(' ', '-')
            for h in headings}


def without_code(text):
    return re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S)


def relative_links(text):
    links = re.findall(r'\]\(([^)\s]+)\)', without_code(text))
    return [link for link in links if not re.match(r'\w+:', link)]


def leads_somewhere(page, link):
    path, _, anchor = link.partition('#')
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (
        not anchor or anchor in anchors(target.read_text()))


def in_full_at_first(text, short):
    """Whether `short`, if it is there, first stands beside its words."""
    text = ' '.join(without_code(text).split())
    found = re.search(rf'\b{short}\b', text)
    words = text.lower().find(FULL[short])
    return not found or 0 <= words < found.start() + len('**NSI**, the ')


def commands(text):
    """A page's commands, each in one line."""
    return [line for line in re.sub(r'\\\n\s*', '', text).splitlines()
            if 'CONFIG' in line or 'run STUDY' in line
            or line.startswith(('sbatch', 'python'))]


def may_import(folder):
    text = ast.get_docstring(
        ast.parse((PACKAGE / folder / '__init__.py').read_text()))
    return FOLDERS & set(re.findall(
        r'\w+', re.search(r'^May import: ([^.]*)\.$', text, re.M)[1]))


def drawn_arrows():
    arrows = dict.fromkeys(FOLDERS, set())
    for below, above in re.findall(r'^  ([\w &]+) --> (\w+)$', ARCHITECTURE,
                                   re.M):
        arrows[above] = set(below.split(' & '))
    return arrows


def test_the_checks_find_what_is_missing():
    assert named_code('`a/b.py: C.d`, `b.py`, `b.py: c` and a/b.py') == [
        ('a/b.py', 'C.d'), ('b.py', 'c')]
    assert is_there('steps/base.py', 'StepSize.forward')
    assert is_there('tools/train.py', '')
    assert not is_there('steps/base.py', 'StepSize.backward')
    assert not is_there('steps/gone.py', '')
    assert named_code('`configs/*/b_*.yml`') == [('configs/*/b_*.yml', '')]
    assert is_there('configs/vit/vit_plain_*.py', '')
    assert not is_there('configs/vit/vit_gone_*.py', '')
    text = '| item | Eq. 1 |\n| Lemma 1, Eq. 4, 12 | Eq. 3 |\n| Eq. 2 | |'
    assert numbers('Eq.', text) == [2, 4, 12]
    page = ROOT / 'docs/stiffness.md'
    assert leads_somewhere(page, 'results/detection.md#the-demo')
    assert not leads_somewhere(page, 'results/detection.md#nowhere')
    assert not leads_somewhere(page, 'gone.md')


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_code_that_a_page_names_exists(page):
    if page not in PAST:
        named = named_code(page.read_text())
        assert not [code for code in named if not is_there(*code)]


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = relative_links(page.read_text())
    assert not [link for link in links if not leads_somewhere(page, link)]


def test_no_page_names_what_does_not_ship():
    texts = [page.read_text() for page in PAGES]
    assert not [text for text in texts if re.search(
        r'DESIGN\.md|\bshared/', text)]


@pytest.mark.parametrize('short', FULL)
def test_a_page_says_in_full_what_it_abbreviates(short):
    assert in_full_at_first('The total neural stiffness (TNS) ...', 'TNS')
    assert not in_full_at_first('TNS is of a network ...', 'TNS')
    assert not [page.name for page in PAGES if page.name not in OTHER
                and not in_full_at_first(page.read_text(), short)]


def test_no_page_counts_by_a_list_that_a_reader_does_not_have():
    texts = {page.name: page.read_text() for page in PAGES}
    assert not [name for name, text in texts.items() if re.search(
        r"\bthe issue\b|\bissue's\b|\b[Ii]tems? \d|By item", text)]


def test_a_job_of_slurm_asks_for_processors():
    jobs = [line for page in PAGES for line in commands(page.read_text())
            if re.search(r'sbatch .*slurm_submit\.sh|--slurm [A-Za-z]', line)]
    assert len(jobs) > 6
    assert not [line for line in jobs if '--cpus-per-task' not in line]


def test_code_that_is_quoted_as_an_example_is_this_code():
    text = (ROOT / 'CONTRIBUTING.md').read_text()
    quoted = re.findall(r'\(`([\w/.]+)`\):\n\n```python\n(.*?)```', text, re.S)
    assert len(quoted) == text.count('```python') == 2
    assert not [path for path, code in quoted
                if code not in (ROOT / path).read_text()]


def test_the_map_has_all_folders_and_arrows():
    table = re.findall(r'^\| `(\w+)/` \|', ARCHITECTURE, re.M)
    assert len(table) == len(set(table)) and set(table) == FOLDERS
    assert drawn_arrows() == {name: may_import(name) for name in FOLDERS}


def test_walks_say_how_many_files_they_take():
    walks = {heading: text for heading, text in sections(ARCHITECTURE).items()
             if 'Files to open: ' in text}
    assert len(walks) == 5
    for heading, text in walks.items():
        steps, _, rest = text.partition('Files to open: ')
        steps = steps[steps.index('\n1. '):]
        files = {path for path, _ in named_code(steps)
                 if path.endswith('.py')}
        assert int(re.match(r'\d+', rest)[0]) == len(files), heading


@pytest.mark.parametrize('kind', NUMBERED)
def test_the_paper_map_has_every_number_once(kind):
    first = sections(PAPER_MAP)['Attention as a step size']
    assert numbers(kind, first) == [*range(1, NUMBERED[kind] + 1)]


def test_the_paper_map_has_the_appendices_and_the_second_papers_figures():
    first, second = sections(PAPER_MAP).values()
    letters = re.findall(r'^\| Appendix (\w)', first, re.M)
    assert letters == [*'ABCDEFG']
    assert numbers('Fig.', second) == [1, 2, 3, 4]


def test_every_file_of_the_paper_map_is_written_so_that_it_is_checked():
    spans = re.findall(r'`[^`]*\.(?:py|sh|yml)\b[^`]*`', PAPER_MAP)
    assert len(spans) == len(named_code(PAPER_MAP)) > 100


def test_a_pattern_of_the_paper_map_has_as_many_files_as_it_says():
    patterns = re.findall(r'`([\w/]*\*[^`]*)`(?: \((\d+)\))?', PAPER_MAP)
    patterns = [found for found in patterns if '/' in found[0]]
    assert len(patterns) > 20
    assert not [(path, len(files(path))) for path, count in patterns
                if len(files(path)) != int(count or 0)]


def test_a_row_of_the_paper_map_names_code_or_says_that_there_is_none():
    for item, _, where, remark in rows(PAPER_MAP):
        assert named_code(where) or 'below' in where or (
            where.startswith('nothing') and remark), item
