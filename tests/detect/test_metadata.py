"""The metadata service is asked on its own address, for the name alone, and never for long."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest
from tests.patience import wait_until, with_more_time

from busbw.facts.clouds import clouds
from busbw.machine.capture import metadata
from busbw.model.host import Answer

from .services import (
    AMAZON_DMI,
    AZURE_DMI,
    GOOGLE_DMI,
    ORACLE_DMI,
    Respond,
    amazon,
    amazon_of_old,
    azure,
    azure_of_old,
    drip,
    flood,
    google,
    oracle,
    say,
    service,
    silent,
)

# For a service that answers: on a busy machine more than `busbw` gives it.
TIME_S = 60.0
# Whoever is not ended by its time would never come back.
MUCH_LATER_S = 50.0


def answers(dmi: dict[str, str], address: tuple[str, int], *, time_s: float = TIME_S) -> tuple[Answer, ...]:
    return metadata.answers(dmi, address=address, time_s=time_s)


@pytest.mark.parametrize(
    ("dmi", "respond", "name", "said"),
    [
        (AZURE_DMI, azure("Standard_ND96isr_H100_v5"), "metadata-azure", "Standard_ND96isr_H100_v5"),
        (AZURE_DMI, azure_of_old("Standard_HX176rs"), "metadata-azure", "Standard_HX176rs"),
        (ORACLE_DMI, oracle("BM.GPU.B4.8"), "metadata-oci", "BM.GPU.B4.8"),
        (AMAZON_DMI, amazon("p5.48xlarge"), "metadata-aws", "p5.48xlarge"),
        (AMAZON_DMI, amazon_of_old("p4d.24xlarge"), "metadata-aws", "p4d.24xlarge"),
        (GOOGLE_DMI, google("a3-megagpu-8g"), "metadata-gcp", "a3-megagpu-8g"),
    ],
)
def test_each_cloud_is_asked_in_its_own_way(dmi: dict[str, str], respond: Respond, name: str, said: str) -> None:
    with service(respond) as (address, _asked):
        (answer,) = answers(dmi, address)
    assert (answer.name, answer.ended, answer.output, answer.error) == (name, "ok", said, "")


def test_of_all_that_a_service_knows_only_the_name_is_kept() -> None:
    with service(azure_of_old("Standard_ND96asr_v4")) as (address, _asked):
        (answer,) = answers(AZURE_DMI, address)
    assert "c2VjcmV0" not in repr(answer)
    assert "somebody" not in repr(answer)


def test_nobody_is_asked_where_the_firmware_names_no_cloud() -> None:
    with service(azure("Standard_ND96asr_v4")) as (address, asked):
        assert answers({"sys_vendor": "Dell Inc.", "product_name": "XE9680"}, address) == ()
    assert asked == []


def test_all_are_asked_at_once_where_the_firmware_cannot_be_read() -> None:
    with service(google("a3-highgpu-8g")) as (address, _asked):
        found = answers({"sys_vendor": ""}, address)
    assert {answer.name: answer.output for answer in found} == {
        "metadata-azure": "",
        "metadata-oci": "",
        "metadata-aws": "",
        "metadata-gcp": "a3-highgpu-8g",
    }


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"])
def test_a_proxy_is_never_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with service(azure("Standard_of_the_proxy")) as (proxy, asked_of_proxy), service(azure("Standard_own")) as (own, _):
        monkeypatch.setenv(name, f"http://{proxy[0]}:{proxy[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        (answer,) = answers(AZURE_DMI, own)
    assert answer.output == "Standard_own"
    assert asked_of_proxy == []


def test_none_is_waited_for_before_another_is_asked() -> None:
    waiting, all_wait = [], threading.Event()

    def respond(handler: BaseHTTPRequestHandler) -> None:
        waiting.append(handler.path)
        if len(waiting) == len(clouds()):
            all_wait.set()
        all_wait.wait()
        say(handler, 404, b"")

    with service(respond) as (address, _asked):
        found = answers({}, address)
    assert [answer.ended for answer in found] == ["failed"] * len(clouds())


def test_silence_is_over_in_time() -> None:
    with silent() as address:
        start_s = time.monotonic()
        found = answers({}, address, time_s=0.3)
    assert time.monotonic() - start_s < MUCH_LATER_S
    assert {(answer.ended, answer.error) for answer in found} == {("timeout", "no answer within 0.3 s")}


def test_it_does_not_matter_who_notices_first_that_the_time_is_over() -> None:
    with silent() as address:
        for _time in range(30):
            assert {answer.ended for answer in answers({}, address, time_s=0.05)} == {"timeout"}


@pytest.mark.parametrize("respond", [drip, flood])
def test_a_service_that_does_not_come_to_an_end_is_left(respond: Respond) -> None:
    with service(respond) as (address, _asked):
        start_s = time.monotonic()
        (answer,) = answers(AZURE_DMI, address, time_s=0.3)
        taken_s = time.monotonic() - start_s
    assert taken_s < MUCH_LATER_S
    assert answer.ended in {"timeout", "failed"}
    assert answer.output == ""
    assert len(answer.error) < 500


def test_no_thread_is_left_behind() -> None:
    with service(drip) as (address, _asked):
        answers(AZURE_DMI, address, time_s=0.2)
        wait_until(lambda: not any("_ask" in thread.name for thread in threading.enumerate()), 30, "the thread to end")


def test_where_no_thread_can_be_started_nothing_is_asked() -> None:
    before = threading.stack_size(2**46)
    try:
        (answer,) = metadata.answers({"sys_vendor": "Amazon EC2"}, address=("127.0.0.1", 9))
    finally:
        threading.stack_size(before)
    assert (answer.ended, answer.error) == ("failed", "can't start new thread")


def test_a_port_that_nobody_listens_on_fails_at_once() -> None:
    # Held, so that nobody else is given it.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        (answer,) = answers(AMAZON_DMI, held.getsockname())
    assert (answer.ended, answer.output) == ("failed", "")
    assert "refused" in answer.error.lower()


def test_a_redirect_is_not_followed() -> None:
    def redirect(handler: object) -> None:
        say(handler, 302, b"", {"Location": f"http://{elsewhere[0]}:{elsewhere[1]}/metadata/instance?x"})  # type: ignore[arg-type]

    with service(azure("Standard_elsewhere")) as (elsewhere, asked_elsewhere), service(redirect) as (address, _asked):
        (answer,) = answers(AZURE_DMI, address)
    assert (answer.ended, answer.output) == ("failed", "")
    assert "302" in answer.error
    assert asked_elsewhere == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Sign in</body></html>",
        b"Standard_ND96asr_v4\nX: y",
        b"\x1b[31mred",
        b"\xff\xfe\x00",
        b"a" * 200,
        b"a" * 2**19,
        b'{"compute": {"vmSize": ["x"]}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_name_is_not_kept(body: bytes) -> None:
    with service(lambda handler: say(handler, 200, body)) as (address, _asked):
        (answer,) = answers(AZURE_DMI, address)
    assert (answer.ended, answer.output) == ("failed", "")
    assert len(answer.error) < 500


def test_a_token_that_never_comes_leaves_time_to_ask_without() -> None:
    plain = amazon_of_old("p4de.24xlarge")
    over = threading.Event()

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "PUT":
            over.wait()
        else:
            plain(handler)

    with service(respond) as (address, _asked):
        answer = with_more_time(
            lambda time_s: answers(AMAZON_DMI, address, time_s=time_s)[0], lambda answer: answer.ended == "ok"
        )
        over.set()
    assert (answer.ended, answer.output) == ("ok", "p4de.24xlarge")


@pytest.mark.parametrize("token", [b"a\r\nX-Evil: 1", b"\xff", b"", b"a" * 5000])
def test_a_token_that_is_none_is_not_sent(token: bytes) -> None:
    seen: list[str | None] = []

    def respond(handler: object) -> None:
        seen.append(handler.headers.get("X-aws-ec2-metadata-token"))  # type: ignore[attr-defined]
        say(handler, 200, token if handler.command == "PUT" else b"p5.48xlarge")  # type: ignore[arg-type, attr-defined]

    with service(respond) as (address, _asked):
        (answer,) = answers(AMAZON_DMI, address)
    assert answer.output == "p5.48xlarge"
    assert seen == [None, None]
