// Puts the page of one run together.

let reader;

live(() => {
  const run = new Run(JSON.parse(byId("data").textContent));
  const thread = new Thread(run);
  const waterfall = new Waterfall(run, thread);
  byId("thread").append(thread.element);
  byId("fall").append(waterfall.element);
  byId("started").textContent = moment(run.started_us);
  if (!reader) reveal(waterfall.element.querySelector(".row.found"));
  reader ??= new Reader();
  reader.show(thread.element, thread.places, new Map(run.events.map((event) => [`e${event.seq}`, event])), waterfall.rows);
  byId("charts").append(...charts(run));
});
