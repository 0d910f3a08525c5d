"""Records of studies that nobody ran."""
from study_records import StudyRecord

DEFINITIONS = dict(residual=1., output=.4, update=.5)


def made_run(method='plain', seed=0, last=50., tns=1., step=None, epochs=4,
             **fields):
    """A run whose accuracy rises by a point an epoch to ``last``.

    TNS falls with every epoch; two blocks in each of two stages, with a mean
    Δt of ``step`` in the first stage and half of it in the second.
    """
    steps = [step and step / stage for stage in (1, 1, 2, 2)]
    return StudyRecord(**{**dict(
        study='made', method=method, seed=seed, settings='s', config=method,
        dataset='FolderCIFAR10 a/b', metric='accuracy/top1',
        epochs=[made_epoch(i, last - epochs + i, tns, step)
                for i in range(1, epochs + 1)],
        last=last, best=last and last + 1,
        stiffness={
            name: dict(
                tns=scale * tns, tns_median=.5 * scale * tns, nsi=2 * tns,
                samples=100, lost=0,
                blocks=[dict(stage=1 + i // 2, nsi=scale * tns * (i + 1),
                             step=steps[i]) for i in range(4)])
            for name, scale in DEFINITIONS.items()},
        commit='abc', versions=dict(torch='2.0'), machine='a | b, 1 threads',
        cpu_seconds=60., date='2026-11-23'), **fields})


def made_epoch(number, accuracy, tns, step):
    entry = {'epoch': number, 'loss': 1. / number, 'accuracy/top1': accuracy,
             'stiffness_eval/tns': tns / number,
             'stiffness_eval/tns_median': .5 * tns / number}
    for stage in (1, 2):
        for block in (1, 2):
            name = f'backbone.layer{stage}.{block}'
            entry[f'stiffness_eval/nsi/{name}'] = tns * block
            if step:
                entry[f'stiffness_eval/step/{name}'] = step * number / stage
    return entry


def diverged_run(method, seed=0):
    return made_run(method, seed, last=None, epochs=0, diverged=True,
                    stiffness={})


def made_study(methods=5, seeds=3):
    """Methods m0, m1, ...; the higher, the less stiff and the better."""
    return [
        made_run(f'm{i}', seed, 60. + 3 * i + seed * (-1)**i,
                 2. / (i + 1) + .01 * seed, step=.1 * i)
        for i in range(methods) for seed in range(seeds)
    ]


def made_steps(trained=50., per_channel=50., per_block=50., mean=.2):
    """What a record holds where Δt was held fixed."""
    return dict(trained=trained, per_channel=per_channel, per_block=per_block,
                mean=mean, over_samples=.01, over_positions=0.,
                over_channels=.02)
