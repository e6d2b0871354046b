"""The adjectives: comparison in both languages and the nouns they may describe.

A row is ``_a(positive, forms, english, comparison, classes)``: ``forms`` is empty or the irregular
``comparative superlative`` stems (älter ältest); ``comparison`` is ``more``, empty for -er/-est or
``better/best``; ``classes`` names noun classes or single nouns.  ``-`` as comparison marks an
adjective that is not compared here.  An adjective with two senses has two rows; no noun fits both.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus_de_en.morphology import (
    english_comparison,
    german_adjective_stem,
    german_comparative,
    german_superlative,
)


@dataclass(frozen=True)
class Adjective:
    """A German adjective in one sense, with its English counterpart."""

    lemma: str
    german: str
    stem: str
    comparative: str
    superlative: str
    english: tuple[str, ...]
    english_comparative: tuple[str, ...]
    english_superlative: tuple[str, ...]
    classes: frozenset[str]
    kind: str

    @property
    def graded(self) -> bool:
        """Whether the adjective is used in comparisons."""
        return bool(self.english_comparative)


def _a(
    german: str,
    forms: str,
    english: str,
    comparison: str,
    classes: str,
    kind: str = "quality",
    sense: str = "",
) -> Adjective:
    comparative, superlative = forms.split() if forms else (german_comparative(german), german_superlative(german))
    more: tuple[tuple[str, ...], ...] = ((), ())
    if comparison != "-":
        more = english_comparison(english, comparison)
    return Adjective(
        german + sense,
        german,
        german_adjective_stem(german),
        comparative,
        superlative,
        (english,),
        more[0],
        more[1],
        frozenset(classes.split()),
        kind,
    )


# fmt: off
ADJECTIVES: tuple[Adjective, ...] = (
    # ----- size and age
    _a("groß", "größer größt", "big", "bigger/biggest",
       "animal house building room furniture area vehicle box_like parcel Vase Bild Foto fruit plant "
       "boat part opening toy appliance", "size"),
    _a("groß", "größer größt", "tall", "", "person", "size", sense=" (Person)"),
    _a("klein", "", "small", "",
       "animal house building room furniture area vehicle ware fruit plant boat opening kid toy "
       "appliance tableware instrument", "size"),
    _a("hoch", "höher höchst", "high", "", "Turm Zaun Brücke Wand", "size"),
    _a("lang", "länger längst", "long", "",
       "Buch Roman Brief Liebesbrief Bericht Vertrag Brücke trip show Zug Mantel Rock Fluss Strand Wort Satz "
       "Artikel Gedicht tale Kleid Sitzung", "size"),
    _a("kurz", "kürzer kürzest", "short", "",
       "letter Bericht trip show Rock Wort Satz Artikel Gedicht tale Kleid Sitzung Antwort message",
       "size"),
    _a("breit", "", "wide", "wider/widest", "Fluss Brücke Bett Tür Fenster Gürtel", "size"),
    _a("tief", "", "deep", "", "water", "size"),
    _a("schmal", "", "narrow", "", "Brücke Tür Bett Balkon Schrank", "size"),
    _a("alt", "älter ältest", "old", "",
       "adult Mutter Vater Großvater Großmutter Onkel Tante Eltern Großeltern animal house "
       "building room furniture vehicle boat booklike instrument garment sight "
       "appliance ware part footwear song machine"),
    _a("neu", "neuer neuest", "new", "",
       "house building furniture vehicle boat garment instrument appliance ware footwear worker "
       "Nachbar Nachbarin booklike idea document tool opening toy tableware Dach learner machine"),
    _a("jung", "jünger jüngst", "young", "", "adult animal"),
    _a("modern", "", "modern", "more", "house building furniture room appliance"),
    # ----- colours
    _a("rot", "röter rötest", "red", "-",
       "garment car bike furniture flora footwear toy luggage Tasse boat", "colour"),
    _a("blau", "", "blue", "-", "garment car bike furniture footwear toy luggage Tasse boat Vase "
       "Stift", "colour"),
    _a("grün", "", "green", "-", "garment car bike furniture footwear toy luggage boat Vase Stift",
       "colour"),
    _a("gelb", "", "yellow", "-", "garment bike flora Haus toy luggage Stift Vogel Ball Tasse",
       "colour"),
    _a("schwarz", "schwärzer schwärzest", "black", "-", "garment car bike footwear pet luggage "
       "Pferd Regenschirm Stift Handtasche furniture", "colour"),
    _a("weiß", "", "white", "-", "garment car pet flora furniture Haus Wand Pferd Schiff Kuh Schaf",
       "colour"),
    _a("braun", "", "brown", "-", "garment footwear pet Pferd Kuh luggage furniture Handtasche Bär",
       "colour"),
    _a("grau", "", "grey", "-", "garment car pet Haus Esel Wand Maus Teppich Anzug", "colour"),
    _a("bunt", "", "colourful", "more", " Vogel Teppich Ball Schal Rock Kissen Decke "
       "Bild", "colour"),
    # ----- value
    _a("teuer", "", "expensive", "more",
       "house garment car bike furniture instrument appliance Hotel Restaurant trip Ring Armbanduhr "
       "Kamera Handy booklike Wein footwear present boat Fahrkarte Wohnung"),
    _a("billig", "", "cheap", "",
       "garment bike furniture appliance Hotel Restaurant Ring Armbanduhr Wein footwear Fahrkarte "
       "Handy tableware"),
    _a("wertvoll", "", "valuable", "more", "Ring Armbanduhr instrument Vase Bild"),
    _a("schön", "", "beautiful", "more",
       "house garment sight flora picture song present furniture Garten Park Strand See Insel "
       "instrument Frau Dame Königin Schauspielerin Tänzerin Sängerin animal plant trip room"),
    _a("hübsch", "", "pretty", "", "womens flora Vase Mädchen Puppe Tasse Blume Dorf"),
    _a("hässlich", "", "ugly", "", "house garment furniture building Vase Fabrik"),
    _a("gut", "besser best", "good", "better/best",
       "worker booklike show dish drink idea answer Restaurant Hotel Freund Freundin instrument "
       "tale Plan tool learner"),
    _a("schlecht", "", "bad", "worse/worst", "show idea answer Restaurant Hotel"),
    _a("berühmt", "", "famous", "more",
       "Maler Musiker Schauspieler Schauspielerin Schriftsteller Sänger Sängerin Künstlerin Tänzerin "
       "Professor sight Politiker Roman"),
    _a("beliebt", "", "popular", "more",
       "Lehrer Lehrerin Sänger Sängerin Restaurant Café Strand Museum Schauspieler Schauspielerin "
       "song show Politiker"),
    _a("wichtig", "", "important", "more", "question answer letter message document Sitzung exam Wort "
       "Regel problem Politiker"),
    _a("interessant", "", "interesting", "more", "booklike show read Konzert Sitzung Museum sight trip "
       "question idea"),
    _a("langweilig", "", "boring", "more", "booklike show read Konzert Sitzung Fußballspiel trip"),
    _a("spannend", "", "exciting", "more", "author_text Film tale trip Fußballspiel"),
    _a("lustig", "", "funny", "funnier/funniest", "tale show letter Lied Foto Affe Gedicht"),
    _a("traurig", "", "sad", "sadder/saddest", "tale show song kid Frau Mann Gedicht"),
    _a("schwierig", "", "difficult", "more", "question problem exam Sprache Wort Satz"),
    _a("leicht", "", "easy", "", "question problem exam", sense=" (einfach)"),
    _a("leicht", "", "light", "", "luggage Kiste Paket", sense=" (Gewicht)"),
    _a("schwer", "", "heavy", "", "luggage Kiste Paket Hammer Schrank Schreibtisch Teppich"),
    _a("seltsam", "", "strange", "", "question answer message letter idea adult show"),
    _a("gefährlich", "", "dangerous", "more", "Bär Wolf Löwe Elefant trip Brücke Fluss"),
    _a("nützlich", "", "useful", "more", "tool Wörterbuch gadget Idee Antwort"),
    _a("kaputt", "", "broken", "-", "machine toy Regenschirm Stuhl Lampe opening Dach Zaun Tasse "
       "Bett Kiste", sense=""),
    _a("schmutzig", "", "dirty", "", "garment car bike room footwear tableware Fenster kid "
       "Hund Handtuch Schwein Wasser"),
    _a("sauber", "", "clean", "", "garment car room footwear tableware Fenster Handtuch"),
    _a("leer", "", "empty", "-", "box_like Flasche Glas Tasse Restaurant Kino"),
    _a("voll", "", "full", "-", "box_like Flasche Glas Tasse public"),
    _a("warm", "wärmer wärmst", "warm", "", " Mantel Winterjacke Pullover Decke room Wasser "
       "Schal Mütze Handschuh Socke"),
    _a("kalt", "kälter kältest", "cold", "", "drink room Suppe"),
    _a("heiß", "", "hot", "hotter/hottest", "hot Suppe Tomatensuppe Gemüsesuppe Milch"),
    _a("frisch", "", "fresh", "", "fruit Brot Brötchen Fleisch Käse Ei Milch Obst Butter"),
    _a("süß", "", "sweet", "", "fruit Kuchen Apfelkuchen Schokoladenkuchen Marmelade "
       "Limonade Honig Obst Keks"),
    _a("lecker", "", "delicious", "more", "dish Käse Brot"),
    _a("reif", "", "ripe", "", "fruit"),
    _a("gesund", "gesünder gesündest", "healthy", "", "Obst Salat Gemüsesuppe kid pet farm"),
    _a("bequem", "", "comfortable", "more", "seat Bett Schuh Hotelzimmer"),
    _a("schnell", "", "fast", "", "vehicle Pferd boat"),
    _a("langsam", "", "slow", "", "Bus Lastwagen Kellner Esel Computer Schiff Straßenbahn"),
    _a("stark", "stärker stärkst", "strong", "", "Mann Junge Pferd Bär Esel Kaffee Löwe Elefant"),
    _a("hell", "", "bright", "", "room light Lampe"),
    _a("dunkel", "dunkler dunkelst", "dark", "", "room Wald"),
    _a("ruhig", "", "quiet", "", "room Dorf Hotel kid Strand Insel Wohnung Park"),
    _a("laut", "", "loud", "", "Musik Waschmaschine Motorrad Hund Motor Radio Lastwagen Sportwagen"),
    # ----- people
    _a("nett", "", "nice", "", "person"),
    _a("freundlich", "", "friendly", "friendlier/friendliest", "person Hund"),
    _a("klug", "klüger klügst", "clever", "", "person Hund Affe Fuchs"),
    _a("fleißig", "", "hard-working", "more", "learner worker"),
    _a("faul", "", "lazy", "", "learner Katze Hund Esel Kellner"),
    _a("reich", "", "rich", "", "adult"),
    _a("arm", "ärmer ärmst", "poor", "", "Mann Frau Student Bauer Maler Künstlerin"),
    _a("müde", "", "tired", "more", "person Hund Pferd"),
    _a("krank", "kränker kränkst", "ill", "-", ""),
    _a("krank", "kränker kränkst", "sick", "-", "kid animal Mann Frau Baby", sense=" (Tier)"),
    _a("hungrig", "", "hungry", "hungrier/hungriest", "kid animal Gast"),
    _a("durstig", "", "thirsty", "thirstier/thirstiest", "Pferd Hund Kind"),
    _a("höflich", "", "polite", "more", "person"),
    _a("mutig", "", "brave", "", "Soldat Mann Frau kid Polizist Hund"),
    _a("ehrlich", "", "honest", "more", "person"),
    _a("streng", "", "strict", "", "Lehrer Lehrerin Richter Chef Chefin Vater Mutter"),
    _a("zufrieden", "", "satisfied", "more", "Kunde Kundin Gast Chef Chefin"),
    _a("glücklich", "", "happy", "happier/happiest", "person"),
    _a("nervös", "nervöser nervösest", "nervous", "more", "learner Schauspieler Sängerin Pilot"),
    _a("vorsichtig", "", "careful", "more", "Pilot Student"),
    _a("neugierig", "", "curious", "more", "kid pet Tourist Journalist Nachbar Nachbarin"),
    _a("bekannt", "", "well-known", "more", "Anwalt Anwältin Arzt Ärztin Journalist Journalistin "
       "Fotograf Richter Schloss Hotel"),
)
"""All adjectives; ``hard-working`` and ``well-known`` are compared with more/most."""
# fmt: on
