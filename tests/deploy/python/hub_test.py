"""The hub's part is played by a server on loopback that keeps what it is given, over the calls of the real client."""

import base64
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import datacom
import numpy as np
import pytest
from datacom import hub

REPOSITORY = "someone/cart"


class Hub(http.server.BaseHTTPRequestHandler):
    """Creates a repository, takes commits of small files, lists and serves them."""

    protocol_version = "HTTP/1.1"
    files: dict = {}
    seen: list = []

    def log_message(self, *_):
        pass

    def answer(self, body=b"", code=200, **headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers.get("Authorization")))
        if self.path == "/api/repos/create":
            self.answer(json.dumps({"url": f"http://{self.headers['Host']}/{REPOSITORY}", "name": REPOSITORY}).encode())
        elif self.path.endswith("/preupload/main"):
            files = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            self.answer(json.dumps({"files": files}).encode())
        elif self.path.endswith("/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "deletedFile":
                    del self.files[line["value"]["path"]]
                elif line["key"] == "file":
                    assert line["value"]["encoding"] == "base64"
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.answer(json.dumps({"commitUrl": f"http://{self.headers['Host']}/{REPOSITORY}/commit/1", "commitOid": "1" * 40, "success": True}).encode())
        else:
            self.answer(b"{}")

    def do_GET(self):
        found = re.fullmatch(f"/{REPOSITORY}/resolve/[^/]+/(.+)", self.path)
        if found and found[1] in self.files:
            body = self.files[found[1]]
            self.answer(body, ETag=f'"{hashlib.sha256(body).hexdigest()}"', X_Repo_Commit="1" * 40)
        elif self.path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            self.answer(json.dumps([{"type": "file", "path": name, "oid": "2" * 40, "size": len(body)} for name, body in self.files.items()]).encode())
        elif self.path.startswith("/api/models/"):
            self.answer(json.dumps({"id": REPOSITORY, "sha": "1" * 40, "siblings": [], "tags": []}).encode())
        else:
            self.answer(b"{}", 404, X_Error_Code="EntryNotFound")

    do_HEAD = do_GET


@pytest.fixture
def server():
    Hub.files, Hub.seen = {}, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def call(code, server, tmp_path):
    """The client reads its variables when it is imported, so each call has a process."""
    environment = {**os.environ, "HF_ENDPOINT": server, "HF_TOKEN": "a token", "HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                   "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, *code], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(run):
    """What `write` leaves of a run with two members."""
    film = {"film.html"} if (run.path / "film.html").exists() else set()
    return {"README.md", "member_0.policy", "member_1.policy", "experiment.textproto", "build.txt", "progress.csv", "episodes.csv"} | film


def test_a_pushed_run_is_loaded_again_with_the_same_actions(run, server, tmp_path):
    # Of a run with more members that was pushed before, and of a user.
    Hub.files.update({"member_2.policy": b"old", "film.html": b"old", "notes.txt": b"mine"})
    said = call(["-m", "datacom.hub", str(run.path), REPOSITORY, "--licence", "apache-2.0"], server, tmp_path)
    assert said == f"{server}/{REPOSITORY}/commit/1\n"
    assert all(token == "Bearer a token" for path, token in Hub.seen if not path.endswith("validate-yaml"))
    assert set(Hub.files) == written(run) | {"notes.txt"}
    assert Hub.files.get("film.html") != b"old"
    readme = Hub.files["README.md"].decode()
    assert readme.startswith("---\nlicense: apache-2.0\nlibrary_name: datacom\n") and f'hub.from_pretrained("{REPOSITORY}")' in readme
    loads = f"from datacom import hub; hub.from_pretrained('{REPOSITORY}', 1).save({str(tmp_path / 'loaded')!r})"
    call(["-c", loads], server, tmp_path)
    observations = np.random.default_rng(1).uniform(-1, 1, (50, 5))
    np.testing.assert_array_equal(datacom.Policy(tmp_path / "loaded").act(observations), datacom.Policy.load(run.path, 1).act(observations))


def test_what_would_be_pushed_can_be_written_to_a_folder(run, tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("member_2.policy", "film.html", "notes.txt"):
        (tmp_path / "out" / name).write_text("old")
    hub.write(run, tmp_path / "out", epoch="last")
    assert datacom.Policy(tmp_path / "out/member_0.policy").epoch == 3
    assert "license:" not in (tmp_path / "out" / "README.md").read_text()
    assert {file.name for file in (tmp_path / "out").iterdir()} == written(run) | {"notes.txt"}


def test_a_file_that_a_link_of_the_run_names_is_not_published(run, tmp_path):
    strange = tmp_path / "strange"
    shutil.copytree(run.path, strange)
    (tmp_path / "secret").write_text("secret")
    (strange / "build.txt").unlink()
    (strange / "build.txt").symlink_to("../secret")
    with pytest.raises(ValueError, match="build.txt is a link, which is not published"):
        hub.write(datacom.Run(strange), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_folder_keeps_its_records(run):
    before = (run.path / "experiment.textproto").read_bytes()
    with pytest.raises(ValueError, match="is a run folder, whose records would be replaced"):
        hub.write(run, run.path)
    assert (run.path / "experiment.textproto").read_bytes() == before and not (run.path / "member_0.policy").exists()
# SPDX-License-Identifier: Apache-2.0
