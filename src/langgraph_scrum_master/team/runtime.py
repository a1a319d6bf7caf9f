"""One step in a running graph: applies the run's context and never fails the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableLambda
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from langgraph_scrum_master._internal.admission import ADMISSION
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger, redacting
from langgraph_scrum_master._internal.shapes import fields_text, items_of, mapping_of, read, text_of
from langgraph_scrum_master._internal.threads import off_loop, wait_for, within
from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.model import InjectionResult
from langgraph_scrum_master.protocols import MemoryStore, missing, supports
from langgraph_scrum_master.team.history import has_injections, unread_payloads, waiting
from langgraph_scrum_master.team.pipeline import Pipeline, Sighting, failed_output
from langgraph_scrum_master.team.reader import ANYBODY, Reader
from langgraph_scrum_master.team.record.facts import facts

NODE_NAME = "scrum_master"

_OUTSIDE: Runtime[Any] = Runtime()


class Step:
    """Computes the state update of a step."""

    def __init__(self, pipeline: Pipeline, memory: MemoryStore | None) -> None:
        self._pipeline = pipeline
        self._memory = memory

    def run(self, state: Any, reader: Reader = ANYBODY) -> dict[str, Any]:
        """The update for a state; uses an event loop only if there is a gap."""
        try:
            seen = self._pipeline.look(state, running=True)
            if not isinstance(seen, Sighting):
                return seen
            sighting = reader.narrow(seen)
            if sighting.gaps and self._pipeline.assistant is not None:
                sighting = wait_for(self._pipeline.confirm(sighting))
            if sighting.calm:
                return self._with_outcomes(sighting, self._update(sighting, None))
            run = _Run(self._pipeline, self._memory, _runtime())
            result = wait_for(run.serve(sighting))
            if answer := run.ask_human(result):
                result = wait_for(run.with_answer(result, answer, sighting))
            return self._with_outcomes(sighting, self._update(sighting, result))
        except BaseException as error:
            return self._failed(recordable(error))

    async def arun(self, state: Any, reader: Reader = ANYBODY) -> dict[str, Any]:
        """The same without blocking the event loop."""
        try:
            seen = await self._look(state)
            if not isinstance(seen, Sighting):
                return seen
            sighting = await self._pipeline.confirm(reader.narrow(seen))
            result = None
            if not sighting.calm:
                run = _Run(self._pipeline, self._memory, _runtime())
                result = await run.serve(sighting)
                if answer := run.ask_human(result):
                    result = await run.with_answer(result, answer, sighting)
            update = await self._updated(sighting, result)
            await self._pipeline.record_outcomes(self._pipeline.new_outcomes(sighting, update))
            return update
        except BaseException as error:
            return self._failed(recordable(error))

    async def _look(self, state: Any) -> dict[str, Any] | Sighting:
        """What `look` returns. Long texts are read off the event loop, a few states at once."""
        if not self._pipeline.takes_long(state):
            return self._pipeline.look(state, running=True)
        config, seconds = self._pipeline.config, self._pipeline.patience
        async with ADMISSION.turn(config.max_concurrent, seconds):
            return await within(seconds, self._pipeline.look, state, True)

    async def _updated(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        """The update. If there is something to compute, it is computed off the event loop."""
        if result is None and not has_injections(sighting.state):
            return self._update(sighting, None)
        return await within(self._pipeline.patience, self._update, sighting, result)

    async def atext_for(self, reader: Reader, state: Any) -> str:
        """Like `text_for`, without blocking the event loop."""
        return await off_loop(self.text_for, reader, state) if self.has_waiting(state) else ""

    def has_waiting(self, state: Any) -> bool:
        """Whether there may be a text to read."""
        try:
            return bool(waiting(mapping_of(state)))
        # A malformed state must not prevent the model call.
        except BaseException as error:
            self._failed(recordable(error))
            return False

    def text_for(self, reader: Reader, state: Any) -> str:
        """The waiting text for this reader; empty if it is delivered in `messages`."""
        try:
            if self._pipeline.config.deliver == "message" or not waiting(state):
                return ""
            return reader.text(state, self._pipeline.sight(state).observation)
        # A malformed state must not prevent the model call.
        except BaseException as error:
            self._failed(recordable(error))
            return ""

    def _update(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        update = self._pipeline.update(sighting, result)
        if self._pipeline.config.deliver == "message":
            update |= _as_messages(sighting, update)
        return update

    def _with_outcomes(self, sighting: Sighting, update: dict[str, Any]) -> dict[str, Any]:
        """Record the outcomes in the update and return it."""
        if outcomes := self._pipeline.new_outcomes(sighting, update):
            wait_for(self._pipeline.record_outcomes(outcomes))
        return update

    def _failed(self, error: Exception) -> dict[str, Any]:
        message = f"{type(error).__name__}: {error}"
        with redacting(self._pipeline.redact):
            logger.error("scrum_master.failed", error=message)
        return {"sm_output": failed_output(message, "")}


class _Run:
    """A step with a gap, in one run of the graph."""

    def __init__(self, pipeline: Pipeline, memory: MemoryStore | None, runtime: Runtime[Any]) -> None:
        config = pipeline.config.for_run(runtime.context)
        self._pipeline = pipeline if config is pipeline.config else replace(pipeline, config=config)
        self._runtime = runtime
        if memory is None:
            self._memory = self._graphs_store()
        else:
            own = read(runtime.context, "namespace") is None
            self._memory = memory if own else memory_for_namespace(memory, config.namespace)

    async def serve(self, sighting: Sighting) -> InjectionResult | None:
        """The result, traced as a separate LangChain run that shows facts instead of the state."""
        results: list[InjectionResult | None] = []
        threaded = replace(sighting, thread=text_of(read(self._runtime.execution_info, "thread_id")))

        async def evaluate(_gap: dict[str, Any]) -> dict[str, Any]:
            results.append(await self._pipeline.serve(threaded, self._memory, self._emit))
            return facts(results[0]) if results[0] is not None else {}

        gap = (sighting.gaps or sighting.given_up)[0]
        about = {"scrum_master_agent": gap.agent, "scrum_master_reason": gap.reason}
        shown = await self._pipeline.shown(gap)
        await RunnableLambda(evaluate, name=NODE_NAME).ainvoke(
            shown, {"run_name": NODE_NAME, "tags": [NODE_NAME], "metadata": about}
        )
        return results[0]

    def ask_human(self, result: InjectionResult | None) -> str:
        """The human answer to an escalated need, if `escalate` is `interrupt`."""
        if result is None or not result.escalated or self._pipeline.config.escalate != "interrupt":
            return ""
        gap = result.gap
        question = {"agent": gap.agent, "question": gap.context_query, "reason": gap.reason, "gap_id": gap.gap_id}
        answer: object = interrupt(question)
        return answer.strip() if isinstance(answer, str) else fields_text(answer)

    async def with_answer(
        self, result: InjectionResult | None, answer: str, sighting: Sighting
    ) -> InjectionResult | None:
        """The result with the human answer."""
        if result is None:
            return None
        return await self._pipeline.answer(result, answer, sighting, self._memory)

    def _emit(self, event: str, facts: dict[str, Any]) -> None:
        self._runtime.stream_writer({"event": f"{NODE_NAME}.{event}", **facts})

    def _graphs_store(self) -> MemoryStore | None:
        if self._runtime.store is None:
            return None
        from langgraph_scrum_master.memory.langgraph_store import StoreMemory

        return StoreMemory(self._runtime.store, namespace=self._pipeline.config.namespace)


def memory_for_namespace(memory: MemoryStore, namespace: str) -> MemoryStore:
    """The memory opened for this namespace; raises if it cannot be, so that namespaces are never shared."""
    if not supports(memory, "namespaces"):
        raise missing(memory, f"the namespace {namespace!r} of the run's context", "namespaces")
    opened = memory.for_namespace(namespace)
    if not supports(opened, "namespaces") or opened.namespace != namespace:
        raise StoreError(f"for_namespace({namespace!r}) returned {opened!r}, which has another namespace")
    return opened


def _runtime() -> Runtime[Any]:
    try:
        return get_runtime()
    except (RuntimeError, KeyError):
        return _OUTSIDE


def _as_messages(sighting: Sighting, update: dict[str, Any]) -> dict[str, Any]:
    """The unread payloads as messages, unless they were sent already or a tool result is pending."""
    state = {**sighting.state, **update}
    messages = items_of(state.get("messages"))
    sent = {read(message, "id") for message in messages}
    texts = {
        f"{NODE_NAME}-{payload['gap_id']}": payload for payload in unread_payloads(state, sighting.observation.turns)
    }
    fresh = {key: payload for key, payload in texts.items() if key not in sent and payload.get("text")}
    if not fresh or _waits_for_a_tool(messages):
        return {}
    from langchain_core.messages import HumanMessage

    return {
        "messages": [
            HumanMessage(
                content=str(payload["text"]),
                name=NODE_NAME,
                id=key,
                additional_kwargs={"lc_source": NODE_NAME, "gap_id": payload["gap_id"]},
            )
            for key, payload in fresh.items()
        ]
    }


def _waits_for_a_tool(messages: Sequence[Any]) -> bool:
    # Providers reject messages between a tool call and its result.
    answered = {read(message, "tool_call_id") for message in messages}
    calls = next((items_of(read(m, "tool_calls")) for m in reversed(messages) if items_of(read(m, "tool_calls"))), ())
    return any(read(call, "id") not in answered for call in calls)
