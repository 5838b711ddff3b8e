#!/usr/bin/env python3
"""Writes crates/farpace/NOTICES.txt: the crates in the command, their licences, and the texts of these.

The texts are those in the crates' packages, as cargo has unpacked them; equal ones are printed once. Of crates under
"MIT OR ..." the MIT text is taken. A crate without any text is an error, unless MISSING says what stands for it.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-musl"
# Crates whose packages have no text: the crate from the same repository whose text it is.
MISSING: dict[str, str] = {"crc-catalog": "crc"}

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""
BSD_3 = """Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
disclaimer in the documentation and/or other materials provided with the distribution.

3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote products
derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES;
LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS
SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""
RUSTLAVEL = "Copyright (c) Advance Dynamic Software\n\n" + MIT
# Crates whose packages name their licence and holder, at the top of each file or in Cargo.toml, and have no text of it.
BY_HEADER = {
    "boringtun": "Copyright (c) 2019 Cloudflare, Inc. All rights reserved.\n\n" + BSD_3,
    "rustlavel-chart": RUSTLAVEL,
    "rustlavel-core": RUSTLAVEL,
    "rustlavel-http": RUSTLAVEL,
}
# What every Rust program has in it, what the static one has, and what pages have.
BELOW = [
    (["the Rust standard library (MIT OR Apache-2.0)"], "Copyright (c) The Rust Project Contributors\n\n" + MIT),
    (["Chart.js, in pages (MIT)"], "Copyright (c) 2014-2024 Chart.js Contributors\n\n" + MIT),
    (["musl, in the static program (MIT)"], "Copyright (c) 2005-2020 Rich Felker, et al.\n\n" + MIT),
]


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def crates() -> list[tuple[str, str]]:
    """Names and versions of what is linked into the command, without our own crates."""
    tree = cargo("tree", "--locked", "-p", "farpace", "-e", "normal,no-proc-macro", "--target", TARGET,
                 "--prefix", "none", "--format", "{p}")
    found = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(/" not in line}
    return sorted((name, version.removeprefix("v")) for name, version in found)


def texts(package: dict) -> list[str]:
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [f for f in sorted(folder.iterdir())
             if f.is_file() and re.match(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)", f.name, re.I)]
    licence = package["license"] or ""
    mit = [f for f in files if "MIT" in f.name.upper()]
    if mit and re.search(r"\bMIT\b", licence) and " AND " not in licence:
        files = mit + [f for f in files if f.name.upper().startswith("NOTICE")]
    return [f.read_text(encoding="utf-8", errors="replace") for f in files]


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\f", "").strip("\n").split("\n")) + "\n"


def main() -> None:
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET))
    packages = {(p["name"], p["version"]): p for p in metadata["packages"]}
    by_name = {p["name"]: p for p in metadata["packages"]}
    groups: dict[str, list[str]] = {}
    bare = []
    for key in crates():
        package = packages[key]
        found = texts(package) or texts(by_name[MISSING.get(key[0], key[0])])
        if not found and key[0] in BY_HEADER:
            found = [BY_HEADER[key[0]]]
        if not found:
            bare.append(f"{key[0]} {key[1]} ({package['license']}, {package['repository']})")
        whole = ("\n" + "-" * 40 + "\n\n").join(tidy(t) for t in found)
        groups.setdefault(whole, []).append(f"{key[0]} {key[1]} ({package['license']})")
    if bare:
        sys.exit("no licence text in the packages of:\n  " + "\n  ".join(bare))
    parts = ["farpace is under the MIT licence or the Apache License 2.0, as you like. This program contains what is\n"
             "listed here, with the licences of each. Written by tools/notices.py.\n"]
    for text, names in sorted(((t, n) for t, n in groups.items()), key=lambda g: g[1][0]):
        parts.append("\n".join(f"* {name}" for name in names) + "\n\n" + text)
    for names, text in BELOW:
        parts.append("\n".join(f"* {name}" for name in names) + "\n\n" + text)
    (ROOT / "crates/farpace/NOTICES.txt").write_text(("\n" + "=" * 80 + "\n\n").join(parts), encoding="utf-8")


main()
