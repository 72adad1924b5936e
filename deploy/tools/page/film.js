// A film as a page: plays the frames of #data in real time. Space pauses; the arrow keys go a frame back and forth.

const film = JSON.parse(document.getElementById("data").textContent);
const [view, curves, slider, play, speed, numbers] = ["view", "curves", "time", "play", "speed", "numbers"].map((id) => document.getElementById(id));
let time = 0, running = true, before = null, ground = null;

const number = (value) => value.toFixed(Math.abs(value) < 100 ? 3 : 1);

function drawView(at) {
  const width = Math.round(view.clientWidth * devicePixelRatio), height = Math.round(width * 9 / 16);
  const eye = new Eye(film.scene.eye, width, height), context = view.getContext("2d");
  if (view.width !== width || ground === null) {
    [view.width, view.height] = [width, height];
    ground = drawFixed(eye, film.scene.shapes);
  }
  context.drawImage(ground, 0, 0);
  context.lineWidth = height / 500;
  const from = film.frames[Math.floor(at)], to = film.frames[Math.ceil(at)];
  const pose = from.pose.map((body, i) => between(body, to.pose[i], at - Math.floor(at)));
  drawShapes(context, eye, film.scene.shapes.filter((shape) => shape.body >= 0), pose);
}

function drawNumbers(frame) {
  view.classList.toggle("violating", frame.cost > 0);
  let text = `step ${frame.step} of ${film.frames[film.frames.length - 1].step}   ${number(frame.step * film.period)} s   ` +
    `reward ${number(frame.reward)}   return ${number(frame.return)}   cost ${number(frame.cost)}`;
  if (frame.k !== null) text += `\nCVaR ${number(frame.cvar)}   \u03b4 ${number(frame.cvar - frame.k)}   k ${number(frame.k)}   action moved by ${number(frame.moved)}`;
  if (frame.nearest !== null) text += `\n${frame.nearest[0]}: ${number(frame.nearest[1])}`;
  numbers.textContent = text;
}

// Cost and k, each by its largest absolute value, with a line at 0 and one at the present time.
function drawCurves(at) {
  const width = curves.width = Math.round(curves.clientWidth * devicePixelRatio);
  const height = curves.height = Math.round(curves.clientHeight * devicePixelRatio), context = curves.getContext("2d");
  const last = Math.max(1, film.frames.length - 1), x = (i) => i / last * width;
  context.lineWidth = devicePixelRatio;
  context.strokeStyle = "#c3cad2";
  context.strokeRect(0, height / 2, width, 0);
  context.strokeRect(x(at), 0, 0, height);
  context.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  [["cost", "#a3202b", "cost"], ["k", "#2a62b0", "k, the learned constraint"]].forEach(([name, colour, label], row) => {
    const values = film.frames.map((frame) => frame[name]);
    if (values.some((value) => value === null)) return;
    const largest = Math.max(1e-9, ...values.map(Math.abs));
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1.5 * devicePixelRatio;
    context.beginPath();
    values.forEach((value, i) => context.lineTo(x(i), height / 2 * (1 - 0.95 * value / largest)));
    context.stroke();
    context.fillText(`${label}, up to ${number(largest)}`, 6 * devicePixelRatio, (14 + 15 * row) * devicePixelRatio);
  });
}

function draw() {
  const last = film.frames.length - 1, at = Math.min(last, time / (film.period * film.every));
  drawView(at);
  drawNumbers(film.frames[Math.floor(at)]);
  drawCurves(at);
  slider.value = Math.floor(at);
}

function go(frame) {
  time = Math.max(0, Math.min(film.frames.length - 1, frame)) * film.period * film.every;
  draw();
}

function pause() {
  running = !running;
  play.textContent = running ? "Pause" : "Play";
}

function tick(now) {
  const passed = Math.min(0.1, (now - (before ?? now)) / 1000), end = (film.frames.length - 1) * film.period * film.every;
  before = now;
  if (running) {
    time = time >= end + 1 ? 0 : time + passed * Number(speed.value);
    draw();
  }
  requestAnimationFrame(tick);
}

document.getElementById("title").textContent = film.title;
slider.max = film.frames.length - 1;
slider.oninput = () => go(Number(slider.value));
curves.onclick = (event) => go(Math.round(event.offsetX / curves.clientWidth * (film.frames.length - 1)));
play.onclick = pause;
window.onresize = () => { ground = null; draw(); };
document.onkeydown = (event) => {
  const inside = (selector) => event.target.closest?.(selector);  // which has keys of its own
  if (event.key === " " && !inside("button, select")) { event.preventDefault(); pause(); }
  if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !inside("input, select")) { event.preventDefault(); go(Number(slider.value) + (event.key === "ArrowLeft" ? -1 : 1)); }
};
draw();
requestAnimationFrame(tick);
// SPDX-License-Identifier: Apache-2.0
