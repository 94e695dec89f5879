"""A smoothed classifier behind HTTP: predictions within a time budget, certificates on request.

`app` is a plain ASGI application, which any ASGI server runs: `uvicorn serve:app`.

- POST /predict {"x": [...]}: the class, or null where the votes do not decide it. The answer takes
  about BUDGET seconds and is wrong with probability at most ALPHA.
- POST /certify {"x": [...], "n": 10000}: the class with its radius, or null. Takes longer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import torch

from unicr import SmoothedClassifier
from unicr.errors import UnicrError

BUDGET, ALPHA = 0.2, 0.001
SHAPE = (1, 28, 28)
MOST_BYTES, MOST_SAMPLES = 1 << 20, 100_000

smoothed = SmoothedClassifier(
    "builtin:mnist-mlp-0.5", "gaussian(sigma=0.5)", bounds=(0, 1), input_shape=SHAPE
)


def predict(asked: dict[str, Any]) -> dict[str, Any]:
    """The class of g within the time budget; null says that g's answer is not clear enough."""
    label = smoothed.predict(read_input(asked), seconds=BUDGET, alpha=ALPHA)
    return {"class": None if label < 0 else label, "alpha": ALPHA}


def certify(asked: dict[str, Any]) -> dict[str, Any]:
    """The class and the ℓ2 radius within which it does not change."""
    n = min(int(asked.get("n", 10_000)), MOST_SAMPLES)
    found = smoothed.certify(read_input(asked), 2, n=n, alpha=ALPHA)
    label = None if found.abstained else found.predict
    return {"class": label, "radius": found.radius(), "norm": "l2", "alpha": ALPHA}


def read_input(asked: dict[str, Any]) -> torch.Tensor:
    """The image of a request."""
    return torch.tensor(asked["x"], dtype=torch.float32).reshape(SHAPE)


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "/predict": predict,
    "/certify": certify,
}


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one request; bad input is status 400 with one line."""
    if scope["type"] != "http":
        return
    answer = ANSWERS.get(scope["path"])
    if answer is None or scope["method"] != "POST":
        await reply(send, 404, {"error": f"POST one of {', '.join(ANSWERS)}"})
        return
    body, more = b"", True
    while more and len(body) <= MOST_BYTES:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    try:
        if len(body) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES} bytes")
        # in a thread, so that other requests are read meanwhile
        values = await asyncio.to_thread(answer, json.loads(body))
    except (UnicrError, ValueError, TypeError, KeyError, RuntimeError) as error:
        await reply(send, 400, {"error": f"{type(error).__name__}: {error}"})
        return
    await reply(send, 200, values)


async def reply(
    send: Callable[[dict[str, Any]], Awaitable[None]], status: int, values: dict[str, Any]
) -> None:
    """Send a JSON answer."""
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": json.dumps(values).encode()})
