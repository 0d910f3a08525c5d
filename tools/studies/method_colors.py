"""Name, colour and marker of each method in the figures of a study."""
import re
from collections.abc import Iterable

from stepnet_mm.visualization.style import MUTED, color

#: One name and one colour of the style for each method, in every figure.
LOOKS = dict(plain=('plain', None), constant=('constant 0.27', 3),
             stepnet=('StepNet', 1), se=('SE', 0), eca=('ECA', 5),
             cbam=('CBAM', 2), srm=('SRM', 4))
#: Variants by the first word of theirs that is here or in LOOKS.
KIN = dict(last='plain', layer='constant', fca='se', **dict.fromkeys(
    ('current', 'next', 'difference', 'adaptor'), 'stepnet'))
#: The colour of all others.
OTHERS = 6
MARKERS = 'os^Dv<>pPX*h'
WORDS = dict(preact='pre-act.', warmup='warm-up', init='start', ema='EMA',
             cutmix='CutMix', mixup='Mixup', iebn='IEBN', sem='SEM', fca='FCA',
             gamma='γ',
             **{key: name for key, (name, _) in LOOKS.items()
                if key != 'constant'})


def label(method: str) -> str:
    """A method's name in words."""
    if method in LOOKS:
        return LOOKS[method][0]
    words = [WORDS.get(word, word) for word in method.split('_')]
    text = ' '.join(f'0.{word[1:]}' if re.fullmatch(r'0\d\d', word) else word
                    for word in words)
    return re.sub(r'([a-z])(\d)', r'\1 \2', text)


def looks(methods: Iterable[str]) -> dict[str, dict]:
    """Colour, marker and label of each method; variants have its colour.

    No two methods have both colour and marker in common.
    """
    found: dict[str, dict] = {}
    last: dict[int | None, int] = {}  # of a colour, its last marker
    # Those that have a colour of their own come first.
    for name in sorted(methods, key=lambda name: name not in LOOKS):
        kin = [KIN.get(word, word) for word in name.split('_')]
        index = next((LOOKS[word][1] for word in kin if word in LOOKS),
                     OTHERS)
        last[index] = last.get(index, -1) + 1
        found[name] = dict(
            color=MUTED if index is None else color(index),
            label=label(name), marker=MARKERS[last[index] % len(MARKERS)])
    return found
