// The bundled extension as VS Code runs it, with a stand-in for the editor: it starts the server of shardlog, and asks
// about the files that it is contributed for. SHARDLOG is the command, by default `shardlog`.
const assert = require("node:assert");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const test = require("node:test");
const rpc = require("vscode-jsonrpc/node");

const extension = require("../package.json");
const command = (process.env.SHARDLOG ?? "shardlog").split(" ");
const MODULE = `sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
`;

async function connected(talk) {
  const [program, ...args] = command;
  const server = spawn(program, [...args, ...extension.contributes.configuration.properties["shardlog.command"].default.slice(1)]);
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "shardlog-"));
  const told = new Map();
  let wake = () => {};
  connection.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics }) => {
    told.set(uri, diagnostics);
    wake();
  });
  connection.listen();
  try {
    await connection.sendRequest("initialize", {
      processId: process.pid, rootUri: null, capabilities: {},
      workspaceFolders: [{ uri: pathToFileURL(folder).href, name: "folder" }],
    });
    await connection.sendNotification("initialized", {});
    await talk({
      async open(name, text) {
        const uri = pathToFileURL(path.join(folder, name)).href;
        const languageId = extension.contributes.languages.find(({ extensions }) => extensions.includes(path.extname(name))).id;
        await connection.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId, version: 1, text } });
        while (!told.has(uri)) await new Promise((resolve) => { wake = resolve; });
        return { uri, diagnostics: told.get(uri) };
      },
      hover: (uri, line, character) =>
        connection.sendRequest("textDocument/hover", { textDocument: { uri }, position: { line, character } }),
    });
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
  } finally {
    connection.dispose();
    server.kill();
    fs.rmSync(folder, { recursive: true });
  }
}

test("rules have diagnostics and hover", { timeout: 120_000 }, () => connected(async ({ open, hover }) => {
  const { uri, diagnostics } = await open("a.dl", ".decl edge(a: number, b: number)  // one step\nedge(1, 2).\npath(1).\n");
  assert.deepStrictEqual(diagnostics.map(({ range, message }) => [range.start.line, message.split("\n")[0]]),
    [[2, "unknown relation `path`"]]);
  assert.match((await hover(uri, 1, 1)).contents.value, /one step/);
}));

test("values of modules have their proofs", { timeout: 120_000 }, () => connected(async ({ open, hover }) => {
  const { uri, diagnostics } = await open("m.mlir", MODULE);
  assert.deepStrictEqual(diagnostics, []);
  const { contents, range } = await hover(uri, 2, 3);
  assert.match(contents.value, /\*\*\[\{x\}, \{\}\]\*\*/);
  assert.match(contents.value, /stablehlo\.tanh/);
  assert.deepStrictEqual(range, { start: { line: 2, character: 2 }, end: { line: 2, character: 4 } });
}));

test("the bundle activates", async () => {
  const Module = require("node:module");
  const load = Module._load;
  const registered = [];
  const shown = [];
  // Of all else that the client asks of the editor, the answer is something that can be called and asked again.
  const any = new Proxy(function () {}, {
    get: (target, name) => (name === "prototype" ? target.prototype
      : name === Symbol.toPrimitive ? () => "" : name === "then" || name === Symbol.iterator ? undefined : any),
    apply: () => any,
    construct: () => ({ event: () => any, fire: () => {}, dispose: () => {} }),
  });
  const known = (answers) => new Proxy(answers, { get: (target, name) => target[name] ?? any });
  const editor = known({
    version: extension.engines.vscode.slice(1),
    workspace: known({
      getConfiguration: () => ({ get: () => ["/no/such/shardlog", "lsp"] }),
      onDidChangeConfiguration: () => ({}),
      textDocuments: [],
    }),
    commands: known({ registerCommand: (name) => { registered.push(name); return {}; } }),
    window: known({ showErrorMessage: (text) => shown.push(text) }),
  });
  Module._load = (name, ...rest) => (name === "vscode" ? editor : load(name, ...rest));
  try {
    const { activate } = require("../dist/extension.js");
    await activate({ subscriptions: [] });
  } finally {
    Module._load = load;
  }
  assert.deepStrictEqual(registered, extension.contributes.commands.map(({ command: name }) => name));
  assert.match(shown.at(-1), /cannot start \/no\/such\/shardlog lsp/);
});
