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

const percent = (share) => share === null ? '–' : `${number(100 * share)} %`;

function showWaits() {
  const rows = state.runs.map((run) => ({
    trouble: Boolean(run.problem),
    cells: [run.folder, run.problem || run.state, percent(run.done), number(run.steps_per_second), number(run.updates_per_second),
            duration(run.eta_seconds), number(run.actors), run.waits.join('; ')]}));
  const sessions = state.runs.flatMap((run) => run.sessions.map((session) => ({
    cells: [run.folder, session.actor, session.members, number(session.environments), number(session.rows),
            session.connected ? 'connected' : 'disconnected']})));
  const shown = [table(['Run', 'State', 'Done', 'Steps/s', 'Updates/s', 'Left', 'Actors', 'Waiting'], rows)];
  if (sessions.length) {
    shown.push(element('details', {}, element('summary', {text: 'Sessions of actors'}),
        table(['Run', 'Actor', 'Members', 'Environments', 'Rows', ''], sessions)));
  }
  fill('waits', ...shown);
}

function showViolations() {
  const rows = state.runs.flatMap((run) => run.violations.map((one) => ({
    cells: [run.folder, one.id, one.member, one.seed, number(one.env_steps), one.actor, number(one.episode), number(one.step),
            number(one.cost), number(one.cvar), number(one.delta)]})));
  const total = state.runs.reduce((sum, run) => sum + run.violations_total, 0);
  const facts = `${number(total)} recorded. \`datacom replay-violation RUN NUMBER --out violation.mp4\` simulates one again.`;
  const shown = [element('p', {class: 'soft', text: rows.length ? facts : 'None recorded.'})];
  if (rows.length) {
    shown.push(table(['Run', 'Number', 'Member', 'Seed', 'At step', 'Actor', 'Episode', 'Its step', 'Cost', 'CVaR', 'δ'], rows));
  }
  fill('violations', ...shown);
}

function showState() {
  data = state.report;
  showHeader();
  document.title = data.runs.length ? document.title.replace('report', 'watch') : 'datacom watch';
  if (!data.runs.length) {
    byId('title').textContent = 'datacom watch';
    byId('subtitle').textContent = 'No run has records yet.';
  }
  showWaits();
  showViolations();
  showSummary();
  showCurves();
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
