"""`slicewise web`: what it listens on, and one line where it cannot."""

import signal
import socket
import subprocess
import sys

import pytest

from slicewise.cli.main import main

pytest.importorskip("fastapi")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["web", *words])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert refused(capsys, "--port", port).startswith(f"slicewise: cannot listen on 127.0.0.1, port {port} (")


@pytest.mark.parametrize("host", ["256.0.0.1", "no.such.host.invalid"])
def test_address_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert "give another --port, or another --host" in refused(capsys, "--host", host)


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_port_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str], port: str) -> None:
    assert "--port" in refused(capsys, "--port", port)


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "slicewise.web.serve", None)
    assert "pip install 'slicewise[web]'" in refused(capsys)


def test_ctrl_c_stops_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "slicewise", "web", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert f"http://127.0.0.1:{port}" in server.stdout.readline()
        for _ in range(200):
            with socket.socket() as asking:
                asking.settimeout(0.2)
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
    assert server.returncode in (0, 130)
    assert "Traceback" not in err


@pytest.mark.parametrize(("is_open", "words"), [(True, "warning: other machines may reach it"), (False, "")])
def test_warns_where_others_may_reach_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_open: bool, words: str
) -> None:
    serve = pytest.importorskip("slicewise.web.serve")

    class Stopped:
        """Serves nothing."""

        def __init__(self, config: object) -> None: ...

        def run(self, sockets: list[socket.socket]) -> None:
            assert sockets

    monkeypatch.setattr(serve.uvicorn, "Server", Stopped)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with pytest.raises(SystemExit) as stop:
        main(["web", "--host", "0.0.0.0" if is_open else "127.1", "--port", port])
    assert not stop.value.code
    out, err = capsys.readouterr()
    assert "slicewise explorer: http://" in out
    assert words in err
    assert bool(err) is is_open
