"""Both READMEs are short and say the same: commands, links, headings."""
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[1]
ENGLISH, CHINESE = 'README.md', 'README_zh-CN.md'


def text(name):
    return (ROOT / name).read_text()


def parts(name):
    """What both languages share: code, links, tables, levels of headings."""
    found = text(name)
    prose = re.sub(r'^```.*?^```$', '', found, flags=re.M | re.S)
    links = [link.replace('.zh_CN', '')
             for link in re.findall(r'\]\(([^)]+)\)', prose)
             if link not in (ENGLISH, CHINESE)]
    return dict(
        code=re.findall(r'^```.*?^```$', found, flags=re.M | re.S),
        names=sorted(re.findall(r'`([^`\n]+)`', prose)),
        links=links,
        tables=re.findall(r'^\|.*|^<!--.*-->$', found, re.M),
        headings=[len(marks) for marks in re.findall(r'^(#+) ', prose, re.M)])


def test_it_is_short():
    assert len(text(ENGLISH).splitlines()) <= 110


@pytest.mark.parametrize('part', list(parts(ENGLISH)))
def test_the_languages_are_in_step(part):
    english, chinese = (parts(name)[part] for name in (ENGLISH, CHINESE))
    assert english and english == chinese


def test_each_names_the_other():
    assert f']({CHINESE})' in text(ENGLISH)
    assert f']({ENGLISH})' in text(CHINESE)
