// The page that checks: nothing that is pasted leaves it (its Content-Security-Policy allows requests to its own origin alone).
"use strict";

const form = document.getElementById("check");
const status = document.getElementById("status");
const result = document.getElementById("result");
const button = document.getElementById("go");
const base = new URL("runtime/", location.href).href;
let worker = null;
let number = 0;
let checking = false; // the button stays enabled: one that is disabled loses the focus of whoever uses the keyboard
let page = "";

async function started() {
  if (worker) return worker;
  worker = (async () => {
    // no server is asked for a header: a worker from a blob: address has the policy of this page
    const source = document.getElementById("worker-source").textContent;
    const made = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
    say("Loading Python (about 8 MB, once) …");
    await new Promise((resolve, reject) => {
      made.onmessage = ({ data }) => (data.ready ? resolve() : reject(new Error(data.failed)));
      made.onerror = (event) => reject(new Error(event.message || "the worker could not be started"));
      made.postMessage({ base });
    });
    say("Ready.");
    return made;
  })();
  worker.catch((problem) => say(`Python could not be loaded: ${problem.message}`));
  return worker;
}

function say(text) {
  status.textContent = text;
}

function options() {
  const chosen = [];
  for (const name of ["gpu", "task", "launcher", "python-version", "driver"]) {
    const value = form.elements[name].value.trim();
    if (value) chosen.push(`--${name}`, value);
  }
  return chosen;
}

async function check() {
  if (checking) return;
  const text = form.elements.text.value;
  if (!text.trim()) {
    say("Paste something first.");
    form.elements.text.focus();
    return;
  }
  checking = true;
  const asked = ++number;
  try {
    const python = await started();
    say("Checking …");
    const began = performance.now();
    const found = await new Promise((resolve) => {
      python.onmessage = ({ data }) => data.number === asked && resolve(data);
      python.postMessage({ number: asked, text, name: form.elements.name.value, options: options() });
    });
    show(found, performance.now() - began);
    await remember();
  } catch (problem) {
    say(`This could not be checked: ${problem.message}`);
  } finally {
    checking = false;
  }
}

// The report is the page that the command writes with --format html, in which every text is escaped. It is parsed without being
// run, and its main part is shown.
function show(found, milliseconds) {
  result.replaceChildren();
  if (found.failed) {
    say(`This could not be checked: ${found.failed}`);
    return;
  }
  page = found.page;
  const command = document.createElement("p");
  const code = document.createElement("code");
  code.textContent = found.command;
  command.append("The same on a machine: ", code);
  result.append(command);
  if (found.errors) {
    const errors = document.createElement("pre");
    errors.textContent = found.errors;
    result.append(errors);
  }
  if (page) {
    const main = page.slice(page.indexOf("<main"), page.indexOf("</main>") + "</main>".length);
    const parsed = new DOMParser().parseFromString(main, "text/html");
    for (const heading of parsed.querySelectorAll("h1")) heading.remove();
    result.append(...parsed.querySelector("main").childNodes);
  }
  result.dataset.exit = found.code;
  document.getElementById("save").disabled = !page;
  say(`Done in ${(milliseconds / 1000).toFixed(1)} s.`);
}

// The input as a part of the address that no browser sends to a server.
async function remember() {
  const values = Object.fromEntries(new FormData(form));
  const packed = new Blob([JSON.stringify(values)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  history.replaceState(null, "", `#${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`);
}

async function recall() {
  if (location.hash.length < 2) return;
  try {
    const letters = atob(location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    for (const [name, value] of Object.entries(JSON.parse(await new Response(unpacked).text()))) {
      if (form.elements[name] instanceof Element) form.elements[name].value = value;
    }
    await check();
  } catch {
    say("The link is damaged: its input could not be read.");
  }
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
  link.download = "compat.html";
  link.click();
  URL.revokeObjectURL(link.href);
}

if (location.protocol === "file:") {
  say("A browser starts no worker from a file: open this page from a server, or run compat check. All other pages work from a file.");
} else {
  button.disabled = false;
  form.addEventListener("focusin", () => started(), { once: true });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check();
  });
  document.getElementById("save").addEventListener("click", save);
  document.getElementById("link").addEventListener("click", async () => {
    await remember();
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. It holds what was pasted; nothing of it is sent to the server that has this page.");
  });
  recall();
}
