"""The server of a live view: on this machine only, and for those who have its token."""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import threading
from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from eqlearn.errors import EqlearnError
from eqlearn.live.settings import LIMITS, Limits

if TYPE_CHECKING:
    from eqlearn.live.page import Page
    from eqlearn.live.view import View

HOME = "127.0.0.1"
# The names under which a browser may know this machine; a stranger's name that leads here is refused, which
# is what rebinding of names (DNS) needs. The port may be that of a tunnel.
HOSTS = (HOME, "localhost")
TOKEN, NAME = "X-Eqlearn-Token", "X-Eqlearn-Name"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class LiveServer(ThreadingHTTPServer):
    """Serves a page about run folders; new searches are written below `parent`."""

    daemon_threads = True

    def __init__(
        self, runs: Iterable[Path], *, port: int = 0, parent: Path = Path("runs"), limits: Limits = LIMITS
    ) -> None:
        super().__init__((HOME, port), Answer)
        self.limits = limits
        self.token, self.ticket = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._given = (tuple(runs), parent)
        self._loading = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://{HOME}:{self.server_port}/?token={self.token}"

    @property
    def address_once(self) -> str:
        """An address that leads to the page once: for a command line, which other users can see."""
        return f"http://{HOME}:{self.server_port}/?ticket={self.ticket}"

    @property
    def view(self) -> View:
        with self._loading:
            return self._view

    @cached_property
    def _view(self) -> View:
        from eqlearn.live.view import View  # slow: it loads torch

        return View(*self._given, self.limits)

    def admits(self, told: str | None) -> bool:
        """Whether this is the token; how long that takes says nothing about it."""
        return hmac.compare_digest((told or "").encode(), self.token.encode())

    def redeems(self, told: str | None) -> bool:
        """Whether this is the ticket, which is good for one use."""
        with self._loading:
            good = bool(self.ticket) and hmac.compare_digest((told or "").encode(), self.ticket.encode())
            self.ticket = "" if good else self.ticket
            return good

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says what went wrong, but for a browser that has gone."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """Ends the searches that were begun from the page, which keep their best, and frees the port."""
        if "_view" in self.__dict__:
            self._view.searches.close()
        self.server_close()


class Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status


class Answer(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LiveServer
    server_version, sys_version = "eqlearn", ""

    def setup(self) -> None:
        self.request.settimeout(self.server.limits.patience)
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the address of every request holds the token."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, method: Any) -> None:
        try:
            try:
                self._check_host()
                method()
            except EqlearnError as error:
                raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error
        except Refusal as refusal:
            self._send_json({"error": str(refusal)}, refusal.status)

    def _check_host(self) -> None:
        host = urlsplit(f"//{self.headers.get('Host', '')}")
        try:
            name, _ = host.hostname, host.port
        except ValueError:
            name = None
        if name not in HOSTS:
            raise Refusal(HTTPStatus.FORBIDDEN, f"open the page as http://{HOME}")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{self.headers['Host']}":
            raise Refusal(HTTPStatus.FORBIDDEN, "another page asked for this")

    def _check_token(self, *told: str | None) -> None:
        if not any(self.server.admits(each) for each in told):
            raise Refusal(
                HTTPStatus.FORBIDDEN, "this needs the whole address that eqlearn printed, with its token"
            )

    def _get(self) -> None:
        address = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(address.query).items()}
        if address.path == "/" and "ticket" in asked and self.server.redeems(asked["ticket"]):
            self._send(b"", HTTPStatus.SEE_OTHER, "text/plain", {"Location": f"/?token={self.server.token}"})
            return
        pages = address.path in ("/", "/report")
        self._check_token(self.headers.get(TOKEN), asked.get("token") if pages else None)
        number = int(asked["run"]) if asked.get("run", "").isdecimal() else None
        if address.path == "/":
            self._send_page(self.server.view.page)
        elif address.path == "/state":
            self._send_json(self.server.view.state())
        elif address.path == "/run":
            self._send_json(self.server.view.run(number))
        elif address.path == "/report":
            self._send_page(self.server.view.report(number))
        else:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self) -> None:
        self._check_token(self.headers.get(TOKEN))  # a header, which no page but ours can send
        from eqlearn.live.view import plain_object

        view, limits = self.server.view, self.server.limits
        if self.path == "/table":
            name = unquote(self.headers.get(NAME, ""))
            self._send_json(view.table(name, self._body(limits.largest_table)))
            return
        answers = {"/stop": view.stop, "/pin": view.pin, "/start": view.start}
        if self.path not in answers:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")
        self._send_json(answers[self.path](plain_object(self._body(limits.largest_request))))

    def _body(self, largest: int) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "the request does not say how long it is")
        if len(length) > 18 or int(length) > largest:
            words = f"that is more than {largest / 2**20:.0f} MB; use `eqlearn fit` for large tables"
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request was cut short")
        return body

    def _send_page(self, page: Page) -> None:
        headers = {"Content-Security-Policy": page.policy}
        self._send(page.html.encode(), HTTPStatus.OK, "text/html; charset=utf-8", headers)

    def _send_json(self, plain: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        text = json.dumps(plain, allow_nan=False).encode()
        headers = {"Content-Security-Policy": "default-src 'none'"}
        self._send(text, status, "application/json", headers)

    def _send(self, content: bytes, status: HTTPStatus, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (HEADERS | headers | {"Content-Type": kind}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
