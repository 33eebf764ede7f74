// Tokens and cost over the time of the run.

/** Yield the charts of a run: only figures that are known. */
function* charts(run) {
  const answers = [...run.calls.values()].filter((call) => call.tokensIn != null);
  if (answers.length === 0) return;
  const sum = (pick) => {
    let total = 0;
    return answers.map((call) => ({ call, value: (total += pick(call)) }));
  };
  yield chart("prompt tokens", "model", run, answers.map((call) => ({ call, value: call.tokensIn })), count);
  yield chart("tokens so far", "tool", run, sum((call) => call.tokensIn + call.tokensOut), count);
  if (answers.some((call) => call.cost)) yield chart("cost so far", "agent", run, sum((call) => call.cost ?? 0), money);
}

/** Return a figure in which the value goes up or down where a call ends. */
function chart(title, tone, run, points, format) {
  const most = points.reduce((high, point) => Math.max(high, point.value), 0) || 1;
  const x = ({ call }) => ((call.at + call.took) / run.duration) * 1000;
  const y = ({ value }) => 100 - (value / most) * 100;
  const line = points.map((point, place) => `${place ? "H" : "M0 100 H"}${x(point).toFixed(1)}V${y(point).toFixed(1)}`).join("");
  const last = format(points.at(-1).value);
  const drawing = svg(
    "svg",
    { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img" },
    svg("title", {}, `${title}: ${last} at the end`),
    svg("line", { x1: 0, x2: 1000, y1: 100, y2: 100 }),
    svg("path", { class: "area", d: `${line}H1000V100H0Z` }),
    svg("path", { d: `${line}H1000` }),
  );
  return h("figure", { class: "chart", "data-tone": tone }, h("figcaption", {}, title, h("output", {}, last)), drawing);
}
