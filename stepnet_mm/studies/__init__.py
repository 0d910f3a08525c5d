"""Many trainings as one study: what they are, and what came out.

A study file (study.py) lists methods and seeds, each of which is a run
(run.py) in a folder of its own; tools/studies trains and measures them.
outcome.py makes of what came out, and of the logs (training_log.py), one line
of the records (records.py). statistics.py compares these, tables.py and
page.py write what comes out, visualization/study_figures.py draws it.

May import: analysis, config, launch, recording, safe_loading, stiffness,
utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__,
    dict(
        page=['study_page'],
        records=['StudyRecord', 'append_record', 'read_records'],
        run=['StudyRun'],
        study=['Study', 'StudyMethod', 'read_study']))
