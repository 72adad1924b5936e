"use strict";
// Draws a simulation that scene_json.h describes: every shape as the outline that an eye sees of it, farthest first. Lengths in metres.

// Vectors and quaternions [w, x, y, z].
const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const scale = (s, a) => [s * a[0], s * a[1], s * a[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
function turn(q, v) {
  const u = [q[1], q[2], q[3]], t = scale(2, cross(u, v));
  return add(add(v, scale(q[0], t)), cross(u, t));
}
function between(a, b, share) {
  const same = a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6] < 0 ? -1 : 1;
  const pose = a.map((value, i) => (1 - share) * value + share * (i < 3 ? 1 : same) * b[i]);
  const length = Math.hypot(pose[3], pose[4], pose[5], pose[6]);
  for (let i = 3; i < 7; ++i) pose[i] /= length;
  return pose;
}

class Eye {
  constructor(eye, width, height) {
    Object.assign(this, eye, { width, height });
    this.right = cross(eye.forward, eye.up);
    this.focus = height / 2 / Math.tan(eye.angle / 2);
  }
  depth(point) { return dot(add(point, scale(-1, this.position)), this.forward); }
  see(point) {
    const from = add(point, scale(-1, this.position)), depth = Math.max(dot(from, this.forward), 0.05);
    return [this.width / 2 + this.focus * dot(from, this.right) / depth, this.height / 2 - this.focus * dot(from, this.up) / depth];
  }
}

// Points whose hull, seen by the eye, is the shape's outline; a sphere is a circle that faces the eye.
function outline(shape, eye, place) {
  const [a, b, c] = shape.size, points = [];
  const ring = (radius, z) => {
    for (let i = 0; i < 14; ++i) {
      const angle = i * Math.PI / 7;
      points.push(place([radius * Math.cos(angle), radius * Math.sin(angle), z]));
    }
  };
  const ball = (centre, radius) => {
    for (let i = 0; i < 14; ++i) {
      const angle = i * Math.PI / 7;
      points.push(add(centre, add(scale(radius * Math.cos(angle), eye.right), scale(radius * Math.sin(angle), eye.up))));
    }
  };
  if (shape.kind === "sphere") ball(place([0, 0, 0]), a);
  if (shape.kind === "capsule") for (const z of [-b, b]) ball(place([0, 0, z]), a);
  if (shape.kind === "cylinder") for (const z of [-b, b]) ring(a, z);
  if (shape.kind === "box") for (let i = 0; i < 8; ++i) points.push(place([i & 1 ? a : -a, i & 2 ? b : -b, i & 4 ? c : -c]));
  if (shape.kind === "points") for (const point of shape.points) points.push(place(point));
  if (shape.kind === "ellipsoid") {
    for (let i = 0; i < 3; ++i) {
      for (let k = 0; k < 14; ++k) {
        const at = [0, 0, 0];
        at[i] = shape.size[i] * Math.cos(k * Math.PI / 7);
        at[(i + 1) % 3] = shape.size[(i + 1) % 3] * Math.sin(k * Math.PI / 7);
        points.push(place(at));
      }
    }
  }
  return points;
}

// The convex hull of points [x, y], counter-clockwise (Andrew's monotone chain).
function hull(points) {
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const chain = (list) => {
    const out = [];
    for (const p of list) {
      while (out.length > 1) {
        const [a, b] = out.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        out.pop();
      }
      out.push(p);
    }
    out.pop();
    return out;
  };
  return [...chain(points), ...chain([...points].reverse())];
}

const css = (colour, alpha, light = 1) => `rgba(${colour.map((value) => Math.round(255 * Math.min(1, value * light))).join(",")},${alpha})`;

function drawShapes(context, eye, shapes, pose) {
  const seen = shapes.map((shape) => {
    const body = shape.body < 0 ? null : pose[shape.body];
    const place = (point) => {
      const inBody = add(turn(shape.rotation, point), shape.position);
      return body === null ? inBody : add(turn(body.slice(3), inBody), body.slice(0, 3));
    };
    return { shape, place, depth: eye.depth(place([0, 0, 0])) };
  });
  seen.sort((a, b) => b.depth - a.depth);
  for (const { shape, place, depth } of seen) {
    if (depth < 0.05) continue;
    const corners = hull(outline(shape, eye, place).map((point) => eye.see(point)));
    if (corners.length < 2) continue;
    context.beginPath();
    corners.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.fillStyle = css(shape.colour, shape.alpha);
    context.strokeStyle = css(shape.colour, shape.alpha, 0.6);
    context.fill();
    context.stroke();
  }
}

// A canvas with what does not move.
function drawFixed(eye, shapes) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [eye.width, eye.height];
  const context = canvas.getContext("2d");
  context.fillStyle = "#e3e7ea";
  context.fillRect(0, 0, eye.width, eye.height);
  context.lineWidth = eye.height / 500;
  drawShapes(context, eye, shapes.filter((shape) => shape.body < 0), []);
  return canvas;
}
// SPDX-License-Identifier: Apache-2.0
