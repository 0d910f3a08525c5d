"""The commit, versions and machine of a run."""
import subprocess

from stepnet_mm.utils import provenance
from stepnet_mm.utils.provenance import revision


def test_a_commit_is_dirty_by_what_a_run_depends_on(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, 'ROOT', tmp_path)

    def git(*words):
        return subprocess.run(
            ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words],
            cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git('init')
    for folder in ('tools', 'docs'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'a').touch()
    git('add', '.')
    git('commit', '-m', 'a')
    commit = git('rev-parse', 'HEAD')[:12]
    (tmp_path / 'docs/a').write_text('changed')
    assert revision() == commit
    (tmp_path / 'tools/new.py').touch()
    assert revision() == f'{commit}-dirty'
    monkeypatch.setenv('PATH', '')
    assert revision() == 'unknown'
    monkeypatch.undo()
    # A repository around it is not this package's.
    monkeypatch.setattr(provenance, 'ROOT', tmp_path / 'tools')
    assert revision() == 'unknown'
