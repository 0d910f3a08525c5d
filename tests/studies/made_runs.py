"""Records of studies that nobody ran."""
from study_records import StudyRecord

DEFINITIONS = dict(residual=1., output=.4, update=.5)


def made_run(method='plain', seed=0, last=50., tns=1., step=None, **fields):
    """A run whose accuracy rises by a point an epoch to ``last``.

    Two blocks in each of two stages, with a mean Δt of ``step`` in the first
    stage and half of it in the second.
    """
    return StudyRecord(**{**dict(
        study='made', method=method, seed=seed, settings='s', config=method,
        dataset='FolderCIFAR10 a/b', metric='accuracy/top1',
        epochs=[{'epoch': i, 'loss': 1. / i, 'accuracy/top1': last - 4 + i}
                for i in (1, 2, 3, 4)],
        last=last, best=last + 1,
        stiffness={
            name: dict(
                tns=scale * tns, tns_median=.5 * scale * tns, nsi=2 * tns,
                samples=100, lost=0,
                blocks=[dict(stage=1 + i // 2, nsi=scale * tns * (i + 1),
                             step=step and step / (1 + i // 2))
                        for i in range(4)])
            for name, scale in DEFINITIONS.items()},
        commit='abc', versions=dict(torch='2.0'), machine='a | b, 1 threads',
        cpu_seconds=60., date='2026-11-23'), **fields})


def diverged_run(method, seed=0):
    return StudyRecord(
        study='made', method=method, seed=seed, settings='s', config=method,
        dataset='FolderCIFAR10 a/b', metric='accuracy/top1', diverged=True,
        date='2026-11-23')


def made_steps(trained=50., per_channel=50., per_block=50., mean=.2):
    """The field of a record where Δt was held fixed."""
    return dict(trained=trained, per_channel=per_channel, per_block=per_block,
                mean=mean, over_samples=.01, over_positions=0.,
                over_channels=.02)
