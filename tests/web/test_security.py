"""What every answer carries, and who is heard."""

import pytest
from fastapi.testclient import TestClient

from slicewise.web.app import create_app
from slicewise.web.security import HEADERS, host_name, hosts_of, is_loopback

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


OWN, OTHERS = ("127.0.0.1", "127.1.2.3", "::1", "localhost"), ("0.0.0.0", "192.168.1.5", "example")


@pytest.mark.parametrize("host", [*OWN, *OTHERS])
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host) is (host in OWN)


def test_host_header_without_its_port() -> None:
    assert [host_name(host) for host in ("a.b:1", "[::1]:2", "x", "")] == ["a.b", "::1", "x", ""]


@pytest.mark.parametrize(
    "path", ["/static/../html.py", "/static/%2e%2e/html.py", "/static//etc/passwd", "/static/..%2f..%2fcli/main.py"]
)
def test_only_the_pages_files_are_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
