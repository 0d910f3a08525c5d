"""Models inside others."""
from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside DDP, averaged (EMA) and test-time augmented models."""
    # Seconds to import, which those who only look for blocks need not wait.
    from mmengine.model import (
        BaseAveragedModel,
        BaseTTAModel,
        is_model_wrapper,
    )
    while is_model_wrapper(model) or isinstance(
            model, (BaseAveragedModel, BaseTTAModel)):
        model = model.get_submodule('module')
    return model
