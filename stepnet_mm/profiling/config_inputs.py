"""A config's network with random weights, and random images for it."""
import torch
from mmengine.config import Config
from torch import Tensor, nn

from ..config import EVALUATION, TRAIN, library_of
from ..config.parts import all_dicts
from ..launch.entry import build_model
from .forward import Forward

#: The default image edge in px, where a config names none.
EDGE = 224


def image_size(cfg: Config) -> tuple[tuple[int, int], str]:
    """Height and width in px of a config's images, and where they stand.

    It is the last crop or resize of the first pipeline that has one: test,
    validation, training.
    """
    for name in EVALUATION[::-1] + TRAIN:
        for transform in reversed(_transforms(cfg.get(name) or {})):
            edges = transform.get('crop_size') or transform.get('scale')
            if isinstance(edges, int):
                return (edges, edges), name
            if isinstance(edges, (list, tuple)) and all(
                    isinstance(edge, int) for edge in edges):
                width, height = edges
                return (height, width), name
    return (EDGE, EDGE), 'default'


def image_channels(cfg: Config) -> int:
    """Channels of a config's images, as its backbone takes them."""
    backbones = [node['backbone'] for node in all_dicts(cfg.model)
                 if isinstance(node.get('backbone'), dict)]
    return backbones[0].get('in_channels', 3) if backbones else 3


def prepare(cfg: Config, size: tuple[int, int], batch_size: int,
            device: torch.device) -> tuple[Forward, Tensor]:
    """A network in eval mode, and random images for it.

    Its ``init_cfg`` is not followed: nothing is loaded or downloaded.

    Args:
        cfg (Config): of mmdet or mmpretrain.
        size (tuple[int, int]): height and width of the images, px.
        batch_size (int): N.
        device (torch.device): where both go.

    Returns:
        tuple: the network, and images (N, C, H, W), padded as it asks.
    """
    model = build_model(cfg, device=device, start=False)
    images, samples = _make_inputs(
        cfg, model, (image_channels(cfg), *size), batch_size, device)
    return Forward(model, samples), images


def _transforms(node) -> list:
    """The pipeline of the innermost dataset of a data loader."""
    node = node if isinstance(node, dict) else {}  # a list of loaders
    while 'pipeline' not in node and isinstance(node.get('dataset'), dict):
        node = node['dataset']
    return node.get('pipeline') or []


def _make_inputs(cfg: Config, model: nn.Module, shape, batch_size: int,
                 device: torch.device) -> tuple[Tensor, list]:
    if library_of(cfg) == 'mmpretrain':
        return _classified_images(shape, batch_size, device)
    return _images_with_boxes(model, shape, batch_size, device)


def _classified_images(shape, batch_size: int, device: torch.device):
    from mmpretrain.structures import DataSample
    samples = [DataSample().set_gt_label(0) for _ in range(batch_size)]
    return (torch.randn(batch_size, *shape, device=device),
            [sample.to(device) for sample in samples])


def _images_with_boxes(model, shape, batch_size: int, device: torch.device):
    from mmdet.testing import demo_mm_inputs
    packed = demo_mm_inputs(
        batch_size, shape,
        num_items=[8] * batch_size,
        with_mask=model.with_mask,
        device=device)
    for sample in packed['data_samples']:
        sample.gt_instances.labels.zero_()
    data = model.data_preprocessor(packed)
    return data['inputs'], data['data_samples']
