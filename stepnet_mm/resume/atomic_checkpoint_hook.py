"""Checkpoints written atomically, with the complete state of a training."""
import inspect
import time
from pathlib import Path

from mmengine import dist
from mmengine.dist import is_main_process, master_only
from mmengine.fileio import LocalBackend, get_file_backend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.registry import HOOKS

from ..utils.files import LAST_CHECKPOINT, UNFINISHED, atomic_write
from ..utils.hook_helpers import ReplacedMethod
from .checkpoint_content import add_content_hook, checkpoint_folder, resumes
from .latest_checkpoint import PREEMPTED, absent_parts, latest_checkpoint
from .resumable_loops import ResumableLoop, in_own_validation
from .training_state import accumulating, changed_settings, training_state


@register_backend('atomic_local', force=True)
class AtomicLocalBackend(LocalBackend):
    """mmengine's local backend with atomic writes.

    The content goes to a temporary file, which is flushed to the disk and
    renamed. A kill at any moment leaves the old file or the new one; an
    error, such as of a full disk, the old one.
    """

    def put(self, obj: bytes, filepath) -> None:
        """Write a file."""
        with atomic_write(filepath, len(obj)) as file:
            file.write(obj)


@HOOKS.register_module()
class AtomicCheckpointHook(CheckpointHook):
    """``CheckpointHook`` with atomic writes and bit-for-bit resume.

    The oldest checkpoint, or the best so far, is deleted only when the new
    one is complete, so the disk needs room for ``max_keep_ckpts`` + 1.
    Remote storage keeps its own way of writing.

    A resume without a path takes the last undamaged file, and logs damaged
    ones and settings in which checkpoint and config differ. With one of the
    resumable loops the resumed run is the same bit for bit.

    Args:
        interval (int): epochs (iterations) between checkpoints; -1 saves
            only the last one, and the best with ``save_best``. Defaults to 1.
        **kwargs: the others of ``CheckpointHook``.

    Raises:
        TypeError: before training, on an argument that does not exist.
        ValueError: on a resume, if all checkpoints are damaged.
    """
    # After all hooks that change a state, the schedulers' included.
    priority = 'VERY_LOW'
    backend_args: dict | None

    def __init__(self, interval: int = 1, *args, **kwargs) -> None:
        super().__init__(interval, *args, **kwargs)
        #: Whether each start of this command resumes the last checkpoint.
        self.resumes_last = False
        self._state: dict | None = None

    def before_run(self, runner) -> None:
        """Choose an undamaged checkpoint for a resume."""
        add_content_hook(runner)
        known = inspect.signature(runner.save_checkpoint).parameters
        if wrong := self.args.keys() - known:  # or the first save fails
            raise TypeError(
                'default_hooks.checkpoint: expected arguments of '
                f'CheckpointHook, got {sorted(wrong)}; correct or remove them')
        if not resumes(runner) or self is not first_checkpoint_hook(runner):
            return
        self.resumes_last = (runner._load_from is None
                             or runner.cfg.get('auto_resume', False))
        if not self.resumes_last:
            return
        chosen = [self._choose(runner) if is_main_process() else None]
        dist.broadcast_object_list(chosen)
        if chosen[0] is None:  # the first start, with the weights of load_from
            runner._resume = False
        else:
            runner._load_from = chosen[0]

    def _choose(self, runner) -> str | None:
        path, damaged = latest_checkpoint(
            runner.work_dir, checkpoint_folder(runner, self),
            self.filename_tmpl, self.backend_args)
        for name, why in damaged.items():
            runner.logger.warning(f'checkpoint {name} is damaged: {why}')
        if damaged and path is None:
            raise ValueError(
                f'--resume: expected a whole checkpoint in {runner.work_dir}, '
                f'got damaged ones alone: {damaged}; start anew in another '
                'work_dir, or resume from a copy with --resume PATH')
        if path is None:
            runner.logger.info(
                f'nothing to resume in {runner.work_dir}: training begins')
        return path

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """On a resume hand the state to the loop."""
        if not resumes(runner) or self is not first_checkpoint_hook(runner):
            return
        if lacking := absent_parts(checkpoint):
            raise ValueError(
                '--resume: expected the checkpoint of a training, got one '
                f'without {" and ".join(lacking)}; set load_from for weights')
        loop = runner._train_loop
        if isinstance(loop, ResumableLoop):
            loop.resume_from(checkpoint.get('training_state', {}))
        wanted = ['optimizer']
        if runner.param_schedulers:
            wanted.append('param_schedulers')
        if absent := [key for key in wanted if key not in checkpoint]:
            runner.logger.warning(
                f'the checkpoint has no {" and no ".join(absent)}, as best_*.'
                "pth have none: the config's begin anew, a warm-up included; "
                'to go on as before resume from an iter_*.pth or epoch_*.pth')
        if changed := changed_settings(runner, checkpoint):
            runner.logger.warning(
                'resumed with other settings than the config has: '
                f'{"; ".join(changed)}. The checkpoint brings its own; for '
                "the config's begin another work_dir with load_from in place "
                'of --resume')

    def before_train(self, runner) -> None:
        """Set the file backend; delete unfinished files of a killed run."""
        backend = get_file_backend(
            self.out_dir or runner.work_dir, backend_args=self.backend_args)
        if self.file_client_args is None and type(backend) is LocalBackend:
            self.backend_args = dict(backend='atomic_local')
        super().before_train(runner)
        if (isinstance(self.file_backend, AtomicLocalBackend)
                and is_main_process()):
            for path in Path(self.out_dir).glob(f'*{UNFINISHED}'):
                path.unlink()

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Add the state that :meth:`save` gathered."""
        if self._state is not None:
            checkpoint['training_state'] = self._state

    def after_val_epoch(self, runner, metrics) -> None:
        """No validation is due in checkpoints from here on."""
        if in_own_validation(runner):
            runner.train_loop.validation_due = False
        super().after_val_epoch(runner, metrics)

    def save(self, runner, filename: str, meta: dict, whole: bool = True,
             **state) -> str:
        """Save in the folder of checkpoints; returns the file's path.

        A collective call. ``meta`` has the completed ``epoch`` and ``iter``;
        ``whole`` saves optimizer and schedulers in any case; ``state`` is for
        :func:`.training_state`.
        """
        if accumulating(runner.optim_wrapper):
            runner.logger.warning(
                f'{filename} is saved between two updates by the optimizer '
                '(accumulative_counts); the gradients so far are not in it, '
                'so a resume from it is not bit for bit. Make '
                'default_hooks.checkpoint.interval a multiple')
        if isinstance(runner.train_loop, ResumableLoop):
            self._state = training_state(runner, **state)
        begun = time.perf_counter()
        runner.save_checkpoint(
            self.out_dir, filename, self.file_client_args,
            save_optimizer=whole or self.save_optimizer,
            save_param_scheduler=whole or self.save_param_scheduler,
            meta=meta, by_epoch=self.by_epoch, backend_args=self.backend_args,
            **self.args)
        self._state = None
        runner.logger.info(f'saved {filename} in '
                           f'{time.perf_counter() - begun:.1f} s')
        return self._path(filename)

    def _path(self, filename: str) -> str:
        return self.file_backend.join_path(self.out_dir, filename)

    def save_out_of_turn(self, runner, epoch: int, iteration: int) -> str:
        """Save for a resume; deleted when the next one is complete."""
        filename = PREEMPTED.format(iteration)
        meta = dict(epoch=epoch, iter=iteration)
        return self._save_as_last(runner, filename, meta, filename)

    def _save_as_last(self, runner, filename, meta, temporary=None) -> str:
        hub = runner.message_hub
        before = hub.get_info('temporary_ckpt')
        hub.update_info('temporary_ckpt', temporary)
        self.last_ckpt = self._path(filename)
        hub.update_info('last_ckpt', self.last_ckpt)
        self.save(runner, filename, meta, whole=temporary is not None)
        if is_main_process():
            with atomic_write(Path(runner.work_dir, LAST_CHECKPOINT)) as file:
                file.write(self.last_ckpt.encode())
        if before and before != temporary:
            self._delete(self._path(before))
        return self.last_ckpt

    def _save_checkpoint_with_step(self, runner, done, meta) -> None:
        """Save after ``done`` epochs (iterations)."""
        filename = self.filename_tmpl.format(done)
        if self.max_keep_ckpts <= 0 or done in self.keep_ckpt_ids:
            self._save_as_last(runner, filename, meta)
            return
        ids = [*self.keep_ckpt_ids, done]
        # All are listed in the file: a resume after a kill before the
        # deletion below deletes them.
        runner.message_hub.update_info('keep_ckpt_ids', ids)
        self._save_as_last(runner, filename, meta)
        for old in ids[:-self.max_keep_ckpts]:
            self._delete(self._path(self.filename_tmpl.format(old)))
        self.keep_ckpt_ids.append(done)  # a deque of that length
        runner.message_hub.update_info('keep_ckpt_ids',
                                       list(self.keep_ckpt_ids))

    def _save_best_checkpoint(self, runner, metrics) -> None:
        """Delete the previous best when the new one is complete."""
        if not self.save_best:
            return
        removed: list[str] = []
        deferred = ReplacedMethod(self.file_backend, 'remove',
                                  lambda _, path: removed.append(path))
        try:
            super()._save_best_checkpoint(runner, metrics)
        finally:
            deferred.undo()
        best = [getattr(self, 'best_ckpt_path', None),
                *getattr(self, 'best_ckpt_path_dict', {}).values()]
        for path in removed:
            if path not in best:
                self._delete(path)

    @master_only
    def _delete(self, path: str) -> None:
        if self.file_backend.isfile(path):
            self.file_backend.remove(path)


def first_checkpoint_hook(runner) -> AtomicCheckpointHook | None:
    """The hook that saves for a resume; a config may have several."""
    return next((hook for hook in runner.hooks
                 if isinstance(hook, AtomicCheckpointHook)), None)
