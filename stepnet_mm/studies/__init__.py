"""Many trainings as one study: what runs, where it stands, what came out.

A study file (study.py) lists methods and seeds, each of which is a run
(run.py) in a folder of its own. checks.py looks for what would fail,
runner.py trains and measures by the tools, one process each, with a share of
the machine (slots.py), or slurm_array.py submits the trainings. progress.py
says where a run stands, from its locks and logs (training_log.py), view.py
shows it; method_times.py says how long a method takes that was not run.
outcome.py makes of what came out one line of the records (records.py);
checkpoints.py says which weights nobody needs after that.
statistics.py compares these, tables.py and page.py write what comes out,
visualization/study_figures.py draws it.

May import: analysis, config, launch, recording, safe_loading, stiffness,
utils.
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
