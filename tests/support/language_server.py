"""yaml-language-server, which editors run to check and to complete YAML files: the real one, from npm, over stdio."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nn_manual.messages.text import first_line

#: The folder in which npm has installed it: then nothing is fetched.
VARIABLE = "NN_MANUAL_LANGUAGE_SERVER"
#: Another version may say the same in other words.
PACKAGE = "yaml-language-server@1.25.0"
#: Without the store of schemas it asks the network for nothing.
SETTINGS = {"yaml": {"validate": True, "completion": True, "schemaStore": {"enable": False}}}
#: npm waits so many seconds at most; a server that hasn't answered after so many never will.
HANGING = 600

Message = dict[str, Any]


def installed(folder: Path) -> Path:
    """The folder with the package: the one that VARIABLE names, or else `folder`, into which npm installs it. Skips the
    test where that can't be.
    """
    if missing := [name for name in ("node", "npm") if shutil.which(name) is None]:
        pytest.skip(f"there is no {' and no '.join(missing)} to run yaml-language-server")
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGING, check=False)
    if done.returncode:
        pytest.skip(f"npm can't install {PACKAGE}: {first_line(done.stderr)}")
    return folder


class LanguageServer:
    """A conversation with a server: files are opened, and it says what is wrong in them and what could follow."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._num_requests = 0
        abilities = {"workspace": {"configuration": True}}
        self._request("initialize", {"processId": None, "rootUri": None, "capabilities": abilities})
        self._send({"method": "initialized", "params": {}})

    def errors_in(self, path: Path) -> list[tuple[int, str]]:
        """Line, counted from 1, and message of each error in a file, which is opened for the first time."""
        uri, text = path.as_uri(), path.read_text(encoding="utf-8")
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        method = "textDocument/publishDiagnostics"
        said = self._receive(lambda message: message.get("method") == method and message["params"]["uri"] == uri)
        found = said["params"]["diagnostics"]
        return [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]

    def completions(self, path: Path, line: int, column: int) -> list[str]:
        """What may stand at a place in an open file: line and column are counted from 1."""
        place = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line - 1, "character": column - 1}}
        return [item["label"] for item in self._request("textDocument/completion", place)["items"]]

    def hover(self, path: Path, line: int, column: int) -> str:
        """What is shown about the word at a place in an open file."""
        place = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line - 1, "character": column - 1}}
        return str(self._request("textDocument/hover", place)["contents"]["value"])

    def _request(self, method: str, params: Message) -> Any:
        self._num_requests += 1
        number = self._num_requests
        self._send({"id": number, "method": method, "params": params})
        return self._receive(lambda message: message.get("id") == number and "method" not in message)["result"]

    def _send(self, message: Message) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
        self._to.flush()

    def _receive(self, wanted: Callable[[Message], bool]) -> Message:
        """The next message of this kind. What the server asks for on the way is answered."""
        while True:
            message = self._next()
            if "id" in message and "method" in message:
                items = message["params"].get("items", []) if message["method"] == "workspace/configuration" else []
                result = [SETTINGS.get(item["section"]) for item in items]
                self._send({"id": message["id"], "result": result or None})
            elif wanted(message):
                return message

    def _next(self) -> Message:
        length = 0
        while (line := self._from.readline()) != b"\r\n":
            assert line, "the server has ended"
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        message: Message = json.loads(self._from.read(length))
        return message


@contextmanager
def language_server(folder: Path) -> Iterator[LanguageServer]:
    """A server, of the package in a folder, that runs as long as the context."""
    program = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    command = ["node", str(program), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(HANGING, process.kill)
        timer.start()
        try:
            yield LanguageServer(process)
        finally:
            timer.cancel()
            process.kill()
