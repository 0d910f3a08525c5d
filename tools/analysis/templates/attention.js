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
