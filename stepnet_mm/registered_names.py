"""What the package registers in mmengine: a new class has its line here.

Backbones and datasets register in a library, by the modules that bind to it.

A name says where its object is; :mod:`.registration` imports that module
when the name is asked for.
"""

#: mmengine's root registries, seen from every scope -> module -> its names.
NAMES: dict[str, dict[str, tuple[str, ...]]] = dict(
    MODELS={
        'stepnet_mm.steps': (
            'CBAMAttention', 'ConstantStep', 'ECAAttention', 'FCAAttention',
            'IEBN', 'MaxPoolStepAdaptor', 'SEAttention', 'SEMAttention',
            'SGEAttention', 'SRMAttention', 'SoftmaxStepAdaptor',
            'StepAdaptor', 'SumStepAdaptor', 'TimmAttention',
            'UnnormalizedStepAdaptor'),
        'stepnet_mm.attention.self_attention': ('RelativeSelfAttention2d', ),
    },
    HOOKS={
        'stepnet_mm.resume.atomic_checkpoint_hook': (
            'AtomicCheckpointHook', ),
        'stepnet_mm.hooks.attention_map_hook': ('AttentionMapHook', ),
        'stepnet_mm.hooks.broken_image_hook': ('BrokenImageHook', ),
        'stepnet_mm.hooks.load_report_hook': ('LoadReportHook', ),
        'stepnet_mm.resume.non_finite_loss_hook': ('NonFiniteLossHook', ),
        'stepnet_mm.resume.preemption_hook': ('PreemptionHook', ),
        'stepnet_mm.hooks.tns_hook': ('TNSHook', ),
        'stepnet_mm.hooks.tns_metric': ('TNSMetricHook', ),
    },
    LOOPS={
        'stepnet_mm.resume.resumable_loops': (
            'ResumableEpochBasedTrainLoop', 'ResumableIterBasedTrainLoop'),
    },
    METRICS={'stepnet_mm.hooks.tns_metric': ('TNSMetric', )},
    WEIGHT_INITIALIZERS={'stepnet_mm.models.last_norm_init': ('LastNorm', )},
    TRANSFORMS={
        'stepnet_mm.datasets.broken_images': ('LoadIntactImageFromFile', )})

#: Library -> its registries -> the module that binds to it.
BINDINGS = dict(
    mmdet=dict(MODELS='stepnet_mm.models.mmdet_binding'),
    mmseg=dict(MODELS='stepnet_mm.models.mmseg_binding'),
    mmpretrain=dict(
        MODELS='stepnet_mm.models.mmpretrain_binding',
        DATASETS='stepnet_mm.datasets.cifar_stl10'))
