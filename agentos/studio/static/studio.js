// What the pages of the studio need beside htmx: local times, live parts, and habits of the keyboard.
"use strict";
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  // -- times: local, short where they are of today, and exact on hover
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" });
  function localise(within) {
    for (const one of $$("time[datetime]:not([data-local])", within)) {
      const at = new Date(one.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      one.textContent = (at.toDateString() === new Date().toDateString() ? clock : day).format(at);
      one.dataset.local = "";
    }
  }

  // -- nothing moves while somebody types: parts that are out of date wait until the focus has left them
  const isTyping = (part) => {
    const focus = document.activeElement;
    const isIn = focus && part.contains(focus) && focus.matches("input:not([type=checkbox]), textarea, select");
    return Boolean(isIn || $("details.edit[open]", part));
  };
  const late = new Set();
  const parts = (topic) => $$("[hx-trigger]").filter((one) => one.getAttribute("hx-trigger").includes(`studio:${topic}`));
  function tell(topic) {
    // What is morphed keeps the row that somebody edits as it is, and adds others beneath.
    if (parts(topic).some((part) => isTyping(part) && !part.hasAttribute("data-while-typing"))) late.add(topic);
    else document.body.dispatchEvent(new CustomEvent(`studio:${topic}`));
  }
  const catchUp = () => setTimeout(() => {
    for (const topic of [...late]) {
      if (!parts(topic).some(isTyping)) { late.delete(topic); tell(topic); }
    }
  });
  document.addEventListener("focusout", catchUp);
  document.addEventListener("toggle", catchUp, true);

  // -- what waits: it loses its buttons when it expires, and stays as it is while somebody edits it
  setInterval(() => {
    for (const one of $$("[data-expires]")) if (new Date(one.dataset.expires) < new Date()) one.classList.add("expired");
  }, 500);
  document.addEventListener("input", (event) => event.target.closest?.("[data-expires]")?.setAttribute("hx-morph-skip", ""));
  document.addEventListener("toggle", (event) => {
    const one = event.target.closest?.("[data-expires]");
    if (one) one.toggleAttribute("hx-morph-skip", Boolean($("details[open]", one)));
  }, true);

  // -- live calls: newest on top, a bounded number of rows, and none while it is paused
  const ROWS = 200;
  const paused = [];
  const calls = () => $("#calls");
  const isPaused = () => $("[data-pause]")?.getAttribute("aria-pressed") === "true";
  function take(said) {
    const body = calls();
    if (!body) return;
    if (isPaused() || isTyping(document.body)) {
      paused.push(said);
      if (paused.length > 20) paused.shift();
      return;
    }
    const drawn = document.createElement("template");
    drawn.innerHTML = said.rows; // made by our own template, which escapes what is foreign
    for (const row of [...drawn.content.children]) {
      const known = document.getElementById(row.id);
      if (known) known.replaceWith(row);
      else if (fits(row)) body.prepend(row);
    }
    while (body.rows.length > ROWS) body.lastElementChild.remove();
    if (said.left) $("#left").textContent = `${said.left} more calls in the last moment are not shown`;
    $("#none")?.remove();
    localise(body);
  }
  function fits(row) {
    const asked = new URLSearchParams(location.search);
    const text = (asked.get("text") || "").toLowerCase();
    return (!asked.get("state") || row.dataset.state === asked.get("state"))
      && (!text || `${row.dataset.tool} ${row.dataset.principal}`.toLowerCase().includes(text));
  }
  function resume() {
    for (const said of paused.splice(0)) take(said);
  }

  // -- what happens in the host
  function listen() {
    const topics = document.body.dataset.topics;
    if (!topics || !document.body.dataset.events) return;
    const source = new EventSource(`${document.body.dataset.events}?topics=${encodeURIComponent(topics)}&since=${document.body.dataset.since}`);
    let wasLost = false;
    source.addEventListener("changed", (event) => JSON.parse(event.data).topics.forEach(tell));
    source.addEventListener("calls", (event) => take(JSON.parse(event.data)));
    source.addEventListener("open", () => {
      document.body.dataset.live = "on";
      if (wasLost) topics.split(",").forEach(tell); // whatever happened meanwhile was not told
      wasLost = false;
    });
    source.addEventListener("error", () => { document.body.dataset.live = "off"; wasLost = true; });
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }

  // -- the keyboard, and small things
  document.addEventListener("keydown", (event) => {
    const isInField = event.target.matches?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !isInField && $("[data-find]")) {
      event.preventDefault();
      $("[data-find]").focus();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches?.("[data-send]")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
    if (event.key === "Escape" && $("[data-panel] [data-close]") && !isInField) close($("[data-panel]"));
  });
  function close(panel) {
    const at = new URL(location.href);
    ["why", "call", "of", "run"].forEach((name) => at.searchParams.delete(name));
    history.replaceState(history.state, "", at);
    const shown = opener;
    panel.remove();
    shown?.isConnected && shown.focus();
  }
  let opener = null;
  document.addEventListener("click", (event) => {
    const closing = event.target.closest?.("[data-close]");
    if (closing) { event.preventDefault(); close(closing.closest("[data-panel]")); return; }
    const pause = event.target.closest?.("[data-pause]");
    if (pause) {
      const now = !isPaused();
      pause.setAttribute("aria-pressed", String(now));
      pause.textContent = now ? "Resume" : "Pause";
      if (!now) resume();
    }
    const link = event.target.closest?.("a[hx-target='#panel']");
    if (link) opener = link;
    const all = event.target.closest?.("[data-all]");
    if (all) $$("input[type=checkbox]", all.closest("fieldset")).forEach((box) => { box.checked = all.checked; });
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-once]")) $$("button", event.target).forEach((one) => { one.disabled = true; });
  });
  // A change that is made by fetch says whose form it is, as forms do.
  window.studio = { csrf: () => $("meta[name=csrf]")?.content, localise, tell };

  document.addEventListener("htmx:after:swap", (event) => {
    localise(document);
    const panel = $("#panel [data-panel]");
    if (panel && opener && event.target?.id === "panel") { panel.tabIndex = -1; panel.focus(); }
  });
  document.addEventListener("DOMContentLoaded", () => {
    localise(document);
    const menu = $(".menu");
    const wide = matchMedia("(min-width: 60rem)");
    const fold = () => { if (menu) menu.open = wide.matches; };
    wide.addEventListener("change", fold);
    fold();
    listen();
  });
})();
