"""Where facts come from, in words."""

from slicewise.spec.provenance import Provenance, Source, chosen

SOURCE = Source(key="k", title="A title", url="https://example.org", date="2026-11")


def test_a_fact_reads_as_printed_with_note_and_document() -> None:
    fact = Provenance(printed="16 GB", source=SOURCE, note="15 elsewhere")
    assert str(fact) == "16 GB (15 elsewhere): A title (https://example.org, read 2026-11)"
    assert fact.origin == ("16 GB (15 elsewhere)", "A title (https://example.org, read 2026-11)")


def test_what_a_user_chose_has_no_document() -> None:
    assert chosen("given by --hbm").origin == ("given by --hbm", "")
    assert str(chosen("given by --hbm")) == "given by --hbm"
