"""Records self-attention maps while a model trains."""
import torch
from mmengine.dist import master_only
from mmengine.registry import HOOKS

from ..attention import AttentionRecord, attention_path, save_attention
from ..recording import record_attention
from ..recording.probe import sample_inputs
from ..utils.hook_helpers import unwrap
from .measuring_hook import MeasuringHook


@HOOKS.register_module()
class AttentionMapHook(MeasuringHook):
    """Record the heads' attention, and change no bit of the training.

    At the start and every ``interval`` the same images are run in eval mode
    through a network with :class:`RelativeSelfAttention2d` layers. Each
    head's attention of one query pixel of the first image, and each head's
    mean attention distance over query pixels and images, go to
    ``<work_dir>/<run>/attention/<name>_<iteration>.npz``
    (:func:`read_attention_history` reads these files,
    ``tools/analysis/plot.py attention`` draws them). The log gets each
    layer's mean distance, the visualizer also each head's, as ``head1`` and
    so on.

    Args:
        interval (int): epochs (iterations) between measurements. Defaults
            to 1.
        by_epoch (bool): whether ``interval`` counts epochs. Defaults to True.
        query (tuple[int, int], optional): row and column of the query pixel
            in the image as the network takes it. Left out, its middle.
        probe (dict, optional): ``num_samples`` (8), spread over the dataset,
            and ``dataloader``, left out the config's ``val_dataloader``.
        name (str): the first part of file and scalar names, different for
            each of these hooks.

    Raises:
        ValueError: on a wrong argument, or before training if the model has
            no such layers, or the image no such pixel.

    Examples:
        >>> custom_hooks = [dict(type='AttentionMapHook', query=(112, 112))]
    """

    def __init__(self, interval: int = 1, by_epoch: bool = True,
                 query: tuple | None = None, probe: dict | None = None,
                 name: str = 'attention'):
        super().__init__(interval, by_epoch, probe or {}, name)
        self.query = query
        self._inputs = torch.empty(0)

    def before_train(self, runner) -> None:
        """Take the images, and record the start of a training."""
        super().before_train(runner)
        self._inputs = sample_inputs(
            unwrap(runner.model), self._probe_loader(runner),
            self.probe_cfg.get('num_samples', 8)).cpu()
        record = self._record(runner, runner.iter)  # a resumed run's: a check
        if runner.iter == 0:
            self._keep(runner, record)

    def _measure(self, runner) -> None:
        self._keep(runner, self._record(runner, runner.iter + 1))

    def _record(self, runner, iteration: int) -> AttentionRecord:
        model = unwrap(runner.model)
        inputs = self._inputs.to(next(model.parameters()).device)
        name = runner.experiment_name.removesuffix(f'_{runner.timestamp}')
        return record_attention(model, inputs, self.query,
                                iteration=iteration, name=name)

    @master_only
    def _keep(self, runner, record: AttentionRecord) -> None:
        save_attention(record, attention_path(
            runner.log_dir, self.name, record.iteration))
        means = {layer.name: layer.mean_distance for layer in record.layers}
        numbers = '  '.join(f'{k}: {v:.4g}' for k, v in means.items())
        runner.logger.info(
            f'Iter(train) [{record.iteration}/{runner.max_iters}]  '
            f'mean attention distance (px)  {numbers}')
        heads = {f'{layer.name}/head{i}': value for layer in record.layers
                 for i, value in enumerate(layer.distance, 1)}
        self._add_scalars(runner, {**means, **heads}, record.iteration)
