"""Inflection rules of the two languages.

Only what is regular is computed here.  Whatever a rule would get wrong is written out in the
lexicon tables (strong verb forms, irregular plurals, irregular comparatives), so that every form
in the corpus can be checked by reading either a table row or one of the short rules below.
"""

from __future__ import annotations

VOWELS = "aeiou"

# ------------------------------------------------------------------------------------ English

# fmt: off
IRREGULAR_VERBS: dict[str, tuple[str, str]] = {
    base: (past, participle)
    for base, past, participle in (
        row.split()
        for row in (
            "be was been", "become became become", "begin began begun", "bite bit bitten",
            "break broke broken", "bring brought brought", "build built built",
            "buy bought bought", "catch caught caught", "come came come", "cost cost cost", "cut cut cut",
            "draw drew drawn", "dream dreamed dreamed", "drink drank drunk",
            "drive drove driven", "eat ate eaten", "fall fell fallen", "feed fed fed",
            "find found found", "fly flew flown", "forget forgot forgotten", "get got got",
            "give gave given", "go went gone", "grow grew grown", "hang hung hung",
            "have had had", "hear heard heard", "hide hid hidden", "hold held held",
            "hurt hurt hurt", "keep kept kept", "know knew known", "leave left left",
            "lend lent lent", "let let let", "lie lay lain", "light lit lit", "lose lost lost", "make made made",
            "meet met met", "pay paid paid", "put put put", "read read read",
            "ride rode ridden", "run ran run", "say said said", "see saw seen",
            "sell sold sold", "send sent sent", "sew sewed sewn", "shine shone shone",
            "show showed shown", "sing sang sung", "sink sank sunk", "sit sat sat",
            "sleep slept slept", "speak spoke spoken", "stand stood stood",
            "steal stole stolen", "swim swam swum", "take took taken", "teach taught taught",
            "tell told told", "think thought thought", "throw threw thrown",
            "understand understood understood", "wake woke woken", "wear wore worn",
            "win won won", "write wrote written",
        )
    )
}
"""Past tense and past participle of the irregular English verbs in the lexicon."""
# fmt: on

DOUBLING = frozenset(
    {
        "plan",
        "stop",
        "begin",
        "cut",
        "get",
        "put",
        "run",
        "sit",
        "swim",
        "win",
        "hug",
        "let",
        "travel",
        "cancel",
        "forget",
    }
)
"""English verbs that double their last consonant before -ing (and -ed where regular)."""


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS


def english_plural(noun: str) -> str:
    """The regular English plural, with the -es and -ies spellings."""
    if _ends_in_consonant_y(noun):
        return noun[:-1] + "ies"
    if noun.endswith(("s", "x", "z", "ch", "sh")) or noun in {"potato", "tomato"}:
        return noun + "es"
    return noun + "s"


def english_third_person(verb: str) -> str:
    """The third person singular present of an English verb."""
    special = {"be": "is", "have": "has", "go": "goes", "do": "does"}
    if verb in special:
        return special[verb]
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _regular_past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ed"


def english_past(verb: str) -> str:
    """The simple past (of *be*: the singular)."""
    return IRREGULAR_VERBS[verb][0] if verb in IRREGULAR_VERBS else _regular_past(verb)


def english_participle(verb: str) -> str:
    """The past participle."""
    return IRREGULAR_VERBS[verb][1] if verb in IRREGULAR_VERBS else _regular_past(verb)


def english_ing(verb: str) -> str:
    """The present participle."""
    if verb in {"lie", "die", "tie"}:
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe")) and verb != "be":
        return verb[:-1] + "ing"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ing"


def english_comparison(adjective: str, irregular: str = "") -> tuple[tuple[str, ...], ...]:
    """The comparative and the superlative, each as a tuple of words.

    ``irregular`` is ``more`` for the periphrastic forms, ``comparative/superlative`` where they
    are irregular, and empty for -er/-est.
    """
    if irregular == "more":
        return ("more", adjective), ("most", adjective)
    if irregular:
        comparative, superlative = irregular.split("/")
        return (comparative,), (superlative,)
    if _ends_in_consonant_y(adjective):
        stem = adjective[:-1] + "i"
    elif adjective.endswith("e"):
        stem = adjective[:-1]
    else:
        stem = adjective
    return (stem + "er",), (stem + "est",)


def a_or_an(word: str) -> str:
    """The English indefinite article before ``word``, chosen by its first sound."""
    if word.startswith(("uni", "use", "eu", "one")):
        return "a"
    if word.startswith(("hour", "honest")):
        return "an"
    return "an" if word[0].lower() in VOWELS else "a"


# ------------------------------------------------------------------------------------- German

CASES = ("nom", "acc", "dat", "gen")

DER: dict[str, tuple[str, str, str, str]] = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "pl": ("die", "die", "den", "der"),
}
"""The definite article by gender (or plural), in the order of ``CASES``."""

EIN_ENDINGS: dict[str, tuple[str, str, str, str]] = {
    "m": ("", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("", "", "em", "es"),
    "pl": ("e", "e", "en", "er"),
}
"""Endings of ein, kein and the possessives."""

DIESER_ENDINGS: dict[str, tuple[str, str, str, str]] = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "pl": ("e", "e", "en", "er"),
}
"""Endings of dieser, jeder and welcher."""

STRONG: dict[str, tuple[str, str, str, str]] = {
    "m": ("er", "en", "em", "en"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "en"),
    "pl": ("e", "e", "en", "er"),
}
WEAK: dict[str, tuple[str, str, str, str]] = {
    "m": ("e", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("e", "e", "en", "en"),
    "pl": ("en", "en", "en", "en"),
}
MIXED: dict[str, tuple[str, str, str, str]] = {
    "m": ("er", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("es", "es", "en", "en"),
    "pl": ("en", "en", "en", "en"),
}
ADJECTIVE_ENDINGS = {"strong": STRONG, "weak": WEAK, "mixed": MIXED}
"""Adjective endings: without article, after der-words, after ein-words."""

RELATIVE: dict[str, tuple[str, str, str, str]] = {
    "m": ("der", "den", "dem", "dessen"),
    "f": ("die", "die", "der", "deren"),
    "n": ("das", "das", "dem", "dessen"),
    "pl": ("die", "die", "denen", "deren"),
}

CONTRACTIONS: dict[tuple[str, str], str] = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
    ("in", "das"): "ins",
    ("an", "das"): "ans",
}
"""Preposition and definite article as one word, as people write them."""


def german_ein_word(stem: str, gender: str, case: str) -> str:
    """A form of ein, kein or a possessive; *euer* loses its e before an ending."""
    ending = EIN_ENDINGS[gender][CASES.index(case)]
    if stem == "euer" and ending:
        stem = "eur"
    return stem + ending


def german_noun(nominative: str, genitive: str, plural: str, gender: str, weak: bool, number: str, case: str) -> str:
    """One cell of a noun's declension."""
    if gender == "pl" or number == "pl":
        if case == "dat" and not plural.endswith(("n", "s")):
            return plural + "n"
        return plural
    if weak:
        return nominative if case == "nom" else genitive
    return genitive if case == "gen" else nominative


def german_adjective_stem(adjective: str) -> str:
    """The stem an ending is added to: teuer -> teur-, dunkel -> dunkl-, hoch -> hoh-."""
    if adjective == "hoch":
        return "hoh"
    if adjective.endswith("el"):
        return adjective[:-2] + "l"
    if adjective.endswith(("auer", "euer")):
        return adjective[:-2] + "r"
    return adjective[:-1] if adjective.endswith("e") else adjective


def german_comparative(adjective: str) -> str:
    """The regular comparative stem (without case ending)."""
    return german_adjective_stem(adjective) + "er"


def german_superlative(adjective: str) -> str:
    """The regular superlative stem (without case ending)."""
    needs_e = adjective.endswith(("d", "t", "s", "ß", "sch", "z", "haft")) and not (adjective.endswith("end"))
    return adjective + ("est" if needs_e else "st")


def needs_linking_e(stem: str) -> bool:
    """True if a verb stem takes -e- before -t and -st (arbeit-e-t, öffn-e-t)."""
    if stem.endswith(("d", "t", "chn")):
        return True
    return stem.endswith(("m", "n")) and len(stem) > 2 and stem[-2] not in "aeiouäöülrhmn"


def verb_stem(infinitive: str) -> str:
    """The infinitive without -en or -n."""
    return infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]


def german_present(infinitive: str, third: str, cell: str) -> str:
    """A present form; ``third`` is the written-out third person singular or empty if regular."""
    stem = verb_stem(infinitive)
    if cell in {"1p", "3p"}:
        return infinitive
    if infinitive == "wissen" and cell in {"1s", "2s"}:
        return "weiß" if cell == "1s" else "weißt"
    if cell == "3s" and third:
        return third
    if cell == "2s":
        if third and third != regular_third(stem):
            if stem.endswith("t"):
                return third + "st"
            changed = third.removesuffix("t")
            return changed + ("t" if changed.endswith(("s", "ß", "z", "x")) else "st")
        if stem.endswith(("s", "ß", "z", "x")):
            return stem + "t"
        return stem + ("e" if needs_linking_e(stem) else "") + "st"
    if cell == "1s":
        if infinitive.endswith("eln"):
            return stem[:-2] + "le"
        return stem + "e"
    return stem + ("e" if needs_linking_e(stem) else "") + "t"


def regular_third(stem: str) -> str:
    """The third person singular a regular verb with this stem has."""
    return stem + ("e" if needs_linking_e(stem) else "") + "t"


def german_preterite(infinitive: str, preterite: str, cell: str) -> str:
    """A preterite form from the written-out (strong) or regular (weak) third person."""
    base = preterite or weak_preterite(infinitive)
    if cell in {"1s", "3s"}:
        return base
    if base.endswith("e"):
        return base + {"2s": "st", "1p": "n", "2p": "t", "3p": "n"}[cell]
    linking = "e" if base.endswith(("d", "t", "s", "ß")) else ""
    if cell == "2s":
        return base + linking + "st"
    if cell == "2p":
        return base + ("e" if base.endswith(("d", "t")) else "") + "t"
    return base + "en"


def weak_preterite(infinitive: str) -> str:
    """machen -> machte, arbeiten -> arbeitete."""
    return regular_third(verb_stem(infinitive)) + "e"


INSEPARABLE = ("be", "emp", "ent", "er", "ge", "ver", "zer", "über", "umarm", "unter", "wieder")


def weak_participle(infinitive: str, inseparable: bool) -> str:
    """machen -> gemacht, besuchen -> besucht, reparieren -> repariert."""
    body = regular_third(verb_stem(infinitive))
    return body if inseparable or infinitive.endswith("ieren") else "ge" + body


def german_imperative(infinitive: str, third: str) -> str:
    """The singular imperative: mach(e), lies, fahr, warte, öffne."""
    stem = verb_stem(infinitive)
    if third and third != regular_third(stem) and third[:-1] != stem:
        changed = third if stem.endswith("t") else third.removesuffix("t")
        if changed.replace("ä", "a").replace("äu", "au") != stem and "ä" not in changed:
            return changed
    if infinitive.endswith("eln"):
        return stem[:-2] + "le"
    unstressed = (stem.endswith("er") and infinitive.endswith("ern")) or stem.endswith(("dig", "tig"))
    return stem + ("e" if needs_linking_e(stem) or unstressed else "")
