"use strict";

// A page of one conversation. Text is shown as text; the token is sent in a header and never stands in an address.

const api = new URL("../webchat/", document.baseURI);
const element = (id) => document.getElementById(id);
const messages = element("messages");
const compose = element("compose");
const text = element("text");
const access = element("access");
const token = element("token");

const LONGEST_WAIT = 30000;
const SILENCE = 330000; // after which a stream without a heartbeat is taken for dead: the longest there is, and a bit

let last = null; // the last event that was read
let reading = null; // what ends the stream that is read
let wake = () => {};
let sending = Promise.resolve();

const kept = {
  get token() { return sessionStorage.getItem("webchat.token"); },
  set token(value) {
    if (value) sessionStorage.setItem("webchat.token", value);
    else sessionStorage.removeItem("webchat.token");
    element("forget").hidden = !value;
  },
  get conversation() {
    if (!sessionStorage.getItem("webchat.conversation")) this.conversation = newId();
    return sessionStorage.getItem("webchat.conversation");
  },
  set conversation(value) { sessionStorage.setItem("webchat.conversation", value); },
};

// crypto.randomUUID is there over https and on this machine alone
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function say(words) {
  const status = element("status");
  if (status.textContent !== words) status.textContent = words;
}

function pause(milliseconds) {
  return new Promise((done) => {
    const clock = setTimeout(done, milliseconds);
    wake = () => { clearTimeout(clock); done(); };
  });
}

function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (kept.token) headers.Authorization = `Bearer ${kept.token}`;
  return fetch(new URL(path, api), { credentials: "omit", redirect: "error", cache: "no-store", ...options, headers });
}

function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

// -- what is shown

function show(one, event) {
  if (document.getElementById(`message-${one.id}`)) return;
  const isEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 60;
  const item = document.createElement("li");
  item.id = `message-${one.id}`;
  item.className = one.from === "you" ? "you" : "agent";
  item.append(part("span", "who", one.from === "you" ? "You" : "Agent"), part("p", "text", one.text));
  const files = (one.attachments || []).map((file, number) => attachment(file, event, number));
  if (files.length) {
    const list = part("ul", "files", "");
    list.append(...files);
    item.append(list);
  }
  messages.append(item);
  if (isEnd || one.from === "you") messages.scrollTop = messages.scrollHeight;
}

function part(name, kind, words) {
  const made = document.createElement(name);
  made.className = kind;
  made.textContent = words;
  return made;
}

function attachment(file, event, number) {
  const item = document.createElement("li");
  const name = file.name || file.mime || "attachment";
  if (file.url && /^https?:\/\//i.test(file.url)) {
    const link = part("a", "file", `${name} (${new URL(file.url).host})`);
    link.href = file.url;
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    item.append(link);
  } else if (file.size !== undefined && event) {
    const button = part("button", "file", `Download ${name} (${file.size} bytes)`);
    button.type = "button";
    button.addEventListener("click", () => save(event, number, name));
    item.append(button);
  } else {
    item.textContent = name;
  }
  return item;
}

async function save(event, number, name) {
  const conversation = encodeURIComponent(kept.conversation);
  try {
    const answer = await ask(`attachments/${event}/${number}?conversation=${conversation}`);
    if (!answer.ok) throw new Error(String(answer.status));
    const address = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), LONGEST_WAIT);
  } catch {
    say("The attachment is not there any more.");
  }
}

function needToken() {
  kept.token = "";
  access.hidden = false;
  compose.hidden = true;
  say("A token is needed.");
  token.focus();
}

// -- events

async function follow() {
  let wait = 1000;
  for (;;) {
    const conversation = kept.conversation;
    try {
      const answer = await open(conversation);
      if (answer.status === 401) {
        needToken();
        await new Promise((done) => { wake = done; });
        continue;
      }
      if (answer.ok) {
        say("Connected.");
        wait = 1000;
        await read(answer.body, conversation);
      } else if (answer.status === 403) {
        say("This token may not be used here.");
      } else {
        say("The chat is not there now; trying again.");
      }
    } catch {
      if (conversation === kept.conversation) say("The connection is lost; trying again.");
    }
    if (conversation !== kept.conversation) continue;
    await pause(wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

function open(conversation) {
  reading = new AbortController();
  const headers = last ? { "Last-Event-ID": last } : {};
  return ask(`events?conversation=${encodeURIComponent(conversation)}`, { headers, signal: reading.signal });
}

async function read(body, conversation) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const stop = reading;
  let clock = 0;
  let rest = "";
  try {
    for (;;) {
      clearTimeout(clock);
      clock = setTimeout(() => stop.abort(), SILENCE);
      const { value, done } = await reader.read();
      if (done || conversation !== kept.conversation) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      const before = last;
      frames.forEach(hear);
      if (last !== before) post("taken", { conversation, last }).catch(() => {});
    }
  } finally {
    clearTimeout(clock);
  }
}

function hear(frame) {
  const fields = {};
  for (const line of frame.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  if (fields.event !== "message") return;
  show(JSON.parse(fields.data), fields.id);
  last = fields.id;
}

// -- messages

async function deliver(one) {
  for (let wait = 1000; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    try {
      const answer = await post("messages", one); // taken once by its id, however often it is posted
      if (answer.ok) return;
      if (answer.status === 401) needToken();
      else if (![429, 500, 502, 503, 504].includes(answer.status)) {
        say(`A message was not taken (${answer.status}).`);
        return;
      }
    } catch { /* tried again below */ }
    say("A message waits to be sent.");
    await new Promise((done) => setTimeout(done, wait));
  }
}

compose.addEventListener("submit", (event) => {
  event.preventDefault();
  const words = text.value;
  if (!words.trim()) return;
  const one = { id: newId(), conversation: kept.conversation, text: words };
  text.value = "";
  text.focus();
  show({ ...one, from: "you" }, null);
  sending = sending.then(() => deliver(one));
});

text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  compose.requestSubmit();
});

access.addEventListener("submit", (event) => {
  event.preventDefault();
  kept.token = token.value.trim();
  token.value = "";
  access.hidden = true;
  compose.hidden = false;
  text.focus();
  wake();
});

element("forget").addEventListener("click", () => {
  kept.token = "";
  if (reading) reading.abort();
});

element("fresh").addEventListener("click", () => {
  kept.conversation = newId();
  last = null;
  messages.replaceChildren();
  if (reading) reading.abort();
  wake();
  text.focus();
});

element("forget").hidden = !kept.token;
text.focus();
follow();
