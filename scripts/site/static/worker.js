// Runs in a worker made from a blob: address, which inherits the page's Content-Security-Policy. The first message says where
// the runtime is; each further one is a text to check.
"use strict";

let ready = null;

async function start(base) {
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const archives = ["compat.zip", "packages.zip"].map((name) => fetch(base + name).then((answer) => answer.arrayBuffer()));
  const glue = fetch(`${base}browser.py`).then((answer) => answer.text());
  const python = await loadPyodide({ indexURL: base, env: { HOME: "/home", LANG: "C.UTF-8" } });
  for (const archive of archives) python.unpackArchive(await archive, "zip", { extractDir: "/packages" });
  python.runPython("import sys; sys.path.insert(0, '/packages')");
  const module = python.globals.get("dict")();
  python.runPython(await glue, { globals: module });
  return module.get("answer");
}

self.onmessage = async ({ data }) => {
  try {
    if (data.base) {
      ready = start(data.base);
      await ready;
      self.postMessage({ ready: true });
      return;
    }
    const answer = (await ready)(data.text, data.name, data.options);
    const [command, code, page, errors] = answer.toJs();
    answer.destroy();
    self.postMessage({ number: data.number, command, code, page, errors });
  } catch (problem) {
    self.postMessage({ number: data.number, failed: String(problem.message || problem) });
  }
};
