#!/usr/bin/env python
"""How long a training takes on this machine, without training it.

python tools/benchmarks/training_time.py CONFIG --data-root DATA

Trains some iterations as tools/train.py does, on the real data and on one GPU
where there is one, validates some batches, and counts how many of both the
config asks for. Nothing is kept. Not in it are the start, what is done once an
epoch (checkpoints, the start of loader workers), and what evaluators compute
at the end of a validation (COCO's AP). A detector finds few boxes that early,
so its validations take longer later.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import json
import os
from dataclasses import asdict

import stepnet_mm  # noqa: F401  registers modules and the safe loader
from stepnet_mm import config as C
from stepnet_mm.launch.entry import config_from, make_config_parser
from stepnet_mm.profiling import time_training
from stepnet_mm.utils.circumstances import circumstances
from stepnet_mm.utils.command_line import clock, output_file, positive
from stepnet_mm.utils.files import written_whole


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument(
        '--iterations', type=positive, default=100,
        help='iterations that are timed, and batches of a validation')
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--out', type=output_file, help='a JSON file of all numbers')
    return parser.parse_args()


def build_config(args):
    """The config, as tools/train.py would train it from its start."""
    cfg = C.harden(config_from(args))
    if args.amp:
        C.use_amp(cfg)
    cfg.resume = False
    C.check_sync_bn(cfg)
    return cfg


def text_of(found, where):
    """What was found, in lines."""
    torch_version = where['versions']['torch']
    training = found.iteration * found.iterations
    validation = found.validation * found.validations
    return '\n'.join([
        f'on {where["device"]} ({where["machine"]}), torch {torch_version}',
        f'training: {found.iteration:.3f} s an iteration of '
        f'{found.batch_size} images ({found.batch_size / found.iteration:.0f} '
        f'images/s, {found.loading / found.iteration:.0%} of it waiting for '
        f'data), mean of {found.timed}; {found.iterations} '
        f'iterations: {clock(training)}',
        f'validation: {clock(found.validation)}, {found.validations} times: '
        f'{clock(validation)}',
        f'peak memory: {found.peak_memory / 2**20:.0f} MiB',
        f'in all: {clock(found.seconds)}'])


def load_text(load):
    """What to say of a machine that was busy before this began, if it was."""
    cores = os.cpu_count() or 1
    return (f'others were at work on this machine (load {load:.1f}, {cores} '
            'cores): it may be faster when they are not\n'
            if load > cores / 2 else '')


def main():
    args = parse_args()
    load = os.getloadavg()[0]
    found = time_training(build_config(args), args.iterations)
    where = circumstances()
    print(load_text(load) + text_of(found, where))
    if args.out:
        content = dict(config=args.config, options=args.cfg_options or {},
                       amp=args.amp, **asdict(found), seconds=found.seconds,
                       load=load, **where)
        with written_whole(args.out) as file:
            file.write(json.dumps(content, indent=2, default=str).encode())


if __name__ == '__main__':
    main()
