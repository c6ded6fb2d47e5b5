"""Adds a model to the catalog: reads its config.json, and writes its facts in the project's own form.

    python scripts/add_model.py CONFIG --name qwen3-8b --repo Qwen/Qwen3-8B --date 2026-11 [--alias NAME ...]

Keys that have the record's default are left out. Run it again to write an entry anew.
"""

from __future__ import annotations

import argparse
import inspect
import json
import tomllib
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from slicewise.catalog.hf import SIDECAR, record_from_config
from slicewise.catalog.json_file import read_json
from slicewise.catalog.layer_list import fold
from slicewise.catalog.model_record import FEED_FORWARDS, MIXERS, ModelRecord

DATA = Path(__file__).parents[1] / "src/slicewise/catalog/data"
WIDE = 118
TABLES = ("mixers", "feed_forwards")
HEADER = (
    "# Other names of the models of models/*.toml: Hugging Face ids, and what people call them. Case does not matter.\n"
)


def main() -> None:
    """Write one model and its names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--repo", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--found-at", default="", help="repository@commit:path where a copy was read")
    parser.add_argument("--alias", action="append", default=[])
    asked = parser.parse_args()
    sidecar = asked.config.parent / SIDECAR
    beside = read_json(sidecar) if sidecar.is_file() else None
    record = record_from_config(read_json(asked.config), str(asked.config), beside)
    record = replace(record, repo=asked.repo, found_at=asked.found_at, date=asked.date)
    text = written(record)
    if ModelRecord.read(tomllib.loads(text)).to_spec("", {}) != record.to_spec("", {}):
        raise SystemExit(f"{asked.config}: what was written does not read as the same model; nothing is added")
    (DATA / "models" / f"{asked.name}.toml").write_text(text, encoding="utf-8")
    add_names(asked.name, [asked.repo, *asked.alias])


def written(record: ModelRecord) -> str:
    """A record as TOML, without what has its default."""
    found = {field.name: getattr(record, field.name) for field in fields(record) if not _is_default(record, field)}
    found["layers"] = fold(found["layers"])
    plain = {key: value for key, value in found.items() if key not in TABLES}
    first = {key: plain.pop(key) for key in ("repo", "found_at", "date", "source") if key in plain}
    lines = [f"{key} = {_value(value)}" for key, value in {**first, **plain}.items()]
    for table in TABLES:
        for kind, words in found.get(table, {}).items():
            lines += ["", f"[{table}.{_key(kind)}]"]
            lines += [f"{key} = {_value(value)}" for key, value in _given(words).items()]
    return "\n".join([*lines, ""])


def _given(words: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a kind that are not its defaults."""
    known = inspect.signature({**MIXERS, **FEED_FORWARDS}[words["kind"]]).parameters
    return {key: value for key, value in words.items() if key == "kind" or value != known[key].default}


def _is_default(record: ModelRecord, field: Any) -> bool:
    value = getattr(record, field.name)
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return bool(value == field.default)


def _value(value: Any) -> str:
    """A value as TOML, on one line where it fits."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        items = [_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= WIDE - 20 else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def add_names(name: str, others: list[str]) -> None:
    """Put a model's names among those of the others, in the order of the alphabet."""
    path = DATA / "names.toml"
    known = tomllib.loads(path.read_text(encoding="utf-8"))
    known[name] = list(dict.fromkeys([*known.get(name, []), *(other for other in others if other != name)]))
    lines = [_line(key, known[key]) for key in sorted(known)]
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")


def _line(name: str, others: list[str]) -> str:
    """One entry, on one line where it fits."""
    quoted = [f'"{other}"' for other in others]
    key = _key(name)
    line = f"{key} = [{', '.join(quoted)}]"
    return line if len(line) <= WIDE else f"{key} = [\n" + "".join(f"  {word},\n" for word in quoted) + "]"


if __name__ == "__main__":
    main()
