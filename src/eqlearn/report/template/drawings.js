"use strict";
// Drawings of a run, for the report page and the live view.

const finite = (v) => v !== null && Number.isFinite(v);

// --- elements: text is always set as text, so that no name of a column is ever markup ---------------

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// --- scales and axes ----------------------------------------------------------------------------------

function linear(low, high, start, end) {
  const span = high - low || Math.abs(high) || 1;
  const [a, b] = high > low ? [low, high] : [low - span / 2, high + span / 2];
  const step = Math.pow(10, Math.floor(Math.log10((b - a) / 4)));
  const size = [1, 2, 5, 10].map((k) => k * step).find((s) => (b - a) / s <= 6);
  const ticks = [];
  for (let t = Math.ceil(a / size); t * size <= b + 1e-9 * size; t++) ticks.push(t * size);
  const place = (v) => start + ((v - a) / (b - a)) * (end - start);
  return Object.assign(place, { ticks, label: (v) => plain(v, size) });
}
function logarithmic(low, high, start, end) {
  let [a, b] = [Math.log10(low), Math.log10(high)];
  if (b - a < 0.6) [a, b] = [(a + b) / 2 - 0.3, (a + b) / 2 + 0.3];
  const place = (v) => start + ((Math.log10(v) - a) / (b - a)) * (end - start);
  const every = Math.max(1, Math.ceil((b - a) / 6));
  let ticks = [];
  for (let e = Math.ceil(a); e <= b; e += every) ticks.push(Math.pow(10, e));
  if (ticks.length < 3) {
    ticks = [];
    for (let e = Math.floor(a); e <= b; e++) for (const k of [1, 2, 5]) ticks.push(k * Math.pow(10, e));
    ticks = ticks.filter((v) => Math.log10(v) >= a && Math.log10(v) <= b);
  }
  return Object.assign(place, { ticks, label: (v) => plain(v, v) });
}
function plain(value, size) {
  if (Math.abs(value) < size * 1e-6) return "0";
  const large = Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3;
  if (large) {
    const [mantissa, exponent] = value.toExponential(2).split("e");
    const trimmed = String(Number(mantissa));
    const power = "10" + String(Number(exponent)).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻");
    return (trimmed === "1" ? power : `${trimmed}·${power}`).replace("-", "−");
  }
  return String(Number(value.toPrecision(6))).replace("-", "−");
}
function per(value) {
  if (!finite(value)) return "–";
  const percent = value * 100;
  return percent < 1e-6 ? "< 10⁻⁶ %" : `${Number(percent.toPrecision(3))} %`;
}

let clips = 0;
function chart(holder, description, { x, y, height = 300 }, draw) {
  const width = Math.max(260, holder.clientWidth || 480);
  const frame = { left: 62, right: width - 12, top: 12, bottom: height - 42 };
  const [across, up] = [x.scale(frame.left, frame.right), y.scale(frame.bottom, frame.top)];
  const sheet = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
  const room = width < 420 ? 2 : 1;
  across.ticks.forEach((t, i) => {
    sheet.append(drawn("line", { class: "grid", x1: across(t), x2: across(t), y1: frame.top, y2: frame.bottom }));
    if (i % room === 0) {
      sheet.append(drawn("text", { x: across(t), y: frame.bottom + 17, "text-anchor": "middle" }, across.label(t)));
    }
  });
  for (const t of up.ticks) {
    sheet.append(drawn("line", { class: "grid", x1: frame.left, x2: frame.right, y1: up(t), y2: up(t) }));
    sheet.append(drawn("text", { x: frame.left - 7, y: up(t) + 4, "text-anchor": "end" }, up.label(t)));
  }
  sheet.append(drawn("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }));
  const clip = `frame-${clips++}`;
  const area = { x: frame.left, y: frame.top - 4, width: frame.right - frame.left + 4, height: frame.bottom - frame.top + 8 };
  sheet.append(drawn("clipPath", { id: clip }, drawn("rect", area)));
  const inside = drawn("g", { "clip-path": `url(#${clip})` });
  sheet.append(inside);
  sheet.append(drawn("text", { x: frame.right, y: height - 6, "text-anchor": "end" }, clipped(x.label)));
  draw(inside, across, up, frame, sheet);
  holder.replaceChildren(sheet);
  return holder;
}
const clipped = (text) => (text.length > 48 ? text.slice(0, 47) + "…" : text);

function extent(...lists) {
  const values = lists.flat().filter(finite);
  return values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
}
function padded([low, high], scale = linear) {
  if (scale === logarithmic) {
    const factor = Math.pow(high / low, 0.05);
    return [low / factor, high * factor];
  }
  const pad = (high - low) * 0.05;
  return [low - pad, high + pad];
}
function path(points) {
  let text = "", open = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(y)) { open = false; continue; }
    const level = Math.max(-1e4, Math.min(1e4, y));
    text += `${open ? "L" : "M"}${x.toFixed(1)},${level.toFixed(1)}`;
    open = true;
  }
  return text;
}
function legend(holder, entries) {
  const items = entries.map(([mark, words]) => element("li", {}, element("i", { class: mark }), words));
  if (items.length > 1) holder.append(element("ul", { class: "legend" }, ...items));
}

// --- copying ------------------------------------------------------------------------------------------

let fading = 0;
async function copy(text, name) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch (refusal) {
    // Some browsers keep the clipboard from pages opened from a disk; the old way still works there.
    const area = element("textarea", { readonly: "", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  tell(done ? `${name} copied` : "The browser did not allow copying");
}
function tell(words) {
  const toast = document.getElementById("toast");
  toast.textContent = words;
  toast.classList.add("on");
  clearTimeout(fading);
  fading = setTimeout(() => toast.classList.remove("on"), 1600);
}
function copyButtons(holder, texts) {
  const buttons = Object.keys(texts).map((language) => {
    const button = element("button", { type: "button", "data-language": language }, language);
    button.addEventListener("click", () => copy(texts[language], language));
    return button;
  });
  holder.replaceChildren(...(buttons.length ? ["copy as", ...buttons] : []));
}

// The drawings of one run: `view` holds the `run`, the `state` of what is shown, `at(name)`, which gives the element to
// draw in, and what happens when an equation is pointed at (`show`) or chosen (`select`).
function drawings(view) {
  const { at, state } = view;

  // --- the front ----------------------------------------------------------------------------------------

  const FLOOR = 1e-16;
  function drawFront() {
    const shown = view.run.equations;
    const level = (v) => Math.max(v, FLOOR);
    const kinds = ["error", "heldOut", "outside"];
    // Runs side by side have the same axes.
    const reach = view.beside ? view.beside() : shown;
    const errors = reach.flatMap((e) => kinds.map((k) => e[k])).filter(finite).map(level);
    const [low, high] = extent(errors);
    const [least, most] = extent(reach.map((e) => e.complexity));
    const axes = {
      x: { label: "complexity (nodes)", scale: (a, b) => linear(Math.max(0, least - 1), most + 1, a, b) },
      y: { scale: (a, b) => logarithmic(low / 1.6, high * 1.6, a, b) }, height: view.height,
    };
    const holder = chart(at("pareto"), `Pareto front of ${shown.length} equations, error against complexity`, axes, (inside, x, y, frame, sheet) => {
      const stairs = [];
      shown.filter((e) => !e.aside).forEach((e, i, front) => {
        if (i) stairs.push([x(e.complexity), y(level(front[i - 1].error))]);
        stairs.push([x(e.complexity), y(level(e.error))]);
      });
      inside.append(drawn("path", { class: "stairs", d: path(stairs) }));
      shown.forEach((e, i) => {
        for (const kind of ["heldOut", "outside"]) {
          if (finite(e[kind])) inside.append(drawn("circle", { class: "hollow", cx: x(e.complexity), cy: y(level(e[kind])), r: 4 }));
        }
        const place = { cx: x(e.complexity), cy: y(level(e.error)) };
        const mark = drawn("g", { class: "candidate", "data-index": i },
          drawn("title", {}, `${e.complexity} nodes, error ${per(e.error)}: ${clippedEquation(e)}`),
          drawn("circle", { class: "ring", ...place, r: 11 }), drawn("circle", { class: "dot", ...place, r: 6.5 }),
          drawn("circle", { ...place, r: 16, fill: "transparent" }));
        mark.classList.toggle("pick", i === view.run.pick);
        mark.classList.toggle("aside", Boolean(e.aside));
        mark.addEventListener("click", () => view.select(i));
        mark.addEventListener("pointerenter", () => view.show(i));
        mark.addEventListener("pointerleave", () => view.show(state.selected));
        sheet.append(mark);
      });
    });
    if (view.beside) return;
    const measured = shown.some((e) => finite(e.heldOut) || finite(e.outside));
    legend(holder, [["", "training rows"], ["picked", "shown below"], ...(measured ? [["hollow", "rows not seen"]] : [])]);
  }
  const clippedEquation = (e) => e.outputs.map((o, k) => `${view.run.targets[k]} = ${o.text}`).join("; ").slice(0, 200);

  // --- one equation -------------------------------------------------------------------------------------

  function partsLegend(holder) {
    const there = [...new Set(view.run.part)].sort();
    legend(holder, there.map((p) => [`part${p}`, `${view.run.parts[p]} rows`]));
  }
  function positive() {
    const out = view.run.equations[state.shown].outputs[state.output];
    return view.run.measured[state.output].every((v) => v > 0) && out.predicted.every((v) => v === null || v > 0);
  }
  function drawFit() {
    const out = view.run.equations[state.shown].outputs[state.output];
    const measured = view.run.measured[state.output];
    const scale = state.logarithmic && positive() ? logarithmic : linear;
    const [low, high] = padded(extent(measured, out.predicted), scale);
    const name = view.run.targets[state.output];
    const axis = { scale: (a, b) => scale(low, high, a, b) };
    const axes = { x: { ...axis, label: `${name}, measured → predicted ↑` }, y: axis };
    const holder = chart(at("fit"), `Predicted against measured ${name}`, axes, (inside, x, y) => {
      inside.append(drawn("line", { class: "ideal", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
      measured.forEach((v, i) => {
        if (!finite(out.predicted[i])) return;
        const mark = { class: `point part${view.run.part[i]}`, cx: x(v), cy: y(out.predicted[i]), r: radius(measured.length) };
        inside.append(drawn("circle", mark, drawn("title", {}, `measured ${v}, predicted ${out.predicted[i]}`)));
      });
    });
    partsLegend(holder);
  }
  const radius = (count) => (count > 150 ? 3 : 4.2);

  function drawResiduals() {
    const out = view.run.equations[state.shown].outputs[state.output];
    const usable = out.residual.filter(finite);
    const spread = Math.sqrt(usable.reduce((s, r) => s + r * r, 0) / Math.max(1, usable.length));
    const reach = Math.max(2.4 * spread, ...usable.map(Math.abs)) || 1;
    const scale = state.logarithmic && positive() ? logarithmic : linear;
    const [low, high] = padded(extent(out.predicted), scale);
    const axes = {
      x: { label: `${view.run.targets[state.output]}, predicted`, scale: (a, b) => scale(low, high, a, b) },
      y: { scale: (a, b) => linear(-1.08 * reach, 1.08 * reach, a, b) },
    };
    chart(at("residuals"), `Residuals, root mean square ${spread.toPrecision(3)}`, axes, (inside, x, y, frame) => {
      const box = { class: "band", x: frame.left, width: frame.right - frame.left, y: y(2 * spread), height: y(-2 * spread) - y(2 * spread) };
      inside.append(drawn("rect", box));
      inside.append(drawn("line", { class: "ideal", x1: frame.left, x2: frame.right, y1: y(0), y2: y(0) }));
      out.residual.forEach((r, i) => {
        if (!finite(r)) return;
        const mark = { class: `point part${view.run.part[i]}`, cx: x(out.predicted[i]), cy: y(r), r: radius(out.residual.length) };
        inside.append(drawn("circle", mark, drawn("title", {}, `residual ${r}`)));
      });
    });
  }

  function between(grid, curve, value) {
    const place = ((value - grid[0]) / (grid[grid.length - 1] - grid[0])) * (grid.length - 1);
    const left = Math.max(0, Math.min(grid.length - 2, Math.floor(place)));
    const [a, b] = [curve[left], curve[left + 1]];
    return finite(a) && finite(b) ? a + (b - a) * (place - left) : NaN;
  }
  function drawBeyond() {
    const along = view.run.inputs[state.input];
    if (!along) {
      at("beyond").replaceChildren(element("p", { class: "note" }, "No equation of the front depends on an input."));
      return;
    }
    const name = view.run.targets[state.output];
    const out = view.run.equations[state.shown].outputs[state.output];
    const curve = out.curves[state.input];
    // What the other inputs add is taken out of a point: it stands as far from the line as its residual.
    const shown = view.run.inputs.length < 2 ? view.run.measured[state.output]
      : along.values.map((v, i) => (finite(out.residual[i]) ? out.residual[i] + between(along.grid, curve, v) : NaN));
    const [seen, reach] = [extent(shown), extent(curve)];
    const room = 3 * (seen[1] - seen[0] || Math.abs(seen[1]) || 1);
    const ends = [Math.max(Math.min(seen[0], reach[0]), seen[0] - room), Math.min(Math.max(seen[1], reach[1]), seen[1] + room)];
    // A line that does not depend on this input is drawn flat, not as the rounding errors around it.
    const least = 1e-4 * Math.max(...ends.map(Math.abs));
    const [low, high] = padded(ends[1] - ends[0] < least ? [ends[0] - least, ends[1] + least] : ends);
    const [from, to] = extent(along.grid, along.values);
    const axes = {
      x: { label: along.name, scale: (a, b) => linear(from, to, a, b) },
      y: { scale: (a, b) => linear(low, high, a, b) }, height: 320,
    };
    const holder = chart(at("beyond"), `${name} along ${along.name}, from ${from} to ${to}`, axes, (inside, x, y, frame) => {
      const [a, b] = along.range.map(x);
      inside.append(drawn("rect", { class: "band", x: a, width: Math.max(1, b - a), y: frame.top, height: frame.bottom - frame.top }));
      along.values.forEach((v, i) => {
        if (!finite(shown[i])) return;
        inside.append(drawn("circle", { class: `point part${view.run.part[i]}`, cx: x(v), cy: y(shown[i]), r: radius(shown.length) }));
      });
      inside.append(drawn("path", { class: "curve", d: path(along.grid.map((g, i) => [x(g), finite(curve[i]) ? y(curve[i]) : NaN])) }));
    });
    partsLegend(holder);
  }

  function drawHistory() {
    const points = view.run.history.filter((h) => finite(h[1]));
    if (!points.length) return;
    const errors = points.map((h) => Math.max(h[1], FLOOR));
    const [low, high] = extent(errors);
    const axes = {
      x: { label: "networks started", scale: (a, b) => linear(0, points[points.length - 1][0], a, b) },
      y: { scale: (a, b) => logarithmic(low / 1.6, high * 1.6, a, b) }, height: 260,
    };
    chart(at("history"), "Error of the best equation against networks started", axes, (inside, x, y) => {
      const stairs = [];
      points.forEach((h, i) => {
        if (i) stairs.push([x(h[0]), y(errors[i - 1])]);
        stairs.push([x(h[0]), y(errors[i])]);
      });
      inside.append(drawn("path", { class: "curve", d: path(stairs) }));
      points.forEach((h, i) => {
        if (!i || errors[i] !== errors[i - 1]) inside.append(drawn("circle", { class: "point", cx: x(h[0]), cy: y(errors[i]), r: 4.2 }));
      });
    });
  }

  return { drawFront, drawFit, drawResiduals, drawBeyond, drawHistory };
}
