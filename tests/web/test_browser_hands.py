"""What the explorer's controls show is what they ask for; what was pasted, opened or focused outlives a new answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from helpers.browsers import CONFIG, ready, until

pytestmark = pytest.mark.browser

PLAN = "?model=llama-3-70b&chip=v5e&weights=int8&kv=int8&tpot=50ms"
OFF_GRID = f"{PLAN}&isl=5000"
HOLD_MS = 900
"""A little longer than a slider counts as held after its last move."""
Opened = Callable[..., Any]


def pasted(page: Any) -> None:
    page.locator("#paste-open").click()
    page.locator("#paste").fill(json.dumps(CONFIG))
    page.locator("#paste-read").click()
    until(page, "location.hash.includes('config')")
    ready(page)


def is_focused(locator: Any) -> bool:
    return bool(locator.evaluate("e => e === document.activeElement"))


def shown(page: Any, slider: str) -> tuple[str, ...]:
    """A slider's value by its field, to who listens, in the address, and in the document of that address."""
    spoken = page.locator(f"#slider-{slider}").get_attribute("aria-valuetext").replace(",", "")
    address = page.evaluate(f"new URLSearchParams(location.search).get('{slider}')")
    ask = f"fetch('/api/explore' + location.search).then(r => r.json()).then(d => String(d.controls.{slider}.value))"
    return page.locator(f"#value-{slider}").input_value(), spoken, address, page.evaluate(ask)


@pytest.mark.parametrize("steps", [1, 2, None], ids=["one stop", "two stops", "to the end"])
@pytest.mark.parametrize(("words", "slider"), [(PLAN, "context"), (OFF_GRID, "isl")], ids=["auto", "off the grid"])
def test_a_slider_asks_for_what_it_shows(opened: Opened, words: str, slider: str, steps: int | None) -> None:
    page = opened(words)
    track = page.locator(f"#slider-{slider}")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    last, at = (int(value) for value in track.evaluate("e => [e.max, e.value]"))
    to = last if steps is None else at + steps
    ask = "fetch('/api/explore' + location.search).then(r => r.json()).then(d => d.controls)"
    meant = str(page.evaluate(ask)[slider]["stops"][to])
    for stop in range(at, to + 1):
        page.mouse.move(box["x"] + 9 + (box["width"] - 18) * stop / last, box["y"] + box["height"] / 2)
        if stop == at:
            page.mouse.down()
        page.wait_for_timeout(250)  # answers come, with other stops, while the hand is on the slider
    page.mouse.up()
    ready(page)
    assert shown(page, slider) == (meant,) * 4
    page.wait_for_timeout(HOLD_MS)
    assert shown(page, slider) == (meant,) * 4


def test_a_slider_that_was_touched_alone_follows_the_plan_again(opened: Opened) -> None:
    page = opened(PLAN)
    page.locator("#slider-batch").click(position={"x": 2, "y": 12})
    page.wait_for_timeout(HOLD_MS)
    ready(page)
    box = page.locator("#slider-batch").bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2)
    page.mouse.down()  # where it stands: nothing changes
    page.mouse.up()
    page.wait_for_timeout(HOLD_MS)
    page.locator("#value-batch").fill("7")
    page.locator("#value-batch").press("Enter")
    until(page, "location.search.includes('batch=7')")
    ready(page)
    until(page, "document.querySelector('#slider-batch').getAttribute('aria-valuetext') === '7'")


def test_an_open_derivation_follows_the_plan(opened: Opened) -> None:
    page = opened(PLAN)
    page.locator(".answer button[data-name='step_s']").first.click()
    sheet = page.locator("#sheet")
    sheet.locator(".formula").first.wait_for()
    sheet.locator("li button.door").first.click()
    node = sheet.locator(".exactly code").inner_text()
    trail = sheet.locator(".sheet-path").inner_text()
    before = sheet.inner_text()
    page.locator("#value-context").fill("65536")
    page.locator("#value-context").press("Enter")
    until(page, "location.search.includes('context=65536')")
    ready(page)
    until(page, f"document.querySelector('#sheet').innerText !== {json.dumps(before)}")
    after = sheet.inner_text()
    assert sheet.locator(".exactly code").inner_text() == node
    assert sheet.locator(".sheet-path").inner_text() == trail
    other = opened(f"?{page.url.split('?')[1]}")
    other.locator(".answer button[data-name='step_s']").first.click()
    other.locator("#sheet .formula").first.wait_for()
    other.locator("#sheet li button.door").first.click()
    assert other.locator("#sheet").inner_text() == after


def test_a_derivation_goes_with_its_number(opened: Opened) -> None:
    page = opened(PLAN)
    page.locator(".answer button[data-name='step_s']").first.click()
    page.locator("#sheet .formula").first.wait_for()
    page.locator("#value-context").fill("1048576")
    page.locator("#value-context").press("Enter")
    page.locator(".answer.is-refusal").wait_for()
    until(page, "!document.querySelector('#sheet .formula')")
    assert page.locator("#sheet .error").inner_text().startswith("step_s has no value for what does not fit")


def test_a_narrow_derivation_is_modal_and_a_wide_one_is_not(opened: Opened) -> None:
    for width, is_modal in ((390, True), (1280, False)):
        page = opened(PLAN, viewport={"width": width, "height": 844})
        number = page.locator(".answer button[data-name='step_s']").first
        number.click()
        page.locator("#sheet .formula").first.wait_for()
        assert page.locator("#sheet").get_attribute("aria-modal") == str(is_modal).lower()
        assert page.evaluate("['.top', '.page'].every(s => document.querySelector(s).inert)") is is_modal
        for _ in range(30 if is_modal else 0):
            page.keyboard.press("Tab")
            assert page.evaluate(
                "document.activeElement === document.body || !!document.activeElement.closest('#sheet')"
            )
        page.keyboard.press("Escape")
        assert is_focused(number)
        assert not page.evaluate("document.querySelector('.page').inert")


def test_the_skip_link_keeps_what_was_pasted(opened: Opened) -> None:
    page = opened()
    pasted(page)
    address = page.url
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert is_focused(page.locator("#answer"))
    assert page.url == address
    assert page.locator("#model").input_value() == "pasted config.json"


def test_enter_in_the_model_field_changes_nothing_that_was_not_typed(opened: Opened) -> None:
    page = opened()
    pasted(page)
    address = page.url
    for typed in (None, ""):
        page.locator("#model").focus()
        if typed is not None:
            page.locator("#model").fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        ready(page)
        assert page.url == address
        assert page.locator("#model").input_value() == "pasted config.json"
        page.locator("#share").focus()


def test_a_kept_config_is_not_sent_with_the_address(opened: Opened) -> None:
    page = opened()
    pasted(page)
    page.locator("#compare").click()
    page.locator(".plans.two .plan .chart svg").nth(3).wait_for()
    page.locator("#model").fill("llama-3-8b")
    page.keyboard.press("Enter")
    until(page, "document.title.startsWith('llama-3-8b')")
    ready(page)
    assert "hidden_size" not in page.evaluate("location.search")
    assert "hidden_size" in page.evaluate("location.hash")
    kept = page.locator(".plans .plan .answer").nth(0).inner_text()
    other = opened(page.url.split("/", 3)[3])
    other.locator(".plans.two .plan .chart svg").nth(3).wait_for()
    assert other.locator(".plans .plan .answer").nth(0).inner_text() == kept
    other.locator("#compare").click()
    assert "hidden_size" not in other.url


def test_what_was_wrong_with_a_paste_is_forgotten_with_a_good_answer(opened: Opened) -> None:
    page = opened()
    page.locator("#paste-open").click()
    page.locator("#paste").fill('{"model_type": "no-such-family"}')
    page.locator("#paste-read").click()
    page.locator("#paste-error").wait_for()
    page.locator("#model").fill("llama-3-8b")
    page.locator("#model").press("Enter")
    until(page, "document.title.startsWith('llama-3-8b')")
    ready(page)
    assert page.locator("#paste-error").is_hidden()


def test_a_picture_brings_no_listener_and_no_script(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()  # not one that is watched: its policy reports the listeners besides
    page.goto(address)
    text = """<svg xmlns='http://www.w3.org/2000/svg' onload='x()'><script>x()</script>
        <a href='javascript:x()'><g/></a><g onclick='x()' fill='red'><rect OnClick='x()' onfocus='x()'/></g></svg>"""
    read = f"import('/static/js/mesh.js').then(m => m.drawing({json.dumps(text)}).outerHTML)"
    found = page.evaluate(read)
    assert 'fill="red"' in found
    assert [part for part in ("onload", "onclick", "onfocus", "script") if part in found.lower()] == []
    context.close()


def test_the_tour_is_stepped_by_keyboard(opened: Opened) -> None:
    page = opened()
    page.locator("#tour").click()
    page.locator("#tour-panel table").wait_for()
    ready(page)
    step = page.locator("#tour-panel [data-key='tour_next']")
    step.focus()
    seen = [page.locator("#tour-panel h2").inner_text()]
    last = page.locator("#tour-panel option").count() - 1
    for _ in range(last + 1):  # once more than there are: the last step stays where it is
        page.keyboard.press("Enter")
        ready(page)
        assert is_focused(step)
        seen.append(page.locator("#tour-panel h2").inner_text())
    assert page.locator("#tour-panel select").evaluate("e => e.selectedIndex") == last
    assert len(set(seen)) > last / 2
    page.keyboard.press("Shift+Tab")
    assert is_focused(page.locator("#tour-panel [data-key='tour_before']"))


def test_who_takes_a_plan_keeps_the_focus(opened: Opened) -> None:
    page = opened(PLAN)
    take = page.locator(".candidates button.quiet-button").first
    key = take.get_attribute("data-key")
    take.focus()
    page.keyboard.press("Enter")
    ready(page)
    assert page.evaluate("document.activeElement.dataset.key") == key
    page = opened("?model=llama-3-405b&slice=v5e:2x2&weights=bf16")
    page.locator("button.nearest").first.focus()
    page.keyboard.press("Enter")
    ready(page)
    page.locator(".answer:not(.is-refusal)").wait_for()
    assert page.evaluate("document.activeElement !== document.body && document.activeElement.checkVisibility()")


def test_the_new_answer_is_said_to_who_listens(opened: Opened) -> None:
    page = opened(PLAN)
    page.locator("#word-weights").select_option("bf16")
    until(page, "location.search.includes('weights=bf16')")
    ready(page)
    said = "document.querySelector('#said').textContent === document.querySelector('.answer p').textContent"
    until(page, said)
    assert page.locator("#said").get_attribute("aria-live") == "polite"


def test_the_menu_closes_when_the_focus_leaves(opened: Opened) -> None:
    page = opened(PLAN)
    page.locator("#export").click()
    page.locator("#exports button").last.focus()
    page.keyboard.press("Tab")
    assert page.locator("#exports").is_hidden()
    assert page.locator("#export").get_attribute("aria-expanded") == "false"


def test_every_curve_has_its_name(opened: Opened) -> None:
    page = opened(PLAN)
    labels = page.locator(".picture").first.inner_text()
    slices = page.evaluate(
        "fetch('/api/explore' + location.search).then(r => r.json()).then(d => d.frontier.slices.map(c => c.slice))"
    )
    assert [name for name in slices if name.split(":")[1] not in labels] == []


def test_the_largest_batch_is_read_on_a_narrow_screen(opened: Opened) -> None:
    page = opened(PLAN, viewport={"width": 390, "height": 844})
    most = page.locator("#dock .slider .aside .aside", has_text="max")
    assert most.is_visible()
    assert most.evaluate("e => e.parentElement.scrollWidth <= e.parentElement.clientWidth")


def test_an_address_that_is_refused_leaves_controls_that_work(opened: Opened) -> None:
    page = opened("?model=llama-3-70b&slice=v5e:9x9")
    assert "9x9" in page.locator("#error").inner_text()
    page.locator("#word-slice").select_option("v5e:4x4")
    ready(page)
    until(page, "document.querySelector('#title').textContent === 'llama-3-70b on v5e:4x4, bf16'")
    assert page.locator("#error").is_hidden()
