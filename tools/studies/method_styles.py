"""Name, colour and marker of each method in the figures of a study."""
import re
from collections.abc import Iterable

from stepnet_mm.visualization.style import METHODS

#: One name for each method, in every figure.
NAMES = dict(
    constant='constant 0.27', stepnet='StepNet', se='SE',
    eca='ECA', cbam='CBAM', srm='SRM', iebn='IEBN', sem='SEM', fca='FCA',
    last_gamma='LastNorm 0.27', plain_zero_init='zero-init γ',
    preact_constant='pre-act. constant 0.27',
    current='adaptor sees x_t', next='adaptor sees x_t + f',
    difference='adaptor sees f')
#: Variants by the first word of theirs that is here or has a colour.
BASE_METHOD = dict(last='last_gamma', layer='constant', **dict.fromkeys(
    ('current', 'next', 'difference', 'adaptor'), 'stepnet'))
MARKERS = 'os^Dv<>pPX*h'
WORDS = dict(preact='pre-act.', warmup='warm-up', ema='EMA', cutmix='CutMix',
             mixup='Mixup', constant='constant')


def label(method: str) -> str:
    """A method's name in words."""
    known = max((name for name in NAMES
                 if re.match(rf'{name}(_(?!\d)|$)', method)),
                key=len, default='')
    names = {**NAMES, **WORDS}
    words = [names.get(word, word)
             for word in method.removeprefix(known).split('_')]
    text = ' '.join(f'0.{word[1:]}' if re.fullmatch(r'0\d+', word) else word
                    for word in words)
    return NAMES.get(known, '') + re.sub(r'([a-z])(\d+\b)', r'\1 \2', text)


def method_styles(methods: Iterable[str]) -> dict[str, dict]:
    """Colour, marker and label of each method; variants have its colour.

    A method with a colour of its own is a circle in every figure. No two
    methods have both colour and marker in common.
    """
    found: dict[str, dict] = {}
    last: dict[str, int] = {}  # of a colour, its last marker
    # Those that have a colour of their own come first.
    for name in sorted(methods, key=lambda name: name not in METHODS):
        bases = [BASE_METHOD.get(word, word) for word in name.split('_')]
        color = METHODS[next(
            (word for word in bases if word in METHODS), 'iebn')]
        last[color] = last.get(color, -1) + 1
        found[name] = dict(color=color, label=label(name),
                           marker=MARKERS[last[color] % len(MARKERS)])
    return found
