"""Every question about the graphs, for whoever explores them: an assistant, a model."""

from __future__ import annotations

from memtrace_collector.graph.questions import answers, contents, operations, receipts, records
from memtrace_collector.graph.questions import references as refs
from memtrace_collector.graph.questions.question import Question
from memtrace_collector.graph.reader import GraphReader

GRAPH_QUESTIONS: tuple[Question[GraphReader], ...] = (
    Question("graphs", "List the graphs", contents.Graphs, contents.ask_graphs),
    Question("answers", "List the flagged answers", answers.Answers, answers.ask_answers),
    Question("why", "Receipt of an answer", receipts.Why, receipts.ask_why),
    Question("rank", "Where a record stood in a read", receipts.Rank, receipts.ask_rank),
    Question("ancestry", "What an answer rests on", answers.Ancestry, answers.ask_ancestry),
    Question("operation", "One operation", operations.OneOperation, operations.ask_operation),
    Question("history", "Versions of a record", records.History, records.ask_history),
    Question("diff", "Two versions compared", records.Diff, records.ask_diff),
    Question("search", "Search the texts", contents.Search, contents.ask_search),
    Question("messages", "Messages by time", contents.Messages, contents.ask_messages),
    Question("producers", "Who produced it", refs.Producers, refs.ask_producers),
    Question("users", "Who met it", refs.Users, refs.ask_users),
    Question("impact", "What came of it", refs.ImpactOf, refs.ask_impact),
)
