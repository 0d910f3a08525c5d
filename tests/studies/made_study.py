"""A runner of the made study, in this process or a fork."""
import threading
import time

from stepnet_mm.studies.records import read_records
from stepnet_mm.studies.runner import StudyRunner


def runner_of(tools, folder, **settings):
    """A StudyRunner; what it says goes into its list `said`."""
    said = []
    runner = StudyRunner(tools, folder / 'results/made.jsonl', say=said.append,
                         **settings)
    runner.said = said
    return runner


def recorded(runner):
    """Key of a run -> its record."""
    return {record.key: record for record in read_records(runner.records)}


def starts_of(run, tool='train'):
    """The process numbers of the tool's starts."""
    path = run.folder / f'{tool}.starts'
    return path.read_text().split() if path.exists() else []


def once(condition, do, seconds=20):
    """In a thread: wait for a condition, then do something."""

    def wait():
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(.02)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread
