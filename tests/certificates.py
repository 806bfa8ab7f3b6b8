"""Certificates of an authority that was made a moment ago."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def certificates(folder: Path) -> dict[str, Path]:
    """An authority of its own (``ca``), and a certificate of it for this machine (``cert``, ``key``), as PEM files in
    a folder that is made. The test is skipped where there is no OpenSSL."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    folder.mkdir()
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nauthorityKeyIdentifier=keyid\n")
    signs = "-addext keyUsage=critical,keyCertSign,cRLSign"  # which Python 3.13 wants of an authority
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for command in (
        f"req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=authority -days 2 {signs}",
        f"req {key} -keyout key.pem -out request -subj /CN=robot",
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile san",
    ):
        subprocess.run([openssl, *command.split()], cwd=folder, check=True, capture_output=True)
    return {name: folder / f"{name}.pem" for name in ("ca", "cert", "key")}
