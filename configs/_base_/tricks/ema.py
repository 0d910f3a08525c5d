# mmengine's default momentum. BatchNorm's statistics are averaged too: those
# of the last batches belong to other weights.
ema = dict(type='EMAHook', momentum=2e-4, update_buffers=True)
