"""Refuses compiled models, which ignore hooks added later."""
from torch import nn


def refuse_compiled(model: nn.Module) -> None:
    """Raise a ValueError if a part of a model is compiled already."""
    for name, module in model.named_modules():
        if hasattr(module, '_orig_mod') or getattr(
                module, '_compiled_call_impl', None) or hasattr(
                    vars(module).get('forward'), '_torchdynamo_orig_callable'):
            raise ValueError(
                f'{name or type(module).__name__}: expected a module that is '
                'not compiled, got a compiled one, which does not see hooks '
                'that come later; enter the recorder before torch.compile, '
                'or measure without it')
