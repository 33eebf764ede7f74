// A served page asks now and then whether its runs went on or are gone, and is drawn again with what is new.

const SECONDS = 2;
const SHARE = 10; // of the time, at most 1/10 goes into drawing

/** Draw the page, and again when what it shows has changed. */
function live(draw) {
  draw();
  if (!("served" in document.body.dataset)) return;
  const mark = document.querySelector(".mark");
  let tag = null;
  const look = async () => {
    const began = performance.now();
    if (!document.hidden) lose(await refresh());
    setTimeout(look, Math.max(SECONDS * 1000, SHARE * (performance.now() - began)));
  };
  const refresh = async () => {
    try {
      const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) replace(await answer.text(), draw);
      tag = answer.headers.get("ETag");
      if (answer.status === 404) return "this run's file is gone";
      return answer.status < 400 ? null : "this cannot be read any more";
    } catch {
      return "not connected"; // the server has ended
    }
  };
  const lose = (why) => {
    if (why) mark.dataset.lost = why;
    else delete mark.dataset.lost;
  };
  setTimeout(look, SECONDS * 1000);
}

/** Put in what another answer says, if it says something new. What was open, and where the reader is, stays. */
function replace(html, draw) {
  const next = new DOMParser().parseFromString(html, "text/html");
  const data = next.getElementById("data").textContent;
  if (data === byId("data").textContent) return;
  const open = [...document.querySelectorAll("main details[open]")].map((part) => [placeOf(part), titleOf(part)]);
  const isAtEnd = scrollY > 0 && scrollY + innerHeight > document.documentElement.scrollHeight - 40;
  const at = scrollY;
  document.querySelector("main.run")?.replaceWith(document.adoptNode(next.querySelector("main")));
  byId("data").textContent = data;
  document.title = next.title;
  if (!("live" in next.body.dataset)) delete document.body.dataset.live;
  draw();
  for (const [place, title] of open) {
    byId(place)?.dispatchEvent(new Event("pointerenter")); // a card offers its fields then
    const parts = [...document.querySelectorAll("main details")].filter((part) => placeOf(part) === place && titleOf(part) === title);
    for (const part of parts) part.open = true;
  }
  scrollTo(0, isAtEnd ? document.documentElement.scrollHeight : at);
}

function placeOf(part) {
  return part.closest("[id]").id;
}

function titleOf(part) {
  return part.querySelector("summary").textContent;
}
