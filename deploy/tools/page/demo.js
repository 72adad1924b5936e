"use strict";
// The page of `datacom demo`. The server plays whole episodes (agent.h says what they hold); this draws them, and asks
// again from the start, with all changes, when somebody has moved a switch. Lengths in metres, times in seconds.

// Blue where k is below 0, red above; `span` is the largest |k| that is told apart.
function riskColour(k, span) {
  const strength = 0.2 + 0.8 * Math.min(1, Math.abs(k) / span), full = k > 0 ? [0.75, 0.12, 0.18] : [0.16, 0.38, 0.69];
  return css(full.map((value) => 1 - strength * (1 - value)), 1);
}

function mapCells(map, delta, draw) {
  const n = map.resolution, wide = (map.x_high - map.x_low) / n, high = (map.y_high - map.y_low) / n;
  const known = map.cvar.filter((value) => value !== null);
  const span = Math.max(0.05, delta, 0.25 * (Math.max(...known) - Math.min(...known)));
  map.cvar.forEach((value, i) => {
    if (value === null) return;
    const x = map.x_low + (i % n) * wide, y = map.y_low + Math.floor(i / n) * high;
    draw(x, y, wide, high, riskColour(value - delta, span));
  });
}

// On these tasks the map's plane is the floor or the table, at this height; on others it is drawn in a corner.
const MAP_HEIGHT = { air_hockey: 0.002, air_hockey_7dof: null, navigation: 0.005, cartpole: null };

async function fetchJson(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const content = await answer.json();
  if (content !== null && content.error !== undefined) throw new Error(content.error);
  return content;
}

const totals = new Map();  // "task, agent, shield" to what the table shows

class Panel {
  constructor(page, agent, shielded) {
    this.page = page;
    this.shielded = shielded;  // unless a switch says otherwise
    this.root = document.createElement("section");
    this.root.className = "panel";
    this.root.innerHTML = `<div class="row"><select class="who" aria-label="Agent"></select></div>
      <div class="view"><canvas></canvas><canvas class="inset" hidden></canvas></div><p class="state" role="status"></p>
      <div class="numbers"><div><b class="violating">0</b>violating steps</div><div><b class="sum">0</b>cost</div>
      <div><b class="k">-</b>k</div><div><b class="moved">-</b>action moved by</div></div>
      <div class="row shield"><label><input type="checkbox" class="on" checked> shield</label>
      <label>δ <output></output></label><input type="range" class="delta" min="-1" max="1" step="0.02" value="0" aria-label="delta"></div>`;
    const find = (name) => this.root.querySelector(name);
    [this.who, this.canvas, this.inset, this.state] = [".who", "canvas", ".inset", ".state"].map(find);
    [this.row, this.on, this.slider, this.output] = [".shield", ".on", ".delta", "output"].map(find);
    this.numbers = Object.fromEntries(["violating", "sum", "k", "moved"].map((name) => [name, find("b." + name)]));
    page.scene.agents.forEach((one, i) => this.who.add(new Option(one.label, i)));
    this.who.value = agent;
    const failed = (error) => page.fail(error);
    this.who.onchange = () => this.open().then(() => page.restart()).catch(failed);
    this.on.onchange = () => this.change().catch(failed);
    this.slider.oninput = () => {
      this.output.textContent = this.delta().toFixed(2);
      clearTimeout(this.later);
      this.later = setTimeout(() => this.change().catch(failed), 150);
    };
  }

  at() { return `scene=${this.page.number}&agent=${this.who.value}`; }
  delta() { return this.about.delta === null ? 0 : this.about.delta * 10 ** Number(this.slider.value); }

  async open() {
    this.about = await fetchJson(`/agent?${this.at()}`);
    this.map = await fetchJson(`/map?${this.at()}`);
    this.row.hidden = !this.about.shield;
    this.slider.hidden = this.output.parentElement.hidden = this.about.delta === null;
    this.slider.value = 0;
    this.on.checked = this.shielded && this.page.shields.checked;
    this.output.textContent = this.delta().toFixed(2);
    this.ground = null;
  }

  // Plays from the start with the switches as they are, or, with `goOn`, with the changes so far.
  async play(goOn = false) {
    if (!goOn) this.changes = this.about.shield ? [`0:${this.on.checked ? "on" : "off"}:${this.delta()}`] : [];
    this.counted = goOn && this.counted;
    this.episode = await fetchJson(`/episode?${this.at()}&seed=${this.page.seed}&changes=${this.changes.join(",")}`);
  }

  async change() {
    if (!this.episode) return;
    const step = Math.min(this.episode.steps, Math.floor(this.page.time / this.about.period));
    const before = this.changes.filter((one) => Number(one.split(":")[0]) < step);
    this.changes = [...before.slice(0, 1), ...before.slice(1).slice(-60)];  // the first one says how the episode began
    this.changes.push(`${step}:${this.on.checked ? "on" : "off"}:${this.delta()}`);
    this.mixed = step > 0;
    this.ground = null;
    await this.play(true);
  }

  // What does not move, and the map.
  drawGround(eye) {
    this.ground = drawFixed(eye, this.about.scene.shapes);
    const context = this.ground.getContext("2d");
    const height = MAP_HEIGHT[this.page.scene.name];
    if (!this.map || !this.page.maps.checked || height === null || height === undefined) return;
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = [eye.width, eye.height];
    const cells = layer.getContext("2d");
    mapCells(this.map, this.delta(), (x, y, wide, high, colour) => {
      cells.fillStyle = cells.strokeStyle = colour;
      cells.beginPath();
      for (const [dx, dy] of [[0, 0], [wide, 0], [wide, high], [0, high]]) cells.lineTo(...eye.see([x + dx, y + dy, height]));
      cells.fill();
      cells.stroke();  // closes the seams between cells
    });
    context.globalAlpha = 0.6;
    context.drawImage(layer, 0, 0);
    context.globalAlpha = 1;
  }

  drawInset(point) {
    const show = this.map !== null && point !== null && this.page.maps.checked;
    this.inset.hidden = !show;
    if (!show) return;
    const size = this.inset.width = this.inset.height = Math.round(this.inset.clientWidth * devicePixelRatio);
    const context = this.inset.getContext("2d");
    const x = (value) => (value - this.map.x_low) / (this.map.x_high - this.map.x_low) * size;
    const y = (value) => size - (value - this.map.y_low) / (this.map.y_high - this.map.y_low) * size;
    context.fillStyle = "#fff";
    context.fillRect(0, 0, size, size);
    mapCells(this.map, this.delta(), (left, low, wide, high, colour) => {
      context.fillStyle = colour;
      context.fillRect(x(left), y(low + high), x(left + wide) - x(left) + 1, y(low) - y(low + high) + 1);
    });
    context.fillStyle = "#000";
    context.beginPath();
    context.arc(x(point[0]), y(point[1]), size / 35, 0, 7);
    context.fill();
    this.inset.title = `${this.map.x_label} against ${this.map.y_label}; ${this.map.title}`;
  }

  // Draws the state at the page's time. Returns whether the episode has ended by then.
  draw() {
    if (!this.episode) return false;
    const width = Math.round(this.canvas.clientWidth * devicePixelRatio), height = Math.round(width * 9 / 16);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      [this.canvas.width, this.canvas.height] = [width, height];
      this.ground = null;
    }
    const { frames, every, steps } = this.episode, step = Math.min(steps, this.page.time / this.about.period);
    const at = Math.min(frames.length - 1, step / every), from = frames[Math.floor(at)], to = frames[Math.ceil(at)];
    const ended = step >= steps, now = ended ? frames[frames.length - 1] : from;
    const pose = from.pose.map((body, i) => between(body, to.pose[i], at - Math.floor(at)));
    const eye = new Eye(this.about.scene.eye, width, height), context = this.canvas.getContext("2d");
    if (!this.ground) this.drawGround(eye);
    context.drawImage(this.ground, 0, 0);
    context.lineWidth = height / 500;
    drawShapes(context, eye, this.about.scene.shapes.filter((shape) => shape.body >= 0), pose);
    this.drawInset(now.point);
    this.root.classList.toggle("violating", now.cost > 0);
    this.numbers.violating.textContent = now.violating;
    this.numbers.sum.textContent = now.sum.toFixed(2);
    for (const name of ["violating", "sum"]) this.numbers[name].classList.toggle("bad", now.violating > 0);
    this.numbers.k.textContent = now.k === null ? "-" : now.k.toFixed(2);
    this.numbers.moved.textContent = this.about.shield ? now.moved.toFixed(2) : "-";
    const idle = this.about.shield && this.on.checked && !this.mixed && this.episode.acts === 0 ? "; the shield is idle in this episode" : "";
    this.state.textContent = (ended ? this.end() : `${(step * this.about.period).toFixed(1)} s`) + idle;
    if (ended && !this.counted) this.count(now);
    return ended;
  }

  end() {
    const words = { horizon: "the time is over", task: this.about.absorbing || "the task has ended it", invalid: "the simulator failed" };
    return `${this.episode.success ? "success" : "no success"}; ${words[this.episode.end]}`;
  }

  count(last) {
    this.counted = true;
    const moved = this.about.delta !== null && Number(this.slider.value) !== 0 ? `, δ ${this.delta().toFixed(2)}` : "";
    const shield = !this.about.shield ? "none" : this.mixed ? "switched" : this.on.checked ? `on${moved}` : "off";
    const key = JSON.stringify([this.page.number, this.who.value, shield]);
    const sum = totals.get(key) ?? { agent: `${this.page.scene.name}: ${this.about.label}`, shield, episodes: 0, success: 0, violated: 0, steps: 0, cost: 0 };
    sum.episodes += 1;
    sum.success += this.episode.success ? 1 : 0;
    sum.violated += last.violating > 0 ? 1 : 0;
    sum.steps += last.violating;
    sum.cost += last.sum;
    totals.set(key, sum);
    document.getElementById("totals").replaceChildren(...[...totals.values()].map((one) => {
      const row = document.createElement("tr");
      for (const cell of [one.agent, one.shield, one.episodes, one.success, one.violated, one.steps, one.cost.toFixed(2)]) {
        row.appendChild(document.createElement("td")).textContent = cell;
      }
      return row;
    }));
  }
}

class Page {
  constructor(scenes) {
    this.scenes = scenes;
    this.seed = 1;
    this.time = 0;
    this.running = true;
    for (const name of ["play", "restart", "next", "shields", "maps", "speed"]) this[name === "restart" || name === "next" ? name + "Button" : name] = document.getElementById(name);
    const nav = document.getElementById("scenes");
    scenes.forEach((scene, i) => {
      const button = nav.appendChild(document.createElement("button"));
      button.textContent = scene.name.replaceAll("_", " ");
      button.title = String(i + 1);
      button.onclick = () => this.show(i);
    });
    this.play.onclick = () => this.pause();
    this.restartButton.onclick = () => this.restart();
    this.nextButton.onclick = () => this.goOn();
    this.shields.onchange = () => this.switchShields();
    this.maps.onchange = () => this.panels.forEach((panel) => { panel.ground = null; });
    document.addEventListener("keydown", (event) => this.key(event));
    requestAnimationFrame((now) => this.tick(now));
  }

  key(event) {
    const inside = (selector) => event.target.closest?.(selector);  // which has keys of its own
    if (event.ctrlKey || event.metaKey || event.altKey || inside("select") || (event.key === " " && inside("button, [type=checkbox]"))) return;
    const actions = { " ": () => this.pause(), r: () => this.restart(), n: () => this.goOn(),
      s: () => { this.shields.checked = !this.shields.checked; this.switchShields(); },
      m: () => { this.maps.checked = !this.maps.checked; this.maps.onchange(); } };
    const scene = Number(event.key) - 1, action = actions[event.key.toLowerCase()];
    if (!action && !this.scenes[scene]) return;
    event.preventDefault();
    if (action) action(); else this.show(scene);
  }

  pause() {
    this.running = !this.running;
    this.play.textContent = this.running ? "Pause" : "Play";
  }

  switchShields() {
    for (const panel of this.panels) {
      if (!panel.about?.shield) continue;
      panel.on.checked = this.shields.checked;
      panel.change().catch((error) => this.fail(error));
    }
  }

  async show(number) {
    this.number = number;
    this.scene = this.scenes[number];
    this.ready = false;
    document.getElementById("title").textContent = this.scene.title;
    [...document.getElementById("scenes").children].forEach((button, i) => button.setAttribute("aria-pressed", i === number));
    const alone = this.scene.agents.length === 1;
    const panels = this.panels = [0, 1].map((side) => new Panel(this, alone ? 0 : side, !(alone && side === 0)));
    document.getElementById("panels").replaceChildren(...panels.map((panel) => panel.root));
    try {
      for (const panel of panels) await panel.open();
    } catch (error) {
      return this.fail(error);
    }
    if (panels === this.panels) await this.restart();
  }

  async restart() {
    const panels = this.panels;
    this.ready = false;
    this.time = 0;
    try {
      for (const panel of panels) {
        panel.mixed = false;
        await panel.play();
      }
    } catch (error) {
      if (panels === this.panels) this.fail(error);
      return;
    }
    if (panels === this.panels) this.ready = true;
  }

  goOn() {
    this.seed += 1;
    return this.restart();
  }

  fail(error) {
    for (const panel of this.panels) panel.state.textContent = String(error.message);
  }

  tick(now) {
    requestAnimationFrame((later) => this.tick(later));
    const passed = Math.min(0.1, (now - (this.before ?? now)) / 1000);
    this.before = now;
    if (this.ready) {
      if (this.running) this.time += passed * Number(this.speed.value);
      const ended = this.panels.map((panel) => panel.draw()).every(Boolean);
      this.rest = ended && this.running ? (this.rest ?? 0) + passed : 0;
      if (this.rest > 1.5) {
        this.rest = 0;
        this.goOn();
      }
    }
  }
}

fetchJson("/scenes").then((scenes) => new Page(scenes).show(0)).catch((error) => {
  document.getElementById("title").textContent = String(error.message);
});
// SPDX-License-Identifier: Apache-2.0
