"""The OpenAPI description of the questions: each word with its meaning, which is told in the planner's vocabulary."""

from __future__ import annotations

from typing import Any

from slicewise.planner.vocabulary import WORDS
from slicewise.web.keys import EXAMPLES, Key, keys_of
from slicewise.web.questions import MODEL_WORDS, OWN_WORDS, Question, questions
from slicewise.web.words import CONFIG, LONGEST, MOST_BYTES, MOST_REPEATS, is_truth

Schema = dict[str, Any]

DESCRIPTION = f"""The planner over HTTP: the words and the JSON of the command line.

A question is asked by GET, with its words in the address, or by POST, with the same words as a JSON body; there a
`config.json` may stand in place of the model's name. Texts are as on the command line: `15ms`, `2s`, `16GB`, `70e9`;
numbers in JSON are in base units. Answers are in base units: seconds, bytes, FLOP, US dollars, tokens.

What does not fit is an answer: 200 with `fits` false and the reason. What is not understood is refused: 422 with
`detail`, the one line that the command line prints. Words that name files of the machine are not offered. A word has at
most {LONGEST} characters, one that repeats at most {MOST_REPEATS} values, a body at most {MOST_BYTES:,} bytes.
"""


def meaning(word: str) -> str:
    """What a word means, in the vocabulary's words."""
    return WORDS[word].meaning if word in WORDS else {**MODEL_WORDS, **OWN_WORDS}[word]


def get_schema(question: Question) -> Schema:
    """The parameters of a question, and what comes back."""
    return {"parameters": [_parameter(word, repeats) for word, repeats in question.in_query.items()], **_back(question)}


def post_schema(question: Question) -> Schema:
    """The body of a question, and what comes back."""
    properties = {word: _property(word, repeats) for word, repeats in question.offered.items() if word != CONFIG}
    properties[CONFIG] = {"anyOf": [{"type": "object"}, {"type": "string"}], "description": meaning(CONFIG)}
    body = {"type": "object", "properties": properties, "additionalProperties": False}
    content = {"application/json": {"schema": body}}
    return {"requestBody": {"required": True, "content": content}, **_back(question)}


def _parameter(word: str, repeats: bool) -> Schema:  # noqa: FBT001 - an item of a table
    one = {"type": "string", "maxLength": LONGEST, **_choice(word)}
    schema = {"type": "array", "items": one, "maxItems": MOST_REPEATS} if repeats else one
    found = {"name": word, "in": "query", "required": False, "description": meaning(word), "schema": schema}
    return {**found, **({"example": [EXAMPLES[word]] if repeats else EXAMPLES[word]} if word in EXAMPLES else {})}


def _property(word: str, repeats: bool) -> Schema:  # noqa: FBT001 - an item of a table
    if is_truth(word):
        return {"type": "boolean", "description": meaning(word)}
    one: Schema = {"anyOf": [{"type": "string", "maxLength": LONGEST}, {"type": "number"}]}
    if repeats:
        one = {"anyOf": [*one["anyOf"], {"type": "array", "items": one, "maxItems": MOST_REPEATS}]}
    return {**one, "description": meaning(word)}


def _choice(word: str) -> Schema:
    return {"enum": ["true", "false"]} if is_truth(word) else {}


def _back(question: Question) -> Schema:
    refusal = {
        "type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"],
    }  # fmt: skip
    said = {"application/json": {"schema": refusal}}
    schema = {"type": "string"} if question.headers else {"type": "array" if question.is_list else "object"}
    return {
        "responses": {
            "200": {"description": "The answer.", "content": {question.media_type: {"schema": schema}}},
            "413": {"description": "The body is too large.", "content": said},
            "422": {"description": "A word is off: one line that names the fix.", "content": said},
            "503": {"description": "Too many questions wait.", "content": said},
        }
    }


def with_answers(document: Schema) -> Schema:
    """The whole description, with the keys of each answer. They are read off examples, which takes a second."""
    for name, question in questions().items():
        if question.headers:
            continue
        one = {"type": "object", "properties": {key.name: _kept(key) for key in keys_of(name)}}
        answer = {"type": "array", "items": one} if question.is_list else one
        for told in document["paths"][f"/api/{name}"].values():
            told["responses"]["200"]["content"][question.media_type]["schema"] = answer
    return document


def _kept(key: Key) -> Schema:
    unit = f" [{key.unit}]" if key.unit else ""
    told = {"description": f"{key.meaning}{unit}".strip()} if key.meaning or unit else {}
    return {**({"type": [key.kind, "null"]} if key.kind else {}), **told}
