"""The two APIs that models are asked by: what is sent, and what is read of an answer."""

from typing import Any, NamedTuple

import msgspec

from omegad.runtime.config import PROVIDERS, ConsultedModel
from omegad.runtime.errors import Unavailable

SYSTEM = (
    "A coding agent asks you for a second opinion. Recommend one thing, give its reasons, and say what would"
    " change your mind. Be brief."
)
ANTHROPIC_VERSION = "2023-06-01"
OVERHEAD_TOKENS = 64
"""What a request has beside its texts."""
EXPLAINED_CHARACTERS = 300


class Request(NamedTuple):
    """What is sent, but for the key."""

    url: str
    body: dict[str, Any]

    @property
    def tokens_max(self) -> int:
        """How many tokens it and its answer take at most: a token is of a byte or more."""
        texts = [self.body.get("system", ""), *(message["content"] for message in self.body["messages"])]
        longest: int = max(self.body.get(name, 0) for name in ("max_tokens", "max_completion_tokens"))
        return sum(len(text.encode()) for text in texts) + OVERHEAD_TOKENS + longest


class Said(NamedTuple):
    """What a model answered, the tokens that question and answer took, None where it is not said, and
    whether the answer was cut off.
    """

    text: str
    tokens: int | None
    is_cut: bool


def request(model: ConsultedModel, text: str) -> Request:
    """Return what asks a model."""
    user = {"role": "user", "content": text}
    if model.api == "anthropic":
        body = {"model": model.model, "max_tokens": model.output_tokens, "system": SYSTEM, "messages": [user]}
        return Request(f"{model.url}/v1/messages", body)
    # OpenAI's reasoning models refuse the older name, and not every other server knows the newer one
    limit = "max_completion_tokens" if model.url == PROVIDERS["openai"] else "max_tokens"
    messages = [{"role": "system", "content": SYSTEM}, user]
    body = {"model": model.model, limit: model.output_tokens, "messages": messages}
    return Request(f"{model.url}/chat/completions", body)


def headers(model: ConsultedModel, key: str | None) -> dict[str, str]:
    """Return what goes with a request."""
    said = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "omegad"}
    if model.api == "anthropic":
        said["anthropic-version"] = ANTHROPIC_VERSION
        return said | ({"x-api-key": key} if key else {})
    return said | ({"Authorization": f"Bearer {key}"} if key else {})


def answer(model: ConsultedModel, body: bytes) -> Said:
    """Read an answer. Raises `Unavailable` for what is none."""
    try:
        reply = msgspec.json.decode(body)
        if model.api == "anthropic":
            text = "".join(part["text"] for part in reply["content"] if part["type"] == "text").strip()
            is_cut, counted = reply.get("stop_reason") == "max_tokens", ("input_tokens", "output_tokens")
        else:
            choice = reply["choices"][0]
            text, is_cut = (
                (choice["message"]["content"] or "").strip(),
                choice.get("finish_reason") == "length",
            )
            counted = ("prompt_tokens", "completion_tokens")
        usage = reply.get("usage") or {}
        counts = [usage[name] for name in counted] if counted[0] in usage else []
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise Unavailable(
            f"what {model.host} answers is no answer of the API {model.api!r}",
            hint="api or base_url in config.toml may be wrong; go on without a second opinion",
        ) from None
    if not text:
        raise Unavailable(
            f"{model.model} answered without a text" + (", at its limit of tokens" if is_cut else ""),
            hint="put the question otherwise, ask another model, or raise output_tokens in config.toml",
        )
    is_said = counts and all(isinstance(count, int) and count >= 0 for count in counts)
    return Said(text, sum(counts) if is_said else None, is_cut)


def explained(body: bytes) -> str:
    """Return what an answer that is an error says of itself, "" where it says nothing."""
    try:
        error = msgspec.json.decode(body)["error"]
        return str(error if isinstance(error, str) else error["message"])
    except (LookupError, RecursionError, TypeError, ValueError):
        return ""
