"use strict";
// A layered drawing of a small graph without cycles: layers by longest paths, order in them by barycentres.

const LAYER_GAP = 34;
const NODE_GAP = 22;
const LANE = 10; // the width of an edge that passes a layer
const SWEEPS = 6;

/**
 * Places nodes in layers from top to bottom. `nodes` are `{width, height, port}`, `edges` pairs of their numbers, the first
 * smaller than the second; a port stands above the node that it feeds. Returns `{x, y, width, height, paths}`: corners of the nodes, and for every edge the points
 * that it goes through.
 */
function layered(nodes, edges) {
  const layers = layersOf(nodes, edges);
  const { boxes, chains } = withLanes(nodes, edges, layers);
  const rows = ordered(boxes);
  placeRows(rows);
  const left = Math.min(0, ...boxes.map((box) => box.x));
  let y = 0;
  for (const row of rows) {
    const height = Math.max(0, ...row.map((box) => box.height));
    for (const box of row) {
      box.x -= left;
      box.y = y;
      if (box.lane) box.height = height;
    }
    y += height + LAYER_GAP;
  }
  return {
    x: nodes.map((_, i) => boxes[i].x),
    y: nodes.map((_, i) => boxes[i].y),
    width: Math.max(0, ...boxes.map((box) => box.x + box.width)),
    height: Math.max(0, y - LAYER_GAP),
    paths: chains.map((chain) => points(chain)),
  };
}

/** Longest paths from the top; constants, and what is made of them alone, stand just above where they go. */
function layersOf(nodes, edges) {
  const layer = new Array(nodes.length).fill(0);
  const into = nodes.map(() => []);
  const outOf = nodes.map(() => []);
  for (const [from, to] of edges) {
    into[to].push(from);
    outOf[from].push(to);
  }
  const floats = [];
  nodes.forEach(({ port }, i) => {
    for (const from of into[i]) layer[i] = Math.max(layer[i], layer[from] + 1);
    floats[i] = !port && into[i].every((from) => floats[from]);
  });
  for (let i = nodes.length - 1; i >= 0; i--) {
    if ((floats[i] || nodes[i].port) && outOf[i].length > 0)
      layer[i] = Math.min(...outOf[i].map((to) => layer[to])) - 1;
  }
  return layer;
}

/** Boxes for the nodes, and lanes for edges that pass layers; an edge is the chain of boxes that it goes through. */
function withLanes(nodes, edges, layers) {
  const boxes = nodes.map(({ width, height }, i) => ({
    width,
    height,
    layer: layers[i],
    lane: false,
    x: 0,
    y: 0,
    up: [],
    down: [],
  }));
  const chains = edges.map(([from, to]) => {
    const chain = [boxes[from]];
    for (let layer = layers[from] + 1; layer < layers[to]; layer++) {
      const lane = { width: LANE, height: 0, layer, lane: true, x: 0, y: 0, up: [], down: [] };
      boxes.push(lane);
      chain.push(lane);
    }
    chain.push(boxes[to]);
    for (let i = 1; i < chain.length; i++) {
      chain[i - 1].down.push(chain[i]);
      chain[i].up.push(chain[i - 1]);
    }
    return chain;
  });
  return { boxes, chains };
}

/** The boxes by layer, in an order with few crossings. */
function ordered(boxes) {
  const rows = [];
  for (const box of boxes) (rows[box.layer] ??= []).push(box);
  const number = (row) =>
    row.forEach((box, i) => {
      box.at = i;
    });
  rows.forEach(number);
  const sort = (row, side) => {
    for (const box of row) {
      const near = box[side];
      box.mean = near.length === 0 ? box.at : near.reduce((sum, other) => sum + other.at, 0) / near.length;
    }
    row.sort((a, b) => a.mean - b.mean || a.at - b.at);
    number(row);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    rows.forEach((row) => sort(row, "up"));
    rows
      .slice()
      .reverse()
      .forEach((row) => sort(row, "down"));
  }
  rows.forEach((row) => sort(row, "up"));
  return rows;
}

/** Gives boxes their x: near the middle of what they are joined to, without overlap. */
function placeRows(rows) {
  for (const row of rows) {
    let x = 0;
    for (const box of row) {
      box.x = x;
      x += box.width + NODE_GAP;
    }
  }
  const middle = (box) => box.x + box.width / 2;
  const pull = (row, side) => {
    const wanted = row.map((box) => {
      const near = box[side].length > 0 ? box[side] : [box];
      return near.reduce((sum, other) => sum + middle(other), 0) / near.length - box.width / 2;
    });
    spread(row, wanted);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    rows.forEach((row) => pull(row, "up"));
    rows
      .slice()
      .reverse()
      .forEach((row) => pull(row, "down"));
  }
}

/** The places without overlap that are nearest to those wanted (least squares: pool adjacent violators). */
function spread(row, wanted) {
  const blocks = [];
  let offset = 0;
  row.forEach((box, i) => {
    let block = { sum: wanted[i] - offset, count: 1 };
    while (
      blocks.length > 0 &&
      blocks[blocks.length - 1].sum / blocks[blocks.length - 1].count > block.sum / block.count
    ) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, count: before.count + block.count };
    }
    blocks.push(block);
    offset += box.width + NODE_GAP;
  });
  let [at, gap] = [0, 0];
  for (const { sum, count } of blocks) {
    for (let i = 0; i < count; i++, at++) {
      row[at].x = sum / count + gap;
      gap += row[at].width + NODE_GAP;
    }
  }
}

/** The points of an edge: from the bottom of the first box, through lanes, to the top of the last. */
function points(chain) {
  const middle = (box) => box.x + box.width / 2;
  const found = [];
  chain.forEach((box, i) => {
    if (i > 0) found.push([middle(box), box.y]);
    if (i < chain.length - 1) found.push([middle(box), box.y + box.height]);
  });
  return found;
}

/** A path with vertical tangents through points. */
function curve(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    if (x0 === x1) path += `V${y1}`;
    else path += `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
  }
  return path;
}
