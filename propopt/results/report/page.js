"use strict";
for (const root of document.querySelectorAll("[data-explorer]")) {
  const d = JSON.parse(root.querySelector("script").textContent);
  const t = d.path, one = (s) => root.querySelector(s);
  const slider = one("[data-slider]"), select = one("[data-row]");
  const signed = (x) => (x < 0 ? "−" : x > 0 ? "+" : "") + Number(Math.abs(x).toPrecision(3));
  // three digits and two, as in the tables
  const number = (x) => (Math.abs(x) < 1e3 ? Number(x.toPrecision(3)).toString() : x.toFixed(0));
  const part = (x) => (x < 0.995 ? Number((100 * x).toPrecision(2)) : x < 1 - 1e-11 ? Math.floor(1000 * x) / 10 : (100 * x).toFixed(0));
  const share = (x) => (x < 0 ? "−" : "") + part(Math.abs(x)) + "%";

  // the share of faithfulness that is lost, or of differences that is left
  const left = (one, x) => (one.is_faithful ? (x - one.at_target) / (one.far - one.at_target) : (x - one.far) / (one.at_target - one.far));

  function summarize(p) {
    const c = t.weights[p], lines = [];
    if (c !== null) lines.push([`weight of ${t.loss}`, Number(c.toPrecision(3)).toString(), c]);
    const values = t.losses.map((one) => one.values[p]);
    t.losses.forEach((one, i) => {
      if (one.at_target !== null) {
        const rest = 1 - left(one, values[i]);
        lines.push([one.label, share(rest), rest]);
      }
      lines.push([one.name, number(values[i]), values[i]]);
    });
    one("[data-summary]").replaceChildren(...lines.map(([label, text, value]) => {
      const line = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.dir = "auto"; dt.textContent = label; dd.textContent = text; dd.dataset.value = value;
      line.append(dt, dd);
      return line;
    }));
    slider.setAttribute("aria-valuetext", lines.map(([label, text]) => `${label}: ${text}`).join("; "));
    const [x, y] = t.axes.map((i) => (t.shares ? left(t.losses[i], values[i]) : values[i]));
    const dot = one(".here");
    dot.setAttribute("cx", t.plane[0] + t.plane[1] * x / t.frame[0]);
    dot.setAttribute("cy", t.plane[2] - t.plane[3] * y / t.frame[1]);
  }

  function setSpan(span, value, scale) {
    span.style.left = 50 + 50 * Math.min(value, 0) / scale + "%";
    span.style.width = 50 * Math.abs(value) / scale + "%";
  }
  function draw() {
    const p = slider ? Number(slider.value) : 0;
    if (t) summarize(p);
    const row = d.rows[Number(select.value)], pair = [row];
    if (row.similar !== null) pair.push(d.rows[row.similar]);
    const now = pair.map((r) => r.z[p]), was = pair.map((r) => r.was || r.z[0]);
    const size = was[0].map((_, j) => Math.max(...was.map((w) => Math.abs(w[j]))));
    const order = size.map((_, j) => j).sort((i, j) => size[j] - size[i] || i - j).slice(0, d.n_features);
    const scale = Math.max(...order.map((j) => Math.max(size[j], ...now.map((w) => Math.abs(w[j]))))) || 1;
    root.querySelectorAll("[data-panel]").forEach((panel, i) => {
      panel.hidden = !pair[i];
      if (!pair[i]) return;
      panel.querySelector("bdi").textContent = pair[i].name;
      panel.querySelectorAll("tbody tr").forEach((line, k) => {
        const j = order[k], w = now[i][j], bar = line.querySelector(".bar"), old = line.querySelector(".was");
        line.querySelector("th").textContent = [d.features[j], pair[i].values[j]].filter(Boolean).join(" = ");
        bar.className = "bar " + (w > 0 ? "raises" : "lowers");
        setSpan(bar, w, scale);
        if (old) setSpan(old, was[i][j], scale);
        const cell = line.querySelector(".number");
        cell.textContent = signed(w);
        cell.dataset.value = w;
        cell.dataset.column = j;
      });
    });
  }
  if (slider) {
    slider.addEventListener("input", draw);
    const goals = { first: 0, start: t.start, last: Number(slider.max) };
    root.querySelectorAll("[data-go]").forEach((b) => b.addEventListener("click", () => {
      slider.value = goals[b.dataset.go];
      draw();
    }));
  }
  select.addEventListener("change", draw);
  draw();
}
