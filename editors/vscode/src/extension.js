// Starts `shardlog lsp` for files of Datalog, of einsum notation and of MLIR.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["datalog", "einsum", "mlir"];
let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("shardlog").get("command");
  client = new LanguageClient("shardlog", "shardlog", { command, args }, {
    documentSelector: LANGUAGES.map((language) => ({ scheme: "file", language })),
  });
  try {
    await client.start();
  } catch {
    client = undefined;
    const hint = "pip install 'shardlog[lsp]', or set shardlog.command to where it is installed";
    vscode.window.showErrorMessage(`shardlog: cannot start ${[command, ...args].join(" ")}. ${hint}.`);
  }
}

async function stop() {
  await client?.stop();
  client = undefined;
}

async function restart() {
  await stop();
  await start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("shardlog.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("shardlog.command") && restart()),
  );
  await start();
};
exports.deactivate = stop;
