# OpenAI's client library and a server: each line is "good NAME" or "bad NAME".
#	openai-client.py URL KEY
import json
import math
import sys

import openai
from pydantic import BaseModel

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)


def check(name, good):
    print("good" if good else "bad", name)


def refused(name, kind, call, param=None):
    try:
        call()
        check(name, False)
    except kind as e:
        check(name, param is None or e.param == param)


ask = [{"role": "user", "content": "What is the sea?"}]
chat = client.chat.completions.create
model = client.models.list().data[0].id
check("a model is listed", bool(model))

one = chat(model=model, messages=ask, max_tokens=12, temperature=0)
choice = one.choices[0]
check("a chat is answered", choice.message.role == "assistant")
check("the end has a reason", choice.finish_reason in ("stop", "length"))
check("usage adds up", one.usage.total_tokens
      == one.usage.prompt_tokens + one.usage.completion_tokens)

text, ends, usage = "", [], None
for event in chat(model=model, messages=ask, max_tokens=12, temperature=0,
                  stream=True, stream_options={"include_usage": True}):
    for c in event.choices:
        text += c.delta.content or ""
        ends += [c.finish_reason] if c.finish_reason else []
    usage = event.usage or usage
check("a stream is the same text", text == choice.message.content)
check("it ends once, for the same reason", ends == [choice.finish_reason])
check("its usage is the same", usage == one.usage)

two = chat(model=model, messages=ask, max_tokens=8, n=2, seed=7, temperature=2)
again = chat(model=model, messages=ask, max_tokens=8, n=2, seed=7, temperature=2)
said = [c.message.content for c in two.choices]
check("two answers differ", len(said) == 2 and said[0] != said[1])
check("a seed is kept", said == [c.message.content for c in again.choices])

likely = chat(model=model, messages=ask, max_tokens=4, temperature=0,
              logprobs=True, top_logprobs=3).choices[0].logprobs.content
check("tokens have logarithms", len(likely) <= 4
      and all(len(t.top_logprobs) == 3 for t in likely))
check("the likeliest was taken",
      all(t.logprob == t.top_logprobs[0].logprob <= 0 for t in likely))

old = client.completions.create(model=model, prompt="The sea", max_tokens=6,
                                temperature=0)
check("a completion", old.object == "text_completion"
      and old.usage.completion_tokens <= 6)
stop = old.choices[0].text[1:3]
cut = client.completions.create(model=model, prompt="The sea", max_tokens=6,
                                temperature=0, stop=stop)
check("a stop string stops it", stop not in cut.choices[0].text
      and old.choices[0].text.startswith(cut.choices[0].text))

vectors = client.embeddings.create(model=model, input=["a", "The sea"])
length = [math.sqrt(sum(x * x for x in v.embedding)) for v in vectors.data]
check("embeddings have length 1", len(length) == 2
      and all(abs(x - 1) < 1e-5 for x in length))
plain = client.embeddings.create(model=model, input="a", encoding_format="float")
check("as numbers they are the same", all(
    abs(a - b) < 1e-6 for a, b in zip(plain.data[0].embedding,
                                      vectors.data[0].embedding)))


class Place(BaseModel):
    name: str
    depth: int
    salty: bool


parsed = client.chat.completions.parse(
    model=model, messages=ask, max_tokens=120, seed=3,
    response_format=Place).choices[0].message.parsed
check("a schema is kept", isinstance(parsed, Place))

tool = {"type": "function", "function": {
    "name": "measure", "parameters": {
        "type": "object", "properties": {"where": {"enum": ["sea", "lake"]}},
        "required": ["where"], "additionalProperties": False}}}
called = chat(model=model, messages=ask, max_tokens=120, seed=3, tools=[tool],
              tool_choice="required").choices[0]
calls = called.message.tool_calls or []
check("a tool is called", called.finish_reason == "tool_calls"
      and bool(calls) and calls[0].function.name == "measure")
check("with arguments of its schema", all(
    json.loads(c.function.arguments)["where"] in ("sea", "lake")
    for c in calls))

refused("a bad value is an error of its kind", openai.BadRequestError,
        lambda: chat(model=model, messages=ask, n=9999), "n")
refused("a path that is none", openai.NotFoundError,
        lambda: client.audio.speech.create(model=model, voice="x", input="a"))
other = openai.OpenAI(base_url=url, api_key="another", max_retries=0)
refused("another key", openai.AuthenticationError, other.models.list)
