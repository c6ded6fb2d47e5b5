"""Safetensors: sizes from headers and indices, without a weight; what is malformed or cut off is refused in a line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.catalog.hf import read_config
from slicewise.catalog.safetensors import INDEX, Checkpoint, read_checkpoint
from slicewise.errors import InputError
from slicewise.spec.stored import as_checkpoint

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}
WIDTH = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "I32": 4, "F8_E8M0": 1}


def a_file(tensors: dict[str, tuple[str, list[int]]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = WIDTH[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end)


def raw(header: bytes, data: int = 0) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(data)


def an_index(folder: Path, names: list[str], **metadata: Any) -> None:
    weight_map = {f"tensor.{i}": name for i, name in enumerate(names)}
    (folder / INDEX).write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))


def llama_tensors() -> dict[str, tuple[str, list[int]]]:
    found = {"model.embed_tokens.weight": ("BF16", [100, 64]), "lm_head.weight": ("BF16", [100, 64])}
    found["model.norm.weight"] = ("BF16", [64])
    sides = {"q": [64, 64], "k": [32, 64], "v": [32, 64], "o": [64, 64]}
    for layer in range(2):
        at = f"model.layers.{layer}"
        found |= {f"{at}.self_attn.{name}_proj.weight": ("BF16", shape) for name, shape in sides.items()}
        found |= {f"{at}.mlp.{name}_proj.weight": ("BF16", [96, 64]) for name in ("gate", "up")}
        found |= {f"{at}.{name}_layernorm.weight": ("BF16", [64]) for name in ("input", "post_attention")}
        found[f"{at}.mlp.down_proj.weight"] = ("BF16", [64, 96])
    return found


def test_headers_give_bytes_and_elements_of_each_part(tmp_path: Path) -> None:
    tensors = {
        "model.layers.0.mlp.up_proj.weight": ("F8_E4M3", [256, 128]),
        "model.layers.0.mlp.up_proj.weight_scale_inv": ("F32", [2, 1]),
        "model.layers.1.mlp.up_proj.weight": ("BF16", [256, 128]),
        "lm_head.weight": ("BF16", [10, 128]),
    }
    (tmp_path / "model.safetensors").write_bytes(a_file(tensors))  # type: ignore[arg-type]
    assert read_checkpoint(tmp_path) == Checkpoint(
        n_bytes=256 * 128 * 3 + 2 * 4 + 10 * 128 * 2,
        source="the header of model.safetensors",
        elements={"model.layers": 2 * 256 * 128 + 2, "lm_head": 1280},
        bytes_by_dtype={"F8_E4M3": 256 * 128, "F32": 8, "BF16": 256 * 128 * 2 + 2560},
    )


def test_shards_are_summed(tmp_path: Path) -> None:
    for number in (1, 2):
        name = f"model-0000{number}-of-00002.safetensors"
        (tmp_path / name).write_bytes(a_file({f"model.layers.{number}.w": ("BF16", [4, number])}))
    found = read_checkpoint(tmp_path)
    assert found
    assert (found.n_bytes, found.source) == (24, "the headers of 2 safetensors files")


def test_an_index_alone_gives_the_total(tmp_path: Path) -> None:
    an_index(tmp_path, ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], total_size=2048)
    assert read_checkpoint(tmp_path) == Checkpoint(n_bytes=2048, source=INDEX)
    # One shard of two is no checkpoint.
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(a_file({"w": ("BF16", [4])}))
    assert read_checkpoint(tmp_path) == Checkpoint(n_bytes=2048, source=INDEX)


def test_headers_win_over_the_index(tmp_path: Path) -> None:
    an_index(tmp_path, ["model-00001-of-00001.safetensors"], total_size=2048)
    (tmp_path / "model-00001-of-00001.safetensors").write_bytes(a_file({"w": ("BF16", [4])}))
    # Files that the index does not name are not of the checkpoint.
    (tmp_path / "consolidated.safetensors").write_bytes(a_file({"w": ("BF16", [400])}))
    found = read_checkpoint(tmp_path)
    assert found
    assert found.n_bytes == 8


def test_copies_in_another_layout_and_adapters_are_left_out(tmp_path: Path) -> None:
    for name in ("model.safetensors", "consolidated.safetensors", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes(a_file({"w": ("BF16", [4])}))
    assert (read_checkpoint(tmp_path) or Checkpoint(n_bytes=0, source="")).n_bytes == 8
    (tmp_path / "model.safetensors").unlink()
    assert (read_checkpoint(tmp_path) or Checkpoint(n_bytes=0, source="")).n_bytes == 8


def test_what_git_keeps_in_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4000000000\n"
    (tmp_path / "model.safetensors").write_bytes(pointer)
    assert read_checkpoint(tmp_path) is None
    an_index(tmp_path, ["model.safetensors"], total_size=4000)
    assert read_checkpoint(tmp_path) == Checkpoint(n_bytes=4000, source=INDEX)


@pytest.mark.parametrize("metadata", [{}, {"total_size": None}, {"format": "pt"}])
def test_an_index_without_a_size_says_nothing(tmp_path: Path, metadata: dict[str, Any]) -> None:
    an_index(tmp_path, ["model-00001-of-00001.safetensors"], **metadata)
    assert read_checkpoint(tmp_path) is None
    assert read_checkpoint(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", r"header cannot have 0 bytes", id="empty"),
        pytest.param(b"\x10\x00", r"header cannot have 16 bytes", id="a-length-cut-off"),
        pytest.param((1 << 40).to_bytes(8, "little") + b"{}", r"header cannot have 1,099,511,627,776", id="no-end"),
        pytest.param((64).to_bytes(8, "little") + b"{}", r"header cannot have 64 bytes", id="header-cut-off"),
        pytest.param(raw(b"{not json"), r"holds no valid JSON", id="no-json"),
        pytest.param(raw(b"\xff\xfe\xfd"), r"holds no valid JSON", id="no-text"),
        pytest.param(raw(b"[" * 50_000), r"holds no valid JSON", id="too-deep"),
        pytest.param(raw(b"[1, 2]"), r"holds a list, not an object", id="a-list"),
        pytest.param(raw(b'{"w": 3}'), r"the entry of w is not a tensor's", id="a-number"),
        pytest.param(raw(b'{"w": {"dtype": "F32", "shape": [1]}}'), r"entry of w is not", id="no-offsets"),
        pytest.param(
            raw(b'{"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', 4), r"entry of w is", id="negative"
        ),
        pytest.param(
            raw(b'{"w": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}', 4), r"entry of w is not", id="true"
        ),
        pytest.param(
            raw(b'{"w": {"dtype": "Q3", "shape": [1], "data_offsets": [0, 4]}}', 4), r"w has dtype Q3", id="dtype"
        ),
        pytest.param(
            raw(b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}', 4), r"not those of its", id="size"
        ),
        pytest.param(
            raw(b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', 7), r"is cut off before", id="cut"
        ),
    ],
)  # fmt: skip
def test_malformed_files_are_refused_in_a_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        read_checkpoint(tmp_path)
    assert "model.safetensors: " in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"holds no valid JSON"),
        ("[]", r"holds a list, not an object"),
        ('{"weight_map": []}', r"weight_map and metadata must be objects"),
        ('{"metadata": 3}', r"weight_map and metadata must be objects"),
        ('{"weight_map": {"w": 3}}', r"weight_map names 3, which is no file"),
        ('{"weight_map": {"w": "../../x.safetensors"}}', r"weight_map names '../../x.safetensors'"),
        *(
            (f'{{"metadata": {{"total_size": {size}}}}}', r"total_size is .*; it must be a number of bytes")
            for size in ("-1", "0", "1.5", "true", '"12"', "[1]", "NaN", "Infinity", "1e300", "9" * 400)
        ),
    ],
)
def test_malformed_indices_are_refused_in_a_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(InputError, match=message):
        read_checkpoint(tmp_path)


@given(st.data())
def test_a_file_cut_off_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = a_file({"a": ("BF16", [3, 5]), "b": ("F32", [7])})
    folder = tmp_path_factory.mktemp("cut")
    (folder / "model.safetensors").write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(InputError):
        read_checkpoint(folder)


def test_a_model_has_the_bytes_of_the_files_beside_its_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert read_config(tmp_path / "config.json").checkpoint_bytes is None
    (tmp_path / "model.safetensors").write_bytes(a_file(llama_tensors()))
    model = read_config(tmp_path / "config.json")
    assert model.checkpoint_bytes == sum(weight.n_bytes for weight in as_checkpoint(model)) == 149_120
    (note,) = model.notes
    assert note.startswith("the header of model.safetensors says 149,120 B of weights;")
    assert note.endswith("the count from config.json gives 149,120 B (+0.00%)")


def test_a_difference_from_the_count_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    an_index(tmp_path, ["model-00001-of-00001.safetensors"], total_size=200_000)
    model = read_config(tmp_path / "config.json")
    assert model.checkpoint_bytes == 200_000
    (note,) = model.notes
    assert note.startswith(f"{INDEX} says 200,000 B")
    assert note.endswith("(-25.44%)")
    # A config of another name may have nothing to do with the files.
    (tmp_path / "other.json").write_text(json.dumps(CONFIG))
    assert read_config(tmp_path / "other.json").checkpoint_bytes is None
