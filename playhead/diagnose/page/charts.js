// Tokens and cost over the time of the run.

const HEIGHT = 100;
const WIDTH = 1000;

/** Yield the charts of a run: only figures that are known. */
function* charts(run, go) {
  const answers = [...run.calls.values()].filter((call) => call.tokensIn != null);
  if (answers.length === 0) return;
  const sum = (pick) => {
    let total = 0;
    return answers.map((call) => ({ call, value: (total += pick(call)) }));
  };
  const tokens = (call) => call.tokensIn + call.tokensOut;
  yield chart("prompt tokens", "model", run, answers.map((call) => ({ call, value: call.tokensIn })), count, go);
  yield chart("tokens so far", "tool", run, sum(tokens), count, go);
  if (answers.some((call) => call.cost)) yield chart("cost so far", "agent", run, sum((call) => call.cost ?? 0), money, go);
}

/** Return a figure in which the value goes up or down where a call ends; a click opens the call. */
function chart(title, tone, run, points, format, go) {
  const most = Math.max(...points.map((point) => point.value)) || 1;
  const x = ({ call }) => ((call.at + call.took) / run.duration) * WIDTH;
  const y = ({ value }) => HEIGHT - (value / most) * HEIGHT;
  const line = points.map((point, place) => `${place ? "H" : "M0 100 H"}${x(point).toFixed(1)}V${y(point).toFixed(1)}`).join("");
  const last = points[points.length - 1];
  const value = h("output", {}, format(last.value));
  const cursor = svg("line", { class: "at", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    svg("title", {}, `${title}: ${format(last.value)} at the end`),
    svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    svg("path", { class: "area", d: `${line}H${WIDTH}V${HEIGHT}H0Z` }),
    svg("path", { d: `${line}H${WIDTH}` }),
    cursor,
  );
  const nearest = (event) => {
    const box = drawing.getBoundingClientRect();
    const at = ((event.clientX - box.x) / box.width) * WIDTH;
    return points.reduce((best, point) => (Math.abs(x(point) - at) < Math.abs(x(best) - at) ? point : best));
  };
  drawing.addEventListener("pointermove", (event) => {
    const point = nearest(event);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(point));
    cursor.setAttribute("visibility", "visible");
    value.textContent = `e${point.call.end.seq}: ${format(point.value)}`;
  });
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    value.textContent = format(last.value);
  });
  drawing.addEventListener("click", (event) => go(`e${nearest(event).call.event.seq}`));
  return h("figure", { class: "chart", "data-tone": tone }, h("figcaption", {}, title, value), drawing);
}
