"""Many trainings as one study: what runs, where it stands, what came out.

A study file (study.py) lists methods and seeds; each run (run.py) is a folder
of its own, trained and measured by the tools, one process each (runner.py);
progress.py reads its folder, training_log.py its losses; what is done is one
line of a file (records.py). statistics.py compares these, tables.py and
page.py write what comes out, visualization/study_figures.py draws it.

May import: analysis, config, stiffness, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        page=['study_page'],
        progress=['RunState', 'state_of'],
        records=['StudyRecord', 'append_record', 'read_records'],
        run=['StudyRun'],
        runner=['StudyRunner'],
        study=['Study', 'StudyMethod', 'read_study']))
