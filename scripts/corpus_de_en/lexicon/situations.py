"""What goes together: which verbs, nouns and adjectives make sense in which kind of sentence.

The frames of the verbs say what a verb may be combined with in general; the sets below say what is
natural in particular patterns (what one does while something else happens, what one forbids, what
one needs money for).  They keep the sentences sensible.
"""

from __future__ import annotations

# fmt: off
MODAL_NAMES = ("können", "müssen", "wollen", "sollen", "dürfen", "möchten")

ANIMAL_MODALS = ("können", "dürfen", "wollen")

SUBJECT_PRONOUNS = ("ich", "du", "er", "sie", "wir", "ihr")

HINDRANCES = (("müde", "tired"), ("krank", "ill"))

EVALUATIONS = (("wichtig", "important"), ("schwierig", "difficult"), ("möglich", "possible"),
               ("leicht", "easy"), ("schön", "nice"))

PRICES = ("15", "20", "25", "30", "45", "50", "60", "80", "100", "120",
          "200", "350", "500")

QUESTION_ADVERBS = {"when": ("wann", "when"), "why": ("warum", "why"),
                    "how_often": ("wie oft", "how often")}

TEMPORAL = {"bevor": "before", "nachdem": "after", "während": "while", "als": "when",
            "sobald": "as soon as"}

REASONS = {"weil": "because", "obwohl": "although"}

AWKWARD = frozenset({("freundlich", "Freund"), ("freundlich", "Freundin"),
                     ("krank (Tier)", "Krankenschwester"), ("arm", "König")})
"""Adjective and noun that sound alike."""

ONCE = frozenset({
    "heiraten", "umziehen", "kennenlernen", "verhaften", "bauen", "verlieben (sich)", "retten",
    "besitzen", "mieten", "stehlen", "gewinnen", "verraten", "zerbrechen", "verlieren",
    "bestehen", "einladen", "pflanzen", "unterschreiben", "absagen", "ablehnen", "akzeptieren",
    "verstecken", "wegwerfen", "entdecken", "passieren", "kaufen", "verkaufen", "streichen",
    "bekommen", "schenken (Geschenk)", "aufhängen", "hängen", "küssen", "organisieren", "planen",
    "übersetzen", "lösen", "finden", "zurückgeben", "zurückbringen", "feiern", "ausfüllen",
    "gratulieren", "fangen", "beißen", "reisen", "besichtigen", "erreichen", "erkennen",
    "bemerken", "ankommen", "kommen", "zurückkommen", "auspacken",
})
"""Verbs whose act is not repeated every day."""

YOUNGER = frozenset({"Sohn", "Tochter", "Enkel", "Enkelin", "Neffe", "Nichte"})
"""Relatives that a child does not have."""

DAILY = frozenset({"aufwachen", "aufstehen", "einschlafen", "frühstücken", "beeilen (sich)"})
LONG_UNITS = frozenset({"Wochen", "Monaten", "Jahren", "Jahr", "Monat", "Woche", "letztes", "nächstes"})
"""What one does every day, and the times that are too long ago to tell."""

UNFORGETTABLE = frozenset({
    "arbeiten", "schlafen", "wandern", "schwimmen", "spielen", "tanzen", "fernsehen", "weinen",
    "lachen", "reisen", "fliegen", "reiten", "frühstücken", "umziehen", "fahren", "sitzen",
})
"""What nobody forgets to do."""

PAST_ONLY = frozenset({"passieren", "retten", "stehlen", "zerbrechen", "verlieren", "beißen"})
"""What nobody announces."""

STATIVE = frozenset({
    "kennen", "besitzen", "brauchen", "gehören", "stehen", "liegen", "lieben", "vertrauen",
    "verstehen", "tragen", "interessieren (sich)", "denken", "vermissen",
})
"""Verbs whose past is the preterite."""

TIMED = frozenset({"abfahren", "beginnen", "stattfinden", "ankommen"})
"""Verbs that say little without a time."""

DURATIVE = frozenset({
    "lesen", "schreiben", "kochen", "backen", "essen", "trinken", "waschen", "putzen",
    "spülen (Geschirr)", "aufräumen", "bügeln", "nähen", "reparieren", "streichen",
    "malen (Bild)", "zeichnen", "spielen", "spielen (Instrument)", "singen", "tanzen",
    "schlafen", "fernsehen", "arbeiten", "warten", "sprechen", "schwimmen", "wandern",
    "fahren (etwas)", "suchen", "packen", "auspacken", "lernen", "übersetzen", "korrigieren",
    "frühstücken", "sitzen", "vorlesen", "hören (Musik)", "ausruhen (sich)", "überprüfen",
    "besichtigen", "gießen", "füttern", "rauchen",
})
"""Verbs of what goes on for a while (während)."""

MOMENTS = frozenset({
    "ankommen", "aufwachen", "zurückkommen", "betreten", "verlassen", "erreichen", "aufstehen",
    "einsteigen", "aussteigen", "sehen", "treffen", "hören", "kommen", "bemerken",
})
"""Verbs that mark the moment of something else (als er das Haus betrat)."""

REACTIONS = frozenset({
    "weinen", "begrüßen", "setzen (sich)", "trinken", "essen", "anrufen", "fragen",
    "umarmen", "suchen", "sprechen", "beeilen (sich)", "streicheln", "danken", "singen",
    "gratulieren", "antworten (jemandem)", "entschuldigen (sich)",
})
"""What people do when something happens."""

ALONE = frozenset({
    "verstecken", "wegwerfen", "kritisieren", "stehlen", "verraten", "zerbrechen", "heiraten",
    "küssen", "verdienen", "retten", "fangen",
})
"""Verbs that need their own story and do not go into pairs of clauses."""

VISITS = frozenset({"helfen", "anrufen", "besuchen", "zurückkommen", "abholen", "einladen"})
"""What others may do for one to act on."""

PAID = frozenset({"kaufen", "mieten", "reisen", "fliegen", "bauen", "bestellen", "bezahlen"})
"""What one needs money for."""

INDOORS = frozenset({
    "lesen", "kochen", "backen", "fernsehen", "hören (Musik)", "aufräumen", "putzen", "bügeln",
    "spielen (Instrument)", "nähen", "ausruhen (sich)", "schreiben", "arbeiten", "spülen (Geschirr)",
    "zeichnen", "malen (Bild)", "lernen",
})
"""What one does when the weather is bad."""

OUTDOORS = frozenset({
    "schwimmen", "wandern", "reiten", "fahren", "gehen", "laufen", "pflanzen", "streichen",
    "fotografieren", "besichtigen", "waschen", "spielen",
})
"""What one does when the weather is good."""

RESTING = frozenset({
    "schlafen", "einschlafen", "ausruhen (sich)", "setzen (sich)", "sitzen", "stehen", "liegen",
    "träumen", "lachen",
})
"""What being tired does not keep one from."""

SHOPPING = frozenset({"kaufen", "suchen", "treffen"})

ERRANDS = frozenset({"treffen", "abholen", "helfen", "sprechen", "suchen", "holen"})

JOURNEYS = frozenset({"besuchen", "treffen", "kaufen", "helfen", "sprechen"})
"""What one goes to a shop, to another place in town, to another city for."""

OMITTED = frozenset({
    "zumachen", "schließen", "abschließen", "begrüßen", "fragen", "wecken",
    "mitnehmen", "anrufen", "antworten (jemandem)", "danken", "helfen",
    "umarmen", "bezahlen",
})
"""What one may leave undone when going away (ohne ... zu)."""

FORBIDDEN = frozenset({
    "öffnen", "aufmachen", "zumachen", "schließen", "abschließen", "verlassen", "wecken",
    "essen", "trinken", "kaufen", "wegwerfen", "benutzen", "gehen", "fragen", "anrufen",
    "mitnehmen", "einschalten", "ausschalten", "laufen", "füttern", "lesen", "bezahlen",
    "nehmen", "unterschreiben", "fotografieren", "bestellen", "sprechen", "folgen", "legen",
    "verraten", "waschen",
})
"""What one may tell people not to do."""

ORDERED_NEW = frozenset({
    "kaufen", "bestellen", "essen", "trinken", "holen", "schreiben", "backen", "kochen",
    "bringen", "mitbringen", "erzählen", "singen", "nehmen", "lesen", "schicken", "geben",
    "pflanzen", "anbieten", "probieren", "schneiden",
})
"""Orders that may be about something not yet known (Kauf Äpfel)."""

GLADLY = frozenset({
    "lesen", "essen", "trinken", "kochen", "backen", "spielen", "singen", "tanzen",
    "spielen (Instrument)", "lernen", "schwimmen", "wandern", "fernsehen", "hören (Musik)",
    "reisen", "fotografieren", "gehen", "arbeiten", "reiten", "malen (Bild)", "fahren (etwas)",
})
"""Verbs of what people like doing."""

SINCE_FRAMES = frozenset({
    "person N:language @study", "person AT:living state", "person AT:city state",
    "adult AT:work m:hart", "adult AT:city", "person A:person+song+sight+datum state event def",
    "adult A:car+house+boat+instrument state event",
})

FIXED_PREPOSITION = frozenset({
    "aufpassen", "freuen (sich)", "kümmern (sich)", "einsteigen", "aussteigen",
})
"""Verbs whose English preposition stays with the verb (look after)."""

SINGLE = frozenset({"beginnen", "heiraten", "verlieben (sich)", "tragen", "fahren (etwas)", "füllen"})
"""Verbs with one subject and one object at a time."""

COUNTED = frozenset({
    "kaufen", "finden", "verlieren", "bekommen", "brauchen", "schreiben", "lesen", "backen",
    "essen", "bestellen", "zählen", "fotografieren", "zeichnen", "pflanzen", "reparieren",
    "spülen (Geschirr)", "bügeln", "waschen", "korrigieren", "übersetzen", "sehen", "einladen", "packen",
    "untersuchen", "füttern", "mitbringen", "malen (Bild)", "beantworten", "schicken",
})
"""Verbs whose object may be counted (buys three apples)."""

ACQUIRED = frozenset({"kaufen", "mieten", "bauen", "bestellen", "stehlen", "besitzen",
                      "bekommen", "pflanzen"})
"""Verbs whose object is not yet, or only thereby, one's own."""

WANTED = frozenset({"kaufen", "schenken (Geschenk)", "bestellen", "anbieten", "anprobieren"})
"""Verbs whose object ought to be nice."""

CLEANING = frozenset({"putzen", "waschen", "spülen (Geschirr)", "aufräumen"})

REPAIRING = frozenset({"reparieren", "wegwerfen", "finden", "sehen", "suchen", "stehen", "liegen",
                       "fotografieren", "gehören"})

EXCESSIVE = frozenset({
    "groß", "klein", "teuer", "schwer", "laut", "kalt", "heiß", "alt", "lang", "kurz", "langsam",
    "schmal", "dunkel", "süß", "schwierig", "groß (Person)", "faul", "streng",
})
"""What something may be too much of."""

DEFINITE_ONLY = frozenset({"opening", "part", "room", "heating", "secret", "datum", "event"})
"""Classes of things that are usually known ones: close the door, rather than a door."""

BARE_PLURAL = frozenset({"food", "read", "flora", "footwear", "garment", "tableware", "farm",
                         "question", "song", "toy"})
"""Classes whose indefinite plural is natural as an object: buy apples."""

SORTS = ("kin", "kid", "worker", "adult", "animal", "fruit", "dish", "drink", "vehicle", "boat",
         "building", "room", "area", "furniture", "garment", "footwear", "booklike", "instrument",
         "luggage", "tableware", "show", "sight", "appliance", "flora", "animal")

TOPICS: dict[str, frozenset[str]] = {
    "texts": frozenset({
        "lesen", "schreiben", "vorlesen", "übersetzen", "unterschreiben", "ausfüllen", "lernen",
        "unterrichten", "beantworten", "stellen (Frage)", "wiederholen", "erklären", "lösen",
        "korrigieren", "überprüfen", "erzählen", "bestehen", "bemerken", "schicken", "arbeiten",
        "zurückbringen", "zurückgeben", "ablehnen", "akzeptieren", "planen", "organisieren",
        "absagen", "vorbereiten", "teilnehmen",
    }),
    "goods": frozenset({
        "kaufen", "verkaufen", "bezahlen", "geben", "schenken (Geschenk)", "zeigen", "schicken",
        "leihen", "bringen", "anbieten", "zurückgeben", "zurückbringen", "mitbringen",
        "mitnehmen", "holen", "suchen", "finden", "verstecken", "packen", "auspacken",
        "anprobieren", "legen", "wegwerfen",
    }),
    "food": frozenset({
        "essen", "trinken", "kochen", "backen", "schneiden", "probieren", "frühstücken",
        "bestellen", "bezahlen", "spülen (Geschirr)", "anbieten", "bringen", "kaufen", "stellen", "rauchen",
        "beschweren (sich)",
    }),
    "household": frozenset({
        "waschen", "bügeln", "nähen", "putzen", "spülen (Geschirr)", "aufräumen", "aufmachen", "öffnen",
        "zumachen", "schließen", "abschließen", "einschalten", "ausschalten", "anzünden",
        "reparieren", "streichen", "pflanzen", "gießen", "füttern", "hängen", "aufhängen",
        "stellen", "legen", "streicheln", "kochen", "backen", "wegwerfen", "ausruhen (sich)",
        "fernsehen", "hören (Musik)",
    }),
    "travel": frozenset({
        "gehen", "fahren", "fahren (Auto)", "fahren (etwas)", "laufen", "fliegen", "reisen",
        "kommen", "zurückkommen", "ankommen", "einsteigen", "aussteigen", "schwimmen", "wandern",
        "reiten", "verlassen", "betreten", "erreichen", "überqueren", "besichtigen",
        "fotografieren", "packen", "auspacken", "mieten", "nehmen", "sitzen", "warten",
        "abholen", "ausruhen (sich)", "tragen (etwas)",
    }),
    "leisure": frozenset({
        "schlafen", "aufstehen", "aufwachen", "fernsehen", "spielen", "spielen (Instrument)",
        "singen", "tanzen", "feiern", "lachen", "weinen", "hören (Musik)", "lesen", "malen (Bild)",
        "zeichnen", "frühstücken", "essen", "trinken", "anziehen", "ausziehen", "setzen (sich)",
        "schwimmen", "streicheln",
    }),
    "people": frozenset({
        "besuchen", "treffen", "fragen", "begrüßen", "loben", "wecken", "umarmen", "anrufen",
        "abholen", "einladen", "helfen", "danken", "antworten (jemandem)", "gratulieren",
        "sprechen", "setzen (sich)", "entschuldigen (sich)", "warten", "zuhören",
    }),
}
"""Verbs that are mentioned together naturally; those about people go with all others."""

EXISTENCE: dict[str, tuple[str, ...]] = {
    "Stadt": (
        "Museum", "Theater", "Kino", "Kirche", "Park", "Hotel", "Restaurant", "Universität",
        "Krankenhaus", "Schwimmbad", "Bibliothek", "Brücke", "Supermarkt", "Apotheke", "Café",
    ),
    "Dorf": ("Kirche", "Schule", "Bäckerei", "Tankstelle", "Bauernhof", "Restaurant", "Café"),
    "Wald": ("Wolf", "Fuchs", "Bär", "Pilz", "See", "Vogel", "Baum"),
    "Garten": ("Apfelbaum", "Kirschbaum", "Blume", "Rose", "Vogel", "Baum"),
    "Küche": ("Tisch", "Stuhl", "Schrank", "Kühlschrank", "Lampe", "Regal"),
    "Wohnzimmer": ("Sofa", "Teppich", "Lampe", "Klavier", "Fernseher", "Bücherregal"),
    "Hotelzimmer": ("Bett", "Schreibtisch", "Fernseher", "Spiegel", "Schrank", ),
    "Keller": ("Waschmaschine", "Maus", "Regal", "Wein"),
    "Bauernhof": ("Pferd", "Kuh", "Schwein", "Schaf", "Ziege", "Esel", "Huhn", "Ente"),
    "city": ("Museum", "Schloss", "Flughafen", "Turm", "Park", "Theater", "Stadion", "Brücke"),
}

SCENES: dict[str, tuple[frozenset[str], ...]] = {
    "home": (
        frozenset({"aufräumen", "putzen", "waschen", "spülen (Geschirr)"}),
        frozenset({"bügeln", "nähen"}),
        frozenset({"kochen", "backen"}),
        frozenset({"lesen", "zeichnen", "malen (Bild)", "spielen (Instrument)", "hören (Musik)"}),
        frozenset({"anrufen", "fernsehen", "schreiben"}),
    ),
    "garden": (
        frozenset({"füttern", "gießen"}),
        frozenset({"pflanzen", "streichen"}),
        frozenset({"schwimmen", "reiten", "wandern", "fotografieren"}),
        frozenset({"essen", "trinken"}),
    ),
    "travel": (
        frozenset({"packen"}),
        frozenset({"fahren", "reisen", "fliegen"}),
        frozenset({"besichtigen", "treffen"}),
        frozenset({"fotografieren", "kaufen"}),
        frozenset({"essen", "trinken"}),
    ),
    "office": (
        frozenset({"überprüfen", "beantworten", "vorbereiten"}),
        frozenset({"schreiben", "übersetzen", "korrigieren"}),
        frozenset({"anrufen", "treffen"}),
        frozenset({"unterschreiben", "ausfüllen", "planen", "organisieren"}),
        frozenset({"trinken", "lesen"}),
    ),
    "town": (
        frozenset({"abholen", "besuchen"}),
        frozenset({"kaufen", "bestellen"}),
        frozenset({"kochen", "backen"}),
        frozenset({"spülen (Geschirr)", "aufräumen", "einladen"}),
        frozenset({"lesen", "hören (Musik)", "fernsehen", "anrufen"}),
    ),
}
"""What people do one after the other, stage by stage, on one day or trip."""

FAMILIAR = ("kin", "rel", "kid", "Mann", "Frau", "Dame", "Student", "Studentin", "Junge")
"""The people that long sentences tell about."""

LISTABLE = frozenset({
    "kaufen", "essen", "bestellen", "fotografieren", "besichtigen", "treffen", "einladen",
    "besuchen", "pflanzen", "füttern", "lesen", "waschen", "bügeln", "kochen", "backen",
    "putzen", "aufräumen", "spülen (Geschirr)", "anrufen", "gießen", "abholen", "trinken",
})
"""Verbs whose object may be a list."""

PLEASURES = frozenset({
    "trinken", "essen", "lesen", "fernsehen", "hören (Musik)", "spielen (Instrument)", "schwimmen", "reiten",
    "wandern", "treffen", "anrufen", "besuchen", "fotografieren", "zeichnen", "malen (Bild)", "reisen", "fahren",
    "fliegen", "besichtigen", "bestellen", "kaufen", "einladen",
})
"""What one needs no help with and is not made to do."""

MANY_AT_ONCE = frozenset({"Pilz", "Keks", "Kartoffel", "Zwiebel", "Ei", "Karotte", "Brötchen"})
"""Food that is cooked or baked several at a time."""

OVERLAPPING = (("Eltern", "Vater"), ("Eltern", "Mutter"), ("Großeltern", "Großvater"),
               ("Großeltern", "Großmutter"), ("Blume", "Rose"), ("Wasser", "Mineralwasser"))
"""Nouns one of which includes the other, so that they are not set side by side."""

TOO_LONG = LONG_UNITS | {"damals", "Jahr", "Frühling", "Sommer", "Herbst", "Winter"}
"""Times that nobody would give for everyday work."""

TOO_SHORT = frozenset({"Morgen", "Abend", "Nachmittag", "heute", "gestern"})
"""Times in which no journey fits."""
# fmt: on
