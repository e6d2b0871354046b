"""The nouns: gender, genitive, plural, English and semantic classes.

Every row is written by one of four small constructors, so that the table stays readable:

``_m``/``_n``  masculine/neuter: nominative, genitive singular, plural, English, classes
``_f``         feminine: nominative, plural, English, classes (no genitive ending)
``_w``         weak masculine: nominative, the one other form (all oblique cases, plural), ...

An empty plural marks a mass noun, which takes no indefinite article in either language.  English
is written ``singular`` or, where the plural is irregular, ``singular/plural``.  The classes (a
space-separated string) are what verbs and adjectives select by; see ``SUPERCLASSES``.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.morphology import english_plural

# fmt: off
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    "worker": ("adult",),
    "adult": ("person",),
    "kin": ("person", "rel"),
    "kid": ("person",),
    "pet": ("animal",),
    "farm": ("animal",),
    "wild": ("animal",),
    "fruit": ("food",),
    "dish": ("food",),
    "letter": ("read", "portable"),
    "booklike": ("read", "portable"),
    "footwear": ("cloth",),
    "accessory": ("cloth",),
    "garment": ("cloth",),
    "cloth": ("goods", "ownable"),
    "toy": ("portable",),
    "tableware": ("portable",),
    "gadget": ("portable", "machine"),
    "ware": ("portable",),
    "parcel": ("sendable",),
    "portable": ("goods", "ownable"),
    "car": ("vehicle", "machine", "ownable"),
    "bike": ("vehicle", "machine", "ownable"),
    "appliance": ("machine", "goods", "ownable"),
    "instrument": ("goods", "ownable"),
    "furniture": ("goods", "ownable"),
    "plant": ("thing",),
    "house": ("building",),
    "shop": ("building",),
}
"""Classes that a noun has because it has another one (followed transitively)."""
# fmt: on


@dataclass(frozen=True)
class Noun:
    """A German noun with its English counterpart."""

    lemma: str
    gender: str
    genitive: str
    plural: str
    english: tuple[str, ...]
    english_plural: tuple[str, ...]
    classes: frozenset[str]
    weak: bool = False

    @property
    def mass(self) -> bool:
        """Whether the noun has no plural and takes no indefinite article."""
        return not self.plural

    @property
    def plural_only(self) -> bool:
        """Whether the noun is only used in the plural (die Eltern)."""
        return self.gender == "pl"


def _closure(classes: str) -> frozenset[str]:
    """All classes named in ``classes`` and, transitively, their super-classes."""
    found: set[str] = set()
    todo = classes.split()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(SUPERCLASSES.get(name, ()))
    return frozenset(found)


def _noun(lemma: str, gender: str, genitive: str, plural: str, english: str, classes: str, weak: bool) -> Noun:
    singular, _, irregular = english.partition("/")
    words = tuple(singular.split())
    plural_words = tuple(irregular.split()) or (*words[:-1], english_plural(words[-1]))
    return Noun(lemma, gender, genitive, plural, words, plural_words, _closure(classes), weak)


def _m(lemma: str, genitive: str, plural: str, english: str, classes: str) -> Noun:
    return _noun(lemma, "m", genitive, plural, english, classes, False)


def _w(lemma: str, oblique: str, english: str, classes: str) -> Noun:
    return _noun(lemma, "m", oblique, oblique, english, classes, True)


def _f(lemma: str, plural: str, english: str, classes: str) -> Noun:
    return _noun(lemma, "f", lemma, plural, english, classes, False)


def _n(lemma: str, genitive: str, plural: str, english: str, classes: str) -> Noun:
    return _noun(lemma, "n", genitive, plural, english, classes, False)


def _p(plural: str, english: str, classes: str) -> Noun:
    """A noun used in the plural only; ``english`` is the English plural."""
    words = tuple(english.split())
    return Noun(plural, "pl", plural, plural, words, words, _closure(classes))


# fmt: off
PEOPLE: tuple[Noun, ...] = (
    _m("Lehrer", "Lehrers", "Lehrer", "teacher", "worker rel"),
    _f("Lehrerin", "Lehrerinnen", "teacher", "worker rel"),
    _m("Arzt", "Arztes", "Ärzte", "doctor", "worker"),
    _f("Ärztin", "Ärztinnen", "doctor", "worker"),
    _w("Student", "Studenten", "student", "worker learner"),
    _f("Studentin", "Studentinnen", "student", "worker learner"),
    _m("Schüler", "Schülers", "Schüler", "pupil", "kid learner"),
    _f("Schülerin", "Schülerinnen", "pupil", "kid learner"),
    _w("Polizist", "Polizisten", "police officer", "worker"),
    _m("Koch", "Kochs", "Köche", "cook", "worker"),
    _m("Bäcker", "Bäckers", "Bäcker", "baker", "worker"),
    _m("Verkäufer", "Verkäufers", "Verkäufer", "shop assistant", "worker"),
    _f("Verkäuferin", "Verkäuferinnen", "shop assistant", "worker"),
    _m("Kellner", "Kellners", "Kellner", "waiter", "worker"),
    _f("Kellnerin", "Kellnerinnen", "waitress", "worker"),
    _w("Bauer", "Bauern", "farmer", "worker"),
    _m("Maler", "Malers", "Maler", "painter", "worker"),
    _m("Musiker", "Musikers", "Musiker", "musician", "worker"),
    _m("Schauspieler", "Schauspielers", "Schauspieler", "actor", "worker"),
    _f("Schauspielerin", "Schauspielerinnen", "actress", "worker"),
    _m("Schriftsteller", "Schriftstellers", "Schriftsteller", "writer", "worker author"),
    _w("Journalist", "Journalisten", "journalist", "worker author"),
    _f("Journalistin", "Journalistinnen", "journalist", "worker author"),
    _m("Anwalt", "Anwalts", "Anwälte", "lawyer", "worker"),
    _f("Anwältin", "Anwältinnen", "lawyer", "worker"),
    _m("Richter", "Richters", "Richter", "judge", "worker"),
    _m("Ingenieur", "Ingenieurs", "Ingenieure", "engineer", "worker"),
    _m("Mechaniker", "Mechanikers", "Mechaniker", "mechanic", "worker"),
    _m("Gärtner", "Gärtners", "Gärtner", "gardener", "worker"),
    _w("Pilot", "Piloten", "pilot", "worker"),
    _w("Tourist", "Touristen", "tourist", "adult"),
    _m("Gast", "Gastes", "Gäste", "guest", "adult rel"),
    _m("Chef", "Chefs", "Chefs", "boss", "worker rel"),
    _f("Chefin", "Chefinnen", "boss", "worker rel"),
    _w("Kollege", "Kollegen", "colleague", "worker rel"),
    _f("Kollegin", "Kolleginnen", "colleague", "worker rel"),
    _w("Nachbar", "Nachbarn", "neighbour", "adult rel"),
    _f("Nachbarin", "Nachbarinnen", "neighbour", "adult rel"),
    _m("Freund", "Freundes", "Freunde", "friend", "adult rel"),
    _f("Freundin", "Freundinnen", "friend", "adult rel"),
    _m("Bürgermeister", "Bürgermeisters", "Bürgermeister", "mayor", "worker"),
    _m("Professor", "Professors", "Professoren", "professor", "worker"),
    _m("Zahnarzt", "Zahnarztes", "Zahnärzte", "dentist", "worker"),
    _w("Soldat", "Soldaten", "soldier", "worker"),
    _m("Sänger", "Sängers", "Sänger", "singer", "worker"),
    _f("Sängerin", "Sängerinnen", "singer", "worker"),
    _w("Fotograf", "Fotografen", "photographer", "worker"),
    _w("Kunde", "Kunden", "customer", "adult"),
    _f("Kundin", "Kundinnen", "customer", "adult"),
    _m("Politiker", "Politikers", "Politiker", "politician", "worker"),
    _f("Krankenschwester", "Krankenschwestern", "nurse", "worker"),
    _f("Sekretärin", "Sekretärinnen", "secretary", "worker"),
    _f("Künstlerin", "Künstlerinnen", "artist", "worker"),
    _f("Tänzerin", "Tänzerinnen", "dancer", "worker"),
    _f("Königin", "Königinnen", "queen", "adult"),
    _m("König", "Königs", "Könige", "king", "adult"),
    _m("Mann", "Mannes", "Männer", "man/men", "adult"),
    _f("Frau", "Frauen", "woman/women", "adult"),
    _f("Dame", "Damen", "lady", "adult"),
    _f("Mutter", "Mütter", "mother", "kin"),
    _m("Vater", "Vaters", "Väter", "father", "kin"),
    _m("Bruder", "Bruders", "Brüder", "brother", "kin"),
    _f("Schwester", "Schwestern", "sister", "kin"),
    _m("Sohn", "Sohnes", "Söhne", "son", "kin"),
    _f("Tochter", "Töchter", "daughter", "kin"),
    _m("Großvater", "Großvaters", "Großväter", "grandfather", "kin"),
    _f("Großmutter", "Großmütter", "grandmother", "kin"),
    _m("Onkel", "Onkels", "Onkel", "uncle", "kin"),
    _f("Tante", "Tanten", "aunt", "kin"),
    _f("Cousine", "Cousinen", "cousin", "kin"),
    _m("Enkel", "Enkels", "Enkel", "grandson", "kin"),
    _f("Enkelin", "Enkelinnen", "granddaughter", "kin"),
    _w("Neffe", "Neffen", "nephew", "kin"),
    _f("Nichte", "Nichten", "niece", "kin"),
    _p("Eltern", "parents", "kin"),
    _p("Großeltern", "grandparents", "kin"),
    _p("Leute", "people", "adult"),
    _n("Kind", "Kindes", "Kinder", "child/children", "kid"),
    _w("Junge", "Jungen", "boy", "kid"),
    _n("Mädchen", "Mädchens", "Mädchen", "girl", "kid"),
    _n("Baby", "Babys", "Babys", "baby", "baby"),
)

ANIMALS: tuple[Noun, ...] = (
    _m("Hund", "Hundes", "Hunde", "dog", "pet"),
    _f("Katze", "Katzen", "cat", "pet"),
    _n("Kaninchen", "Kaninchens", "Kaninchen", "rabbit", "pet"),
    _n("Pferd", "Pferdes", "Pferde", "horse", "farm"),
    _f("Kuh", "Kühe", "cow", "farm"),
    _n("Schwein", "Schweins", "Schweine", "pig", "farm"),
    _n("Schaf", "Schafs", "Schafe", "sheep/sheep", "farm"),
    _n("Huhn", "Huhns", "Hühner", "chicken", "farm"),
    _f("Ente", "Enten", "duck", "farm"),
    _f("Ziege", "Ziegen", "goat", "farm"),
    _m("Esel", "Esels", "Esel", "donkey", "farm"),
    _m("Vogel", "Vogels", "Vögel", "bird", "wild"),
    _f("Maus", "Mäuse", "mouse/mice", "wild"),
    _w("Bär", "Bären", "bear", "wild"),
    _m("Wolf", "Wolfes", "Wölfe", "wolf/wolves", "wild"),
    _w("Löwe", "Löwen", "lion", "wild"),
    _w("Elefant", "Elefanten", "elephant", "wild"),
    _w("Affe", "Affen", "monkey", "wild"),
    _m("Fuchs", "Fuchses", "Füchse", "fox", "wild"),
)

FOOD: tuple[Noun, ...] = (
    _m("Apfel", "Apfels", "Äpfel", "apple", "fruit"),
    _f("Birne", "Birnen", "pear", "fruit"),
    _f("Banane", "Bananen", "banana", "fruit"),
    _f("Orange", "Orangen", "orange", "fruit"),
    _f("Kirsche", "Kirschen", "cherry", "fruit"),
    _f("Erdbeere", "Erdbeeren", "strawberry", "fruit"),
    _f("Kartoffel", "Kartoffeln", "potato", "food cook"),
    _f("Tomate", "Tomaten", "tomato", "fruit"),
    _f("Karotte", "Karotten", "carrot", "food cook"),
    _f("Zwiebel", "Zwiebeln", "onion", "food cook"),
    _m("Pilz", "Pilzes", "Pilze", "mushroom", "food cook"),
    _n("Ei", "Eis", "Eier", "egg", "food cook"),
    _m("Kuchen", "Kuchens", "Kuchen", "cake", "dish bake"),
    _m("Apfelkuchen", "Apfelkuchens", "Apfelkuchen", "apple cake", "dish bake"),
    _m("Schokoladenkuchen", "Schokoladenkuchens", "Schokoladenkuchen", "chocolate cake",
       "dish bake"),
    _n("Brötchen", "Brötchens", "Brötchen", "bread roll", "dish bake"),
    _n("Käsebrot", "Käsebrotes", "Käsebrote", "cheese sandwich", "dish"),
    _f("Wurst", "Würste", "sausage", "dish"),
    _m("Salat", "Salats", "Salate", "salad", "dish"),
    _f("Pizza", "Pizzen", "pizza", "dish bake"),
    _m("Keks", "Kekses", "Kekse", "biscuit", "dish bake"),
    _m("Pfannkuchen", "Pfannkuchens", "Pfannkuchen", "pancake", "dish"),
    _n("Brot", "Brotes", "", "bread", "food bake"),
    _m("Käse", "Käses", "", "cheese", "food"),
    _n("Fleisch", "Fleisches", "", "meat", "food cook"),
    _m("Reis", "Reises", "", "rice", "food cook"),
    _f("Suppe", "", "soup", "dish cook"),
    _f("Tomatensuppe", "", "tomato soup", "dish cook"),
    _f("Gemüsesuppe", "", "vegetable soup", "dish cook"),
    _m("Kartoffelsalat", "Kartoffelsalats", "", "potato salad", "dish"),
    _f("Butter", "", "butter", "spread"),
    _f("Schokolade", "", "chocolate", "food"),
    _n("Obst", "Obstes", "", "fruit", "food"),
    _m("Honig", "Honigs", "", "honey", "spread"),
    _f("Marmelade", "", "jam", "spread"),
    _n("Vanilleeis", "Vanilleeises", "", "vanilla ice cream", "dish"),
    _n("Wasser", "Wassers", "", "water", "drink"),
    _n("Mineralwasser", "Mineralwassers", "", "mineral water", "drink"),
    _m("Kaffee", "Kaffees", "", "coffee", "drink hot"),
    _m("Tee", "Tees", "", "tea", "drink hot"),
    _m("Kräutertee", "Kräutertees", "", "herbal tea", "drink hot"),
    _f("Milch", "", "milk", "drink"),
    _m("Apfelsaft", "Apfelsafts", "", "apple juice", "drink"),
    _m("Orangensaft", "Orangensafts", "", "orange juice", "drink"),
    _n("Bier", "Bieres", "", "beer", "drink alcohol"),
    _m("Wein", "Weins", "", "wine", "drink alcohol"),
    _m("Rotwein", "Rotweins", "", "red wine", "drink alcohol"),
    _f("Limonade", "", "lemonade", "drink"),
)

TEXTS: tuple[Noun, ...] = (
    _n("Buch", "Buches", "Bücher", "book", "booklike author_text"),
    _m("Roman", "Romans", "Romane", "novel", "booklike author_text"),
    _n("Kinderbuch", "Kinderbuchs", "Kinderbücher", "children's book", "booklike author_text"),
    _n("Kochbuch", "Kochbuchs", "Kochbücher", "cookery book", "booklike author_text"),
    _n("Wörterbuch", "Wörterbuchs", "Wörterbücher", "dictionary", "portable"),
    _f("Zeitung", "Zeitungen", "newspaper", "booklike"),
    _f("Zeitschrift", "Zeitschriften", "magazine", "booklike"),
    _m("Brief", "Briefes", "Briefe", "letter", "letter writable"),
    _m("Liebesbrief", "Liebesbriefes", "Liebesbriefe", "love letter", "letter writable"),
    _f("Postkarte", "Postkarten", "postcard", "letter writable"),
    _f("E-Mail", "E-Mails", "email", "read writable message"),
    _f("Nachricht", "Nachrichten", "message", "read writable message"),
    _m("Artikel", "Artikels", "Artikel", "article", "read writable"),
    _m("Zeitungsartikel", "Zeitungsartikels", "Zeitungsartikel", "newspaper article",
       "read writable"),
    _m("Bericht", "Berichts", "Berichte", "report", "read writable"),
    _n("Gedicht", "Gedichts", "Gedichte", "poem", "read writable author_text"),
    _n("Märchen", "Märchens", "Märchen", "fairy tale", "read tale"),
    _f("Geschichte", "Geschichten", "story", "read writable tale author_text"),
    _m("Vertrag", "Vertrags", "Verträge", "contract", "read document"),
    _n("Formular", "Formulars", "Formulare", "form", "read document"),
)

CLOTHES: tuple[Noun, ...] = (
    _f("Jacke", "Jacken", "jacket", "garment unisex"),
    _f("Winterjacke", "Winterjacken", "winter jacket", "garment unisex"),
    _m("Mantel", "Mantels", "Mäntel", "coat", "garment unisex"),
    _n("Hemd", "Hemdes", "Hemden", "shirt", "garment unisex"),
    _n("Kleid", "Kleides", "Kleider", "dress", "garment womens"),
    _n("Sommerkleid", "Sommerkleides", "Sommerkleider", "summer dress", "garment womens"),
    _m("Rock", "Rocks", "Röcke", "skirt", "garment womens"),
    _f("Bluse", "Blusen", "blouse", "garment womens"),
    _m("Hut", "Hutes", "Hüte", "hat", "garment unisex"),
    _f("Mütze", "Mützen", "cap", "garment unisex"),
    _m("Schal", "Schals", "Schals", "scarf/scarves", "garment unisex"),
    _m("Pullover", "Pullovers", "Pullover", "sweater", "garment unisex"),
    _m("Anzug", "Anzugs", "Anzüge", "suit", "garment"),
    _m("Gürtel", "Gürtels", "Gürtel", "belt", "accessory"),
    _m("Schuh", "Schuhs", "Schuhe", "shoe", "footwear"),
    _m("Handschuh", "Handschuhs", "Handschuhe", "glove", "footwear"),
    _f("Socke", "Socken", "sock", "footwear"),
)

VEHICLES: tuple[Noun, ...] = (
    _n("Auto", "Autos", "Autos", "car", "car drivable"),
    _m("Sportwagen", "Sportwagens", "Sportwagen", "sports car", "car drivable"),
    _m("Bus", "Busses", "Busse", "bus", "vehicle public drivable"),
    _m("Schulbus", "Schulbusses", "Schulbusse", "school bus", "vehicle public drivable"),
    _m("Zug", "Zuges", "Züge", "train", "vehicle public"),
    _f("Straßenbahn", "Straßenbahnen", "tram", "vehicle public"),
    _n("Taxi", "Taxis", "Taxis", "taxi", "vehicle public drivable"),
    _m("Lastwagen", "Lastwagens", "Lastwagen", "lorry", "vehicle machine drivable"),
    _m("Krankenwagen", "Krankenwagens", "Krankenwagen", "ambulance", "vehicle drivable"),
    _n("Fahrrad", "Fahrrads", "Fahrräder", "bicycle", "bike"),
    _n("Motorrad", "Motorrads", "Motorräder", "motorcycle", "bike"),
    _n("Segelboot", "Segelboots", "Segelboote", "sailing boat", "boat ownable"),
    _n("Boot", "Bootes", "Boote", "boat", "boat ownable"),
    _n("Schiff", "Schiffes", "Schiffe", "ship", "boat"),
    _n("Flugzeug", "Flugzeugs", "Flugzeuge", "plane", "aircraft"),
)

PLACES: tuple[Noun, ...] = (
    _n("Haus", "Hauses", "Häuser", "house", "house ownable"),
    _n("Ferienhaus", "Ferienhauses", "Ferienhäuser", "holiday home", "house ownable"),
    _f("Wohnung", "Wohnungen", "flat", "home room ownable"),
    _f("Schule", "Schulen", "school", "building"),
    _f("Kirche", "Kirchen", "church", "building sight"),
    _n("Rathaus", "Rathauses", "Rathäuser", "town hall", "building sight"),
    _n("Museum", "Museums", "Museen", "museum", "building sight"),
    _n("Krankenhaus", "Krankenhauses", "Krankenhäuser", "hospital", "building"),
    _m("Bahnhof", "Bahnhofs", "Bahnhöfe", "station", "building"),
    _m("Flughafen", "Flughafens", "Flughäfen", "airport", "building"),
    _n("Hotel", "Hotels", "Hotels", "hotel", "building"),
    _n("Theater", "Theaters", "Theater", "theatre", "building"),
    _n("Kino", "Kinos", "Kinos", "cinema", "building"),
    _n("Restaurant", "Restaurants", "Restaurants", "restaurant", "building"),
    _n("Café", "Cafés", "Cafés", "café", "building"),
    _f("Bibliothek", "Bibliotheken", "library", "building"),
    _n("Schloss", "Schlosses", "Schlösser", "castle", "building sight"),
    _f("Fabrik", "Fabriken", "factory", "building"),
    _m("Supermarkt", "Supermarktes", "Supermärkte", "supermarket", "shop"),
    _f("Bäckerei", "Bäckereien", "bakery", "shop"),
    _f("Apotheke", "Apotheken", "pharmacy", "shop"),
    _f("Buchhandlung", "Buchhandlungen", "bookshop", "shop"),
    _m("Blumenladen", "Blumenladens", "Blumenläden", "flower shop", "shop"),
    _m("Spielzeugladen", "Spielzeugladens", "Spielzeugläden", "toy shop", "shop"),
    _m("Turm", "Turmes", "Türme", "tower", "sight"),
    _f("Brücke", "Brücken", "bridge", "sight"),
    _m("Garten", "Gartens", "Gärten", "garden", "area"),
    _m("Park", "Parks", "Parks", "park", "area"),
    _m("Wald", "Waldes", "Wälder", "forest", "area"),
    _m("Markt", "Marktes", "Märkte", "market", "area"),
    _m("Marktplatz", "Marktplatzes", "Marktplätze", "market square", "area sight"),
    _m("Spielplatz", "Spielplatzes", "Spielplätze", "playground", "area"),
    _m("Bauernhof", "Bauernhofs", "Bauernhöfe", "farm", "area"),
    _f("Stadt", "Städte", "city", "area sight"),
    _n("Dorf", "Dorfes", "Dörfer", "village", "area sight"),
    _f("Insel", "Inseln", "island", "area sight"),
    _m("Strand", "Strandes", "Strände", "beach", "area"),
    _m("See", "Sees", "Seen", "lake", "area water"),
    _m("Fluss", "Flusses", "Flüsse", "river", "area water"),
    _n("Schwimmbad", "Schwimmbads", "Schwimmbäder", "swimming pool", "building"),
    _n("Stadion", "Stadions", "Stadien", "stadium", "building sight"),
    _f("Universität", "Universitäten", "university", "building"),
    _f("Bushaltestelle", "Bushaltestellen", "bus stop", "stop"),
    _f("Tankstelle", "Tankstellen", "petrol station", "stop"),
    _f("Küche", "Küchen", "kitchen", "room"),
    _n("Zimmer", "Zimmers", "Zimmer", "room", "room"),
    _n("Wohnzimmer", "Wohnzimmers", "Wohnzimmer", "living room", "room"),
    _n("Schlafzimmer", "Schlafzimmers", "Schlafzimmer", "bedroom", "room"),
    _n("Badezimmer", "Badezimmers", "Badezimmer", "bathroom", "room"),
    _n("Esszimmer", "Esszimmers", "Esszimmer", "dining room", "room"),
    _n("Hotelzimmer", "Hotelzimmers", "Hotelzimmer", "hotel room", "room"),
    _n("Klassenzimmer", "Klassenzimmers", "Klassenzimmer", "classroom", "room"),
    _n("Büro", "Büros", "Büros", "office", "room"),
    _f("Werkstatt", "Werkstätten", "workshop", "room"),
    _m("Keller", "Kellers", "Keller", "cellar", "room"),
    _m("Balkon", "Balkons", "Balkone", "balcony", "spot"),
)

FURNITURE: tuple[Noun, ...] = (
    _m("Tisch", "Tisches", "Tische", "table", "furniture surface"),
    _m("Küchentisch", "Küchentisches", "Küchentische", "kitchen table", "furniture surface"),
    _m("Schreibtisch", "Schreibtisches", "Schreibtische", "desk", "furniture surface"),
    _m("Stuhl", "Stuhls", "Stühle", "chair", "furniture seat surface"),
    _m("Küchenstuhl", "Küchenstuhls", "Küchenstühle", "kitchen chair", "furniture seat surface"),
    _n("Sofa", "Sofas", "Sofas", "sofa", "furniture seat surface"),
    _n("Bett", "Bettes", "Betten", "bed", "furniture surface"),
    _m("Schrank", "Schrankes", "Schränke", "cupboard", "furniture box_like"),
    _n("Regal", "Regals", "Regale", "shelf/shelves", "furniture surface"),
    _n("Bücherregal", "Bücherregals", "Bücherregale", "bookcase", "furniture"),
    _m("Teppich", "Teppichs", "Teppiche", "carpet", "furniture surface"),
    _f("Lampe", "Lampen", "lamp", "furniture light"),
    _f("Schreibtischlampe", "Schreibtischlampen", "desk lamp", "furniture light"),
    _m("Spiegel", "Spiegels", "Spiegel", "mirror", "furniture hanging"),
    _n("Bild", "Bildes", "Bilder", "picture", "goods ownable hanging picture"),
    _f("Kiste", "Kisten", "box", "ware box_like"),
    _m("Koffer", "Koffers", "Koffer", "suitcase", "ware box_like luggage"),
    _f("Tasche", "Taschen", "bag", "ware box_like luggage"),
    _f("Handtasche", "Handtaschen", "handbag", "ware box_like"),
    _f("Schultasche", "Schultaschen", "school bag", "ware box_like luggage"),
    _f("Schublade", "Schubladen", "drawer", "box_like"),
    _m("Korb", "Korbes", "Körbe", "basket", "ware box_like"),
    _m("Rucksack", "Rucksacks", "Rucksäcke", "rucksack", "ware box_like luggage"),
    _m("Kühlschrank", "Kühlschranks", "Kühlschränke", "fridge", "appliance fridge"),
)

OBJECTS: tuple[Noun, ...] = (
    _m("Schlüssel", "Schlüssels", "Schlüssel", "key", "ware key"),
    _m("Haustürschlüssel", "Haustürschlüssels", "Haustürschlüssel", "front door key", "ware key"),
    _m("Autoschlüssel", "Autoschlüssels", "Autoschlüssel", "car key", "ware key"),
    _f("Armbanduhr", "Armbanduhren", "wristwatch", "ware breakable present"),
    _n("Handy", "Handys", "Handys", "mobile phone", "gadget"),
    _f("Kamera", "Kameras", "camera", "gadget present"),
    _n("Messer", "Messers", "Messer", "knife/knives", "tableware"),
    _n("Küchenmesser", "Küchenmessers", "Küchenmesser", "kitchen knife/kitchen knives",
       "tableware"),
    _f("Gabel", "Gabeln", "fork", "tableware"),
    _m("Löffel", "Löffels", "Löffel", "spoon", "tableware"),
    _m("Teller", "Tellers", "Teller", "plate", "tableware breakable"),
    _f("Tasse", "Tassen", "cup", "tableware breakable"),
    _f("Kaffeetasse", "Kaffeetassen", "coffee cup", "tableware breakable"),
    _n("Glas", "Glases", "Gläser", "glass", "tableware breakable"),
    _n("Weinglas", "Weinglases", "Weingläser", "wine glass", "tableware breakable"),
    _f("Flasche", "Flaschen", "bottle", "ware breakable"),
    _f("Vase", "Vasen", "vase", "ware breakable present"),
    _m("Regenschirm", "Regenschirms", "Regenschirme", "umbrella", "ware"),
    _m("Ball", "Balles", "Bälle", "ball", "toy"),
    _f("Puppe", "Puppen", "doll", "toy present"),
    _w("Teddybär", "Teddybären", "teddy bear", "toy present"),
    _m("Stift", "Stiftes", "Stifte", "pen", "ware"),
    _m("Bleistift", "Bleistifts", "Bleistifte", "pencil", "ware"),
    _n("Heft", "Heftes", "Hefte", "notebook", "ware"),
    _f("Geldbörse", "Geldbörsen", "wallet", "ware"),
    _m("Ring", "Ringes", "Ringe", "ring", "ware present"),
    _f("Kerze", "Kerzen", "candle", "ware light"),
    _f("Fahrkarte", "Fahrkarten", "ticket", "ware"),
    _f("Landkarte", "Landkarten", "map", "ware"),
    _m("Pass", "Passes", "Pässe", "passport", "ware"),
    _n("Paket", "Pakets", "Pakete", "parcel", "ware luggage parcel"),
    _n("Geschenk", "Geschenks", "Geschenke", "present", "ware parcel"),
    _n("Geburtstagsgeschenk", "Geburtstagsgeschenks", "Geburtstagsgeschenke", "birthday present",
       "ware parcel"),
    _f("Blume", "Blumen", "flower", "ware flora present"),
    _f("Rose", "Rosen", "rose", "ware flora present"),
    _n("Foto", "Fotos", "Fotos", "photo", "ware sendable picture"),
    _f("Taschenlampe", "Taschenlampen", "torch", "gadget light"),
    _m("Hammer", "Hammers", "Hämmer", "hammer", "ware tool"),
    _n("Werkzeug", "Werkzeugs", "Werkzeuge", "tool", "ware tool"),
    _f("Decke", "Decken", "blanket", "ware"),
    _n("Kissen", "Kissens", "Kissen", "cushion", "ware"),
    _n("Handtuch", "Handtuchs", "Handtücher", "towel", "ware washable"),
    _m("Computer", "Computers", "Computer", "computer", "appliance"),
    _m("Drucker", "Druckers", "Drucker", "printer", "appliance"),
    _m("Fernseher", "Fernsehers", "Fernseher", "television", "appliance switch"),
    _n("Radio", "Radios", "Radios", "radio", "appliance switch"),
    _f("Waschmaschine", "Waschmaschinen", "washing machine", "appliance switch"),
    _f("Kaffeemaschine", "Kaffeemaschinen", "coffee machine", "appliance switch"),
    _f("Heizung", "Heizungen", "heating/heatings", "heating"),
    _m("Motor", "Motors", "Motoren", "engine", "machine"),
    _n("Fenster", "Fensters", "Fenster", "window", "opening"),
    _n("Küchenfenster", "Küchenfensters", "Küchenfenster", "kitchen window", "opening"),
    _f("Tür", "Türen", "door", "opening"),
    _f("Haustür", "Haustüren", "front door", "opening lockable"),
    _f("Kellertür", "Kellertüren", "cellar door", "opening lockable"),
    _n("Gartentor", "Gartentors", "Gartentore", "garden gate", "opening lockable"),
    _n("Dach", "Daches", "Dächer", "roof", "part"),
    _f("Wand", "Wände", "wall", "part paintable"),
    _m("Zaun", "Zaunes", "Zäune", "fence", "part paintable"),
    _n("Klavier", "Klaviers", "Klaviere", "piano", "instrument"),
    _f("Gitarre", "Gitarren", "guitar", "instrument"),
    _f("Geige", "Geigen", "violin", "instrument"),
    _f("Flöte", "Flöten", "flute", "instrument"),
    _f("Trompete", "Trompeten", "trumpet", "instrument"),
    _m("Baum", "Baumes", "Bäume", "tree", "plant"),
    _m("Apfelbaum", "Apfelbaums", "Apfelbäume", "apple tree", "plant"),
    _m("Kirschbaum", "Kirschbaums", "Kirschbäume", "cherry tree", "plant"),
)

ABSTRACT: tuple[Noun, ...] = (
    _f("Frage", "Fragen", "question", "question"),
    _f("Antwort", "Antworten", "answer", "answer"),
    _n("Problem", "Problems", "Probleme", "problem", "problem topic"),
    _f("Aufgabe", "Aufgaben", "exercise", "problem"),
    _n("Rätsel", "Rätsels", "Rätsel", "riddle", "problem"),
    _f("Idee", "Ideen", "idea", "idea topic"),
    _m("Plan", "Plans", "Pläne", "plan", "idea topic"),
    _m("Vorschlag", "Vorschlags", "Vorschläge", "suggestion", "idea"),
    _m("Fehler", "Fehlers", "Fehler", "mistake", "error"),
    _n("Geheimnis", "Geheimnisses", "Geheimnisse", "secret", "secret"),
    _f("Regel", "Regeln", "rule", "knowledge"),
    _n("Wort", "Wortes", "Wörter", "word", "knowledge"),
    _m("Satz", "Satzes", "Sätze", "sentence", "knowledge"),
    _f("Adresse", "Adressen", "address", "datum"),
    _f("Telefonnummer", "Telefonnummern", "telephone number", "datum"),
    _n("Lied", "Liedes", "Lieder", "song", "song"),
    _m("Film", "Films", "Filme", "film", "show topic"),
    _n("Theaterstück", "Theaterstücks", "Theaterstücke", "play", "show topic"),
    _n("Konzert", "Konzerts", "Konzerte", "concert", "event"),
    _n("Fußballspiel", "Fußballspiels", "Fußballspiele", "football match", "event topic"),
    _f("Prüfung", "Prüfungen", "exam", "exam topic"),
    _f("Sitzung", "Sitzungen", "meeting", "event"),
    _f("Reise", "Reisen", "trip", "topic trip"),
    _f("Hochzeit", "Hochzeiten", "wedding", "event topic"),
    _n("Fest", "Festes", "Feste", "party", "event"),
    _m("Unfall", "Unfalls", "Unfälle", "accident", "topic accident"),
    _n("Wetter", "Wetters", "", "weather", "weather topic"),
    _n("Geld", "Geldes", "", "money", "money"),
    _f("Zeit", "", "time", "time"),
    _f("Hilfe", "", "help", "help"),
    _f("Musik", "", "music", "music"),
    _f("Sonne", "Sonnen", "sun", "sun"),
    _m("Rücken", "Rückens", "Rücken", "back", "body"),
    _m("Kopf", "Kopfes", "Köpfe", "head", "body"),
    _m("Arm", "Armes", "Arme", "arm", "body"),
    _n("Bein", "Beines", "Beine", "leg", "body"),
    _m("Fuß", "Fußes", "Füße", "foot/feet", "body"),
    _m("Zahn", "Zahnes", "Zähne", "tooth/teeth", "body"),
    _n("Knie", "Knies", "Knie", "knee", "body"),
)

NOUNS: tuple[Noun, ...] = (
    PEOPLE + ANIMALS + FOOD + TEXTS + CLOTHES + VEHICLES + PLACES + FURNITURE + OBJECTS + ABSTRACT
)
NOUN: dict[str, Noun] = {noun.lemma: noun for noun in NOUNS}
# fmt: on


@dataclass(frozen=True)
class Place:
    """How one noun is used as a place: where (dative) and where to, in both languages.

    ``to_zu`` marks a goal that German expresses with *zu* and the dative (zum Bahnhof).  A
    bare English place drops its article (at school).
    """

    noun: Noun
    at_de: str
    at_en: str
    to_de: str
    to_en: str
    bare: bool = False


def _place(lemma: str, at_de: str, at_en: str, to_de: str, to_en: str, bare: bool = False) -> Place:
    return Place(NOUN[lemma], at_de, at_en, to_de, to_en, bare)


# fmt: off
PLACE_USES: tuple[Place, ...] = (
    _place("Haus", "in", "in", "in", "into"),
    _place("Wohnung", "in", "in", "in", "into"),
    _place("Schule", "in", "at", "in", "to", bare=True),
    _place("Kirche", "in", "in", "in", "to"),
    _place("Rathaus", "in", "at", "zu", "to"),
    _place("Museum", "in", "at", "in", "to"),
    _place("Krankenhaus", "in", "in", "in", "to"),
    _place("Bahnhof", "an", "at", "zu", "to"),
    _place("Flughafen", "an", "at", "zu", "to"),
    _place("Hotel", "in", "in", "in", "to"),
    _place("Theater", "in", "in", "in", "to"),
    _place("Kino", "in", "in", "in", "to"),
    _place("Restaurant", "in", "in", "in", "to"),
    _place("Café", "in", "in", "in", "to"),
    _place("Bibliothek", "in", "in", "in", "to"),
    _place("Schloss", "in", "in", "zu", "to"),
    _place("Fabrik", "in", "in", "in", "to"),
    _place("Supermarkt", "in", "at", "in", "to"),
    _place("Bäckerei", "in", "at", "zu", "to"),
    _place("Apotheke", "in", "at", "zu", "to"),
    _place("Buchhandlung", "in", "in", "in", "to"),
    _place("Blumenladen", "in", "in", "in", "to"),
    _place("Spielzeugladen", "in", "in", "in", "to"),
    _place("Garten", "in", "in", "in", "into"),
    _place("Park", "in", "in", "in", "to"),
    _place("Wald", "in", "in", "in", "into"),
    _place("Markt", "auf", "at", "auf", "to"),
    _place("Marktplatz", "auf", "in", "auf", "to"),
    _place("Spielplatz", "auf", "on", "auf", "to"),
    _place("Bauernhof", "auf", "on", "auf", "to"),
    _place("Stadt", "in", "in", "in", "into"),
    _place("Dorf", "in", "in", "in", "to"),
    _place("Insel", "auf", "on", "auf", "to"),
    _place("Strand", "an", "on", "an", "to"),
    _place("See", "an", "by", "an", "to"),
    _place("Fluss", "an", "by", "an", "to"),
    _place("Schwimmbad", "in", "at", "in", "to"),
    _place("Stadion", "in", "in", "in", "to"),
    _place("Universität", "an", "at", "zu", "to"),
    _place("Bushaltestelle", "an", "at", "zu", "to"),
    _place("Tankstelle", "an", "at", "zu", "to"),
    _place("Küche", "in", "in", "in", "into"),
    _place("Wohnzimmer", "in", "in", "in", "into"),
    _place("Schlafzimmer", "in", "in", "in", "into"),
    _place("Badezimmer", "in", "in", "in", "into"),
    _place("Esszimmer", "in", "in", "in", "into"),
    _place("Hotelzimmer", "in", "in", "in", "into"),
    _place("Klassenzimmer", "in", "in", "in", "into"),
    _place("Büro", "in", "in", "in", "to"),
    _place("Werkstatt", "in", "in", "in", "to"),
    _place("Keller", "in", "in", "in", "into"),
    _place("Balkon", "auf", "on", "auf", "onto"),
)
PLACE_OF: dict[str, Place] = {place.noun.lemma: place for place in PLACE_USES}

WHEREABOUTS: dict[str, tuple[str, ...]] = {
    "home": ("Küche", "Wohnzimmer", "Garten", "Balkon", "Schlafzimmer", "Esszimmer"),
    "cookroom": ("Küche", "Restaurant"),
    "outdoors": ("Garten", "Park", "Strand", "See", "Fluss", "Spielplatz"),
    "nature": ("Wald", "Park", "Garten", "See", "Fluss"),
    "public": (
        "Restaurant", "Café", "Hotel", "Park", "Bahnhof", "Flughafen", "Museum", "Theater",
        "Kino", "Markt", "Marktplatz", "Supermarkt", "Schwimmbad", "Stadion", "Bibliothek",
    ),
    "eatery": ("Restaurant", "Café", "Küche", "Garten", "Esszimmer", "Hotel", "Park", "Balkon"),
    "shops": ("Supermarkt", "Markt"),
    "work": (
        "Büro", "Fabrik", "Krankenhaus", "Restaurant", "Hotel", "Werkstatt", "Bibliothek",
        "Rathaus", "Bäckerei", "Apotheke", "Buchhandlung", "Blumenladen", "Supermarkt",
        "Universität", "Bauernhof", "Flughafen", "Museum", "Schule", "Tankstelle",
        "Spielzeugladen", "Café", "Theater", "Schwimmbad", "Garten",
    ),
    "study": ("Bibliothek", "Schule", "Klassenzimmer", "Universität", "Küche", "Wohnzimmer"),
    "reading": (
        "Bibliothek", "Garten", "Wohnzimmer", "Park", "Büro", "Café", "Hotelzimmer", "Strand",
        "Balkon", "Küche",
    ),
    "waiting": (
        "Bahnhof", "Flughafen", "Bushaltestelle", "Restaurant", "Café", "Rathaus", "Hotel",
        "Tankstelle", "Park", "Schule", "Büro",
    ),
    "living": ("Stadt", "Dorf", "Insel", "Schloss", "Haus", "Wohnung", "Hotel", "Bauernhof"),
    "goal": tuple(
        name for name in PLACE_OF if name not in {"Haus", "Wohnung", "Hotelzimmer", "Stadt"}
    ),
    "indoor_goal": (
        "Küche", "Garten", "Keller", "Wohnzimmer", "Schlafzimmer", "Badezimmer", "Klassenzimmer",
        "Esszimmer",
    ),
    "far_goal": (
        "Bahnhof", "Flughafen", "Supermarkt", "Universität", "Krankenhaus", "Strand", "See",
        "Museum", "Schule", "Büro", "Theater", "Schwimmbad", "Stadion", "Werkstatt",
        "Tankstelle", "Bauernhof", "Markt", "Fabrik", "Schloss", "Rathaus", "Stadt",
    ),
    "animal_area": ("Garten", "Wald", "Park", "Bauernhof"),
    "pet_area": ("Garten", "Küche", "Wohnzimmer", "Park", "Balkon"),
    "station": ("Bahnhof", "Flughafen"),
    "hiking": ("Wald",),
    "riding": ("Wald", "Dorf", "See", "Strand", "Bauernhof"),
    "falling": ("Theater", "Wohnzimmer", "Garten", "Büro", "Klassenzimmer", "Strand", "Kino"),
    "tvroom": ("Wohnzimmer", "Schlafzimmer", "Hotelzimmer", "Küche"),
    "sitting": ("Café", "Park", "Garten", "Küche", "Wohnzimmer", "Balkon", "Kino"),
    "smoking": ("Garten", "Balkon", "Park"),
    "pickup": ("Bahnhof", "Flughafen", "Schule", "Bushaltestelle", "Hotel"),
    "helproom": ("Küche", "Garten", "Werkstatt", "Büro", "Keller"),
    "resting": ("Garten", "Wohnzimmer", "Schlafzimmer", "Hotel", "Park", "Balkon", "Strand"),
    "venue": (
        "Rathaus", "Hotel", "Park", "Stadion", "Universität", "Schule", "Schloss", "Theater",
        "Marktplatz", "Garten",
    ),
    "growing": ("Garten", "Park"),
    "crash": ("Bahnhof", "Marktplatz", "Bushaltestelle", "Tankstelle", "Flughafen", "Fabrik"),
    "sleeping": ("Schlafzimmer", "Wohnzimmer", "Garten", "Hotel", "Hotelzimmer", "Strand"),
}
"""Named sets of places that fit a kind of activity."""
# fmt: on

WHEREABOUTS |= {name: (name,) for name in PLACE_OF}

# fmt: off
PART_OF: dict[str, tuple[str, ...]] = {
    "Dach": ("Haus", "Kirche", "Schule", "Rathaus", "Hotel", "Schloss", "Fabrik", "Museum"),
    "Tür": ("Haus", "Kirche", "Schule", "Auto", "Hotel", "Wohnung", "Klassenzimmer"),
    "Fenster": ("Haus", "Kirche", "Schule", "Wohnung", "Hotel", "Büro", "Schlafzimmer"),
    "Wand": ("Küche", "Wohnzimmer", "Schlafzimmer", "Büro", "Klassenzimmer", "Keller"),
    "Motor": ("Auto", "Motorrad", "Lastwagen", "Boot", "Flugzeug", "Bus"),
    "Garten": ("Hotel", "Schloss", "Schule", "Restaurant"),
}
"""Which whole a part may belong to (das Dach des Hauses)."""
# fmt: on
