// Draws the data of a report: verdicts and two charts on the first screen, everything else folded. One line per group; few
// members have a thin line each, more a band. A function that is called again shows newer data in the place of older data.

let data;
const MOST_THIN = 3;  // seeds that have a line each
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

// Replaces what a section shows, of a fold what is below its summary. What was open stays open.
function fill(id, ...children) {
  const section = byId(id).querySelector(':scope > summary + div') || byId(id);
  const open = new Set([...section.querySelectorAll('details[open] > summary')].map((summary) => summary.textContent));
  section.replaceChildren(...children);
  for (const summary of section.querySelectorAll('details > summary')) summary.parentNode.open = open.has(summary.textContent);
}

const fold = (title, ...children) => element('details', {}, element('summary', {text: title}), element('div', {}, ...children));

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
  const head = element('tr', {}, ...header.map((cell) => element('th', {}, cell)));
  const body = rows.map((cells) => element('tr', {}, ...cells.map((cell) => element('td', {}, cell))));
  return element('div', {class: 'wide'}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)));
}

// The mean of a column over the seeds, with their range if they are few, or else with intervals.
function meanOf(group, column) {
  const values = group.summary[column];
  if (!values) return '–';
  const cell = element('span', {text: number(values[0])}), soft = (text) => cell.append(element('span', {class: 'half', text}));
  const own = group.members.map((member) => member[column]).filter((value) => value !== null);
  if (!values[1]) return cell;  // all are equal
  if (values[2] > MOST_THIN) soft(` ± ${significant(values[1])}; IQM ${few(values[3])} [${few(values[4])}, ${few(values[5])}]`);
  else if (values[2] > 1) soft(` (${few(Math.min(...own))} to ${few(Math.max(...own))})`);
  return cell;
}

function swatch(group) {
  const style = !group.dashes.length ? 'solid' : group.dashes[0] > group.dashes[1] ? 'dashed' : 'dotted';
  return element('span', {class: 'swatch', style: `border-color: ${group.colour}; border-top-style: ${style}`});
}

const named = (group) => element('span', {class: 'named'}, swatch(group), group.title);
const wallSeconds = (group) => Math.max(...group.members.map((member) => member.wall_seconds));
const METHOD = 'Thick lines are means over the seeds of a group. Up to three seeds have a thin line each; more have a band, the 95 % ' +
    'confidence interval of the mean (Student t), as is ±. Brackets of up to three seeds are their range. IQM is the inter-quartile mean with its 95 % bootstrap interval. A verdict ' +
    'looks at the last third of the evaluations: J rises or falls there if a straight line through it changes by more than the spread ' +
    'of the seeds and of the values. A seed is within its budget if the mean cost of its newest evaluations (a tenth, at least three) is.';

function showHeader(program = 'report') {
  const names = [...new Set(data.runs.map((run) => run.name))];
  byId('title').textContent = names.join(' · ');
  document.title = `${names.join(', ')} – datacom ${program}`;
  const descriptions = [...new Set(data.runs.map((run) => run.description).filter(Boolean))];
  byId('subtitle').textContent = descriptions.length === 1 ? descriptions[0] : '';
  byId('made').textContent = `Written by ${data.build}. ${METHOD}`;
}

// Breaks between words only.
const commandLine = (text) => element('code', {}, ...text.split(/( )/).map((word) => (
    word === ' ' ? word : element('span', {text: word}))));

function verdictCard(group, running) {
  const verdict = verdictOf(group, running), [advice, command] = verdict.next;
  const members = group.members.length > 5 ? count(group.members.length, 'seed') : seedsOf(group.members);
  const steps = Math.max(...group.members.map((member) => member.env_steps));
  const facts = `${group.task}, ${group.algorithm}; ${members}; ${number(steps)} of ${number(group.goal)} steps; ` +
      `${count(group.episodes.all, 'training episode')}; ${duration(wallSeconds(group))}${group.lockstep ? '; lockstep' : ''}`;
  const answer = (question, ...said) => element('div', {class: 'answer'}, element('h3', {text: question}), element('p', {}, ...said));
  const judged = (question, {level, word, text}) => answer(question, element('b', {class: level, text: word}), ' ' + text);
  return element('article', {class: 'run'},
      element('h2', {}, ...(data.groups.length > 1 ? [swatch(group), element('span', {text: group.title})] : []),
              element('small', {class: 'soft', text: facts})),
      element('div', {class: 'answers'}, ...verdict.trouble.map((text) => element('p', {class: 'bad trouble', text})),
          judged('Does it learn?', verdict.learns), judged('Is it safe within its budget?', verdict.safe),
          answer('What next?', advice, ...(command ? [' ', commandLine(command)] : []))));
}

const MOST_CARDS = 4;
function showVerdicts(isRunning = () => false) {
  const cards = data.groups.map((group) => verdictCard(group, isRunning(group)));
  const more = cards.splice(MOST_CARDS);
  byId('verdicts').className = data.groups.length > 1 ? 'several' : '';
  fill('verdicts', ...cards, ...(more.length ? [fold(`${more.length} more`, ...more)] : []));
}

function showSummary() {
  const rows = data.quantities.filter((q) => q.summary && data.groups.some((group) => group.summary[q.column]));
  const title = (q) => (q.group === 'Training episodes' ? 'Training: ' : '') + q.title;
  const rule = data.rule ? ['Values of the best epoch of each member. ' + data.rule +
      ' The largest violation so far and the total cost so far cover the whole training.'] : [];
  const baselineNames = data.baselines.map((one) => `${one.label} (${one.episodes} episodes)`);
  const values = table(['', ...data.groups.map(named), ...baselineNames], [
      ...rows.map((q) => [title(q), ...data.groups.map((group) => meanOf(group, q.column)),
                          ...data.baselines.map((one) => number(one.means[q.column]))]),
      ['Wall time', ...data.groups.map((group) => duration(wallSeconds(group))), ...data.baselines.map(() => '–')]]);
  const own = [['Epoch shown', 'epoch'], ['Steps', 'env_steps'], ['Updates', 'updates'], ...rows.map((q) => [title(q), q.column])];
  const members = data.groups.map((group) => fold(`Each seed of ${group.title}`,
      table(['Seed', ...group.members.map((member) => member.seed)], [
          ...own.map(([name, key]) => [name, ...group.members.map((member) => number(member[key]))]),
          ['Status', ...group.members.map(({status}) => element('span', {class: status === 'ok' ? '' : 'bad', text: status}))]])));
  fill('summary', ...rule.map((text) => element('p', {class: 'soft', text})), values, ...members);
}

// The episodes of the list `which` of each group, "worst" or "newest". `hint` is what to say to a group.
function showViolations(which, hint) {
  const groups = data.groups.filter((group) => group.episodes.all);
  const share = groups.map((group) => `${number(group.episodes.violating)} of ${number(group.episodes.all)}`).slice(0, 4).join('; ');
  byId('violations').querySelector('summary').textContent = 'Violations by episode' + (share ? `: ${share} training episodes` : '');
  fill('violations', element('div', {class: 'grid'}, ...groups.map((group) => {
    const {all, violating} = group.episodes, listed = group.episodes[which];
    const title = element('h3', {}, named(group));
    if (!listed.length) {
      return element('div', {}, title, element('p', {class: 'soft', text: 'No training episode had a cost.'}));
    }
    const said = `${number(violating)} of ${count(all, 'training episode')} had a cost; the ${listed.length} ` +
        (which === 'worst' ? 'with the largest cost' : 'newest') + '. ';
    return element('div', {}, title, element('p', {class: 'soft'}, said, ...hint(group)), table(
        ['Seed', 'Episode', 'At step', 'Steps violated', 'Largest', 'Cost sum'],
        listed.map((one) => [one.seed, one.count > 1 ? `${number(one.episode - one.count + 1)}–${number(one.episode)}` : number(one.episode),
                             number(one.env_steps), number(one.violating_steps), number(one.max_violation), number(one.sum_cost)])));
  })));
}

const level = (value, end, scale) => [0, end].map((x) => ({x, y: scale.to(value), value}));

// One horizontal line per baseline, as long as the longest curve.
function baselines(quantity, end, scale) {
  const known = data.baselines.filter((one) => one.means[quantity.column] !== undefined && one.means[quantity.column] !== null);
  return known.map((one) => ({
    borderColor: one.colour, backgroundColor: one.colour, borderWidth: 1.5, borderDash: [8, 4], pointRadius: 0, pointHitRadius: 8,
    fill: false, label: one.label, data: level(one.means[quantity.column], end, scale)}));
}

// The budgets of the groups, which belong into the chart of the cost; 0 if no group has one.
function budgetsFor(quantity) {
  const groups = data.groups.filter((group) => costOf(group) === quantity.column), own = groups.filter((group) => group.has_budget);
  return [...new Set((own.length ? own : groups).flatMap((group) => group.members.map((member) => member.budget)))];
}
const budgetName = (budget) => data.groups.some((group) => group.has_budget) ? `budget ${few(budget)}` : 'no budget: 0';

function budgetLines(quantity, end, scale) {
  return budgetsFor(quantity).map((budget) => ({
    budget, borderColor: '#a3202b', backgroundColor: '#1a8c3314', borderWidth: 1.5, borderDash: [5, 3], pointRadius: 0, pointHitRadius: 0,
    fill: 'start', label: budgetName(budget), data: level(budget, end, scale)}));
}

const budgetText = {
  id: 'budgetText',
  afterDatasetsDraw({ctx, data: {datasets}, scales, chartArea}) {
    ctx.save();
    Object.assign(ctx, {font: '600 12px system-ui, "DejaVu Sans", sans-serif', fillStyle: '#a3202b', textAlign: 'right'});
    datasets.filter((one) => one.budget !== undefined).forEach(({label, data: [at]}, i) => {
      const line = scales.y.getPixelForValue(at.y);
      ctx.fillText(label, chartArea.right - 4 - 90 * i, line - 16 < chartArea.top ? line + 14 : line - 5);  // within the chart
    });
    ctx.restore();
  },
};

const pointsOf = (quantity) => data.groups.flatMap((group) => group.series[quantity.column] || []);
const lastStep = (quantity) => (
    Math.max(0, ...pointsOf(quantity).map((point) => point[0])) || Math.max(1, ...data.groups.map((group) => group.goal)));
const highest = (points) => Math.max(...points.map((point) => point[5] ?? point[1]));

// The axis of a cost far above its budget is linear up to the budget and logarithmic above it, so that both can be read.
function scaleOf(quantity) {
  const budget = Math.min(...budgetsFor(quantity).filter((one) => one > 0));
  if (!(highest(pointsOf(quantity)) > 5 * budget) || budget === Infinity) return {bent: false, to: (value) => value, from: (at) => at};
  return {bent: true, to: (value) => value <= budget ? value / budget : 1 + Math.log10(value / budget),
          from: (at) => at <= 1 ? at * budget : budget * 10 ** (at - 1)};
}

// Datasets of a group: the edges of the band or the members' lines, then the mean. A band is not wider than the members are apart.
function datasets(quantity, group, least, scale) {
  const points = group.series[quantity.column];
  const line = (values, more) => ({
    borderColor: group.colour, backgroundColor: group.colour, borderDash: group.dashes, fill: false, pointHitRadius: 8, label: group.title,
    pointRadius: 0, borderWidth: 2.5, clip: 5, data: values.map(([x, value, half]) => ({
      x, y: value === null || value === undefined ? NaN : scale.to(Math.max(value, least)), value, half})), ...more});
  const mean = line(group.members.length > MOST_THIN ? points : points.map((point) => point.slice(0, 2)), {pointRadius: points.length > 40 ? 0 : 2.5});
  if (points.every((point) => point.length === 2)) return [mean];
  if (group.members.length <= MOST_THIN) {
    const thin = {borderWidth: 1, borderColor: group.colour + '99', member: true};
    return [...group.members.map((member, i) => line(points.map((point) => [point[0], point[6 + i]]),
                                                     {...thin, label: `${group.title}, seed ${member.seed}`})), mean];
  }
  const edge = (sign) => points.map(([x, value, half, , low, high]) => [x, Math.min(high, Math.max(low, value + sign * half))]);
  const band = {borderWidth: 0, pointHitRadius: 0, band: true};
  return [line(edge(-1), band), line(edge(1), {...band, fill: '-1', backgroundColor: translucent(group.colour)}), mean];
}

function axisNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(3)}`;
}

// Lower end of the axis; undefined = fitted to the curves. A logarithmic axis begins at the decade of its smallest mean.
function axisBegin(quantity) {
  if (!quantity.logarithmic) return quantity.from_zero ? 0 : undefined;
  const means = pointsOf(quantity).map((point) => point[1]).filter((mean) => mean > 0);
  return means.length ? 10 ** Math.floor(Math.log10(Math.min(...means))) : undefined;
}

function lines(quantity) {
  const scale = scaleOf(quantity), least = quantity.logarithmic ? axisBegin(quantity) : -Infinity;
  const end = lastStep(quantity);
  return [...budgetLines(quantity, end, scale), ...baselines(quantity, end, scale),
          ...data.groups.filter((group) => group.series[quantity.column]).flatMap((group) => datasets(quantity, group, least, scale))];
}
const severalLines = () => data.groups.length + data.baselines.length > 1;

// How the seeds of the groups are drawn.
function drawnAs(quantity) {
  const sizes = data.groups.filter((group) => (group.series[quantity.column] || [[]])[0].length > 2).map((group) => group.members.length);
  return sizes.length ? `thick: mean; ${sizes.every((size) => size > MOST_THIN) ? 'band: 95 %' : 'thin: seeds'}` : '';
}

// `first`: on the first screen.
function chart(quantity, first) {
  const canvas = element('canvas', {role: 'img', 'aria-label': `${quantity.group}: ${quantity.title}`});
  const notes = [first && drawnAs(quantity), scaleOf(quantity).bent ? 'above the budget logarithmic' : ''].filter(Boolean).join('; ');
  const figure = element('figure', {}, element('figcaption', {}, quantity.title + ' ', element('small', {class: 'soft', text: notes})),
                         element('div', {class: 'plot'}, canvas));
  const grid = {color: '#e9edf1'};
  const draw = () => new Chart(canvas, {
    type: 'line', data: {datasets: lines(quantity)}, plugins: [budgetText],
    options: {
      animation: false, maintainAspectRatio: false, parsing: false, normalized: true,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {
        x: {type: 'linear', grid, ticks: {callback: axisNumber, maxTicksLimit: 6, maxRotation: 0},
            title: {display: true, text: 'environment steps'}, min: 0, max: lastStep(quantity)},
        y: {type: quantity.logarithmic ? 'logarithmic' : 'linear', grid, min: axisBegin(quantity),
            afterBuildTicks: (axis) => {
              const ticks = [0, 0.5, 1, 2, 3, 4, 5, 6].filter((value) => value <= axis.max);
              if (scaleOf(quantity).bent) axis.ticks = ticks.map((value) => ({value}));
            },
            ticks: {callback: (value) => axisNumber(scaleOf(quantity).from(value)), maxTicksLimit: 6}},
      },
      plugins: {
        legend: {display: severalLines(), labels: {boxWidth: 14, boxHeight: 2, filter: ({datasetIndex}, {datasets: all}) => (
            !all[datasetIndex].band && !all[datasetIndex].member && all[datasetIndex].budget === undefined)}},
        tooltip: {filter: (item) => !item.dataset.band,
                  callbacks: {title: (items) => items.length ? `${number(items[0].raw.x)} steps` : '',
                              label: ({dataset, raw}) => dataset.budget !== undefined ? dataset.label :
                                  `${dataset.label}: ${number(raw.value)}${raw.half ? ` ± ${significant(raw.half)}` : ''}`}},
      },
    },
  });
  return {figure, draw};
}

// The charts that are drawn, by the column of their quantity. Those of a fold are drawn when it is opened.
let charts = new Map(), layout = '';

// Changes a chart in place. Its datasets stay the same objects, so that a line that the reader has hidden stays hidden.
function redraw(shown, quantity) {
  const newer = lines(quantity);
  newer.forEach((one, i) => { shown.data.datasets[i] = Object.assign(shown.data.datasets[i] || {}, one); });
  shown.data.datasets.length = newer.length;
  shown.options.scales.y.min = axisBegin(quantity);
  shown.options.scales.x.max = lastStep(quantity);
  shown.options.plugins.legend.display = severalLines();
  shown.update();
}

// The two charts of the first screen with `beside`, and the folds of all others.
function showCurves(beside) {
  const quantities = data.quantities.filter((q) => data.groups.some((one) => one.series[q.column]));
  const first = data.groups.length ? [returnOf(data.groups[0]), costOf(data.groups[0])] : [];
  const heads = first.map((column) => quantities.find((q) => q.column === column)).filter(Boolean);
  const now = JSON.stringify([first, quantities.map((q) => q.column)]);
  if (now !== layout) {
    const open = new Set([...byId('curves').querySelectorAll('details[open] > summary')].map((summary) => summary.textContent));
    charts.forEach((one) => one.destroy());
    charts = new Map();
    const made = quantities.map((quantity) => ({quantity, ...chart(quantity, heads.includes(quantity))}));
    const drawn = (some) => some.filter(({quantity}) => !charts.has(quantity.column))
        .forEach(({quantity, draw}) => charts.set(quantity.column, draw()));
    const top = heads.map((quantity) => made.find((one) => one.quantity === quantity));
    byId('head').replaceChildren(...top.map(({figure}) => figure), element('div', {id: 'beside'}));
    byId('curves').replaceChildren(...[...new Set(quantities.map((q) => q.group))].map((group) => {
      const own = made.filter((one) => one.quantity.group === group && !heads.includes(one.quantity));
      const section = fold(group, element('div', {class: 'grid'}, ...own.map(({figure}) => figure)));
      section.addEventListener('toggle', () => {
        if (!section.open) return;
        drawn(own);
        own.forEach(({quantity}) => charts.get(quantity.column).resize());  // browsers do not report sizes that changed while it was closed
      });
      section.open = open.has(group);
      section.hidden = !own.length;
      return section;
    }));
    drawn(top);
    layout = now;
  } else {
    charts.forEach((one, column) => redraw(one, quantities.find((q) => q.column === column)));
  }
  if (byId('beside')) byId('beside').replaceChildren(...beside);
}

// The film of the first run that has one, or else its newest map.
function pictures() {
  const filmed = data.runs.find((run) => run.film);
  if (filmed) {
    const page = filmed.film.startsWith('data:text/html'), video = filmed.film.startsWith('data:video/');
    const about = {[page ? 'title' : video ? 'aria-label' : 'alt']: 'Film of an episode', src: filmed.film};
    const film = element(page ? 'iframe' : video ? 'video' : 'img', page ? {...about, sandbox: 'allow-scripts'} : about);
    if (video) Object.assign(film, {controls: true, loop: true, muted: true, autoplay: true});
    const caption = `An episode${data.runs.length > 1 ? ` of ${label(filmed)}` : ''}`;
    return [element('figure', {class: 'film'}, element('figcaption', {text: caption}), film)];
  }
  const mapped = data.runs.find((run) => run.map && !run.map.missing && run.map.panels && run.map.panels.length);
  return mapped ? [newestMap(mapped)] : [];
}

function showDetails() {
  for (const run of data.runs) {
    for (const [name, text] of [['resolved experiment', run.experiment], ['build', run.build]]) {
      if (text) byId('details').lastElementChild.append(fold(`${label(run)}: ${name}`, element('pre', {text})));
    }
  }
}

function showReport(report) {
  data = report;
  showHeader();
  showVerdicts();
  showCurves(pictures());
  showViolations('worst', (group) => [commandLine(`datacom replay-violation ${quoted(group.folder)} NUMBER --out violation.html`),
                                      ' simulates one again; its ledger/violations.csv has the numbers.']);
  showSummary();
  showMaps();
  showDetails();
}
// SPDX-License-Identifier: Apache-2.0
