"""A Hub on the loopback interface, over real HTTP: enough of it to publish and to fetch models with huggingface_hub.

Repositories keep every commit, so that old revisions can be asked for. Faults are switched on by file name:
`hub.faults["model.safetensors"] = "cut"` announces the whole file and breaks off half-way; "silent" never answers.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Files = dict[str, bytes]
ROUTES: list[tuple[str, re.Pattern, Callable]] = []


def route(method: str, pattern: str) -> Callable:
    """Note that a method of the handler answers this kind of request."""

    def note(function: Callable) -> Callable:
        ROUTES.append((method, re.compile(pattern), function))
        return function

    return note


class LoopbackHub:
    """The server, its repositories and a log of what was asked."""

    def __init__(self) -> None:
        self.repositories: dict[str, list[tuple[str, Files]]] = {}  # "owner/name": [(commit, files), ...]
        self.uploads: dict[str, bytes] = {}
        self.faults: dict[str, str] = {}
        self.log: list[str] = []
        self.port = 0
        self.released = threading.Event()  # lets silent requests go when the server stops

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; after `stop`, on the same port as before."""
        self.released.clear()
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Refuse all connections from now on: the network is dead."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def commit(self, repo: str, files: Files) -> str:
        """Put these files on top of the repository's newest commit."""
        history = self.repositories.setdefault(repo, [])
        merged = (history[-1][1] if history else {}) | files
        digest = hashlib.sha1(repr(len(history)).encode())
        for name in sorted(merged):
            digest.update(name.encode() + hashlib.sha256(merged[name]).digest())
        history.append((digest.hexdigest(), merged))
        return digest.hexdigest()

    def asked_for(self, name: str) -> bool:
        return any(name in line for line in self.log)


class Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        path = self.path.split("?")[0]
        self.hub.log.append(f"{self.command} {path}")
        method = "GET" if self.command == "HEAD" else self.command
        for named, pattern, function in ROUTES:
            if named == method and (match := pattern.fullmatch(path)):
                return function(self, **match.groupdict())
        return self.refuse("NotFound")

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def log_message(self, *_: object) -> None:
        """The hub keeps its own log."""

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def reply(self, data: bytes | dict | list, status: int = 200, cut: bool = False, **headers: str) -> None:
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
            headers.setdefault("Content-Type", "application/json")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")  # or a connection that was kept would outlive a server that stopped
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)

    def refuse(self, code: str) -> None:
        """huggingface_hub raises by this header."""
        self.body()
        self.reply({"error": code}, 404, X_Error_Code=code, X_Error_Message=code)

    def find(self, repo: str, revision: str) -> tuple[str, Files] | None:
        """The commit of a revision; where there is none, the refusal is sent."""
        history = self.hub.repositories.get(repo)
        if not history:
            return self.refuse("RepoNotFound")
        if revision == "main":
            return history[-1]
        for commit, files in history:
            if commit == revision:
                return commit, files
        return self.refuse("RevisionNotFound")

    @route("GET", r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")
    def file(self, repo: str, revision: str, name: str) -> None:
        fault = self.hub.faults.get(name)
        if fault == "silent":
            self.hub.released.wait(60)
            self.close_connection = True
            return
        if not (found := self.find(repo, revision)):
            return
        commit, files = found
        if name not in files:
            return self.refuse("EntryNotFound")
        etag = f'"{hashlib.sha256(files[name]).hexdigest()}"'
        self.reply(files[name], cut=fault == "cut" and self.command == "GET", X_Repo_Commit=commit, ETag=etag)

    @route("GET", r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>[^/]+))?")
    def info(self, repo: str, revision: str | None) -> None:
        if found := self.find(repo, revision or "main"):
            commit, files = found
            siblings = [{"rfilename": name} for name in files]
            self.reply({"id": repo, "modelId": repo, "sha": commit, "private": False, "siblings": siblings, "tags": []})

    @route("GET", r"/api/whoami-v2")
    def who(self) -> None:
        self.reply({"type": "user", "name": "me", "orgs": []})

    @route("POST", r"/api/repos/create")
    def create(self) -> None:
        asked = json.loads(self.body())
        repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
        if repo in self.hub.repositories:
            return self.reply({"error": "exists", "url": f"{self.hub.url}/{repo}"}, 409)
        self.hub.repositories[repo] = []
        self.reply({"url": f"{self.hub.url}/{repo}", "id": repo, "name": repo})

    @route("POST", r"/api/validate-yaml")
    def validate(self) -> None:
        self.body()
        self.reply({"errors": [], "warnings": []})

    @route("POST", r"/api/models/(?P<repo>[^/]+/[^/]+)/preupload/main")
    def sort_uploads(self, repo: str) -> None:
        modes = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith((".safetensors", ".png")) else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(self.body())["files"]
        ]
        self.reply({"files": modes, "commitOid": "0" * 40})

    @route("POST", r"/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch")
    def place_uploads(self, repo: str) -> None:
        objects = [
            {
                "oid": item["oid"],
                "size": item["size"],
                "actions": {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}},
            }
            for item in json.loads(self.body())["objects"]
        ]
        self.reply({"transfer": "basic", "objects": objects}, Content_Type="application/vnd.git-lfs+json")

    @route("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})")
    def upload(self, oid: str) -> None:
        self.hub.uploads[oid] = self.body()
        self.reply(b"")

    @route("POST", r"/api/models/(?P<repo>[^/]+/[^/]+)/commit/main")
    def receive(self, repo: str) -> None:
        files: Files = {}
        for line in self.body().splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            elif entry["key"] == "lfsFile":
                files[entry["value"]["path"]] = self.hub.uploads[entry["value"]["oid"]]
        commit = self.hub.commit(repo, files)
        url = f"{self.hub.url}/{repo}/commit/{commit}"
        self.reply({"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})
