// The page's one script: keeps the token, fetches fragments with it, and lets keys and buttons act.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const main = $("#main");
const undone = []; // what takes the changes back that were made here, the latest last
const HELD_MS = 8000;
const ENDED = "The page's process does not answer any more; run `omegad page` again. It ends after 30 minutes in which nobody looks.";
let stream = null, chosen = -1, asking = null, held = null;

// The token comes in the fragment, which is never sent and is in no log, and leaves the address at once.
const given = /^#t=([\w.~-]+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem("token", given[1]);
  history.replaceState(null, "", location.pathname + location.search);
}
const token = sessionStorage.getItem("token");
const authorised = (more = {}) => ({ ...more, cache: "no-store", headers: { Authorization: `Bearer ${token}`, ...more.headers } });

const told = (text) => Object.assign(document.createElement("p"), { textContent: text });

function say(text, action) {
  const toast = $("#toast");
  toast.replaceChildren(told(text));
  if (action) {
    toast.append(Object.assign(document.createElement("button"), { textContent: "Undo (u)", onclick: undo }));
  }
  clearTimeout(say.timer);
  say.timer = setTimeout(() => toast.replaceChildren(), HELD_MS);
}

// Shows the page that the address names.
async function show({ quietly = false } = {}) {
  const path = location.pathname.replace(/^\/(page\/?)?/, "") || "now";
  asking?.abort();
  asking = new AbortController();
  if (!token) {
    main.replaceChildren(told("This page needs its token. Close this tab and run `omegad page`, which opens it with one; where `omegad web` serves it, write #t=TOKEN behind this address: `omegad web --token` prints it."));
    return;
  }
  if (!quietly) main.setAttribute("aria-busy", "true");
  const whole = quietly && $(".page", main)?.dataset.whole; // what takes longer is in it, too
  try {
    const answer = await fetch(`/data/${whole || path}${location.search}`, authorised({ signal: asking.signal }));
    const body = await answer.text();
    if (quietly && held) return; // what is hidden and can be brought back stays so
    if (answer.status === 401) {
      main.replaceChildren(told("The token is not, or no longer, valid here. Run `omegad page`; where `omegad web` serves this page, write #t=TOKEN behind this address: `omegad web --token` prints it."));
    } else if (path.endsWith(".json") || !answer.headers.get("content-type").startsWith("text/html")) {
      const text = JSON.stringify(JSON.parse(body), null, 2);
      main.replaceChildren(Object.assign(document.createElement("pre"), { className: "text json", textContent: text }));
      document.title = `${path} – omegad`;
    } else {
      put(new DOMParser().parseFromString(body, "text/html"), quietly);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    main.replaceChildren(told(ENDED));
  }
  main.removeAttribute("aria-busy");
  listen();
  if (!quietly && $(".page[data-whole]", main)) await show({ quietly: true });
}

function put(fragment, quietly) {
  const page = $(".page", fragment);
  const place = quietly ? scrollY : 0;
  main.replaceChildren(document.adoptNode(page));
  document.title = `${page.dataset.title} – omegad`;
  const of = { session: "timeline", thesis: "theses", query: "", memory: "memory" };
  const name = page.dataset.page;
  for (const link of $$("header nav a")) {
    const is = link.pathname === `/page/${of[name] ?? name}`;
    if (is) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  slide();
  complete();
  if (quietly) {
    scrollTo(0, place);
    choose(Math.min(chosen, items().length - 1));
  } else {
    chosen = -1;
    scrollTo(0, 0);
    const field = $("input[type=search]", main);
    if (field && !field.value) field.focus(); else $("h1", main)?.focus({ preventScroll: true });
    if (name === "review" && items().length) choose(0);
  }
}

// What takes longer comes when the rest is there.
function complete() {
  for (const part of $$("[data-part]", main)) {
    fetch(`/data/${part.dataset.part}`, authorised({ signal: asking.signal })).then(async (answer) => {
      const body = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      if (part.isConnected) part.replaceChildren(...body.childNodes);
      part.removeAttribute("aria-busy");
    }).catch((error) => error.name === "AbortError" || part.replaceChildren(told("This did not come.")));
  }
}

function go(url, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  show();
}

// What happens, as it happens, while somebody looks.
async function listen() {
  stream?.abort();
  stream = null;
  const list = $("#events"), sign = $("#is-live");
  const state = (word) => { sign.dataset.state = word === "live" ? "on" : "off"; sign.textContent = word; };
  if (!list || !token) return;
  if (document.hidden) return state("paused"); // nobody looks, and a browser has six connections
  const mine = stream = new AbortController();
  try {
    const answer = await fetch(`/data/events?after=${list.dataset.after}`, authorised({ signal: mine.signal }));
    if (!answer.ok) throw new Error(answer.statusText);
    state("live");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        const event = JSON.parse(line);
        list.dataset.after = event.position;
        const item = $("li", new DOMParser().parseFromString(event.html, "text/html"));
        item.classList.add("new");
        list.prepend(document.adoptNode(item));
        while (list.children.length > 40) list.lastElementChild.remove();
        later();
      }
    }
  } catch (error) {
    if (error.name === "AbortError") return;
  }
  if (mine === stream && list.isConnected) { // it ended by itself: try again, in a while
    state("not live");
    setTimeout(() => mine === stream && listen(), 5000);
  }
}

// Figures that events have changed are asked for again, at most every 15 seconds.
function later() {
  if (later.timer) return;
  later.timer = setTimeout(async () => {
    later.timer = 0;
    if (document.hidden || !$("#events")) return;
    const answer = await fetch("/data/now", authorised()).catch(() => null);
    if (!answer?.ok) return;
    const news = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of $$("[data-live]", main)) {
      const fresh = $(`[data-live=${part.dataset.live}]`, news);
      if (fresh && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
    }
  }, 15000);
}

// The slider over positions says of which day each is.
function slide() {
  const slider = $("#as_of"), output = $("#as_of_told");
  if (!slider) return;
  const days = JSON.parse(slider.dataset.days);
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    const time = days.findLast(([, position]) => position <= at)?.[0].replace("T", " ") ?? "";
    output.textContent = at >= Number(slider.max) ? "now" : `position ${at.toLocaleString("en")}, about ${time}`;
  });
  slider.dispatchEvent(new Event("input"));
  slider.addEventListener("change", () => $("#text").value && slider.form.requestSubmit());
}

const items = () => $$("[data-item]", main);

function choose(place) {
  const all = items();
  if (!all.length) return;
  chosen = Math.max(0, Math.min(place, all.length - 1));
  for (const [number, one] of all.entries()) one.classList.toggle("chosen", number === chosen);
  const item = all[chosen];
  for (let fold = item.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const target = item.tabIndex === -1 && item.hasAttribute("tabindex") ? item : $("a", item);
  target?.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}

async function change(method, params, { keeps = true } = {}) {
  const answer = await fetch("/data/do", authorised({
    method: "POST", body: JSON.stringify({ method, params }), headers: { "Content-Type": "application/json" },
  })).catch(() => { throw new Error(ENDED); });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error?.message ?? `that was refused (${answer.status})`);
  if (keeps && body.undo.length) undone.push(body.undo);
  return body;
}

// Does what a button says. What nothing takes back waits for a while, in which it can be stopped.
async function act(button) {
  const { method } = button.dataset, params = JSON.parse(button.dataset.params);
  const item = button.closest("[data-item]");
  await settle();
  if ("waits" in button.dataset) {
    item.hidden = true;
    item.removeAttribute("data-item");
    held = { method, params, item, timer: setTimeout(settle, HELD_MS) };
    choose(chosen);
    say(`${button.firstChild.textContent.trim()}: done in ${HELD_MS / 1000} s`, true);
    return;
  }
  await perform(method, params);
}

async function perform(method, params) {
  try {
    const { command, undo } = await change(method, params);
    await show({ quietly: true });
    say(command.length > 120 ? `${command.slice(0, 119)}…` : command, undo.length);
  } catch (error) {
    say(error.message);
  }
}

async function settle() {
  if (!held) return;
  const { method, params, timer } = held;
  clearTimeout(timer);
  held = null;
  await change(method, params).catch((error) => say(error.message));
}

async function undo() {
  if (held) {
    clearTimeout(held.timer);
    held.item.hidden = false;
    held.item.dataset.item = "";
    held = null;
    say("nothing was changed");
    return choose(chosen);
  }
  const back = undone.pop();
  if (!back) return say("there is nothing to undo");
  try {
    for (const { method, params } of back) await change(method, params, { keeps: false });
    await show({ quietly: true });
    say("undone");
  } catch (error) {
    say(error.message);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.deed");
  if (button) return act(button);
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const url = new URL(link.href.baseVal ?? link.href, location.href);
  if (url.origin !== location.origin || url.pathname.startsWith("/static/") || url.hash) return;
  event.preventDefault();
  go(url);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  event.preventDefault();
  const fields = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
  if (form.dataset.change) return perform(form.dataset.change, { memory_id: form.dataset.of, ...fields });
  const slider = $("#as_of", form);
  if (slider && Number(slider.value) >= Number(slider.max)) delete fields.as_of;
  go(`/page/${form.dataset.form}?${new URLSearchParams(fields)}`);
});

const KEYS = {
  j: () => choose(chosen + 1),
  k: () => choose(chosen - 1),
  u: undo,
  "?": () => $("#keys").showModal(),
  "/": () => (location.pathname === "/page/search" ? $("#text")?.focus() : go("/page/search")),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.metaKey || event.ctrlKey || event.altKey || $("#keys").open) return;
  const item = items()[chosen];
  const button = item && $(`button.deed[data-key="${CSS.escape(event.key)}"]`, item);
  const page = /^[1-7]$/.test(event.key) && $$("header nav a")[event.key - 1];
  const deed = KEYS[event.key] ?? (button ? () => act(button) : page ? () => go(page.href) : null);
  if (event.key === "Enter" && document.activeElement === item) $("a", item)?.click();
  if (!deed) return;
  event.preventDefault();
  deed();
});

$("#help").addEventListener("click", () => $("#keys").showModal());
document.addEventListener("visibilitychange", listen);
addEventListener("popstate", () => show());
addEventListener("hashchange", () => location.hash.startsWith("#t=") && location.reload());
addEventListener("pagehide", () => held && fetch("/data/do", authorised({ method: "POST", keepalive: true, body: JSON.stringify({ method: held.method, params: held.params }) })));
show();
