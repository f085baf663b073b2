"""ZeroGPU without a GPU: the real `spaces` wrapper and its forked workers, against a device service of our own.

`start()` must come before anything imports `spaces`. Torch is hidden from `spaces` while it is imported, so that it
leaves out what needs a GPU (its fake CUDA tensors); scheduling, forking, pickling and stopping are its own.
"""

import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

GRANT = {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": "token"}


class DeviceService(BaseHTTPRequestHandler):
    """Grants every request and notes it."""

    calls: list[tuple[str, dict]] = []  # noqa: RUF012 (one service a process)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = urlsplit(self.path)
        self.calls.append((address.path, {name: values[0] for name, values in parse_qs(address.query).items()}))
        body = json.dumps(GRANT if address.path == "/schedule" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """`calls` is the log."""


def start() -> list[tuple[str, dict]]:
    """Make this process look like a ZeroGPU Space; the list grows as the device service is called."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), DeviceService)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    group = Path(tempfile.mkdtemp()) / "cgroup"
    group.write_text("0::/kubepods/pod/container\n")
    os.environ["SPACES_ZERO_GPU"] = "true"
    os.environ["SPACES_ZERO_DEVICE_API_URL"] = f"http://127.0.0.1:{server.server_address[1]}"
    os.environ["ZEROGPU_PROC_SELF_CGROUP_PATH"] = str(group)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "torch"}
    sys.modules["torch"] = None
    import spaces.zero.wrappers  # noqa: F401

    del sys.modules["torch"]
    sys.modules.update(hidden)
    return DeviceService.calls
