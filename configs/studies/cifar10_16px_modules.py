"""Table 1 and its controls: CIFAR-10 at 16 px, ResNet-56, 5 epochs.

The controls ask where a gain comes from. A constant Δt, at StepAdaptor's
start, and LayerScale, which learns one a channel from there, damp residuals
without looking at them; zero-initialised last norms do it at the start alone.
SE and ECA start at the same Δt instead of 0.5, StepNet at 1. The schedule
warms up, so three methods do without. `iebn_constant` keeps IEBN's gates
where they start, at 0.27 on every norm but the shortcuts'.
"""
_base_ = './_base_/cifar10_16px.py'

TABLE_1 = ('plain', 'se', 'stepnet', 'eca', 'cbam', 'srm', 'fca', 'iebn',
           'sem')
START = 0.2689414213699951  # sigmoid(-1), where StepAdaptor starts
PLAIN, SE, ECA, STEPNET, IEBN = (
    f'../resnet164/resnet164_{name}_cifar10.py'
    for name in ('plain', 'se', 'eca', 'stepnet', 'iebn'))
NO_WARMUP = [
    dict(type='CosineAnnealingLR', by_epoch=True, end=5, T_max=5,
         convert_to_iter_based=True)
]

methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in TABLE_1
}
methods['iebn']['baseline'] = 'iebn_constant'
methods['fca']['options'] = {
    # The size of its maps, as in the config, or the smallest that it takes.
    'model.backbone.step': [
        dict(type='FCAAttention', dct_size=size, bias=True)
        for size in (16, 8, 7)
    ]
}
methods.update(
    constant=dict(
        config=PLAIN,
        options={
            'model.backbone.step':
            dict(type='ConstantStep', value=START, _delete_=True)
        }),
    layer_scale=dict(
        config=PLAIN,
        options={
            'model.backbone.step':
            dict(type='ConstantStep', value=START, learned=True,
                 _delete_=True)
        }),
    stepnet_from_1=dict(
        config=STEPNET, options={'model.backbone.step.init_step': 1},
        baseline='stepnet'),
    plain_zero_init=dict(
        config=PLAIN,
        options={'model.backbone.zero_init_residual': True},
        seeds=[0, 1]),
    se_from_027=dict(
        config=SE,
        options={'model.backbone.step.init_gate': START},
        seeds=[0, 1],
        baseline='se'),
    eca_from_027=dict(
        config=ECA,
        options={'model.backbone.step.init_gate': START},
        seeds=[0, 1],
        baseline='eca'),
    iebn_constant=dict(
        config=IEBN,
        options={
            'optim_wrapper.paramwise_cfg.custom_keys':
            {'.ie.': dict(lr_mult=0, decay_mult=0)}
        }),
    plain_no_warmup=dict(
        config=PLAIN, options={'param_scheduler': NO_WARMUP}),
    stepnet_no_warmup=dict(
        config=STEPNET, options={'param_scheduler': NO_WARMUP},
        baseline='plain_no_warmup'),
    constant_no_warmup=dict(
        config=PLAIN,
        options={
            'param_scheduler': NO_WARMUP,
            'model.backbone.step':
            dict(type='ConstantStep', value=START, _delete_=True)
        },
        baseline='plain_no_warmup'),
)
for name, method in methods.items():
    if name.endswith('no_warmup'):
        method['pooled'] = False
del name, method
del TABLE_1, START, PLAIN, SE, ECA, STEPNET, IEBN, NO_WARMUP
