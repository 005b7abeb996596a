"""The digests of a run's files, corrected after an edit, as an attacker would do it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from nn_manual.run.bundle import BUNDLE_FILE, TENSORS_FILE
from nn_manual.run.training_run import BEST_FILE
from nn_manual.run_directory.checkpoints import MANIFEST_FILE
from nn_manual.run_directory.metrics import CONFIG_FILE, DATA_FILE, SUMMARY_FILE, WEIGHTS_FILE

#: How a manifest begins. Then comes its digest, which is computed with zeros in its place.
_BEGINNING, _ZEROS = b'{\n  "sha256": "', "0" * 64


def sign_again(path: Path, run: Path) -> None:
    """Correct every digest of a file in a run directory, as far as the file that contains the digest can be read."""
    digest = _sha256(path)
    if path.name == MANIFEST_FILE:
        _sign(path, {})
    elif (path.parent / MANIFEST_FILE).is_file():
        _sign(path.parent / MANIFEST_FILE, {path.name: digest})
    elif path.name == TENSORS_FILE and (bundle := path.parent / BUNDLE_FILE).is_file():
        lines = bundle.read_bytes().decode(errors="replace").splitlines()
        bundle.write_text("".join(f"sha256: {digest}\n" if line[:8] == "sha256: " else f"{line}\n" for line in lines))
    elif path.parent == run and isinstance(summary := _object(run / SUMMARY_FILE), dict):
        if path.name == WEIGHTS_FILE:
            summary["model_sha256"] = digest
        if path.name == BEST_FILE and isinstance(summary.get("best"), dict):
            summary["best"]["sha256"] = digest
        if path.name in (CONFIG_FILE, DATA_FILE) and isinstance(summary.get("sha256"), dict):
            summary["sha256"][path.name] = digest
        (run / SUMMARY_FILE).write_text(json.dumps(summary))
    if path == run / CONFIG_FILE:
        for manifest in run.glob(f"checkpoints/*/{MANIFEST_FILE}"):
            _sign(manifest, {}, path.read_bytes().decode(errors="replace"))


def _sign(manifest: Path, digests: dict[str, str], config: str | None = None) -> None:
    """Write the digests of some files into a manifest, and the manifest's own. Any text that begins like a manifest can
    be signed.
    """
    content = _object(manifest)
    if isinstance(content, dict):
        content |= {} if config is None else {"config": config}
        if isinstance(content.get("files"), dict):
            content["files"] |= digests
        if digests or config is not None:
            manifest.write_text(json.dumps({"sha256": _ZEROS, **content}, indent=2) + "\n")
    text = manifest.read_bytes()
    if text.startswith(_BEGINNING):
        rest = text[len(_BEGINNING) + len(_ZEROS) :]
        digest = hashlib.sha256(_BEGINNING + _ZEROS.encode() + rest).hexdigest()
        manifest.write_bytes(_BEGINNING + digest.encode() + rest)


def _object(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
