// Draws the feasibility maps: one panel per epoch, one colour scale per run. Blue is feasible (k < 0), red is infeasible,
// the black line is the boundary k = 0, the green one is where a known row is 0, grey points have no state. page.js, loaded next,
// holds the data and the helpers.

const FEASIBLE = [33, 102, 171], INFEASIBLE = [178, 24, 43], MIDDLE = [247, 247, 247], NO_STATE = [230, 232, 235];
const PANEL = {width: 230, height: 230, left: 40, top: 6, right: 8, bottom: 22};

function mapColour(value, limit) {
  if (value === null) return NO_STATE;
  const part = Math.sqrt(Math.min(Math.abs(value) / limit, 1));  // square root: more contrast near the boundary
  const end = value < 0 ? FEASIBLE : INFEASIBLE;
  return MIDDLE.map((from, i) => from + part * (end[i] - from));
}

// The 99th percentile of |k|.
function mapLimit(map) {
  const sizes = map.panels.flatMap((panel) => panel.constraint).filter((value) => value !== null).map(Math.abs).sort((a, b) => a - b);
  return sizes.length ? Math.max(sizes[Math.floor(0.99 * (sizes.length - 1))], 1e-6) : 1;
}

function drawCells(context, map, panel, limit) {
  const n = map.resolution, cells = document.createElement('canvas');
  cells.width = cells.height = n;
  const image = cells.getContext('2d').createImageData(n, n);
  panel.constraint.forEach((value, i) => {
    const at = 4 * ((n - 1 - Math.floor(i / n)) * n + i % n);
    image.data.set([...mapColour(value, limit), 255], at);
  });
  cells.getContext('2d').putImageData(image, 0, 0);
  context.drawImage(cells, PANEL.left, PANEL.top, PANEL.width, PANEL.height);
}

// Lines where the values change sign, between the middles of neighbouring cells (marching squares).
function drawBoundary(context, map, values, colour) {
  const n = map.resolution, value = (x, y) => values[y * n + x];
  context.beginPath();
  for (let y = 0; y + 1 < n; ++y) {
    for (let x = 0; x + 1 < n; ++x) {
      const corners = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]], crossings = [];
      corners.forEach((a, i) => {
        const b = corners[(i + 1) % 4], atA = value(...a), atB = value(...b);
        if (atA === null || atB === null || (atA < 0) === (atB < 0)) return;
        const part = atA / (atA - atB);
        crossings.push([PANEL.left + (a[0] + part * (b[0] - a[0]) + 0.5) / n * PANEL.width,
                        PANEL.top + (1 - (a[1] + part * (b[1] - a[1]) + 0.5) / n) * PANEL.height]);
      });
      for (let i = 0; i + 1 < crossings.length; i += 2) {
        context.moveTo(...crossings[i]);
        context.lineTo(...crossings[i + 1]);
      }
    }
  }
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.stroke();
}

function drawAxes(context, map) {
  context.strokeStyle = '#1c2430';
  context.lineWidth = 1;
  context.strokeRect(PANEL.left, PANEL.top, PANEL.width, PANEL.height);
  context.fillStyle = '#5b6675';
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  const short = (value) => `${+value.toPrecision(3)}`.replace('-', '−');
  for (const part of [0, 0.5, 1]) {
    context.textAlign = part === 0 ? 'left' : part === 1 ? 'right' : 'center';
    context.fillText(short(map.x_low + part * (map.x_high - map.x_low)), PANEL.left + part * PANEL.width, PANEL.top + PANEL.height + 15);
    context.textAlign = 'right';
    context.fillText(short(map.y_low + part * (map.y_high - map.y_low)), PANEL.left - 6,
                     PANEL.top + (1 - part) * PANEL.height + (part === 1 ? 9 : part === 0 ? 0 : 4));
  }
}

// Shows the value under the pointer below the panel.
function readout(canvas, map, panel, line, resting) {
  canvas.addEventListener('mouseleave', () => { line.textContent = resting; });
  canvas.addEventListener('mousemove', (event) => {
    const n = map.resolution, box = canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left - PANEL.left) / PANEL.width * n);
    const y = Math.floor((1 - (event.clientY - box.top - PANEL.top) / PANEL.height) * n);
    if (x < 0 || x >= n || y < 0 || y >= n) return;
    const at = (low, high, cell) => number(low + (high - low) * (cell + 0.5) / n);
    const row = map.known ? map.known.row[y * n + x] : -1;
    const known = row >= 0 ? `; nearest known row ${map.known.names[row]}: ${number(map.known.distance[y * n + x])}` : '';
    line.textContent = `(${at(map.x_low, map.x_high, x)}, ${at(map.y_low, map.y_high, y)}): k = ${number(panel.constraint[y * n + x])}${known}`;
  });
}

function mapPanel(map, panel, limit) {
  const canvas = element('canvas', {role: 'img', 'aria-label': `k over ${map.x_label} and ${map.y_label}, epoch ${panel.epoch}`});
  const width = PANEL.left + PANEL.width + PANEL.right, height = PANEL.top + PANEL.height + PANEL.bottom;
  const fine = 2;  // canvas pixels per page pixel: stays sharp when enlarged or printed
  canvas.width = fine * width;
  canvas.height = fine * height;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.scale(fine, fine);
  drawCells(context, map, panel, limit);
  if (map.known) drawBoundary(context, map, map.known.distance, '#1a8c33');
  drawBoundary(context, map, panel.constraint, '#000000');
  drawAxes(context, map);
  const resting = `horizontal: ${map.x_label}; vertical: ${map.y_label}`;
  const line = element('p', {class: 'soft small', text: resting});
  readout(canvas, map, panel, line, resting);
  return element('figure', {}, element('figcaption', {text: `Epoch ${panel.epoch}, δ = ${number(panel.delta)}`}), canvas, line);
}

// What the colours of a map mean.
function mapScale(map, limit) {
  const stops = [-limit, -limit / 4, 0, limit / 4, limit]
      .map((value) => `rgb(${mapColour(value, limit).join(' ')}) ${(50 + 50 * value / limit)}%`).join(', ');
  return element('span', {class: 'soft small'}, `k from ${number(-limit)} `,
      element('span', {class: 'scale', style: `background: linear-gradient(to right, ${stops})`}),
      ` to ${number(limit)}; blue is feasible, black the boundary${map.known ? ', green where a known row is 0' : ''}`);
}

function newestMap(run) {
  const limit = mapLimit(run.map), panel = mapPanel(run.map, run.map.panels.at(-1), limit);
  panel.querySelector('figcaption').textContent = `Learned constraint, member ${run.map.member}, epoch ${run.map.panels.at(-1).epoch}`;
  panel.append(mapScale(run.map, limit));
  return panel;
}

function showMaps() {
  const runs = data.runs.filter((run) => run.map);
  byId('maps').hidden = !runs.length;
  fill('maps', ...runs.flatMap((run) => {
    const map = run.map;
    if (map.missing) return [element('p', {class: 'soft', text: `${label(run)}: no map, because ${map.missing}`})];
    const limit = mapLimit(map);
    return [element('p', {}, element('b', {text: label(run)}), ` member ${map.member}: ${map.title}. k = CVaR − δ. `, mapScale(map, limit)),
            element('div', {class: 'panels'}, ...map.panels.map((panel) => mapPanel(map, panel, limit)))];
  }));
}
// SPDX-License-Identifier: Apache-2.0
