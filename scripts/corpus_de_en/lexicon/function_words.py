"""Names, adverbials, numbers and the other small words, each with its one English counterpart."""

from __future__ import annotations

from dataclasses import dataclass

# fmt: off
MEN = ("Peter", "Paul", "Martin", "Stefan", "Daniel", "Karl", "Otto", "Leon", "Simon", "Michael",
       "David", "Erik", "Anton", "Jan")
WOMEN = ("Anna", "Maria", "Julia", "Laura", "Lena", "Sophie", "Clara", "Eva", "Hannah", "Petra",
         "Sabine", "Monika", "Nina", "Emma")
SURNAMES = ("Müller", "Schmidt", "Fischer", "Weber", "Becker", "Hoffmann", "Schneider", "Wagner")

CITIES: dict[str, str] = {
    "Berlin": "Berlin", "Hamburg": "Hamburg", "München": "Munich", "Köln": "Cologne",
    "Wien": "Vienna", "Zürich": "Zurich", "Frankfurt": "Frankfurt", "Dresden": "Dresden",
    "Leipzig": "Leipzig", "Paris": "Paris", "London": "London", "Rom": "Rome", "Prag": "Prague",
    "Bremen": "Bremen", "Salzburg": "Salzburg",
}
COUNTRIES: dict[str, str] = {
    "Italien": "Italy", "Frankreich": "France", "Spanien": "Spain", "England": "England",
    "Österreich": "Austria", "Polen": "Poland", "Deutschland": "Germany", "Norwegen": "Norway",
    "Schweden": "Sweden", "Griechenland": "Greece", "Portugal": "Portugal",
}
LANGUAGES: dict[str, str] = {
    "Deutsch": "German", "Englisch": "English", "Französisch": "French", "Spanisch": "Spanish",
    "Italienisch": "Italian", "Polnisch": "Polish",
}

NUMBERS: dict[str, str] = {
    "zwei": "two", "drei": "three", "vier": "four", "fünf": "five", "sechs": "six",
    "sieben": "seven", "acht": "eight", "neun": "nine", "zehn": "ten", "elf": "eleven",
    "zwölf": "twelve", "zwanzig": "twenty",
}
WEEKDAYS: dict[str, str] = {
    "Montag": "Monday", "Dienstag": "Tuesday", "Mittwoch": "Wednesday", "Donnerstag": "Thursday",
    "Freitag": "Friday", "Samstag": "Saturday", "Sonntag": "Sunday",
}
MONTHS: dict[str, str] = {
    "Januar": "January", "Februar": "February", "März": "March", "April": "April", "Mai": "May",
    "Juni": "June", "Juli": "July", "August": "August", "September": "September",
    "Oktober": "October", "November": "November", "Dezember": "December",
}
SEASONS: dict[str, str] = {
    "Frühling": "spring", "Sommer": "summer", "Herbst": "autumn", "Winter": "winter",
}

MANNER: dict[str, str] = {
    "langsam": "slowly", "schnell": "quickly", "laut": "loudly", "leise": "quietly",
    "vorsichtig": "carefully", "freundlich": "kindly", "hart": "hard", "früh": "early",
    "spät": "late", "gern": "gladly",
}

FREQUENCY: dict[str, str] = {
    "oft": "often", "immer": "always", "manchmal": "sometimes", "selten": "rarely",
    "nie": "never", "meistens": "usually",
}

SENTENCE_ADVERBS: dict[str, str] = {
    "leider": "unfortunately", "vielleicht": "perhaps", "natürlich": "of course",
    "zum Glück": "fortunately",
}

NUMERAL_UNITS: dict[str, tuple[str, str]] = {
    "Tag": ("Tagen", "days"), "Woche": ("Wochen", "weeks"), "Monat": ("Monaten", "months"),
    "Jahr": ("Jahren", "years"), "Stunde": ("Stunden", "hours"), "Minute": ("Minuten", "minutes"),
}
# fmt: on


@dataclass(frozen=True)
class TimeWord:
    """A fixed time expression; ``links`` pairs word positions, ``?`` marking a possible one."""

    german: str
    english: str
    links: str
    tenses: frozenset[str]


def _t(german: str, english: str, links: str, tenses: str) -> TimeWord:
    return TimeWord(german, english, links, frozenset(tenses.split()))


# fmt: off
TIME_WORDS: tuple[TimeWord, ...] = (
    _t("gestern", "yesterday", "0-0", "past"),
    _t("vorgestern", "the day before yesterday", "0-0 0-1 0-2 0-3", "past"),
    _t("gestern Abend", "yesterday evening", "0-0 1-1", "past"),
    _t("gestern Morgen", "yesterday morning", "0-0 1-1", "past"),
    _t("heute Morgen", "this morning", "0-0 1-1", "past"),
    _t("heute Abend", "this evening", "0-0 1-1", "future modal"),
    _t("heute", "today", "0-0", "past future modal"),
    _t("letzte Woche", "last week", "0-0 1-1", "past"),
    _t("letztes Jahr", "last year", "0-0 1-1", "past"),
    _t("letzten Monat", "last month", "0-0 1-1", "past"),
    _t("morgen", "tomorrow", "0-0", "future modal"),
    _t("übermorgen", "the day after tomorrow", "0-0 0-1 0-2 0-3", "future modal"),
    _t("morgen Abend", "tomorrow evening", "0-0 1-1", "future modal"),
    _t("nächste Woche", "next week", "0-0 1-1", "future modal"),
    _t("nächsten Monat", "next month", "0-0 1-1", "future modal"),
    _t("nächstes Jahr", "next year", "0-0 1-1", "future modal"),
    _t("bald", "soon", "0-0", "future"),
    _t("später", "later", "0-0", "future modal"),
    _t("damals", "at that time", "0-0 0-1 0-2", "past"),
    _t("jeden Tag", "every day", "0-0 1-1", "present habit"),
    _t("jeden Morgen", "every morning", "0-0 1-1", "present habit"),
    _t("jeden Abend", "every evening", "0-0 1-1", "present habit"),
    _t("jede Woche", "every week", "0-0 1-1", "present habit"),
    _t("am Wochenende", "at the weekend", "0-0 0-1 1-2", "present past future modal"),
    _t("am Abend", "in the evening", "0-0 0-1 1-2", "past"),
    _t("am Morgen", "in the morning", "0-0 0-1 1-2", "past"),
    _t("am Nachmittag", "in the afternoon", "0-0 0-1 1-2", "past future modal"),
)
# fmt: on
