'use strict';
// What the records of a group say in words: does it learn, is it safe within its budget, what to do next. The report and
// the live page show these sentences. page.js, loaded next, holds the helpers.

const FEWEST = 9;  // evaluations: with fewer, the last third has less than three
const SMALLEST_CHANGE = 0.05;  // of the range of the curve: a smaller change counts as none

const average = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values, free) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(1, free));

// The columns of the evaluations, or of the training episodes of a run without evaluations.
const firstRecorded = (group, columns) => columns.find((column) => (group.series[column] || []).length) || columns[0];
const returnOf = (group) => firstRecorded(group, ['eval_discounted_return', 'eval_return', 'newest_discounted_return']);
const costOf = (group) => firstRecorded(group, ['eval_sum_cost', 'newest_sum_cost']);

// Each member's curve: a list of [steps, value].
function memberCurves(group, column) {
  const points = group.series[column] || [];
  const curves = group.members.map((_, i) => points.map((point) => [point[0], point.length > 2 ? point[6 + i] : point[1]]));
  return curves.map((curve) => curve.filter(([, value]) => value !== null && value !== undefined));
}

// The newest tenth of a curve, at least three values.
const newest = (curve) => average(curve.slice(-Math.max(3, Math.ceil(curve.length / 10))).map(([, value]) => value));

// The change of a straight line through the last third of the curve, and the distances of the points from that line.
function lineOfLastThird(curve) {
  const points = curve.slice(-Math.ceil(curve.length / 3));
  const x = average(points.map(([at]) => at)), y = average(points.map(([, value]) => value));
  const squares = points.reduce((sum, [at]) => sum + (at - x) ** 2, 0);
  const slope = squares ? points.reduce((sum, [at, value]) => sum + (at - x) * (value - y), 0) / squares : 0;
  return {change: slope * (points.at(-1)[0] - points[0][0]), rests: points.map(([at, value]) => value - y - slope * (at - x))};
}

// Rising, falling or flat over the last third: the mean change of the seeds counts if it is larger than the spread, which
// is the larger of the seeds' deviation in that change and the deviation of the values from their lines.
function trendOf(curves) {
  const known = curves.filter((curve) => curve.length >= FEWEST), lines = known.map(lineOfLastThird);
  if (!lines.length) return {word: 'unknown'};
  const change = average(lines.map((line) => line.change)), rests = lines.flatMap((line) => line.rests);
  const spread = Math.max(deviation(rests, rests.length - 2 * lines.length),
                          deviation(lines.map((line) => line.change - change), lines.length - 1));
  const values = known.flatMap((curve) => curve.map(([, value]) => value));
  const range = Math.max(...values) - Math.min(...values);
  const word = Math.abs(change) <= Math.max(spread, SMALLEST_CHANGE * range) ? 'flat' : change > 0 ? 'rising' : 'falling';
  return {word, spread};
}

const few = (value) => value === null ? '–' : Math.abs(value) < 1000 ? String(+value.toPrecision(3)) :
    Math.round(value).toLocaleString('en-US');
const count = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;
const seedsOf = (members) => `seed${members.length === 1 ? '' : 's'} ${members.map((member) => member.seed).join(', ')}`;
// "3", "3 and 5", "3 to 5".
function spanned(values) {
  if (values.length <= 2) return values.map(few).join(' and ');
  return `${few(Math.min(...values))} to ${few(Math.max(...values))}`;
}

function learning(group) {
  const column = returnOf(group), name = column.endsWith('discounted_return') ? 'J' : 'Return';
  const curves = memberCurves(group, column).filter((curve) => curve.length);
  if (!curves.length) return {level: 'open', word: 'Too early to say.', text: 'No evaluation has ended yet.', trend: 'unknown'};
  const longest = Math.max(...curves.map((curve) => curve.length));
  const first = average(curves.map((curve) => curve[0][1])), ends = curves.map(newest), now = average(ends);
  const seeds = curves.length > 1 ? ` (seeds: ${spanned(ends)})` : '';
  const values = (longest === 1 ? `${name} is ${few(now)}` : `${name} went from ${few(first)} to ${few(now)}`) + seeds;
  if (longest < FEWEST) {
    return {level: 'open', word: 'Too early to say.', trend: 'unknown',
            text: `${count(longest, 'evaluation')}; a trend needs ${FEWEST}. ${values}.`};
  }
  const trend = trendOf(curves), learned = now - first > trend.spread;
  const [level, word] = trend.word === 'falling' ? ['bad', learned ? 'It did, and now falls.' : 'No, it falls.'] :
      !learned ? (trend.word === 'rising' ? ['open', 'It begins to.'] : ['bad', 'No.']) :
      ['good', trend.word === 'rising' ? 'Yes, and still rises.' : 'Yes, and is now flat.'];
  return {level, word, text: values + '.', trend: trend.word, learned};
}

function safety(group) {
  const column = costOf(group), curves = memberCurves(group, column);
  const known = curves.map((curve, i) => ({curve, budget: group.members[i].budget})).filter(({curve}) => curve.length);
  if (!known.length) return {level: 'open', word: 'Too early to say.', text: 'No evaluation has ended yet.', trend: 'unknown', within: 0};
  const costs = known.map(({curve}) => newest(curve)), within = known.filter(({budget}, i) => costs[i] <= budget).length;
  const budgets = [...new Set(known.map(({budget}) => budget))], all = known.length;
  const limit = `the budget of ${budgets.map(few).join(', ')}`;
  const seeds = !group.has_budget ? `This method has no budget; ${within} of ${count(all, 'seed')} without cost` :
      all === 1 ? (within ? `Within ${limit}` : `Above ${limit}`) : `${within} of ${all} seeds within ${limit}`;
  const text = `${seeds}. Cost of an episode now: ${spanned(costs)}.`;
  const early = Math.max(...known.map(({curve}) => curve.length)) < FEWEST;
  const [level, word] = early ? ['open', 'Too early to say.'] : within === all ? ['good', 'Yes.'] :
      within === 0 ? ['bad', 'No.'] : ['bad', 'Not every seed.'];
  const total = group.summary.cumulative_cost, episodes = group.episodes.all / group.members.length;
  const training = total && episodes && (total[0] > 0 || !group.episodes.violating) ?
      ` Training cost ${few(total[0])}${all > 1 ? ' a seed' : ''}, ${few(total[0] / episodes)} an episode.` : '';
  return {level, word, text: text + training, trend: trendOf(curves).word, within, all, early};
}

// A shield that changes fewer than one action in a thousand.
function idle(group) {
  const members = group.members.filter(({shield}) => typeof shield === 'number' && shield < 0.001);
  return members.length ? [`S${seedsOf(members).slice(1)}: the shield is idle. It changes no action: what keeps this policy safe is not learned.`] : [];
}

function trouble(group) {
  const of = (status) => group.members.filter((member) => member.status === status);
  return [['diverged', 'diverged: a loss is not finite and nothing more is learned'],
          ['runaway', 'runaway: the loss of the critic has grown tenfold, or its temperature thirtyfold'],
          ['locked', 'locked: the shield forbids most states, so that it overrides the policy and nothing is learned'],
          ['abandoned', `abandoned: more than a tenth of the episodes broke off, the first one ${(of('abandoned')[0] || {}).abandoned_reason}`]]
      .filter(([status]) => of(status).length).map(([status, text]) => {
        const seeds = seedsOf(of(status));
        return `S${seeds.slice(1)} ${text}.`;
      }).concat(idle(group));
}

// The value of a setting in the text of the run's experiment; undefined if it has none.
function setting(group, name) {
  const run = data.runs.find((one) => one.folder === group.folder);
  const found = run && run.experiment.match(new RegExp(`^\\s*${name}: "?([^"\\n]*)"?$`, 'm'));
  return found ? found[1] : undefined;
}

const quoted = (path) => /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
const resumed = (group, factor) => `datacom train --run-dir ${quoted(group.folder)} --resume` +
    (factor ? ` --steps ${factor * group.goal}` : '');
const changed = (group, override) => `datacom train ${quoted(group.folder + '/experiment.textproto')} --set ${override}`;
const scaled = (group, name, otherwise, factor) => `hyper.${name}=${+(factor * (setting(group, name) ?? otherwise)).toPrecision(3)}`;
const halved = (group, name, otherwise) => scaled(group, name, otherwise, 0.5);

// How to lower the cost of a group that has learned and stays above its budget.
function lowerCost(group) {
  if (!group.has_budget) {
    const own = (data.runs.find((run) => run.folder === group.folder) || {experiment: ''}).experiment.includes('text_task');
    return own ? ['Use a method that keeps a budget, such as datacom.'] :
        ['Use a method that keeps a budget:', `datacom train ${quoted(group.task)} --algorithm datacom`];
  }
  const lower = group.members.every((member) => member.budget > 0) ?
      ['Aim at a lower cost in a new run:', changed(group, halved(group, 'cost_budget', 5))] :
      ['Train with more steps; no budget is lower than 0:', resumed(group, 2)];
  if (!group.learns_delta) return lower;
  const mode = setting(group, 'delta_mode') || 'learned', warmup = +(setting(group, 'delta_warmup') || 50000);
  if (mode === 'fixed') return ['Lower δ in a new run:', changed(group, halved(group, 'init_delta', 1))];
  if (mode === 'learned' && warmup >= group.goal) {
    return [`δ has not moved: it begins after ${number(warmup)} steps. Train longer:`, resumed(group, Math.ceil(4 * warmup / group.goal))];
  }
  if (mode === 'learned') return ['Let δ follow the risk of the episodes within the budget:', changed(group, 'hyper.delta_mode=peak')];
  if (setting(group, 'multiplier_mode') === 'pi') return lower;
  return ['Let the policy pay for its cost:', changed(group, 'hyper.multiplier_mode=pi')];
}

// [sentence, command]: the first step that helps. `running`: the run goes on (live page).
function nextStep(group, learns, safe, running) {
  const of = (status) => group.members.some((member) => member.status === status);
  const steps = Math.max(...group.members.map((member) => member.env_steps));
  const lowerRate = changed(group, halved(group, 'critic_lr', 5e-4)), best = `datacom eval ${quoted(group.folder)} --epoch best`;
  if (of('diverged')) return ['Train again with a smaller learning rate:', lowerRate];
  if (of('runaway')) return ['Earlier policies are kept; see the alert CriticRunsAway. Train again with a smaller learning rate:', lowerRate];
  if (of('locked')) {
    const [advice, override] = setting(group, 'delta_mode') === 'peak' ? ['Raise δ', scaled(group, 'delta_margin', 1.1, 1.5)] :
        ['Let δ follow the risk of acceptable episodes', 'hyper.delta_mode=peak'];
    return [`See the alert ShieldLocked. ${advice} in a new run:`, changed(group, override)];
  }
  if (of('abandoned')) return ['Mend the task or its simulator, then train again. What was broken off taught only its first steps.'];
  if (running) return [`Wait: ${Math.floor(100 * steps / group.goal)} % of the steps are done.`];
  if (steps < group.goal) return [`Resume: ${Math.floor(100 * steps / group.goal)} % of the steps are done.`, resumed(group)];
  if (learns.trend === 'unknown') return ['Train longer:', resumed(group, 10)];
  if (learns.trend === 'falling') return ['Use the best epoch instead of the last:', best];
  if (safe.within < safe.all && safe.trend === 'falling') return ['The cost still falls. Train longer:', resumed(group, 2)];
  if (safe.within < safe.all) return lowerCost(group);
  if (learns.trend === 'rising') return ['Train longer:', resumed(group, 2)];
  if (!learns.learned) return ['Train longer. If it stays so, look at the reward of the task:', resumed(group, 3)];
  return ['Nothing is left to train. Measure the best epoch:', `${best} --episodes 100`];
}

function verdictOf(group, running = false) {
  const learns = learning(group), safe = safety(group);
  return {trouble: trouble(group), learns, safe, next: nextStep(group, learns, safe, running)};
}
// SPDX-License-Identifier: Apache-2.0
