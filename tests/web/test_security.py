"""What every answer carries, and who is heard."""

import asyncio
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message

from slicewise.web.app import PAGE, create_app
from slicewise.web.security import HEADERS, host_name, hosts_of, is_loopback
from slicewise.web.serve import bound

PATHS = ["/", "/docs", "/openapi.json", "/api/chips", "/api/plan?model=nothing", "/api/nothing", "/static/explorer.css"]


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app(hosts_of("127.0.0.1")), base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"origin": "http://elsewhere.example"})
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert "server" not in answer.headers


def test_policy_evaluates_nothing_and_loads_nothing_from_elsewhere() -> None:
    policy = HEADERS["content-security-policy"]
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy
    assert "http" not in policy.replace("http-equiv", "")
    assert "*" not in policy


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:8080", "LOCALHOST"])
def test_names_of_this_machine_are_heard(client: TestClient, host: str) -> None:
    assert client.get("/api/chips", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[", "", "0.0.0.0"])
def test_names_that_are_made_to_point_here_are_not(client: TestClient, host: str) -> None:
    answer = client.get("/api/chips", headers={"host": host})
    assert answer.status_code == 421
    assert "localhost" in answer.json()["detail"]


def test_a_server_that_is_open_to_a_network_hears_any_name() -> None:
    client = TestClient(create_app(hosts_of("0.0.0.0")))
    assert client.get("/api/chips", headers={"host": "planner.example"}).status_code == 200


OWN = ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1")
OTHERS = ("0.0.0.0", "::", "192.168.1.5", "::ffff:192.168.1.5", "example", "")


@pytest.mark.parametrize("address", [*OWN, *OTHERS])
def test_loopback_addresses(address: str) -> None:
    assert is_loopback(address) is (address in OWN)
    assert (hosts_of(address) is None) is (address in OTHERS)


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "127.0.0.1", "localhost"])
def test_whom_a_server_hears_is_decided_by_what_it_is_bound_to(host: str) -> None:
    with bound(host, 0) as opened:
        hosts = hosts_of(opened.getsockname()[0], host)
    assert hosts is not None
    assert {host, "localhost", "127.0.0.1"} <= hosts
    client = TestClient(create_app(hosts))
    assert client.get("/api/chips", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/api/chips", headers={"host": "127.0.0.1:8080"}).status_code == 200


@pytest.mark.parametrize("path", ["/api/chips", "/api/plan?model=llama-3-8b", "/api/nothing"])
def test_pages_of_other_sites_may_not_ask(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403
    assert "another site" in answer.json()["detail"]
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize("site", ["same-origin", "none", "same-site", None])
def test_the_page_itself_and_programs_may_ask(client: TestClient, site: str | None) -> None:
    assert client.get("/api/chips", headers={"sec-fetch-site": site} if site else {}).status_code == 200


def test_a_link_from_another_site_opens_the_page(client: TestClient) -> None:
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_host_header_without_its_port() -> None:
    assert [host_name(host) for host in ("a.b:1", "[::1]:2", "x", "")] == ["a.b", "::1", "x", ""]


async def _status(path: str) -> int:
    """The status of a path as it is sent, which a client would tidy first."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8080),
    }  # fmt: skip
    await create_app(hosts_of("127.0.0.1"))(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    "path",
    [
        "/static/../explorer/html.py",
        "/static/../figures.py",
        "/static/%2e%2e/figures.py",
        "/static/js/../../figures.py",
        "/static/..%2ffigures.py",
        "/static//etc/passwd",
        "/static/..%2f..%2fcli/main.py",
    ],
)
def test_only_the_pages_files_are_served(path: str) -> None:
    assert PAGE.joinpath("../figures.py").is_file()
    assert asyncio.run(_status(path)) == 404
