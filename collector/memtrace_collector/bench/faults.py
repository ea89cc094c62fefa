"""Every kind of fault that the benchmark plants, with the verdict that it must lead to."""

from __future__ import annotations

from dataclasses import dataclass

MEM0_1, MEM0_2, LANGGRAPH, RAG, LONG_CONTEXT, STAGED = SYSTEMS = (
    "mem0-1",
    "mem0-2",
    "langgraph",
    "rag",
    "long-context",
    "staged",
)
_EXTRACTING = (MEM0_1, MEM0_2, LANGGRAPH, STAGED)
_RECORDS = (MEM0_1, LANGGRAPH, STAGED)
_SEARCHING = (MEM0_1, MEM0_2, LANGGRAPH, RAG, STAGED)


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A way to go wrong. ``held_out`` kinds are not looked at while the rules are developed."""

    name: str
    error_type: str
    systems: tuple[str, ...]
    what: str
    held_out: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        FaultKind("never_said", "never_told", SYSTEMS, "the evidence is left out of the dialogue"),
        FaultKind(
            "chunk_lost", "lost_at_ingest", (RAG, STAGED), "the chunker drops part of a message"
        ),
        FaultKind(
            "filed_elsewhere", "wrong_graph", SYSTEMS, "the message is filed under another owner"
        ),
        FaultKind("left_out", "omission", _EXTRACTING, "the extraction returns no fact of it"),
        FaultKind(
            "did_not_save", "omission", (LANGGRAPH,), "the model does not call its save tool"
        ),
        FaultKind("value_changed", "distortion", _EXTRACTING, "another value in the fact"),
        FaultKind("negated", "distortion", _EXTRACTING, "the fact says the opposite"),
        FaultKind(
            "owner_swapped", "distortion", _EXTRACTING, "the fact names another person", True
        ),
        FaultKind("saved_wrongly", "distortion", (LANGGRAPH,), "the save tool's argument is wrong"),
        FaultKind("made_up", "invented", _EXTRACTING, "a fact that nobody said"),
        FaultKind("chose_nothing", "not_stored", _RECORDS, "the decision is NOOP"),
        FaultKind("write_failed", "not_stored", (MEM0_1, LANGGRAPH, STAGED), "the write is lost"),
        FaultKind("taken_for_known", "not_stored", (MEM0_2, STAGED), "dropped as a duplicate"),
        FaultKind("left_beside", "not_updated", (MEM0_1, STAGED), "the old value stays beside"),
        FaultKind("written_over", "overwritten", _RECORDS, "another fact replaces the record"),
        FaultKind("merge_dropped", "merged_wrong", (MEM0_1, STAGED), "merged text without it"),
        FaultKind("re_stamped", "merged_wrong", (MEM0_1, STAGED), "kept words, new date", True),
        FaultKind("race", "overwritten", (LANGGRAPH, STAGED), "two writers from one base", True),
        FaultKind("summary_dropped", "compacted_away", (LONG_CONTEXT, STAGED), "not in a summary"),
        FaultKind("trimmed", "compacted_away", (LONG_CONTEXT,), "beyond the buffer's limit"),
        FaultKind("deleted", "wrongly_deleted", _RECORDS, "the record is deleted"),
        FaultKind("expired", "wrongly_deleted", (LANGGRAPH, STAGED), "a lifetime too short", True),
        FaultKind("forget_ignored", "not_deleted", _RECORDS, "asked to forget, still used"),
        FaultKind("not_searched", "not_searched", _SEARCHING, "no search in the turn"),
        FaultKind("wrong_namespace", "wrong_scope", _SEARCHING, "another owner's memory searched"),
        FaultKind("query_lost", "bad_query", (LANGGRAPH, RAG, STAGED), "a rewrite loses the words"),
        FaultKind("missed", "not_retrieved", _SEARCHING, "never a candidate"),
        FaultKind(
            "below_the_limit",
            "ranked_out",
            (MEM0_2, LANGGRAPH, RAG, STAGED),  # mem0 1.x lets the store cut, unseen
            "a candidate beyond k",
        ),
        FaultKind("reranked_away", "ranked_out", (RAG, STAGED), "the reranker puts it last"),
        FaultKind(
            "below_threshold", "ranked_out", (MEM0_1, MEM0_2, RAG, STAGED), "under a score", True
        ),
        FaultKind("stale_index", "stale_retrieved", (LANGGRAPH, STAGED), "the index lags"),
        FaultKind("over_budget", "cut_from_context", SYSTEMS, "the prompt's budget cuts it"),
        FaultKind("date_stripped", "garbled_in_context", (RAG, STAGED), "the date is left out"),
        FaultKind("declined", "wrong_abstention", SYSTEMS, "the model declines"),
        FaultKind("took_another", "distracted", SYSTEMS, "the model answers from another item"),
        FaultKind("misread", "wrong_reasoning", SYSTEMS, "the right item, a wrong conclusion"),
        FaultKind("ignored", "ignored_context", SYSTEMS, "the model answers from nowhere"),
        FaultKind("answered_unknown", "hallucinated", SYSTEMS, "asserts what nobody said"),
        FaultKind("wrong_reference", "bad_reference", SYSTEMS, "the expected answer is wrong"),
        FaultKind("right_but_flagged", "bad_judge", SYSTEMS, "a right answer is flagged"),
        FaultKind("call_failed", "unrelated", SYSTEMS, "the answer's own model call fails", True),
    )
}
"""By name. Two of them may be planted in one case."""
