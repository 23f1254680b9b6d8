import http.client
import json
import socket

import pytest

from eqlearn.live.settings import Limits
from made_live import MadeRun, served
from made_runs import make_record

HOSTILE = "<img src=x onerror=alert(1)>"


class Client:
    """Sends requests as a browser would, with the token unless told otherwise."""

    def __init__(self, server):
        self.server = server

    def ask(self, path, method="GET", body=None, token="right", **headers):
        """The status, the headers and the content of an answer."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            headers["X-Eqlearn-Token"] = self.server.token if token == "right" else token
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def plain(self, *words, **options):
        status, _, content = self.ask(*words, **options)
        return status, json.loads(content)

    def post(self, path, plain, **options):
        return self.plain(path, method="POST", body=json.dumps(plain), **options)


@pytest.fixture
def client(write_run, record, tmp_path):
    with served([write_run(record)], tmp_path / "runs") as server:
        yield Client(server)


ROUTES = [
    ("GET", "/"),
    ("GET", "/state"),
    ("GET", "/run?run=0"),
    ("GET", "/report?run=0"),
    ("GET", "/nothing"),
]
ROUTES += [("POST", path) for path in ("/stop", "/pin", "/table", "/start", "/nothing")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("token", [None, "", "wrong", "rightt"])
def test_nothing_is_answered_without_the_token(client, method, path, token):
    status, answer = client.plain(path, method=method, body="{}" if method == "POST" else None, token=token)

    assert status == 403
    assert list(answer) == ["error"]
    assert client.server.token not in str(answer)


def test_the_address_that_is_printed_shows_the_page(client):
    path = client.server.address.partition(str(client.server.server_port))[2]

    status, headers, content = client.ask(path, token=None)

    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"live view" in content
    assert client.server.token.encode() not in content


@pytest.mark.parametrize("path", ["/state", "/run"])
def test_data_are_not_given_for_a_token_in_the_address(client, path):
    assert client.plain(f"{path}?run=0&token={client.server.token}", token=None)[0] == 403


@pytest.mark.parametrize("path", ["/stop", "/pin", "/table", "/start"])
def test_nothing_is_done_for_a_token_in_the_address(client, path):
    status, _ = client.post(f"{path}?token={client.server.token}", {"run": 0}, token=None)

    assert status == 403


def test_an_address_for_command_lines_is_good_for_one_use(client):
    path = f"/?ticket={client.server.ticket}"

    status, headers, _ = client.ask(path, token=None)

    assert (status, headers["Location"]) == (303, f"/?token={client.server.token}")
    assert client.ask(path, token=None)[0] == 403
    assert client.ask("/?ticket=", token=None)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8000", "", "localhost.", "[::1]", "a:b"]
)
def test_a_name_of_somebody_else_that_leads_here_is_refused(client, host):
    assert client.plain("/state", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8000"])
def test_this_machine_and_a_tunnel_to_it_are_not_refused(client, host):
    assert client.plain("/state", Host=host)[0] == 200


def test_another_page_of_the_browser_is_refused(client):
    assert client.post("/stop", {"run": 0}, Origin="http://evil.example")[0] == 403
    assert client.post("/stop", {"run": 0}, Origin="null")[0] == 403
    assert client.ask("/stop", method="OPTIONS", token=None)[0] == 501


def test_only_this_machine_is_listened_to(client):
    assert client.server.server_address[0] == "127.0.0.1"
    assert client.server.socket.family == socket.AF_INET


def test_the_page_may_load_nothing_but_what_is_in_it(client):
    _, headers, _ = client.ask("/")

    policy = dict(p.strip().partition(" ")[::2] for p in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in str(policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_a_report_page_is_made_anew_and_kept_apart(client):
    folder = client.server.view.runs[0].folder
    (folder.path / "report.html").write_text("<script>alert(1)</script>")

    status, headers, content = client.ask("/report?run=0")

    assert status == 200
    assert headers["Content-Security-Policy"] == "sandbox allow-scripts"
    assert b"alert(1)" not in content


def test_a_finished_run_is_told_in_full(client):
    _, state = client.plain("/state")
    _, run = client.plain("/run?run=0")

    (brief,) = state["runs"]
    assert brief["state"] == "finished"
    assert brief["version"] == run["version"]
    assert [e["complexity"] for e in run["equations"]] == [1, 3, 8, 12] or len(run["equations"]) == 4
    assert "<math" in brief["formula"][0]
    assert len(run["measured"][0]) == 60


def test_a_run_under_way_tells_its_front_and_the_time_left(tmp_path):
    run = MadeRun(tmp_path / "under-way")
    run.goes_on(2)

    with served([run.folder], tmp_path) as server:
        client = Client(server)
        before = client.plain("/state")[1]["runs"][0]
        run.goes_on(3, rounds=4)
        after = client.plain("/state")[1]["runs"][0]
        drawn = client.plain("/run?run=0")[1]

    assert (before["state"], before["rounds"], before["restarts"]) == ("running", 3, 60)
    assert 90 < before["left"] <= 97
    assert before["version"] != after["version"] == drawn["version"]
    assert len(drawn["equations"]) == 3
    assert len(drawn["equations"][0]["outputs"][0]["residual"]) == 60


def test_counts_alone_do_not_change_the_version(tmp_path):
    run = MadeRun(tmp_path / "under-way")
    run.goes_on(2, rounds=3)

    with served([run.folder], tmp_path) as server:
        client = Client(server)
        before = client.plain("/state")[1]["runs"][0]
        run.history.written = float("-inf")
        run.goes_on(2, rounds=9)
        after = client.plain("/state")[1]["runs"][0]

    assert (before["rounds"], after["rounds"]) == (3, 9)
    assert before["version"] == after["version"]


def test_a_run_whose_process_died_is_shown_with_what_it_had(tmp_path):
    run = MadeRun(tmp_path / "dead")
    run.goes_on(2)
    run.died()

    with served([run.folder], tmp_path) as server:
        client = Client(server)
        (brief,) = client.plain("/state")[1]["runs"]
        status, refusal = client.post("/stop", {"run": 0})

    assert brief["state"] == "left"
    assert brief["version"]
    assert (status, "no search under way" in refusal["error"]) == (400, True)


def test_stop_leaves_its_wish_in_the_folder(tmp_path):
    run = MadeRun(tmp_path / "run")
    run.goes_on(1)

    with served([run.folder], tmp_path) as server:
        client = Client(server)
        assert client.post("/stop", {"run": 0}) == (200, {})
        (brief,) = client.plain("/state")[1]["runs"]

    assert (run.folder.path / "stop").exists()
    assert brief["stopping"] is True


def test_a_finished_run_can_not_be_stopped(client):
    status, answer = client.post("/stop", {"run": 0})

    assert status == 400
    assert "no search under way" in answer["error"]


def test_a_damaged_run_says_so_and_the_others_are_shown(client, write_run, record, tmp_path):
    folder = write_run(record, "damaged")
    text = (folder.path / "run.json").read_text()
    (folder.path / "run.json").write_text(text.replace("96", "97"))

    with served([folder.path, tmp_path / "run"], tmp_path) as server:
        damaged, whole = Client(server).plain("/state")[1]["runs"]

    assert (damaged["state"], whole["state"]) == ("damaged", "finished")
    assert "checksum" in damaged["message"]


def test_a_pinned_equation_is_kept_in_the_folder(client):
    folder = client.server.view.runs[0].folder
    key = client.plain("/run?run=0")[1]["equations"][1]["key"]

    assert client.post("/pin", {"run": 0, "key": key}) == (200, {})
    pinned = [e["pinned"] for e in client.plain("/run?run=0")[1]["equations"]]
    assert client.post("/pin", {"run": 0, "key": None}) == (200, {})

    assert pinned == [False, True, False, False]
    assert not (folder.path / "favourite.json").exists()
    assert not any(e["pinned"] for e in client.plain("/run?run=0")[1]["equations"])


def test_a_pinned_equation_stays_when_the_front_leaves_it_behind(tmp_path):
    run = MadeRun(tmp_path / "run")
    run.goes_on(2)

    with served([run.folder], tmp_path) as server:
        client = Client(server)
        key = client.plain("/run?run=0")[1]["equations"][0]["key"]
        client.post("/pin", {"run": 0, "key": key})
        best = run.record.front[2]
        run.history(type(run.history.latest)(9, 99, 9.0, best, (best,)))
        drawn = client.plain("/run?run=0")[1]

    assert [(e["pinned"], e["aside"]) for e in drawn["equations"]] == [(True, True), (False, False)]
    assert drawn["pick"] == 1


@pytest.mark.parametrize("key", ["x + 1", "", 3, ["a"]])
def test_what_is_not_on_the_front_can_not_be_pinned(client, key):
    status, answer = client.post("/pin", {"run": 0, "key": key})

    assert status == 400
    assert answer["error"]


@pytest.mark.parametrize("number", [-1, 1, "0", None, True, 1e400, {}])
def test_a_run_that_is_not_there_is_refused(client, number):
    status, answer = client.post("/stop", {"run": number})

    assert status == 400
    assert answer["error"].startswith("there is no run")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(client, body):
    assert client.plain("/stop", method="POST", body=body)[0] == 400


def test_hostile_names_are_escaped(write_run, tmp_path):
    record = make_record(inputs=(HOSTILE, "b"), targets=(HOSTILE,), network_inputs=(HOSTILE, "b"))

    with served([write_run(record)], tmp_path) as server:
        run = Client(server).plain("/run?run=0")[1]
        brief = Client(server).plain("/state")[1]["runs"][0]

    markup = [m for e in run["equations"] for m in e["markup"]] + brief["formula"]
    assert "<img" not in "".join(markup)
    assert "&lt;img" in "".join(markup)


# --- tables ----------------------------------------------------------------------------------------------

TABLE = "a,b,name,y\n" + "".join(f"{k},{k * k % 7},n{k},{2.5 * k}\n" for k in range(12))


def take(client, text=TABLE, name="line.csv", **headers):
    return client.plain("/table", method="POST", body=text.encode(), X_Eqlearn_Name=name, **headers)


def test_a_table_is_looked_at(client):
    status, seen = take(client)

    assert status == 200
    assert (seen["name"], seen["rows"]) == ("line.csv", 12)
    assert seen["columns"] == ["a", "b", "name", "y"]
    assert seen["numbers"] == ["a", "b", "y"]


def test_a_table_that_can_not_be_read_is_refused_by_its_own_name(client):
    status, answer = take(client, "a,a\n1,2\n", "twice.csv")

    assert status == 400
    assert "'twice.csv'" in answer["error"]
    assert "/tmp" not in answer["error"]


@pytest.mark.parametrize("length", ["99999999999999999999", "1001", "-1", "x", None])
def test_a_table_that_is_too_large_is_refused_before_it_is_read(tmp_path, length):
    with served([], tmp_path, limits=Limits(largest_table=1000)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        connection.putrequest("POST", "/table")
        connection.putheader("X-Eqlearn-Token", server.token)
        if length is not None:
            connection.putheader("Content-Length", length)
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()

    assert status in (411, 413)


@pytest.mark.parametrize(
    "name", ["../../../evil.csv", "/etc/passwd", "..%2F..%2Fevil", "C:\\evil.csv", "..", ""]
)
def test_the_name_of_a_file_is_never_a_path(client, tmp_path, monkeypatch, name):
    begun = []
    monkeypatch.setattr(
        "eqlearn.live.searches.subprocess.Popen", lambda *a, **k: begun.append(a[0]) or Begun()
    )
    before = sorted(p.name for p in tmp_path.iterdir())

    _, seen = take(client, name=name)
    client.post("/start", {"table": seen["table"], "target": ["y"], "inputs": ["a"]})

    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.replace("-", "").isalnum()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*before, "runs"])
    assert begun[0][-1] == str(run)


class Begun:
    """A process that does nothing."""

    stdin = None

    def poll(self):
        return None

    def wait(self, timeout):
        return 0


@pytest.mark.parametrize(
    ("wish", "word"),
    [
        ({"target": ["z"]}, "no column 'z'"),
        ({"target": ["name"]}, "name"),
        ({"target": []}, "target"),
        ({"target": "y"}, "target"),
        ({"inputs": [1]}, "inputs"),
        ({"inputs": ["y"]}, "can't be an input"),
        ({"seconds": -1}, "seconds"),
        ({"seconds": "60"}, "seconds"),
        ({"seconds": 1e9}, "seconds"),
        ({"seed": 1.5}, "seed"),
        ({"table": 7}, "drop it again"),
    ],
)
def test_a_search_that_can_not_be_is_refused_in_a_sentence(client, wish, word):
    _, seen = take(client)

    status, answer = client.post("/start", {"table": seen["table"], "target": ["y"], "inputs": ["a"], **wish})

    assert status == 400
    assert word in answer["error"]
    assert len(client.plain("/state")[1]["runs"]) == 1


def test_only_so_many_searches_and_tables_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("eqlearn.live.searches.subprocess.Popen", lambda *a, **k: Begun())

    with served([], tmp_path, limits=Limits(most_searches=1, most_tables=2)) as server:
        client = Client(server)
        numbers = [take(client)[1]["table"] for _ in range(3)]
        wish = {"target": ["y"], "inputs": ["a"]}
        statuses = [client.post("/start", {"table": n, **wish})[0] for n in numbers]
        _, answer = client.post("/start", {"table": numbers[2], **wish})

    assert statuses == [400, 200, 400]
    assert "stop one first" in answer["error"]
