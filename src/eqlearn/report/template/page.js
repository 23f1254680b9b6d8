"use strict";
(() => {
  const run = JSON.parse(document.getElementById("run").textContent);
  const at = (id) => document.getElementById(id);
  const state = { selected: run.pick, shown: run.pick, output: 0, input: 0, logarithmic: false };
  const { drawFront, drawFit, drawResiduals, drawBeyond, drawHistory } = drawings({ run, state, at, show, select });

  // --- choosing -----------------------------------------------------------------------------------------

  function show(index) {
    state.shown = index;
    const formulas = document.querySelectorAll(`#choices [data-formula="${index}"]`);
    at("shown").replaceChildren(...(formulas[state.output] ? [formulas[state.output].firstElementChild.cloneNode(true)] : []));
    copyButtons(at("shown-copies"), run.equations[index].outputs[state.output].exports);
    for (const mark of document.querySelectorAll(".candidate")) {
      mark.classList.toggle("selected", Number(mark.dataset.index) === index);
    }
    for (const row of document.querySelectorAll("#choices tbody tr")) {
      row.classList.toggle("selected", Number(row.dataset.index) === index);
    }
    drawFit();
    drawResiduals();
    drawBeyond();
  }
  function select(index) {
    state.selected = index;
    document.querySelector(`#choices input[value="${index}"]`).checked = true;
    show(index);
  }
  function options(id, choice, names, chosen) {
    at(id).replaceChildren(...names.map((name, i) => element("option", { value: i }, clipped(name))));
    at(choice).hidden = names.length < 2;
    at(id).addEventListener("change", () => chosen(Number(at(id).value)));
  }
  function drawAll() {
    drawFront();
    show(state.shown);
    drawHistory();
  }

  // --- start --------------------------------------------------------------------------------------------

  for (const holder of document.querySelectorAll(".copies[data-output]")) copyButtons(holder, run.equations[run.pick].outputs[Number(holder.dataset.output)].exports);
  for (const block of document.querySelectorAll(".code")) {
    const button = element("button", { type: "button" }, "copy");
    button.addEventListener("click", () => copy(block.querySelector("pre").textContent, block.querySelector("h3").textContent));
    block.append(button);
  }
  for (const row of document.querySelectorAll("#choices tbody tr")) {
    const index = Number(row.dataset.index);
    row.addEventListener("click", () => select(index));
    row.addEventListener("pointerenter", () => show(index));
    row.addEventListener("pointerleave", () => show(state.selected));
    row.querySelector("input").addEventListener("change", () => select(index));
  }
  for (const constant of document.querySelectorAll(".hero .constant")) {
    const output = constant.closest("[data-formula-output]").dataset.formulaOutput;
    const row = document.querySelector(`tr[data-row="${output}-${constant.dataset.constant}"]`);
    for (const pair of row ? [[constant, row], [row, constant]] : []) {
      pair[0].addEventListener("pointerenter", () => pair.forEach((e) => e.classList.add("lit")));
      pair[0].addEventListener("pointerleave", () => pair.forEach((e) => e.classList.remove("lit")));
    }
  }
  options("output", "output-choice", run.targets, (k) => { state.output = k; show(state.shown); });
  options("input", "input-choice", run.inputs.map((i) => i.name), (k) => { state.input = k; drawBeyond(); });
  const [least, most] = extent(...run.measured);
  at("scale-choice").hidden = !(least > 0);
  state.logarithmic = at("logarithmic").checked = least > 0 && most / least > 50;
  at("logarithmic").addEventListener("change", () => { state.logarithmic = at("logarithmic").checked; show(state.shown); });
  let waiting = 0, width = 0;
  new ResizeObserver(() => {
    if (at("pareto").clientWidth === width) return;
    width = at("pareto").clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawAll);
  }).observe(at("pareto"));
  drawAll();
})();
