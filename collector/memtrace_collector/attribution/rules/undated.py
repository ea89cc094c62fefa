"""Whether a prompt left out the day of a record that the question cannot do without. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying import passages
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.texts import dates


def without_its_day(sought: Sought) -> str | None:
    """A shown record of known day that carries the item, in prompts that name no day at all
    beside what the records and the question say themselves; the question asks or names a time."""
    view = sought.view
    contents = [view.text(ref) for ref in view.contexts]
    if not contents or None in contents or not _turns_on_time(sought):
        return None
    shown = {ref: said for ref in view.shown if (said := view.text(ref))}
    own = [said for said in shown.values() if passages.parts(said, ()) == [said]]
    if any(
        _names_days(passages.around(each or "", [*own, view.question or ""])) for each in contents
    ):
        return None
    for ref in sought.among(shown):
        moment = view.moment(ref)
        if moment and not moment.assumed and not _says_the_day_itself(sought, shown[ref]):
            return ref
    return None


def _turns_on_time(sought: Sought) -> bool:
    asked = dates.phrases(sought.need.asked, sought.view.asked_on)
    return sought.need.kind == "temporal" or bool(asked)


def _names_days(content: str) -> bool:
    return any(not phrase.relative and phrase.readings for phrase in dates.phrases(content, None))


def _says_the_day_itself(sought: Sought, content: str) -> bool:
    """Whether a record's own text names the time that the question turns on."""
    named = [
        reading
        for phrase in dates.phrases(content, None)
        if not phrase.relative
        for reading in phrase.readings
    ]
    wanted = sought.item.intervals or tuple(
        reading
        for phrase in dates.phrases(sought.need.asked, sought.view.asked_on)
        for reading in phrase.readings
    )
    return dates.matches(wanted, named)
