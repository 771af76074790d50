// Finds rules and packages offline: every word must occur. The index is a script of the site (rules/entries.js), so that it also
// loads where a page is opened as a file.
"use strict";

const field = document.getElementById("search");
const results = document.getElementById("found");
const everything = document.getElementById("everything");

function shown(entry) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = results.dataset.root + entry.path;
  link.textContent = entry.title;
  item.append(link, ` ${entry.about}`);
  return item;
}

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? window.entries.filter((entry) => words.every((word) => entry.text.includes(word))) : [];
  results.replaceChildren(...found.slice(0, 100).map(shown));
  everything.hidden = words.length > 0;
  document.getElementById("count").textContent = words.length ? `${found.length} found` : "";
  history.replaceState(null, "", words.length ? `#${encodeURIComponent(field.value)}` : location.pathname);
}

document.getElementById("searching").hidden = false;
field.addEventListener("input", search);
if (location.hash.length > 1) {
  field.value = decodeURIComponent(location.hash.slice(1));
  search();
}
