"""One HTML page that shows where the heads look from any query pixel."""
import base64
import hashlib
import io
import json
from html import escape
from string import Template

import numpy as np

from ..attention import AttentionRecord, LayerAttention
from .style import SURFACE, style_sheet

PAGE = Template('''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
  img-src data:; style-src $style_hash; script-src $script_hash">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<h1>$title</h1>
<p>$about</p>
<noscript><p>This page needs JavaScript.</p></noscript>
<div class="choice">
<label>Layer <select id="layer"></select></label>
<label>Map over image <input id="opacity" type="range" min="0" max="100"
  value="75"></label>
</div>
<div class="view">
<figure>
<canvas id="map" tabindex="0" role="application"
  aria-label="Attention over the image. Arrow keys move the query pixel."
  aria-describedby="chosen"></canvas>
<div class="legend"><span>0</span>
<span class="greys"><canvas id="legend"></canvas></span>
<span id="largest"></span></div>
<figcaption id="chosen" aria-live="polite"></figcaption>
</figure>
<div id="heads" role="group" aria-label="heads of the layer"></div>
</div>
<div id="tip" hidden></div>
<script type="application/json" id="data">$data</script>
<script>$script</script>
</body>
</html>
''')
STYLE = style_sheet() + '''
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1040px;
  margin: 0 auto; padding: 1rem; background: var(--paper); color: var(--ink); }
h1 { font-size: 1.4rem; line-height: 1.2; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 72ch; overflow-wrap: anywhere; }
figure { margin: 0; }
canvas { display: block; width: 100%; image-rendering: pixelated; }
#map { cursor: crosshair; touch-action: manipulation; }
.choice { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem;
  margin: 1rem 0; }
.choice label { display: flex; align-items: center; gap: .5rem;
  max-width: 100%; }
select { min-width: 0; max-width: 100%; font: inherit; }
.view { display: grid; gap: 1.5rem;
  grid-template-columns: minmax(0, 1fr); }
@media (min-width: 50rem) {
  .view { grid-template-columns: 30rem minmax(0, 1fr); } }
#heads { display: grid; gap: .6rem; align-content: start;
  grid-template-columns: repeat(auto-fill, minmax(5.5rem, 1fr)); }
#heads button { font: inherit; font-size: .8rem; padding: .25rem;
  background: var(--panel); color: inherit;
  border: 2px solid var(--grid); border-radius: 4px; cursor: pointer; }
#heads button[aria-pressed=true] { border-color: var(--accent);
  outline: 2px solid var(--accent); font-weight: bold; }
.legend { display: flex; align-items: center; gap: .5rem;
  margin-top: .4rem; font-size: .85rem; }
.legend canvas { height: 1.2rem; }
/* What the map lies over: pixels from dark to bright. */
.greys { flex: 1; min-width: 0;
  background: linear-gradient(black, white); }
figcaption { font-size: .9rem; font-variant-numeric: tabular-nums;
  min-height: 4em; }
#tip { position: fixed; padding: .1rem .4rem; font-size: .85rem;
  pointer-events: none; background: var(--panel);
  border: 1px solid var(--muted); }
'''
SCRIPT = '''
'use strict';
const $ = id => document.getElementById(id);
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const data = JSON.parse($('data').textContent);
const colors = bytes(data.colors);
const layers = data.layers.map(layer => ({
  ...layer,
  levels: bytes(layer.levels),
  largest: new Float32Array(bytes(layer.largest).buffer),
}));
const image = new Image();
let layer = layers[0];
let head = layer.order[0];
let place = data.query.map(index => index + .5);  // in px of the image

/* The middle of a map's row (axis 0) or column (1), in px of the image. */
const middle = (index, axis) =>
  (index - layer.padding[axis] + .5) * layer.pixel[axis];

/* Which of the layer's queries is nearest to the place, along an axis. */
function nearest(axis) {
  const away = layer.queries[axis].map(
    index => Math.abs(middle(index, axis) - place[axis]));
  return away.indexOf(Math.min(...away));
}

const query = () => [0, 1].map(axis => layer.queries[axis][nearest(axis)]);

/* A head's attention of the query: levels of 255, and the largest value. */
function attention(head) {
  const [rows, columns] = layer.queries.map(queries => queries.length);
  const number = (head * rows + nearest(0)) * columns + nearest(1);
  const size = layer.shape[0] * layer.shape[1];
  return {levels: layer.levels.subarray(number * size, (number + 1) * size),
          largest: layer.largest[number]};
}

const valueAt = (map, [row, column]) =>
  (map.levels[row * layer.shape[1] + column] / 255 * map.largest)
    .toPrecision(3);
const named = pixel =>
  `(${pixel.map((index, axis) => index - layer.padding[axis]).join(', ')})`;

/* One pixel of a canvas for each level. */
function paint(canvas, levels, height, width) {
  [canvas.width, canvas.height] = [width, height];
  const pixels = new ImageData(width, height);
  levels.forEach((level, i) => pixels.data.set(
    [...colors.subarray(3 * level, 3 * level + 3), 255], 4 * i));
  canvas.getContext('2d').putImageData(pixels, 0, 0);
  return canvas;
}

function drawMap() {
  const map = attention(head), canvas = $('map');
  const [height, width] = layer.shape;
  const scale = Math.max(1, Math.ceil(960 / width));
  [canvas.width, canvas.height] = [width * scale, height * scale];
  const context = canvas.getContext('2d');
  context.imageSmoothingEnabled = false;
  const [above, left] = layer.padding.map(n => n * scale);
  context.drawImage(image, left, above, canvas.width - 2 * left,
                    canvas.height - 2 * above);
  context.globalAlpha = $('opacity').value / 100;
  $('legend').style.opacity = context.globalAlpha;
  context.drawImage(
    paint(document.createElement('canvas'), map.levels, height, width),
    0, 0, canvas.width, canvas.height);
  context.globalAlpha = 1;
  const [row, column] = query();
  for (const [color, line] of [['black', 10], ['white', 4]]) {
    [context.strokeStyle, context.lineWidth] = [color, line];
    context.strokeRect(column * scale, row * scale, scale, scale);
  }
  const top = map.levels.reduce(
    (best, level, i) => level > map.levels[best] ? i : best, 0);
  const key = [Math.floor(top / width), top % width];
  $('chosen').textContent =
    `Head ${head + 1} from pixel ${named(query())} of the layer's map: most ` +
    `at ${named(key)}, ${valueAt(map, key)}; at the pixel itself ` +
    `${valueAt(map, query())}.`;
  $('largest').textContent = map.largest.toPrecision(3);
}

function drawHeads() {
  for (const button of $('heads').children) {
    const own = Number(button.dataset.head);
    paint(button.firstChild, attention(own).levels, ...layer.shape);
    button.setAttribute('aria-pressed', own === head);
  }
}

function draw() {
  drawMap();
  drawHeads();
  $('tip').hidden = true;
}

function buttonOf(own) {
  const button = document.createElement('button'), label = layer.heads[own];
  button.type = 'button';
  button.dataset.head = own;
  button.append(document.createElement('canvas'), label);
  button.onclick = () => { head = own; draw(); };
  return button;
}

function chooseLayer() {
  layer = layers[$('layer').value];
  head = layer.order.includes(head) ? head : layer.order[0];
  $('heads').replaceChildren(...layer.order.map(buttonOf));
  draw();
}

/* The map's pixel under the pointer. */
function pixelAt(event) {
  const box = $('map').getBoundingClientRect();
  return [[event.clientY - box.top, box.height],
          [event.clientX - box.left, box.width]].map(([at, size], axis) =>
    Math.min(layer.shape[axis] - 1, Math.max(0, Math.floor(
      at / size * layer.shape[axis]))));
}

$('map').onpointermove = event => {
  const pixel = pixelAt(event), tip = $('tip');
  tip.textContent = `${named(pixel)}: ${valueAt(attention(head), pixel)}`;
  tip.hidden = false;
  tip.style.top = `${event.clientY + 16}px`;
  tip.style.left =
    `${Math.min(event.clientX + 16, innerWidth - tip.offsetWidth)}px`;
};

$('map').onpointerleave = () => { $('tip').hidden = true; };

$('map').onclick = event => {
  place = pixelAt(event).map(middle);
  draw();
};

const MOVES = {ArrowUp: [0, -1], ArrowDown: [0, 1],
               ArrowLeft: [1, -1], ArrowRight: [1, 1]};
$('map').onkeydown = event => {
  if (!(event.key in MOVES)) return;
  event.preventDefault();
  const [axis, by] = MOVES[event.key], queries = layer.queries[axis];
  const next = queries[nearest(axis) + by];
  if (next === undefined) return;
  place[axis] = middle(next, axis);
  draw();
};

layers.forEach((own, i) => $('layer').append(new Option(own.name, i)));
$('layer').onchange = chooseLayer;
$('opacity').oninput = drawMap;
paint($('legend'), [...Array(256).keys()], 1, 256);
image.onload = drawMap;
image.src = data.image;
chooseLayer();
'''


def has_query_maps(record: AttentionRecord) -> bool:
    """Whether a page can be made of a record."""
    return all(layer.queries is not None for layer in record.layers)


def render_attention_page(record: AttentionRecord,
                          title: str | None = None) -> str:
    """The page: choose layer, head and query pixel.

    It has a byte for each value, in base64: 11 MiB at most, as the records
    leave out query pixels above :data:`..attention.query_maps.LIMIT`. The
    image comes on top, as a PNG of one channel.

    Args:
        record (AttentionRecord): with the attention of all query pixels, as
            ``read_attention_record(path, queries=True)`` gives it.
        title (str, optional): heading.

    Returns:
        str: HTML5 that needs no other file, no server and no network.

    Raises:
        ValueError: if the record has one query pixel alone.
    """
    title = title or f'{record.name}: where the heads look'
    return PAGE.substitute(
        title=escape(title), about=escape(_about(record)),
        style=STYLE, style_hash=_hash(STYLE),
        script=SCRIPT, script_hash=_hash(SCRIPT), data=_json(_data(record)))


def _about(record: AttentionRecord) -> str:
    height, width = record.size
    return (
        f'Iteration {record.iteration}, an image of {height} × {width} px. '
        'Choose a query pixel by a click on the image or by the arrow keys, '
        'and a head by a click on its map; point at a pixel for its '
        "attention. Pixels are (row, column) of the layer's map, from (0, 0). "
        "Each map's largest attention has the brightest colour; numbers are "
        "right to 0.2 % of it. In brackets, each head's mean attention "
        'distance in px of the image, the nearest-looking head first.')


def _hash(text: str) -> str:
    """A source that a content security policy lets run."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _json(value: dict) -> str:
    """JSON that may stand in a script element, whatever its strings are."""
    return json.dumps(value).replace('<', r'\u003c')


def _data(record: AttentionRecord) -> dict:
    from matplotlib import colormaps
    colors = colormaps[SURFACE](np.arange(256), bytes=True)[:, :3]
    return dict(
        image=_picture(record.image), query=[*record.query],
        colors=_base64(colors),
        layers=[_of_layer(number, layer)
                for number, layer in enumerate(record.layers, 1)])


def _of_layer(number: int, layer: LayerAttention) -> dict:
    maps = layer.queries
    if maps is None:
        raise ValueError(
            f'{layer.name}: expected the attention of all query pixels, got '
            'one of them; read the record with queries=True, or measure it '
            'again where an earlier version wrote it')
    return dict(
        name=f'{number}: {layer.name}',
        heads=[f'{i} ({distance:.1f} px)'
               for i, distance in enumerate(layer.distance, 1)],
        order=np.argsort(layer.distance, kind='stable').tolist(),
        shape=maps.levels.shape[3:], pixel=[*layer.pixel],
        padding=[*layer.padding],
        queries=[maps.rows.tolist(), maps.columns.tolist()],
        levels=_base64(maps.levels),
        largest=_base64(maps.largest.astype('<f4')))


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _picture(image: np.ndarray) -> str:
    """An image in grey, so that the colours over it are those of the map."""
    from PIL import Image  # matplotlib needs it too
    buffer = io.BytesIO()
    grey = image.mean(2).round().astype('uint8')
    Image.fromarray(grey).save(buffer, 'png')
    return ('data:image/png;base64,'
            f'{base64.b64encode(buffer.getvalue()).decode()}')
