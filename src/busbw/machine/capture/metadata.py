"""The door to the cloud's metadata service, which knows what kind of machine this is.

It is asked on its own address and never through a proxy: a proxy would answer for the machine that it runs on. Only the
name of the kind is kept: what else these services know (keys, user data, tags) is left out.
"""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Mapping

from busbw.facts.clouds import Ask, Cloud, cloud_of, clouds
from busbw.machine.detect.names import name_in_answer
from busbw.model.host import Answer

# Link-local: it never leaves the host it is asked on. All four clouds use it.
ADDRESS = ("169.254.169.254", 80)
# In all, however many services are asked. On the machines that have one it answers within milliseconds.
TIME_S = 1.0
_MOST_BYTES = 2**18
_LONGEST_TOKEN_BYTES = 1024
# A token that is not given (a container one network hop too far) must leave time to ask without.
_TOKEN_SHARE = 0.4


def answers(
    dmi: Mapping[str, str], *, address: tuple[str, int] = ADDRESS, time_s: float = TIME_S
) -> tuple[Answer, ...]:
    """Return what the metadata service says this machine is, as answers named `metadata-azure` and so on.

    `dmi` is what the firmware says. Where it names a cloud that cloud is asked, where it names none nobody is, and
    where it cannot be read (some containers) all are asked at once. Takes at most `time_s` in all.
    """
    named = cloud_of(dmi)
    if named is None and any(text.strip() for text in dmi.values()):
        return ()
    asked = (named,) if named is not None else clouds()
    questions = [_Question(cloud, address, time_s) for cloud in asked]
    for question in questions:
        question.start()
    return tuple(question.finish() for question in questions)


class _RefusalError(Exception):
    """The service answered, and not with a name."""


class _Question:
    """One service, asked in a thread of its own, so that neither silence nor a slow drip can hold the caller."""

    def __init__(self, cloud: Cloud, address: tuple[str, int], time_s: float) -> None:
        self._cloud = cloud
        self._address = address
        self._time_s = time_s
        self._end_s = time.monotonic() + time_s
        self._connection: http.client.HTTPConnection | None = None
        self._name: str | None = None
        self._failure: str | None = None
        self._timed_out = False
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            # A limit on processes counts threads too. Asking without one could take for ever.
            self._failure = str(error)

    def finish(self) -> Answer:
        """Wait for the answer until the time is over, and hang up."""
        if self._thread.ident is not None:
            self._thread.join(max(self._end_s - time.monotonic(), 0))
        # The thread may notice that the time is over before its caller does.
        late = self._thread.is_alive() or self._timed_out
        name, failure = self._name, self._failure
        if self._thread.is_alive():
            self._hang_up()
        path = self._cloud.asks[0].path
        return Answer(
            name=f"metadata-{self._cloud.id}",
            argv=("GET", f"http://{self._address[0]}{path}"),
            ended="timeout" if late else "ok" if name is not None else "failed",
            output=name or "",
            error=f"no answer within {self._time_s:g} s" if late else failure or "",
        )

    def _hang_up(self) -> None:
        connection = self._connection
        # Taken once: the thread may be closing it at this moment.
        connected = connection.sock if connection is not None else None
        if connected is not None:
            # The thread closes it; it or the other side may have done so before.
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _ask(self) -> None:
        try:
            headers = {**self._cloud.headers, **self._token()}
            self._name = self._first_name(headers)
        except _RefusalError as refusal:
            self._failure = str(refusal)
        except TimeoutError:
            self._timed_out = True
        except (OSError, http.client.HTTPException) as error:
            self._failure = (str(error) or type(error).__name__)[:200]

    def _first_name(self, headers: Mapping[str, str]) -> str:
        """Return the name from the first question that is answered with one."""
        refusals = []
        for ask in self._cloud.asks:
            try:
                return self._name_from(ask, headers)
            except _RefusalError as refusal:
                refusals.append(str(refusal))
        raise _RefusalError("; ".join(dict.fromkeys(refusals)))

    def _name_from(self, ask: Ask, headers: Mapping[str, str]) -> str:
        status, body = self._request("GET", ask.path, headers, _MOST_BYTES, self._end_s)
        if status != http.HTTPStatus.OK:
            # A redirect too: whoever redirects here is not the machine's own service.
            raise _RefusalError(f"it answered with status {status}")
        if len(body) > _MOST_BYTES:
            raise _RefusalError(f"its answer is longer than {_MOST_BYTES} bytes")
        name = name_in_answer(ask, body.decode("utf-8", "replace"))
        if name is None:
            raise _RefusalError("its answer holds no name of a kind of machine")
        return name

    def _token(self) -> dict[str, str]:
        """Return the header that carries the token; none where the service wants or gives none."""
        path, header = self._cloud.token_path, self._cloud.token_header
        if path is None or header is None:
            return {}
        end_s = time.monotonic() + _TOKEN_SHARE * self._time_s
        try:
            status, body = self._request("PUT", path, self._cloud.token_request, _LONGEST_TOKEN_BYTES, end_s)
        except (OSError, http.client.HTTPException):
            return {}
        token = body.decode("ascii", "replace").strip()
        usable = token.isascii() and token.isprintable() and 0 < len(body) <= _LONGEST_TOKEN_BYTES
        return {header: token} if status == http.HTTPStatus.OK and usable else {}

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], most_bytes: int, end_s: float
    ) -> tuple[int, bytes]:
        """Return status and body, one byte longer than `most_bytes` at most."""
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection = http.client.HTTPConnection(*self._address, timeout=left_s)
        self._connection = connection
        try:
            connection.request(method, path, headers={**headers, "Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read(most_bytes + 1)
        finally:
            connection.close()
