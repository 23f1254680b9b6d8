"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const largest = JSON.parse(at("settings").textContent).largest;
  const EVERY = 1000, HIDDEN = 5000; // milliseconds between two questions
  const runs = new Map();
  let chosen = null, gone = false;

  // --- asking: a header carries the token, which no page of somebody else can send ------------------------

  async function ask(path, options = {}) {
    const headers = { ...options.headers, "X-Eqlearn-Token": token };
    const answer = await fetch(path, { ...options, headers, cache: "no-store" });
    const plain = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(plain.error), { refused: true });
    return plain;
  }
  const post = (path, plain) => ask(path, { method: "POST", body: JSON.stringify(plain) });
  async function trying(action) {
    try {
      await action();
    } catch (error) {
      tell(error.refused ? error.message : "The server does not answer");
    }
  }

  // --- runs side by side ----------------------------------------------------------------------------------

  // Formulas come as MathML in which the server has escaped every name; no script in them could run.
  function formula(markup) {
    const frame = document.createElement("template");
    frame.innerHTML = markup;
    return frame.content;
  }
  function newRun(id) {
    const part = {
      name: element("span"), source: element("small"), status: element("p", { class: "status" }),
      bar: element("progress", { max: 1, "aria-label": "time used" }), formula: element("div", { class: "formula", tabindex: 0, role: "region", "aria-label": "The best equation so far" }),
      figures: element("p", { class: "figures" }), chart: element("div", { class: "chart" }),
      show: element("button", { type: "button", "aria-pressed": "false" }, "show"),
      stop: element("button", { type: "button", class: "stop" }, "stop"),
      report: element("a", { target: "_blank", rel: "noopener" }, "whole report"),
    };
    const card = element("article", { class: "card run", "data-run": id },
      element("h2", { id: `run-${id}` }, part.name, part.source), part.status, part.bar, part.formula, part.figures, part.chart,
      element("div", { class: "actions" }, part.show, part.stop, part.report));
    card.setAttribute("aria-labelledby", `run-${id}`);
    const run = { id, part, card, brief: {}, drawn: null, version: "", key: null };
    run.state = { selected: 0, shown: 0, output: 0, input: 0, logarithmic: null };
    run.beside = drawings({
      get run() { return run.drawn; }, state: run.state, at: () => part.chart, height: 210, show: () => {},
      select: (i) => { choose(run); select(i); },
      beside: () => [...runs.values()].flatMap((r) => (r.drawn ? r.drawn.equations : [])),
    });
    run.panel = drawings({ get run() { return run.drawn; }, state: run.state, at, show, select });
    part.show.addEventListener("click", () => choose(run));
    part.stop.addEventListener("click", () => trying(async () => { await post("/stop", { run: id }); await refresh(); }));
    part.report.href = `/report?run=${id}&token=${encodeURIComponent(token)}`;
    at("runs").append(card);
    runs.set(id, run);
    return run;
  }
  const time = (s) => (s < 600 ? `${Math.round(s)} s` : s < 6000 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
  const many = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

  function words(b) {
    const counts = `${many(b.rounds || 0, "round")} · ${many(b.restarts || 0, "network")}`;
    if (b.stopping) return "stopping; the best is kept";
    if (b.state === "running") {
      const left = b.left !== null ? `${time(b.left)} left of ${time(b.budget)}` : b.most ? `of ${many(b.most, "network")}` : "no time limit";
      return b.rounds ? `searching · ${counts} · ${left}` : "searching: the first round";
    }
    if (b.state === "finished") return `${b.ended} ${counts} · ${time(b.elapsed)}`;
    if (b.state === "left") return `Its process ended before the search did: the same command with --out ${b.folder} --resume goes on. ${counts}`;
    if (b.state === "starting") return "starting";
    return b.state === "gone" ? "This folder is no longer there." : b.message;
  }
  function tellRun(run, brief) {
    const { part } = run;
    run.brief = brief;
    part.name.textContent = brief.name;
    part.source.textContent = brief.source || "";
    part.status.className = `status ${brief.state}`;
    const text = words(brief);
    if (part.status.textContent !== text) part.status.replaceChildren(element("i"), text);
    part.bar.hidden = !(brief.state === "running" && brief.budget);
    if (brief.budget) part.bar.value = Math.min(1, brief.elapsed / brief.budget);
    part.stop.hidden = brief.state !== "running";
    part.stop.disabled = Boolean(brief.stopping) || gone;
    part.report.hidden = brief.state !== "finished";
    part.figures.textContent = brief.version && brief.formula ? `${brief.error} · ${brief.nodes}` : "";
    part.formula.hidden = !brief.formula;
    if (brief.formula && run.formula !== brief.formula.join()) {
      run.formula = brief.formula.join();
      part.formula.replaceChildren(...brief.formula.map((m) => element("div", {}, formula(m))));
    }
  }
  async function refresh() {
    let told;
    try {
      told = await ask("/state");
      setGone("");
    } catch (error) {
      setGone(error.refused ? error.message : "The server has ended; this is what was known last.");
      return;
    }
    at("none").hidden = told.runs.length > 0;
    let grown = false;
    for (const brief of told.runs) {
      const run = runs.get(brief.id) || newRun(brief.id);
      tellRun(run, brief);
      if (brief.formula && brief.version !== run.version) {
        run.drawn = await ask(`/run?run=${brief.id}`);
        run.version = run.drawn.version;
        keepChoice(run);
        grown = true;
        if (run === chosen) showRun();
      }
    }
    const single = runs.size === 1;
    at("runs").classList.toggle("single", single);
    for (const run of runs.values()) run.part.show.hidden = single;
    if (!chosen && runs.size) choose([...runs.values()].find((r) => r.drawn) || [...runs.values()][0]);
    if (grown) drawBeside();
    document.title = chosen ? `${chosen.brief.name}: ${chosen.brief.state} · eqlearn` : "eqlearn: live view";
  }
  function setGone(text) {
    gone = Boolean(text);
    if (at("gone").textContent !== text) at("gone").textContent = text;
    at("gone").hidden = !gone;
    if (gone) for (const run of runs.values()) run.part.stop.disabled = true;
  }
  function drawBeside() {
    for (const run of runs.values()) {
      run.part.chart.hidden = runs.size === 1 || !run.drawn;
      if (!run.part.chart.hidden) run.beside.drawFront();
    }
    mark();
  }

  // --- one run --------------------------------------------------------------------------------------------

  // The equation that was chosen stays chosen as the front grows; before that, the best one is shown.
  function keepChoice(run) {
    const place = run.drawn.equations.findIndex((e) => e.key === run.key);
    if (place < 0) run.key = null;
    run.state.selected = run.state.shown = place < 0 ? run.drawn.pick : place;
    run.state.input = Math.min(run.state.input, Math.max(0, run.drawn.inputs.length - 1));
    if (run.state.logarithmic === null && run.drawn.measured[0].length) {
      const [least, most] = extent(...run.drawn.measured);
      run.state.logarithmic = least > 0 && most / least > 50;
    }
  }
  function choose(run) {
    chosen = run;
    for (const other of runs.values()) {
      other.part.show.setAttribute("aria-pressed", String(other === run));
      other.card.classList.toggle("chosen", other === run && runs.size > 1);
    }
    showRun();
  }
  function showRun() {
    const run = chosen;
    at("panel").hidden = !run.drawn;
    if (!run.drawn) return;
    const { drawn, state } = run;
    at("front").textContent = runs.size > 1 ? `The front of ${run.brief.name}` : "The front";
    at("verdict").hidden = !drawn.verdict;
    at("verdict").textContent = drawn.verdict;
    at("verdict").className = `verdict ${drawn.grade}`;
    const focused = document.activeElement && document.activeElement.name === "equation" ? document.activeElement.dataset.key : null;
    at("rows").replaceChildren(...drawn.equations.map(row));
    const again = focused === null ? null : [...at("rows").querySelectorAll("input")].find((i) => i.dataset.key === focused);
    if (again) again.focus();
    options("output", "output-choice", drawn.targets, state.output);
    options("input", "input-choice", drawn.inputs.map((i) => i.name), state.input);
    const rows = drawn.measured[0].length > 0;
    at("fits").hidden = !rows;
    at("no-rows").hidden = rows;
    at("scale-choice").hidden = !rows || !(extent(...drawn.measured)[0] > 0);
    at("logarithmic").checked = Boolean(state.logarithmic);
    at("where").textContent = `In the folder ${run.brief.folder}.`;
    run.panel.drawFront();
    run.panel.drawHistory();
    show(state.shown);
  }
  function row(equation, index) {
    const input = element("input", { type: "radio", name: "equation", value: index, "data-key": equation.key, "aria-label": equation.outputs.map((o) => o.text).join("; ").slice(0, 200) });
    input.checked = index === chosen.state.selected;
    const formulas = element("div", {}, ...equation.markup.map((m) => {
      const cell = element("div", { class: "cell" });
      cell.append(formula(m));
      return cell;
    }));
    const label = element("label", {}, input, formulas);
    if (index === chosen.drawn.pick) label.append(element("span", { class: "badge" }, chosen.drawn.verdict ? "chosen" : "best so far"));
    if (equation.pinned) label.append(element("span", { class: "badge star" }, "★ pinned"));
    const made = element("tr", { "data-index": index }, element("td", {}, label),
      element("td", { class: "number", "data-label": "nodes" }, String(equation.complexity)),
      element("td", { class: "number", "data-label": "error" }, per(equation.error)));
    made.addEventListener("click", () => select(index));
    made.addEventListener("pointerenter", () => show(index));
    made.addEventListener("pointerleave", () => show(chosen.state.selected));
    input.addEventListener("change", () => select(index));
    return made;
  }
  function show(index) {
    const { drawn, state } = chosen;
    const equation = drawn.equations[index];
    if (!equation) return;
    state.shown = index;
    const [output, out] = [equation.markup[state.output], equation.outputs[state.output]];
    at("shown").replaceChildren(formula(output));
    copyButtons(at("shown-copies"), out.exports);
    at("pin").setAttribute("aria-pressed", String(equation.pinned));
    at("pin").textContent = equation.pinned ? "★ pinned" : "☆ pin as favourite";
    mark();
    if (!drawn.measured[0].length) return;
    chosen.panel.drawFit();
    chosen.panel.drawResiduals();
    chosen.panel.drawBeyond();
  }
  function mark() {
    if (!chosen || !chosen.drawn) return;
    const index = chosen.state.shown;
    for (const place of [at("pareto"), chosen.part.chart]) {
      for (const dot of place.querySelectorAll(".candidate")) dot.classList.toggle("selected", Number(dot.dataset.index) === index);
    }
    for (const each of at("rows").children) each.classList.toggle("selected", Number(each.dataset.index) === index);
  }
  function select(index) {
    chosen.state.selected = index;
    chosen.key = chosen.drawn.equations[index].key;
    at("rows").querySelector(`input[value="${index}"]`).checked = true;
    show(index);
  }
  function options(id, choice, names, value) {
    at(id).replaceChildren(...names.map((name, i) => element("option", { value: i }, clipped(name))));
    at(id).value = value;
    at(choice).hidden = names.length < 2;
  }
  at("output").addEventListener("change", () => { chosen.state.output = Number(at("output").value); show(chosen.state.shown); });
  at("input").addEventListener("change", () => { chosen.state.input = Number(at("input").value); chosen.panel.drawBeyond(); });
  at("logarithmic").addEventListener("change", () => { chosen.state.logarithmic = at("logarithmic").checked; show(chosen.state.shown); });
  at("pin").addEventListener("click", () => trying(async () => {
    const equation = chosen.drawn.equations[chosen.state.selected];
    chosen.key = equation.key;
    await post("/pin", { run: chosen.id, key: equation.pinned ? null : equation.key });
    await refresh();
  }));

  // --- new searches ---------------------------------------------------------------------------------------

  let table = null;
  function problem(text) {
    at("problem").hidden = !text;
    at("problem").textContent = text;
  }
  async function take(file) {
    if (!file) return;
    problem("");
    at("start").hidden = true;
    if (file.size > largest) {
      problem(`${file.name} has more than ${Math.round(largest / 2 ** 20)} MB; use eqlearn fit on the command line for it.`);
      return;
    }
    try {
      table = await ask("/table", { method: "POST", body: file, headers: { "X-Eqlearn-Name": encodeURIComponent(file.name) } });
    } catch (error) {
      problem(error.refused ? error.message : "The server does not answer.");
      return;
    }
    at("table-name").textContent = `${table.name} · ${many(table.rows, "row")}`;
    at("findings").replaceChildren(...[...table.notes, ...table.findings].slice(0, 8).map((f) => element("li", {}, f)));
    at("target").replaceChildren(...table.numbers.map((name, i) => element("option", { value: i }, clipped(name))));
    at("target").value = table.numbers.length - 1;
    at("columns").replaceChildren(...table.columns.map((name, i) => {
      const box = element("input", { type: "checkbox", value: i });
      const number = table.numbers.includes(name);
      box.checked = number;
      return element("label", { class: number ? "" : "off", "data-number": number }, box, " ", clipped(name), number ? "" : " (no numbers)");
    }));
    targetChosen();
    at("start").hidden = false;
    at("target").focus();
  }
  function targetChosen() {
    for (const label of at("columns").children) {
      const box = label.firstElementChild;
      label.hidden = table.columns[box.value] === table.numbers[at("target").value];
      box.disabled = label.hidden || label.dataset.number !== "true";
    }
  }
  at("target").addEventListener("change", targetChosen);
  at("file").addEventListener("change", () => take(at("file").files[0]));
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dragging");
    take(event.dataTransfer.files[0]).then(() => at("start").scrollIntoView({ block: "nearest" }));
  });
  at("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    problem("");
    const boxes = [...at("columns").querySelectorAll("input")].filter((b) => b.checked && !b.disabled);
    const wish = {
      table: table.table, target: [table.numbers[at("target").value]], inputs: boxes.map((b) => table.columns[b.value]),
      seconds: Number(at("seconds").value), seed: Number(at("seed").value), drop_missing: at("drop-missing").checked,
    };
    try {
      const begun = await post("/start", wish);
      await refresh();
      choose(runs.get(begun.run));
      runs.get(begun.run).card.scrollIntoView({ block: "nearest" });
    } catch (error) {
      problem(error.refused ? error.message : "The server does not answer.");
    }
  });

  // --- start ----------------------------------------------------------------------------------------------

  let width = 0, waiting = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { drawBeside(); if (chosen) showRun(); });
  }).observe(document.body);
  async function keepAsking() {
    await refresh();
    setTimeout(keepAsking, document.hidden ? HIDDEN : EVERY);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  keepAsking();
})();
