// Drives a real Chromium: reads what to do as JSON from standard input, prints what was seen as JSON.
// {playwright, chromium, base, foreign, checks: [{text, name, options}], blocked: [path],
//  printed: {path: width}, screenshots: [{path, file, width, dark}]}; each page of the last is also judged by axe
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";

let input = "";
for await (const part of process.stdin) input += part;
const asked = JSON.parse(input);
const installed = createRequire(`${asked.playwright}/`);
const { chromium } = installed("playwright-core");
const axe = readFileSync(installed.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: asked.chromium, args: ["--no-sandbox", "--disable-gpu"] });
const seen = { requests: [], console: [], answers: [], blocked: {}, silent: {}, violations: [], wide: [] };

function watched(context) {
  context.on("request", (request) => seen.requests.push(request.url()));
  context.on("console", (message) => message.type() === "error" && seen.console.push(message.text()));
  context.on("weberror", (error) => seen.console.push(String(error.error())));
  return context;
}

async function checked(page, { text, name = "", options = {} }) {
  await page.fill("#text", text);
  await page.selectOption("[name=name]", name);
  for (const field of ["gpu", "python-version", "driver"]) await page.fill(`[name=${field}]`, options[field] ?? "");
  for (const field of ["task", "launcher"]) await page.selectOption(`[name=${field}]`, options[field] ?? "");
  await page.evaluate(() => say(""));
  await page.click("#go");
  await page.waitForFunction(() => /^(Done|This could not)/.test(document.getElementById("status").textContent), null, { timeout: 120_000 });
  return page.evaluate(() => ({
    status: document.getElementById("status").textContent,
    command: document.querySelector("#result code")?.textContent,
    exit: Number(document.getElementById("result").dataset.exit),
    page,
    shown: document.getElementById("result").textContent,
    errors: document.querySelector("#result > pre")?.textContent ?? "",
    focus: document.activeElement.id,
  }));
}

const context = watched(await browser.newContext());
if (asked.checks?.length) {
  const page = await context.newPage();
  await page.goto(`${asked.base}check.html`);
  for (const each of asked.checks) seen.answers.push(await checked(page, each));
  seen.before = [...seen.console];
  // whatever ran in the page or its worker could not reach another origin
  const reach = (address) => fetch(address, { mode: "no-cors" }).then(() => "sent", (problem) => `blocked: ${problem.message}`);
  seen.blocked.page = await page.evaluate(reach, asked.foreign);
  seen.blocked.worker = await page.workers()[0].evaluate(reach, asked.foreign);
  // a new page with everything in the browser's cache, opened by its permalink
  const link = page.url();
  const again = await context.newPage();
  const began = Date.now();
  await again.goto(link);
  await again.waitForFunction(() => /^(Done|This could not)/.test(document.getElementById("status").textContent), null, { timeout: 120_000 });
  seen.again = { milliseconds: Date.now() - began, shown: await again.evaluate(() => document.getElementById("result").textContent) };
}
seen.found = [];
for (const { path, search } of asked.searches ?? []) {
  for (const address of [asked.base + path, ...(asked.files ?? [])]) {
    const page = await context.newPage();
    await page.goto(address);
    await page.fill("#search", search);
    seen.found.push(await page.locator("#found li a").evaluateAll((links) => links.map((link) => [link.textContent, link.href])));
  }
}
for (const { path, file, width, dark, text } of asked.screenshots ?? []) {
  // the pages' policy keeps out the script of axe, too
  const options = { viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light", bypassCSP: true };
  const shot = await (watched(await browser.newContext(options))).newPage();
  await shot.goto(asked.base + path);
  if (text) await checked(shot, { text });
  seen.wide.push([path, width, await shot.evaluate(() => document.documentElement.scrollWidth)]);
  if (file) await shot.screenshot({ path: file, fullPage: !!text });
  await shot.evaluate(axe);
  const found = await shot.evaluate(() => axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`)));
  seen.violations.push(...found.map((each) => `${path}: ${each}`));
}
seen.printed = {};
for (const [path, width] of Object.entries(asked.printed ?? {})) {
  const page = await context.newPage();
  await page.goto(asked.base + path);
  const [, across, down] = /MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]/.exec((await page.pdf({ preferCSSPageSize: true })).toString("latin1"));
  await page.emulateMedia({ media: "print" });
  await page.setViewportSize({ width, height: 700 });
  seen.printed[path] = { across, down, wide: await page.evaluate(() => document.documentElement.scrollWidth) };
}
const silent = await browser.newContext({ javaScriptEnabled: false });
for (const path of asked.blocked ?? []) {
  const page = await silent.newPage();
  await page.goto(asked.base + path);
  seen.silent[path] = await page.locator("main").innerText();
}
await browser.close();
console.log(JSON.stringify(seen));
