// Draws the data of a report: one chart per quantity, one line and band per group of members. A function that is called
// again shows newer data in the place of older data.

let data;
const byId = (id) => document.getElementById(id);

const translucent = (hex) => hex + '2e';

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'text') node.textContent = value;
    else if (key === 'style') node.style.cssText = value;  // a live page's policy forbids the attribute
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// Replaces what a section shows below its heading. What was open stays open.
function fill(id, ...children) {
  const section = byId(id);
  const open = new Set([...section.querySelectorAll('details[open] > summary')].map((summary) => summary.textContent));
  section.replaceChildren(...[...section.children].filter((child) => child.tagName === 'H2'), ...children);
  for (const summary of section.querySelectorAll('details > summary')) summary.parentNode.open = open.has(summary.textContent);
}

function number(value) {
  if (value === null || value === undefined) return '–';
  if (Number.isInteger(value)) return value.toLocaleString('en-US');
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return value.toLocaleString('en-US', {maximumFractionDigits: size >= 100 ? 1 : size >= 1 ? 3 : 4});
}

const significant = (value) => value.toLocaleString('en-US', {maximumSignificantDigits: 2});

function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const s = Math.round(seconds);
  const two = (n) => String(n).padStart(2, '0');
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)} h` :
                     `${Math.floor(s / 60)}:${two(s % 60)} min`;
}

const label = (run) => data.runs.length > 1 ? run.folder : run.name;

function table(header, rows) {
  const head = element('tr', {}, ...header.map((text) => element('th', {text})));
  const body = rows.map((row) => {
    const cells = row.cells.map((cell) => cell instanceof Node ? element('td', {}, cell) : element('td', {text: cell}));
    return element('tr', row.trouble ? {class: 'trouble'} : {}, ...cells);
  });
  return element('div', {class: 'wide'}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)));
}

function withHalf(values) {
  if (!values) return '–';
  const cell = element('span', {text: number(values[0])});
  if (values[2] > 1) cell.append(element('span', {class: 'half', text: ' ± ' + significant(values[1])}));
  return cell;
}

function withRange(values) {
  if (!values) return '–';
  const short = (value) => value.toLocaleString('en-US', {maximumSignificantDigits: 3});
  const cell = element('span', {text: short(values[3])});
  if (values[2] > 1) cell.append(element('span', {class: 'half', text: ` [${short(values[4])}, ${short(values[5])}]`}));
  return cell;
}

function swatch(group) {
  const style = !group.dashes.length ? 'solid' : group.dashes[0] > group.dashes[1] ? 'dashed' : 'dotted';
  return element('span', {class: 'swatch', style: `border-color: ${group.colour}; border-top-style: ${style}`});
}

const named = (group) => element('span', {class: 'named'}, swatch(group), group.title);
const wallSeconds = (group) => Math.max(...group.members.map((member) => member.wall_seconds));

function showHeader() {
  const names = [...new Set(data.runs.map((run) => run.name))];
  byId('title').textContent = names.join(' · ');
  document.title = names.join(', ') + ' – datacom report';
  byId('subtitle').textContent = [...new Set(data.runs.map((run) => run.description).filter(Boolean))].join(' — ');
  byId('made').textContent = 'Written by ' + data.build + '. Lines are means over the members of a group; bands and ± are 95 % ' +
      'confidence intervals of that mean (Student t). Brackets are 95 % intervals of a percentile bootstrap over members.';
  fill('runs', ...data.groups.map((group) => {
    const members = group.members;
    const steps = Math.max(...members.map((member) => member.env_steps));
    const trouble = ['diverged', 'runaway'].map((status) => [members.filter((member) => member.status === status).length, status]);
    const facts = `${group.task}, ${group.algorithm}; ${members.length} member${members.length === 1 ? '' : 's'} ` +
        `(seed${members.length === 1 ? '' : 's'} ${members.map((member) => member.seed).join(', ')}); ` +
        `${number(steps)} of ${number(group.goal)} steps each; ${number(group.episodes)} training episodes; ${duration(wallSeconds(group))}` +
        (group.lockstep ? '; lockstep' : '') + trouble.filter(([count]) => count).map(([count, status]) => `; ${count} ${status}`).join('');
    return element('div', {class: 'run'}, swatch(group), element('b', {text: group.title}), element('span', {class: 'soft', text: facts}));
  }));
}

function showSummary() {
  const columns = data.quantities.filter((q) => q.summary && data.groups.some((group) => group.summary[q.column]));
  const title = (q) => (q.group === 'Training episodes' ? 'Training: ' : '') + q.title;
  const shown = [];
  if (data.rule) {
    byId('shown').textContent = 'Values of the best epoch of each member';
    const totals = ' The largest violation so far and the total cost so far cover the whole training.';
    shown.push(element('p', {class: 'soft', text: data.rule + totals}));
  }
  shown.push(table(['', ...columns.map(title), 'Wall time'], [
      ...data.groups.map((group) => (
          {cells: [named(group), ...columns.map((q) => withHalf(group.summary[q.column])), duration(wallSeconds(group))]})),
      ...data.baselines.map((one) => (
          {cells: [`${one.label} (${one.episodes} episodes)`, ...columns.map((q) => number(one.means[q.column])), '–']}))]));
  if (data.groups.some((group) => group.members.length > 3)) {
    shown.push(element('h3', {text: 'Inter-quartile means'}),
        table(['', ...columns.map(title)], data.groups.map((group) => (
            {cells: [named(group), ...columns.map((q) => withRange(group.summary[q.column]))]}))));
  }
  const members = data.groups.flatMap((group) => group.members.map((member) => ({
    trouble: ['diverged', 'runaway'].includes(member.status),
    cells: [group.title, member.seed, number(member.epoch), number(member.env_steps), number(member.updates),
            ...columns.map((q) => number(member[q.column])), member.status]})));
  shown.push(element('details', {}, element('summary', {text: 'Each member'}),
      table(['', 'Seed', 'Epoch shown', 'Steps', 'Updates', ...columns.map(title), 'Status'], members)));
  fill('summary', ...shown);
}

// One horizontal line per baseline, as long as the longest curve.
function baselines(quantity) {
  const known = data.baselines.filter((one) => one.means[quantity.column] !== undefined && one.means[quantity.column] !== null);
  const end = Math.max(0, ...data.groups.flatMap((group) => (group.series[quantity.column] || []).map((point) => point[0])));
  return known.map((one) => ({
    borderColor: one.colour, backgroundColor: one.colour, borderWidth: 1.5, borderDash: [8, 4], pointRadius: 0,
    pointHitRadius: 8, fill: false, label: one.label, data: [0, end].map((x) => ({x, y: one.means[quantity.column]}))}));
}

// Three datasets per group: lower edge, upper edge filled down to it, and the mean.
function datasets(quantity, least) {
  return data.groups.filter((group) => group.series[quantity.column]).flatMap((group) => {
    const points = group.series[quantity.column];
    const line = {borderColor: group.colour, backgroundColor: group.colour, borderWidth: 2, pointRadius: points.length > 40 ? 0 : 2,
                  pointHitRadius: 8, borderDash: group.dashes, fill: false, label: group.title,
                  data: points.map(([x, mean, half]) => ({x, y: mean, half}))};
    if (!points.some((point) => point[3] > 1)) return [line];
    const edge = {borderWidth: 0, pointRadius: 0, pointHitRadius: 0, band: true, label: group.title};
    return [{...edge, fill: false, data: points.map(([x, mean, half]) => ({x, y: Math.max(mean - half, least)}))},
            {...edge, fill: '-1', backgroundColor: translucent(group.colour), data: points.map(([x, mean, half]) => ({x, y: mean + half}))},
            line];
  });
}

function axisNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(7)}`;
}

// Lower end of the axis; undefined = fitted to the curves. A logarithmic axis begins at the decade of its smallest mean.
function axisBegin(quantity) {
  if (!quantity.logarithmic) return quantity.from_zero ? 0 : undefined;
  const means = data.groups.flatMap((group) => (group.series[quantity.column] || []).map((point) => point[1])).filter((mean) => mean > 0);
  return means.length ? 10 ** Math.floor(Math.log10(Math.min(...means))) : undefined;
}

const lines = (quantity) => [...datasets(quantity, quantity.logarithmic ? axisBegin(quantity) : -Infinity), ...baselines(quantity)];
const severalLines = () => data.groups.length + data.baselines.length > 1;

function chart(quantity) {
  const canvas = element('canvas', {role: 'img', 'aria-label': `${quantity.group}: ${quantity.title}`});
  const figure = element('figure', {}, element('figcaption', {text: quantity.title}), element('div', {class: 'plot'}, canvas));
  const grid = {color: '#e9edf1'};
  const draw = () => new Chart(canvas, {
    type: 'line',
    data: {datasets: lines(quantity)},
    options: {
      animation: false, maintainAspectRatio: false, parsing: false, normalized: true,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {
        x: {type: 'linear', grid, ticks: {callback: axisNumber, maxTicksLimit: 7, maxRotation: 0},
            title: {display: true, text: 'environment steps'}, min: 0},
        y: {type: quantity.logarithmic ? 'logarithmic' : 'linear', grid, min: axisBegin(quantity),
            ticks: {callback: axisNumber, maxTicksLimit: 6}},
      },
      plugins: {
        legend: {display: severalLines(),
                 labels: {boxWidth: 14, boxHeight: 2, filter: (item, all) => !all.datasets[item.datasetIndex].band}},
        tooltip: {filter: (item) => !item.dataset.band,
                  callbacks: {title: (items) => items.length ? `${number(items[0].raw.x)} steps` : '',
                              label: (item) => `${item.dataset.label}: ${number(item.raw.y)}` +
                                  (item.raw.half ? ` ± ${significant(item.raw.half)}` : '')}},
      },
    },
  });
  return {figure, draw};
}

// The charts in the page, by the column of their quantity.
let charts = new Map();

// Changes a chart in place. Its datasets stay the same objects, so that a line that the reader has hidden stays hidden.
function redraw(shown, quantity) {
  const newer = lines(quantity);
  newer.forEach((one, i) => { shown.data.datasets[i] = Object.assign(shown.data.datasets[i] || {}, one); });
  shown.data.datasets.length = newer.length;
  shown.options.scales.y.min = axisBegin(quantity);
  shown.options.plugins.legend.display = severalLines();
  shown.update();
}

function showCurves() {
  const quantities = data.quantities.filter((q) => data.groups.some((one) => one.series[q.column]));
  if (quantities.length === charts.size && quantities.every((q) => charts.has(q.column))) {
    quantities.forEach((quantity) => redraw(charts.get(quantity.column), quantity));
    return;
  }
  charts.forEach((one) => one.destroy());
  const made = quantities.map((quantity) => ({quantity, ...chart(quantity)}));
  byId('curves').replaceChildren(...[...new Set(quantities.map((q) => q.group))].map((group) => (
      element('section', {}, element('h2', {text: group}),
              element('div', {class: 'grid'}, ...made.filter(({quantity}) => quantity.group === group).map(({figure}) => figure))))));
  charts = new Map(made.map(({quantity, draw}) => [quantity.column, draw()]));
}

function showData() {
  for (const group of data.groups) {
    const columns = data.quantities.filter((q) => group.series[q.column]);
    const at = new Map();
    for (const q of columns) {
      for (const [x, mean, half, count] of group.series[q.column]) {
        if (!at.has(x)) at.set(x, {});
        at.get(x)[q.column] = [mean, half, count];
      }
    }
    const steps = [...at.keys()].sort((a, b) => a - b);
    const title = (q) => `${q.group}: ${q.title}`;
    byId('data').append(element('details', {}, element('summary', {text: `${group.title}: all curves as numbers (mean ± 95 %)`}),
        table(['Steps', ...columns.map(title)], steps.map((x) => (
            {cells: [number(x), ...columns.map((q) => withHalf(at.get(x)[q.column]))]})))));
  }
  for (const run of data.runs) {
    byId('details').append(element('details', {}, element('summary', {text: `${label(run)}: resolved experiment`}),
        element('pre', {text: run.experiment})));
    if (run.build) {
      byId('details').append(element('details', {}, element('summary', {text: `${label(run)}: build`}), element('pre', {text: run.build})));
    }
  }
}

function showReport(report) {
  data = report;
  showHeader();
  showSummary();
  showCurves();
  showMaps();
  showData();
}
// SPDX-License-Identifier: Apache-2.0
