"""Numbers that a sentence prints become doors, each found whole."""

import pytest

from slicewise.report.explorer.prose import linked

STEP, HANDOFF = {"name": "step_s"}, {"name": "handoff_s"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it takes 43 ms, at most", ["it takes ", STEP, ", at most"]),
        ("143 ms and 43 ms", ["143 ms and ", STEP]),
        ("2.43 ms", ["2.43 ms"]),
        ("43 ms/token", ["43 ms/token"]),
        ("43 ms beside 1.5 ms", [STEP, " beside ", HANDOFF]),
        ("nothing printed", ["nothing printed"]),
        ("43 ms, over the limit of 43 ms", [STEP, ", over the limit of 43 ms"]),
    ],
)
def test_a_number_is_found_by_its_whole_print(text: str, expected: list[object]) -> None:
    found = linked(text, [("43 ms", STEP), ("1.5 ms", HANDOFF), ("7 ms", None)])
    assert [part.get("text") or {"name": part["number"]["name"]} for part in found] == expected
    assert "".join(part.get("text") or part["number"]["text"] for part in found) == text


def test_the_longer_print_wins() -> None:
    total = {"name": "total_bytes"}
    found = linked("8 GB (7.5 GiB) do not fit", [("8 GB", STEP), ("8 GB (7.5 GiB)", total)])
    assert found[0]["number"] == {**total, "text": "8 GB (7.5 GiB)", "figure": "8", "suffix": "GB"}


def test_of_two_that_print_alike_the_first_is_meant() -> None:
    (found,) = linked("43 ms", [("43 ms", STEP), ("43 ms", HANDOFF)])
    assert found["number"]["name"] == "step_s"


def test_without_numbers_it_is_one_text() -> None:
    assert linked("43 ms", []) == [{"text": "43 ms"}]
