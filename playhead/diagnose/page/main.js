// Puts the page of one run together.

const run = new Run(JSON.parse(byId("data").textContent));
const thread = new Thread(run);
const waterfall = new Waterfall(run, thread);
byId("thread").append(thread.element);
byId("fall").append(waterfall.element);
byId("started").textContent = new Date(run.started_us / 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
const reader = new Reader(thread.element, thread.places, new Map(run.events.map((event) => [`e${event.seq}`, event])), waterfall.rows);
byId("charts").append(...charts(run, (id) => reader.go(id)));
