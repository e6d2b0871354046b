"""The verbs: principal parts, English counterpart and the frames they are used in.

A row is ``_v(infinitive, forms, english, *frames)``.

* ``infinitive``: a separable prefix is set off by ``|`` (auf|machen).
* ``forms``: empty for weak verbs, else ``third-person preterite participle`` (the participle
  without a separable prefix); a leading ``sein`` names the auxiliary of the perfect.
* ``english``: the first word is inflected.  ``^up`` is a particle that stands before a noun but
  after a pronoun (pick up the boy, pick him up), ``_back`` one that always follows the object.

A frame says who does what: first the classes of the subject (joined by ``+``), then

* ``A:c`` accusative object, ``D:c`` dative object (English indirect object),
  ``D>to:c`` dative object that English puts after the direct object with a preposition;
* ``P:prep:case:english:c`` prepositional object;
* ``AT:group`` and ``TO:group`` place and goal that the verb requires (groups of
  ``WHEREABOUTS``, or ``city``/``country``);
* ``I:c`` instrument played (Klavier spielen -> play the piano), ``N:c`` bare name of a language;
* ``R`` accusative reflexive pronoun without an English counterpart;
* ``@group`` a place where it may happen; ``m:x,y`` fitting adverbs of manner; ``with`` if a
  companion fits;
* the markers ``pass`` (has a passive), ``imp`` (fits an order), ``errand`` (something one goes
  somewhere for), ``state`` (no progressive, plain present), ``event`` (happens by itself, so no
  modal, wish or imperative), ``def`` (its object is a definite one), ``swap`` (the dative is the English subject).

Class names are joined by ``+``; a word with a capital letter is a single noun.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.morphology import (
    INSEPARABLE,
    german_imperative,
    german_present,
    german_preterite,
    weak_participle,
)


@dataclass(frozen=True)
class Slot:
    """One complement of a frame."""

    kind: str
    classes: tuple[str, ...]
    de_prep: str = ""
    case: str = ""
    en_prep: str = ""


@dataclass(frozen=True)
class Frame:
    """A use of a verb: the classes of its subject, its complements and what may be added."""

    subject: tuple[str, ...]
    slots: tuple[Slot, ...]
    place: str
    manner: tuple[str, ...]
    marks: frozenset[str]
    text: str
    verb: str


@dataclass(frozen=True)
class Verb:
    """A German verb in one sense, with the English verb that renders it."""

    lemma: str
    infinitive: str
    prefix: str
    third: str
    preterite_form: str
    participle_form: str
    aux: str
    english: str
    particle: tuple[str, ...]
    particle_place: str
    frames: tuple[Frame, ...] = ()

    def present(self, cell: str) -> str:
        """The finite present form without a separable prefix."""
        return german_present(self.infinitive, self.third, cell)

    def preterite(self, cell: str) -> str:
        """The finite preterite form without a separable prefix."""
        return german_preterite(self.infinitive, self.preterite_form, cell)

    @property
    def participle(self) -> str:
        """The past participle, prefix included (aufgemacht)."""
        inseparable = not self.prefix and self.infinitive.startswith(INSEPARABLE)
        if self.infinitive == "bellen":
            inseparable = False
        return self.prefix + (self.participle_form or weak_participle(self.infinitive, inseparable))

    @property
    def full_infinitive(self) -> str:
        """The infinitive as one word (aufmachen)."""
        return self.prefix + self.infinitive

    @property
    def zu_infinitive(self) -> tuple[str, ...]:
        """The infinitive with zu, which goes inside a separable verb (aufzumachen)."""
        if self.prefix:
            return (self.prefix + "zu" + self.infinitive,)
        return ("zu", self.infinitive)

    @property
    def imperative(self) -> str:
        """The singular imperative without a separable prefix."""
        return german_imperative(self.infinitive, self.third)


def parse_frame(text: str, verb: str) -> Frame:
    """Read the frame notation described at the top of this module; ``verb`` is the lemma."""
    words = text.split()
    slots: list[Slot] = []
    place = ""
    manner: tuple[str, ...] = ()
    marks: set[str] = set()
    for word in words[1:]:
        head, _, rest = word.partition(":")
        if word.startswith("@"):
            place = word[1:]
        elif head == "m":
            manner = tuple(rest.split(","))
        elif head == "P":
            de_prep, case, en_prep, classes = rest.split(":")
            slots.append(
                Slot("P", tuple(classes.split("+")), de_prep, {"a": "acc", "d": "dat"}[case], en_prep.replace("_", " "))
            )
        elif head in {"A", "D", "I", "N", "AT", "TO"}:
            slots.append(Slot(head, tuple(rest.split("+"))))
        elif head.startswith("D>"):
            slots.append(Slot("D>", tuple(rest.split("+")), en_prep=head[2:]))
        elif word == "R":
            slots.append(Slot("R", ()))
        else:
            marks.add(word)
    return Frame(tuple(words[0].split("+")), tuple(slots), place, manner, frozenset(marks), text, verb)


def _v(infinitive: str, forms: str, english: str, *frames: str, sense: str = "") -> Verb:
    prefix, _, base = infinitive.rpartition("|")
    parts = forms.split()
    aux = parts.pop(0) if parts and parts[0] == "sein" else "haben"
    third, preterite, participle = parts or ("", "", "")
    words = english.split()
    particle = words[1:]
    position = "near"
    if particle and particle[0][0] in "^_":
        position = {"^": "shift", "_": "late"}[particle[0][0]]
        particle = [particle[0][1:], *particle[1:]]
    return Verb(
        prefix + base + sense,
        base,
        prefix,
        third,
        preterite,
        participle,
        aux,
        words[0],
        tuple(particle),
        position,
        tuple(parse_frame(frame, prefix + base + sense) for frame in frames),
    )


# fmt: off
VERBS: tuple[Verb, ...] = (
    # ----- reading, writing, learning
    _v("lesen", "liest las gelesen", "read", "person A:read @reading pass imp m:langsam"),
    _v("schreiben", "schreibt schrieb geschrieben", "write",
       "person A:writable @reading pass imp", "person D:person A:letter+message imp"),
    _v("vor|lesen", "liest las gelesen", "read", "person A:tale D>to:kid imp m:laut"),
    _v("übersetzen", "", "translate", "person A:writable+booklike pass imp"),
    _v("unterschreiben", "unterschreibt unterschrieb unterschrieben", "sign",
       "adult A:document pass imp"),
    _v("aus|füllen", "", "fill ^in", "adult A:Formular pass imp"),
    _v("lernen", "", "learn", "person N:language @study"),
    _v("unterrichten", "", "teach", "Lehrer+Lehrerin+Professor A:learner+kid"),
    _v("beantworten", "", "answer", "person A:question+E-Mail+Brief pass imp"),
    _v("stellen", "", "ask", "person D:person A:Frage", sense=" (Frage)"),
    _v("verstehen", "versteht verstand verstanden", "understand",
       "person A:question+problem+knowledge+idea state def"),
    _v("wiederholen", "", "repeat", "person A:question+answer+knowledge pass imp"),
    _v("erklären", "", "explain", "person A:problem+knowledge+idea D>to:person pass imp"),
    _v("lösen", "", "solve", "person A:problem pass m:schnell"),
    _v("korrigieren", "", "correct", "person A:error+Bericht+Artikel pass imp"),
    _v("überprüfen", "", "check", "adult A:datum+Bericht+Vertrag+Motor+Pass pass imp"),
    _v("bestehen", "besteht bestand bestanden", "pass", "person A:exam"),
    _v("erzählen", "", "tell", "person D:person A:tale imp"),
    _v("bemerken", "", "notice", "person A:error"),
    # ----- buying, giving, having
    _v("kaufen", "", "buy", "person A:goods+food+spread+drink @shops pass imp errand",
       "person D:person A:present+garment errand"),
    _v("verkaufen", "", "sell", "adult A:car+bike+house+boat+instrument+furniture+picture+Ring pass"),
    _v("bezahlen", "", "pay for", "adult A:dish+garment+Fahrkarte imp"),
    _v("bestellen", "", "order", "person A:dish+drink pass imp"),
    _v("geben", "gibt gab gegeben", "give", "person D:person A:ware+toy+tableware imp"),
    _v("schenken", "", "give", "person D:person A:present", sense=" (Geschenk)"),
    _v("zeigen", "", "show", "person D:person A:picture+letter+ware+room imp"),
    _v("schicken", "", "send", "person D:person A:sendable+letter+message imp"),
    _v("leihen", "leiht lieh geliehen", "lend", "person D:person A:ware+booklike+bike+tool imp"),
    _v("bringen", "bringt brachte gebracht", "bring", "person D:person A:dish+drink+ware imp"),
    _v("an|bieten", "bietet bot geboten", "offer", "person D:person A:dish+drink+seat imp"),
    _v("empfehlen", "empfiehlt empfahl empfohlen", "recommend",
       "person A:show+booklike+sight D>to:person pass"),
    _v("zurück|geben", "gibt gab gegeben", "give _back", "person A:ware+booklike D>to:person imp"),
    _v("zurück|bringen", "bringt brachte gebracht", "bring _back",
       "person A:booklike+ware+tool imp"),
    _v("mit|bringen", "bringt brachte gebracht", "bring _along", "person A:dish+present+ware+spread imp"),
    _v("mit|nehmen", "nimmt nahm genommen", "take _along", "person A:ware+pet+luggage imp"),
    _v("weg|werfen", "wirft warf geworfen", "throw ^away", "person A:letter+ware+garment pass imp"),
    _v("holen", "", "fetch", "person A:ware+tableware+tool imp errand"),
    _v("nehmen", "nimmt nahm genommen", "take", "person A:public imp"),
    _v("bekommen", "bekommt bekam bekommen", "receive", "person A:letter+sendable+message event"),
    _v("brauchen", "", "need", "person A:ware+garment+tool+help+money state event"),
    _v("besitzen", "besitzt besaß besessen", "own", "adult A:car+house+boat+instrument state event"),
    _v("benutzen", "", "use", "person A:tool+gadget+Computer+Drucker+Waschmaschine+Wörterbuch pass imp def"),
    _v("suchen", "", "look for", "person A:ware+pet+cloth errand imp"),
    _v("finden", "findet fand gefunden", "find", "person A:ware+cloth pass"),
    _v("verlieren", "verliert verlor verloren", "lose", "person A:ware+Handschuh+Hut event"),
    _v("verstecken", "", "hide", "person A:ware+sendable+toy pass imp"),
    _v("packen", "", "pack", "person A:luggage imp"),
    _v("aus|packen", "", "unpack", "person A:luggage+parcel imp"),
    _v("mieten", "", "rent", "adult A:house+Wohnung+Auto+boat"),
    _v("stehlen", "stiehlt stahl gestohlen", "steal", "adult A:car+bike+Ring+Geldbörse+picture pass"),
    _v("zerbrechen", "zerbricht zerbrach zerbrochen", "break", "person A:breakable"),
    _v("zählen", "", "count", "person A:money", "person A:farm!"),
    # ----- food and drink
    _v("essen", "isst aß gegessen", "eat", "person A:food @eatery imp m:langsam,schnell with"),
    _v("trinken", "trinkt trank getrunken", "drink", "person A:drink @eatery imp with"),
    _v("kochen", "", "cook", "person A:cook @cookroom pass imp"),
    _v("backen", "backt backte gebacken", "bake", "person A:bake pass imp"),
    _v("schneiden", "schneidet schnitt geschnitten", "cut",
       "person A:Brot+Käse+Fleisch+Zwiebel+Pizza+Apfel+Wurst pass imp m:vorsichtig"),
    _v("probieren", "", "taste", "person A:dish+Käse+Wein+Honig imp"),
    _v("frühstücken", "", "have breakfast", "person AT:eatery"),
    # ----- household
    _v("waschen", "wäscht wusch gewaschen", "wash", "person A:garment+Auto+Handtuch pass imp"),
    _v("bügeln", "", "iron", "adult A:Hemd+Bluse+Kleid+Rock pass"),
    _v("nähen", "", "sew", "adult A:Hemd+Bluse+womens pass"),
    _v("putzen", "", "clean", "person A:Fenster+room+pass imp"),
    _v("spülen", "", "wash", "person A:tableware pass imp", sense=" (Geschirr)"),
    _v("auf|räumen", "", "tidy ^up", "person A:room+Keller pass imp"),
    _v("auf|machen", "", "open", "person A:opening+parcel+Flasche pass imp m:langsam,vorsichtig"),
    _v("öffnen", "", "open", "person A:opening+Brief+luggage+parcel pass imp m:langsam,vorsichtig"),
    _v("zu|machen", "", "close", "person A:opening+box_like pass imp m:leise"),
    _v("schließen", "schließt schloss geschlossen", "close",
       "person A:opening+luggage pass imp m:leise"),
    _v("ab|schließen", "schließt schloss geschlossen", "lock", "person A:lockable+bike+car pass imp def"),
    _v("ein|schalten", "", "turn ^on", "person A:switch+Lampe+Schreibtischlampe+Taschenlampe pass imp def"),
    _v("aus|schalten", "", "turn ^off", "person A:switch+Lampe+Computer pass imp def"),
    _v("an|zünden", "", "light", "adult A:Kerze pass imp"),
    _v("reparieren", "", "repair", "adult A:machine+Flugzeug+Dach+Zaun+furniture pass imp errand m:schnell"),
    _v("bauen", "", "build", "adult A:house+boat+Brücke+Turm pass"),
    _v("streichen", "streicht strich gestrichen", "paint", "adult A:paintable+Tür pass imp"),
    _v("malen", "", "paint", "person A:Bild pass", sense=" (Bild)"),
    _v("zeichnen", "", "draw", "person A:Baum+Haus+animal+Landkarte"),
    _v("pflanzen", "", "plant", "person A:plant+flora pass imp"),
    _v("gießen", "gießt goss gegossen", "water", "person A:flora! pass imp"),
    _v("füttern", "", "feed", "person A:pet+farm pass imp"),
    _v("streicheln", "", "stroke", "person A:pet+Pferd imp m:vorsichtig"),
    _v("hängen", "", "hang", "person A:picture+Spiegel P:an:a:on:Wand imp"),
    _v("auf|hängen", "", "hang ^up", "person A:garment+picture pass imp"),
    _v("stellen", "", "put",
       "person A:Tasse+Kaffeetasse+Glas+Weinglas+Teller+Vase+Flasche+Lampe "
       "P:auf:a:on:Tisch+Küchentisch+Schreibtisch+Regal pass imp"),
    _v("legen", "", "put",
       "person A:ware+booklike+garment P:auf:a:on:surface pass imp",
       "person A:ware+booklike+garment P:in:a:into:box_like pass imp",
       "person A:toy+Kiste+Koffer+Geschenk P:unter:a:under:Tisch+Bett+Sofa imp"),
    _v("stehen", "steht stand gestanden", "stand",
       "Tasse+Kaffeetasse+Glas+Weinglas+Teller+Vase+Flasche+Lampe "
       "P:auf:d:on:Tisch+Küchentisch+Regal+Schreibtisch state event",
       "furniture+plant P:neben:d:next_to:opening state event",
       "person P:vor:d:in_front_of:building", "car+bike P:hinter:d:behind:Haus+Hotel+Schule state"
       " event"),
    _v("liegen", "liegt lag gelegen", "lie",
       "ware+booklike+garment P:auf:d:on:surface state event",
       "ware+booklike+tableware P:in:d:in:box_like state event",
       "pet P:unter:d:under:Tisch+Bett+Sofa", "toy+footwear! P:unter:d:under:Bett+Sofa state event"),
    _v("sitzen", "sitzt saß gesessen", "sit", "person P:auf:d:on:seat",
       "person P:neben:d:next_to:person", "person AT:sitting with", "Vogel+Katze P:auf:d:on:Dach+Zaun"),
    _v("setzen", "", "sit down", "person R P:auf:a:on:seat imp",
       "person R P:neben:a:next_to:person imp", sense=" (sich)"),
    # ----- clothes
    _v("tragen", "trägt trug getragen", "wear", "person A:unisex"),
    _v("tragen", "trägt trug getragen", "carry", "person A:luggage TO:indoor_goal imp", sense=" (etwas)"),
    _v("an|ziehen", "zieht zog gezogen", "put ^on", "person A:unisex+footwear! imp"),
    _v("aus|ziehen", "zieht zog gezogen", "take ^off", "person A:unisex+footwear! imp"),
    _v("an|probieren", "", "try ^on", "person A:unisex imp"),
    # ----- movement
    _v("gehen", "sein geht ging gegangen", "go", "person TO:goal imp", ),
    _v("fahren", "sein fährt fuhr gefahren", "go", "person TO:city with", "person TO:country with"),
    _v("fahren", "sein fährt fuhr gefahren", "drive", "adult TO:far_goal", sense=" (Auto)"),
    _v("fahren", "fährt fuhr gefahren", "drive", "adult A:drivable m:schnell,langsam,vorsichtig",
       sense=" (etwas)"),
    _v("laufen", "sein läuft lief gelaufen", "run", "person TO:far_goal imp m:schnell",
       "pet TO:indoor_goal"),
    _v("fliegen", "sein fliegt flog geflogen", "fly", "person TO:city with", "person TO:country",
       "Vogel P:über:a:over:Haus+Park+Wald+Fluss+See+Dorf event"),
    _v("reisen", "sein reist reiste gereist", "travel", "person TO:country with", "person TO:city"),
    _v("um|ziehen", "sein zieht zog gezogen", "move", "adult TO:city"),
    _v("kommen", "sein kommt kam gekommen", "come", "person P:aus:d:from:city+country state event",
       "person TO:far_goal imp"),
    _v("zurück|kommen", "sein kommt kam gekommen", "come back", "person P:aus:d:from:city+country imp"),
    _v("an|kommen", "sein kommt kam gekommen", "arrive", "person+public AT:station event"),
    _v("ab|fahren", "sein fährt fuhr gefahren", "leave", "Bus+Schulbus+Zug+Straßenbahn+Schiff event"),
    _v("ein|steigen", "sein steigt stieg gestiegen", "get", "person P:in:a:on:Bus+Zug+Straßenbahn+Flugzeug imp"),
    _v("aus|steigen", "sein steigt stieg gestiegen", "get", "person P:aus:d:off:Bus+Zug+Straßenbahn+Flugzeug imp"),
    _v("schwimmen", "sein schwimmt schwamm geschwommen", "swim", "person P:in:d:in:water with"),
    _v("wandern", "sein wandert wanderte gewandert", "hike", "person AT:hiking with"),
    _v("reiten", "sein reitet ritt geritten", "ride", "person TO:riding"),
    _v("verlassen", "verlässt verließ verlassen", "leave", "person A:room+building imp"),
    _v("betreten", "betritt betrat betreten", "enter", "person A:room+building"),
    _v("erreichen", "", "reach", "person A:Insel+Dorf+Stadt+Bahnhof+Flughafen+Strand+Hotel"),
    _v("überqueren", "", "cross", "person A:Brücke+Fluss+Marktplatz m:langsam,vorsichtig"),
    _v("folgen", "sein folgt folgte gefolgt", "follow", "person D:person+pet imp", "pet D:person"),
    # ----- daily life
    _v("schlafen", "schläft schlief geschlafen", "sleep", "person AT:sleeping", "pet AT:pet_area",
       "Katze+Hund P:auf:d:on:Sofa+Teppich+Bett+Stuhl"),
    _v("ein|schlafen", "sein schläft schlief geschlafen", "fall asleep", "person AT:falling event"),
    _v("auf|stehen", "sein steht stand gestanden", "get up", "person m:früh,spät imp"),
    _v("auf|wachen", "sein wacht wachte gewacht", "wake up", "person m:früh,spät event"),
    _v("fern|sehen", "sieht sah gesehen", "watch television", "person AT:tvroom with"),
    _v("arbeiten", "", "work", "adult AT:work m:hart", "adult AT:city"),
    _v("wohnen", "", "live", "person AT:living state", "person AT:city state", "person AT:city state"),
    _v("spielen", "", "play", "kid P:mit:d:with:toy @outdoors imp", "kid AT:outdoors with",
       "pet AT:pet_area", "pet P:mit:d:with:Ball"),
    _v("spielen", "", "play", "person I:instrument m:laut,leise", sense=" (Instrument)"),
    _v("singen", "singt sang gesungen", "sing", "person A:song m:laut,leise imp"),
    _v("tanzen", "", "dance", "person P:mit:d:with:person"),
    _v("feiern", "", "celebrate", "person A:Hochzeit+Fest @eatery", ),
    _v("lachen", "", "laugh", "person P:über:a:at:Foto+Fehler+tale+Film m:laut"),
    _v("weinen", "", "cry", "kid m:laut,leise event"),
    _v("bellen", "", "bark", "Hund m:laut,leise @animal_area event"),
    _v("jagen", "", "chase", "Hund A:Katze+Kaninchen+Fuchs pass", "Katze A:Maus+Vogel pass",
       "Fuchs A:Huhn+Ente pass"),
    _v("fangen", "fängt fing gefangen", "catch", "Katze A:Maus+Vogel pass event", "kid A:Ball event"),
    _v("beißen", "beißt biss gebissen", "bite", "Hund A:worker+kid+Katze pass event"),
    _v("rauchen", "", "smoke", "adult AT:smoking"),
    _v("fotografieren", "", "photograph", "person A:sight+animal+person+Flugzeug pass imp"),
    _v("hören", "", "hear", "person A:song+Hund+Vogel+Trompete event"),
    _v("hören", "", "listen to", "person A:Musik @home", sense=" (Musik)"),
    _v("sehen", "sieht sah gesehen", "see", "person A:show+person+animal+sight errand event"),
    _v("besichtigen", "", "visit", "person A:sight+Fabrik pass with"),
    # ----- people
    _v("besuchen", "", "visit", "person A:person+sight pass errand imp"),
    _v("treffen", "trifft traf getroffen", "meet", "person A:person @public errand"),
    _v("kennen", "kennt kannte gekannt", "know", "person A:person+song+sight+datum state event def"),
    _v("kennen|lernen", "", "get to know", "person A:adult event"),
    _v("lieben", "", "love", "person A:kin+pet state event def"),
    _v("heiraten", "", "marry", "adult A:worker def"),
    _v("vermissen", "", "miss", "person A:kin+pet+Freund+Freundin state event def"),
    _v("fragen", "", "ask", "person A:person imp"),
    _v("begrüßen", "", "greet", "person A:person pass imp m:freundlich"),
    _v("loben", "", "praise", "adult A:worker+kid pass imp"),
    _v("kritisieren", "", "criticise", "adult A:worker+idea+show pass"),
    _v("stören", "", "disturb", "person A:person"),
    _v("wecken", "", "wake", "person A:person imp m:vorsichtig"),
    _v("küssen", "", "kiss", "adult A:kin"),
    _v("umarmen", "", "hug", "person A:kin+Freund+Freundin imp"),
    _v("retten", "", "rescue", "adult A:person+pet pass"),
    _v("verhaften", "", "arrest", "Polizist A:Mann+Frau+Politiker+Kellner+Soldat+Gärtner+Mechaniker pass"),
    _v("untersuchen", "", "examine", "Arzt+Ärztin+Zahnarzt A:kid+adult+Baby pass"),
    _v("erkennen", "erkennt erkannte erkannt", "recognise", "person A:person+song event def"),
    _v("an|rufen", "ruft rief gerufen", "call", "person A:person pass imp"),
    _v("ab|holen", "", "pick ^up", "person A:person @pickup pass errand imp"),
    _v("ein|laden", "lädt lud geladen", "invite", "person A:person P:zu:d:to:Hochzeit+Fest pass imp"),
    _v("helfen", "hilft half geholfen", "help", "person D:person errand imp m:gern",
       "person D:person AT:helproom errand imp"),
    _v("danken", "", "thank", "person D:person P:für:a:for:help+sendable+Blume imp"),
    _v("antworten", "", "answer", "person D:person imp m:freundlich,leise", sense=" (jemandem)"),
    _v("gratulieren", "", "congratulate", "person D:person imp"),
    _v("vertrauen", "", "trust", "person D:person state"),
    _v("zu|hören", "", "listen to", "person D:person imp"),
    _v("gehören", "", "belong to", "ownable D:person state event"),
    _v("gefallen", "gefällt gefiel gefallen", "like",
       "garment+house+show+picture+instrument+present+sight D:person state event swap"),
    _v("schmecken", "", "like", "dish+Brot+Käse+fruit D:person state event swap", sense=" (mögen)"),
    _v("warten", "", "wait", "person P:auf:a:for:person+public @waiting"),
    _v("denken", "denkt dachte gedacht", "think", "person P:an:a:of:kin+trip+person state"),
    _v("sprechen", "spricht sprach gesprochen", "speak",
       "person P:mit:d:to:person P:über:a:about:topic imp", "person P:mit:d:to:person errand imp m:leise"),
    _v("sprechen", "spricht sprach gesprochen", "speak", "person N:language state", sense=" (Sprache)"),
    _v("träumen", "", "dream", "person P:von:d:of:trip+sight+animal+Ferienhaus"),
    _v("teil|nehmen", "nimmt nahm genommen", "take part", "person P:an:d:in:event+Prüfung"),
    _v("auf|passen", "", "look", "person P:auf:a:after:kid+pet+Baby imp"),
    _v("freuen", "", "look forward", "person R P:auf:a:to:event+trip state", sense=" (sich)"),
    _v("erinnern", "", "remember", "person R P:an:a::person+trip+datum+song state", sense=" (sich)"),
    _v("interessieren", "", "be interested", "person R P:für:a:in:music+sight+show+animal! state event",
       sense=" (sich)"),
    _v("beeilen", "", "hurry", "person R imp", sense=" (sich)"),
    _v("aus|ruhen", "", "rest", "person R AT:resting imp", sense=" (sich)"),
    _v("entschuldigen", "", "apologise", "person R P:bei:d:to:person imp", sense=" (sich)"),
    _v("beschweren", "", "complain", "person R P:über:a:about:dish+machine+room+person", sense=" (sich)"),
    _v("verlieben", "", "fall in love", "adult R P:in:a:with:worker+Stadt event", sense=" (sich)"),
    _v("kümmern", "", "take care", "person R P:um:a:of:kid+pet+Baby+kin imp", sense=" (sich)"),
    # ----- plans
    _v("planen", "", "plan", "person A:trip+event pass"),
    _v("organisieren", "", "organise", "adult A:event+trip pass"),
    _v("vor|bereiten", "bereitet bereitete bereitet", "prepare", "adult A:event+trip pass imp", ),
    _v("ab|lehnen", "", "reject", "adult A:idea pass"),
    _v("akzeptieren", "", "accept", "adult A:idea pass imp"),
    _v("ab|sagen", "", "cancel", "adult A:event+trip pass"),
    _v("gewinnen", "gewinnt gewann gewonnen", "win", "person A:Fußballspiel+money event"),
    _v("verdienen", "", "earn", "adult A:money event"),
    _v("verraten", "verrät verriet verraten", "reveal", "person A:secret D>to:person imp"),
    # ----- things that happen
    _v("beginnen", "beginnt begann begonnen", "begin", "event+show+exam event"),
    _v("statt|finden", "findet fand gefunden", "take place", "event AT:venue event"),
    _v("funktionieren", "", "work", "machine event state", sense=" (Gerät)"),
    _v("wachsen", "sein wächst wuchs gewachsen", "grow", "plant AT:growing state event",
       "flora! AT:growing state event"),
    _v("scheinen", "scheint schien geschienen", "shine", "sun event"),
    _v("passieren", "sein passiert passierte passiert", "happen", "accident AT:crash event"),
)

BE = Verb("sein", "sein", "", "ist", "war", "gewesen", "sein", "be", (), "near")

HAVE = Verb("haben", "haben", "", "hat", "hatte", "gehabt", "haben", "have", (), "near")

COST = Verb("kosten", "kosten", "", "", "", "", "haben", "cost", (), "near")
# fmt: on


def _simple(lemma: str, english: str, forms: str = "") -> Verb:
    """A verb that only these patterns use."""
    third, preterite, participle = forms.split() or ("", "", "")
    prefix, _, base = lemma.rpartition("|")
    return Verb(prefix + base, base, prefix, third, preterite, participle, "haben", english, (), "near")


# fmt: off
RAIN = _simple("regnen", "rain")

SNOW = _simple("schneien", "snow")

KNOW = _simple("wissen", "know", "weiß wusste gewusst")

ASK_ONESELF = _simple("fragen", "wonder")

SAYING = (
    _simple("sagen", "say"),
    _simple("glauben", "believe"),
    KNOW,
    _simple("hoffen", "hope"),
    _simple("vermuten", "suspect"),
    _simple("behaupten", "claim"),
    _simple("meinen", "think"),
)

CONTROL = (
    _simple("versuchen", "try"),
    _simple("vergessen", "forget", "vergisst vergaß vergessen"),
    _simple("beschließen", "decide", "beschließt beschloss beschlossen"),
    _simple("hoffen", "hope"),
    _simple("planen", "plan"),
    _simple("versprechen", "promise", "verspricht versprach versprochen"),
    _simple("an|fangen", "start", "fängt fing gefangen"),
)

MODALS: dict[str, dict[str, str]] = {
    "können": {"1s": "kann", "2s": "kannst", "3s": "kann", "1p": "können", "2p": "könnt",
               "3p": "können", "pret": "konnte"},
    "müssen": {"1s": "muss", "2s": "musst", "3s": "muss", "1p": "müssen", "2p": "müsst",
               "3p": "müssen", "pret": "musste"},
    "wollen": {"1s": "will", "2s": "willst", "3s": "will", "1p": "wollen", "2p": "wollt",
               "3p": "wollen", "pret": "wollte"},
    "sollen": {"1s": "soll", "2s": "sollst", "3s": "soll", "1p": "sollen", "2p": "sollt",
               "3p": "sollen", "pret": "sollte"},
    "dürfen": {"1s": "darf", "2s": "darfst", "3s": "darf", "1p": "dürfen", "2p": "dürft",
               "3p": "dürfen", "pret": "durfte"},
    "möchten": {"1s": "möchte", "2s": "möchtest", "3s": "möchte", "1p": "möchten",
                "2p": "möchtet", "3p": "möchten", "pret": ""},
}
"""Finite forms of the modal verbs; the preterite takes the weak endings."""

AUXILIARIES: dict[str, dict[str, str]] = {
    "haben": {"1s": "habe", "2s": "hast", "3s": "hat", "1p": "haben", "2p": "habt", "3p": "haben",
              "pret": "hatte"},
    "sein": {"1s": "bin", "2s": "bist", "3s": "ist", "1p": "sind", "2p": "seid", "3p": "sind",
             "pret": "war"},
    "werden": {"1s": "werde", "2s": "wirst", "3s": "wird", "1p": "werden", "2p": "werdet",
               "3p": "werden", "pret": "wurde"},
}
# fmt: on


def auxiliary(lemma: str, tense: str, cell: str) -> str:
    """A finite form of haben, sein, werden or a modal; ``tense`` is ``pres`` or ``pret``."""
    forms = AUXILIARIES.get(lemma) or MODALS[lemma]
    if tense == "pres":
        return forms[cell]
    return german_preterite(lemma, forms["pret"], cell)
