"""A model of the mm libraries as a function of its images alone."""
from typing import Any

import torch
from torch import Tensor, nn


class Forward(nn.Module):
    """The tensor mode of a model as a function of the images alone.

    Args:
        model (BaseModel): a classifier or a detector.
        samples (list): a data sample for each image.
    """

    def __init__(self, model: nn.Module, samples: list):
        super().__init__()
        self.model = model
        self.samples = samples

    def forward(self, images: Tensor):
        """(N, C, H, W) -> the tensors of the heads."""
        return self.model(images, self.samples, mode='tensor')

    def loss(self, images: Tensor) -> Tensor:
        """(N, C, H, W) -> the loss, of a model in training mode."""
        model: Any = self.model
        return model.parse_losses(
            model(images, self.samples, mode='loss'))[0]

    @torch.no_grad()
    def check(self, images: Tensor) -> None:
        """Run the model once.

        Raises:
            ValueError: if it does not take images of this size.
        """
        try:
            self(images)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f'image_size: expected one that {type(self.model).__name__} '
                f'takes, got images of shape {tuple(images.shape)}, (N, C, H, '
                f'W); choose another --image-size: {error}') from error
