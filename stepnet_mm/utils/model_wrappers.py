"""Models inside others."""
from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside DDP and averaged (EMA) models."""
    # Seconds to import, which those who only look for blocks need not wait.
    from mmengine.model import BaseAveragedModel, is_model_wrapper
    while is_model_wrapper(model) or isinstance(model, BaseAveragedModel):
        model = model.get_submodule('module')
    return model
