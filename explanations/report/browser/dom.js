"use strict";
// Elements, and numbers as people read them.

const TAIL = 16; // characters at the end of a long text that are always there

const byId = (id) => document.getElementById(id);

/** An element. `given` are attributes; a function is a listener, `null` and `false` leave the attribute out. */
function element(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, given);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** An element of a drawing. */
function drawn(tag, given = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(made, given);
  return made;
}

function setAttributes(made, given) {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? "" : value);
  }
}

const button = (text, click, given = {}) => element("button", { type: "button", click, ...given }, text);

const code = (text) => element("code", {}, text);

/** A sentence in which names stand between backticks. */
const prose = (text) => text.split("`").map((part, i) => (i % 2 ? code(part) : part));

/**
 * A text on one line, shortened in the middle where there is too little room: the end tells paths apart. `head` and `last`
 * are the numbers of characters at the start and at the end that are always there.
 */
function middle(text, given = {}, head = 0, last = TAIL) {
  const tail = text.length > head + last + 4 ? last : 0;
  const [first, start, end] = [text.slice(0, head), text.slice(head, text.length - tail), text.slice(text.length - tail)];
  return element(
    "span",
    { class: "middle", title: text, ...given },
    head ? element("span", { class: "first" }, first) : null,
    element("span", { class: "start" }, start),
    element("span", { class: "end" }, end),
  );
}

/** A place on one line: of `model.py:9 (flax/linen/linear.py:700) in UNet/Conv_0` the line is always there. */
const placeText = (where) => middle(where, {}, /^\S*:\d+(?= )/.exec(where)?.[0].length ?? 0);

/** The keys of JAX's path `params['layers'][3]['mlp']['up']`. */
const keysOf = (path) => path.match(/\[[^\]]*\]|\.\w+/g) ?? [];

/** The argument that a path begins with. */
const rootOf = (path) => /^\w+(?=[[.])/.exec(path)?.[0] ?? "";

/** What a tensor is called: of JAX's path the argument and the last keys stay, two or as many as are asked for. */
function pathText(path, last = 2) {
  const end = keysOf(path).slice(-last).join("").length;
  if (path.length <= TAIL) return middle(path, { class: "middle code" });
  const head = rootOf(path).length;
  return middle(path, { class: "middle code" }, path.length > head + end + 4 ? head : 0, end || TAIL);
}

const countText = (n) => n.toLocaleString("en");

const manyText = (n, what) => `${countText(n)} ${what}${n === 1 ? "" : "s"}`;

/** 1536 -> "1.5 KiB". */
function bytesText(n) {
  let unit = 0;
  while (n >= 1024 && unit < 5) {
    n /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || n >= 100 ? 0 : 1;
  return `${n.toLocaleString("en", { maximumFractionDigits: digits })} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

const percentText = (share) =>
  `${(100 * share).toLocaleString("en", { maximumFractionDigits: share > 0.995 || share < 0.1 ? 1 : 0 })} %`;

/** Tells users of screen readers what has changed. */
function announce(text) {
  byId("status").textContent = text;
}
