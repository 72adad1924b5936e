// The live page. The event "state" has the whole state as JSON; "patch" has its changes since the event before, as a JSON
// patch (RFC 6902). page.js, loaded before, draws the report in the state.

let state;

// Applies the operations that the server uses: add, remove and replace.
function applyPatch(document, operations) {
  for (const {op, path, value} of operations) {
    const keys = path.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop();
    const node = keys.reduce((inner, key) => inner[key], document);
    if (!Array.isArray(node)) {
      if (op === 'remove') delete node[last]; else node[last] = value;
    } else if (op === 'add') {
      node.splice(last === '-' ? node.length : Number(last), 0, value);
    } else if (op === 'remove') {
      node.splice(Number(last), 1);
    } else {
      node[Number(last)] = value;
    }
  }
}

const percent = (share) => share === null ? '–' : `${Math.floor(100 * share)} %`;
const ended = (run) => ['complete', 'not running'].includes(run.state);

// How far each run is. A wait is named only while nothing moves: short waits are a part of the work.
function progress() {
  const shown = state.runs.filter((run) => !ended(run)).concat(state.runs.filter(ended)).slice(0, 6).map((run) => {
    const speed = ended(run) ? [] : [`${number(run.steps_per_second)} steps/s`, `${number(run.updates_per_second)} updates/s`,
                                     run.eta_seconds === null ? '' : `${duration(run.eta_seconds)} left`];
    const idle = !ended(run) && !run.steps_per_second && !run.updates_per_second ? run.waits : [];
    return element('div', {class: 'progress'}, element('b', {text: run.folder}),
        element('progress', {max: 1, value: run.done || 0}),
        element('p', {text: [`${run.state}, ${percent(run.done)} done`, ...speed].filter(Boolean).join(' · ')}),
        ...idle.map((wait) => element('p', {class: 'soft', text: `Waits: ${wait}`})),
        ...(run.problem ? [element('p', {class: 'bad', text: run.problem})] : []));
  });
  return [element('figure', {}, element('figcaption', {text: 'Now'}), ...shown)];
}

// The actors of each run, and for whom it waited last.
function showProcesses() {
  fill('waits', element('div', {class: 'grid'}, ...state.runs.map((run) => element('div', {}, element('h3', {text: run.folder}),
      element('p', {class: 'soft', text: `${run.problem || run.state}; newest wait: ${run.waits.join('; ') || 'none'}`}),
      ...(run.sessions.length ? [table(['Actor', 'Members', 'Environments', 'Rows'], run.sessions.map((session) => (
          [session.actor + (session.connected ? '' : ' (gone)'), session.members, number(session.environments), number(session.rows)])))] : [])))));
}

// Of the group's first run, which the hint is about.
function ledgerHint(group) {
  const run = state.runs.find((one) => one.folder === group.folder);
  if (!run || !run.violations_total) return [];
  return [`The ledger has ${count(run.violations_total, 'violating step')}: `,
          commandLine(`datacom replay-violation ${quoted(group.folder)} ${run.violations_total} --out violation.html`),
          ' simulates the newest again.'];
}

function showState() {
  data = state.report;
  showHeader('watch');
  if (!data.runs.length) {
    document.title = byId('title').textContent = 'datacom watch';
    byId('subtitle').textContent = 'No run has records yet.';
  }
  showVerdicts((group) => state.runs.some((run) => run.folder === group.folder && !ended(run)));
  showCurves(progress());
  showViolations('newest', ledgerHint);
  showProcesses();
  showSummary();
}

const connection = (text) => { byId('connection').textContent = text; };
const source = new EventSource('events');
source.addEventListener('state', (event) => {
  state = JSON.parse(event.data);
  showState();
});
source.addEventListener('patch', (event) => {
  applyPatch(state, JSON.parse(event.data));
  showState();
});
source.addEventListener('open', () => connection('live'));
source.addEventListener('error', () => connection(source.readyState === EventSource.CLOSED ?
    'refused: too many pages are open, or `datacom watch` is another program now; reload the page' :
    'disconnected: `datacom watch` does not answer; trying again'));
// SPDX-License-Identifier: Apache-2.0
