"""The page of a report: one HTML file that requests nothing from a server.

Charts are SVG in the page, with the places of their points as JSON beside each; the translations are what the page of
alignments has (`nmt.extras.pages.viewer`), its program and its style. Whatever is text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import groupby, zip_longest

from nmt.evaluation.by_length import FEW
from nmt.extras.pages.draw import chart_points, draw_by_length, draw_chart, draw_model, inline_svg
from nmt.extras.pages.report.charts import Chart, length_charts, look_charts, snapshot_charts, training_charts
from nmt.extras.pages.report.record import LITTLE, MUCH, Run, Sample, Snapshots, TrainingCorpus
from nmt.extras.pages.viewer import PageRecord, data_block, page_file, quantized, record
from nmt.extras.pages.viewer import page as frame


def page(runs: Sequence[Run]) -> str:
    """Writes the report of some runs, side by side."""
    sections = {
        "training": ("Training", _grid(runs, training_charts(runs))),
        "by-length": ("BLEU by source length", _by_length(runs)),
        "attention": ("Attention", _attention(runs)),
        "forming": ("Attention forming", _forming(runs)),
        "model": ("Model", _models(runs)),
        "corpus": ("Corpus", _corpus(runs)),
        "translations": ("Translations", _translations(runs)),
        "figures": ("Figures", _figures(runs)),
        "origin": ("How they were made", _origins(runs) if len(runs) > 1 else ""),
        "configuration": ("Configuration", _configurations(runs)),
    }
    shown = [(id_, heading, inner) for id_, (heading, inner) in sections.items() if inner]
    title = escape(runs[0].name if len(runs) == 1 else f"{len(runs)} runs: {', '.join(run.name for run in runs)}")
    links = " ".join(f'<a href="#{id_}">{heading}</a>' for id_, heading, _ in shown)
    body = (
        f'<body class="report">\n<header class="head"><h1>{title}</h1><p class="facts">{_summary(runs)}</p></header>\n'
        f'<nav class="contents" aria-label="Contents">{links}</nav>\n<main>\n{_notes(runs)}'
    )
    for id_, heading, inner in shown:
        body += f'<section id="{id_}" aria-labelledby="{id_}-heading"><h2 id="{id_}-heading">{heading}</h2>\n'
        body += f"{inner}</section>\n"
    samples = _samples(runs)
    programs = ["common.js", *["viewer.js"] * bool(samples), "report.js"]
    missing = "Translations and the values of charts"
    begin, end = frame(title=f"{title} – nmt report", body=f"{body}</main>", missing=missing, programs=programs)
    return f"{begin}{_data(runs, samples) if samples else ''}{end}"


def _of(runs: Sequence[Run], name: str) -> str:
    """Formats the name of one of several runs behind the name of what it has."""
    return f" of {name}" if len(runs) > 1 else ""


def _colour(place: int) -> str:
    """Formats the colour swatch of a run, or of a part of a model."""
    return f'<i class="swatch" style="background: var(--run{place % 10})"></i>'


def _figure(svg: str, title: str, below: str, *, kind: str = "") -> str:
    """Formats a picture with its title, and the text below it."""
    return (
        f'<figure class="card {kind}"><figcaption><h3>{escape(title)}</h3></figcaption>\n'
        f'<div class="drawn">{svg}</div>{below}</figure>\n'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """Formats a table of HTML cells, whose first column names the rows; it scrolls if it is too wide."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = ""
    for name, *cells in rows:
        lines += f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="table" tabindex="0" role="group" aria-label="{escape(caption or "Table")}"><table>{title}'
        f"<thead><tr>{top}</tr></thead><tbody>\n{lines}</tbody></table></div>\n"
    )


def _data(runs: Sequence[Run], samples: Sequence[tuple[int, Sample]]) -> str:
    """Writes the data of the translations."""
    rules = {run.name: run.origin.links for run in runs}
    if len(set(rules.values())) > 1:
        rules = {name: f"{name}: {rule}" for name, rule in rules.items()}
    explanations = {"attention": " ".join(dict.fromkeys(rules.values()))}
    meta = {"views": ["attention"], "facts": [], "gold": False, "explanations": explanations, "layout": "matrix"}
    pairs = [_pair(runs, place, sample) for place, sample in samples]
    return data_block('id="meta"', meta) + data_block('class="pairs"', pairs)


def _summary(runs: Sequence[Run]) -> str:
    if len(runs) > 1:
        return "".join(f"<span>{_colour(place)}{escape(run.name)}</span>" for place, run in enumerate(runs))
    counts = ("parameters", "updates")
    facts = [f"{fact} {name}" if name in counts else fact for name, fact in runs[0].facts.items() if name != "corpus"]
    return "".join(f"<span>{escape(fact)}</span>" for fact in facts)


def _notes(runs: Sequence[Run]) -> str:
    found = [f"{run.name}: {note}" if len(runs) > 1 else note for run in runs for note in run.notes]
    return "".join(f'<p class="note">{escape(note)}</p>\n' for note in found)


# ---- figures


def _figures(runs: Sequence[Run]) -> str:
    columns = [_figures_of(run) for run in runs]
    head = [f"{_colour(place) if len(runs) > 1 else ''}{escape(run.name)}" for place, run in enumerate(runs)]
    found = _facts(head, columns, caption="Figures of the run" if len(runs) == 1 else "Figures of each run")
    if len(runs) == 1:
        found = f'<div class="halves">{found}{_origins(runs)}</div>\n'
    if any(run.translated is not None and run.translated.against_first is not None for run in runs):
        found += (
            '<p class="small">Against the first: the difference of BLEU with its 95 % interval, and the p-value of '
            "sacreBLEU's paired bootstrap over 1,000 resamples of the validation set. It says how far the "
            "difference depends on the choice of sentences, and nothing of how it would vary over trainings with other "
            "seeds.</p>\n"
        )
    return found


def _figures_of(run: Run) -> dict[str, str]:
    """Formats cells of HTML by name."""
    found = {name: escape(fact) for name, fact in run.facts.items()}
    translated = run.translated
    if translated is not None:
        for score in translated.scores:
            value = f'<span title="{escape(score.signature)}">{score.value:.1f}</span>'
            found[f"{score.name}, validation set, {run.origin.search}"] = value
        if (pair := translated.against_first) is not None:
            sign = "significant" if pair.significant else "not significant"
            gain, low, high = (f"{0.0 - each:+.1f}" for each in (pair.difference, pair.high, pair.low))
            comparison = f"{gain} ({low} to {high}), p = {pair.p_value:.3f}: {sign}"
            found["BLEU against the first"] = comparison.replace("-", "−")
        if translated.looks is not None:
            found["entropy of attention"] = f"{translated.looks.entropy:.2f} bits"
            found["source subwords left out"] = f"{translated.looks.left_out:.1%}"
            found["source subwords attended to twice"] = f"{translated.looks.repeated:.1%}"
    return found


def _origins(runs: Sequence[Run]) -> str:
    """Describes the date, the system and the command of each run."""
    columns = [{name: escape(fact) for name, fact in run.origin.details.items()} for run in runs]
    return _facts([escape(run.name) for run in runs], columns, caption="How it was made")


def _facts(head: Sequence[str], columns: Sequence[Mapping[str, str]], *, caption: str) -> str:
    """Formats a table of facts by their names, with a column of HTML for each run."""
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[escape(name), *(column.get(name, "–") for column in columns)] for name in names]
    return _table(["", *head], rows, caption=caption)


def _configurations(runs: Sequence[Run]) -> str:
    page = "<details><summary>{}</summary><pre>{}</pre></details>\n"
    return "".join(page.format(escape(run.name), escape(run.origin.config)) for run in runs)


# ---- charts


def _grid(runs: Sequence[Run], charts: Sequence[Chart]) -> str:
    return f'<div class="grid">\n{"".join(_chart(runs, chart) for chart in charts)}</div>\n' if charts else ""


def _chart(runs: Sequence[Run], chart: Chart) -> str:
    figure = draw_chart(chart)
    label = f"{chart.title}, chart: {chart.y_label or 'value'} over {chart.x_label}. Arrow keys read its values."
    svg = inline_svg(figure, chart.key)
    plot = f'<div class="plot" tabindex="0" role="img" aria-label="{escape(label)}">{svg}</div>'
    data = data_block('class="trace"', {**chart_points(figure, chart), "names": [run.name for run in runs]})
    return _figure(f'{plot}<p class="readout" role="status" hidden></p>', chart.title, _key(runs, chart) + data)


def _sample(style: str, colour: str) -> str:
    return f'<i class="sample {style}" style="color: {colour}"></i>'


def _key(runs: Sequence[Run], chart: Chart) -> str:
    """Explains the lines: the colours of several runs, and the dashes of several figures."""
    names, found = dict.fromkeys(line.name for line in chart.lines), {}
    for line in chart.lines:
        number, dash = chart.look(line)
        style = "point" if line.single else ("solid", "dashed", "dotted")[dash % 3]
        if len(runs) > 1:
            sample = _sample(style, f"var(--run{number % 10})") if len(names) == 1 else _colour(number)
            found[runs[line.run].name] = sample
        if len(names) > 1:
            found[line.name] = _sample(style, "var(--ink)" if len(runs) > 1 else f"var(--run{number % 10})")
    spans = "".join(f"<span>{sample}{escape(name)}</span>" for name, sample in found.items())
    return f'<p class="key">{spans}</p>' if found else ""


# ---- corpus and model


def _corpus(runs: Sequence[Run]) -> str:
    corpora = [(run.name, run.corpus) for run in runs if run.corpus is not None]
    if not corpora:
        return ""
    found = [_chart(runs, chart) for chart in length_charts(runs)]
    found += [_sides(corpus, _of(runs, name)) for name, corpus in corpora]
    found += [_dropped(corpus, _of(runs, name)) for name, corpus in corpora]
    return f'<div class="tables">{"".join(found)}</div>\n'


def _dropped(corpus: TrainingCorpus, of: str) -> str:
    report = corpus.report
    reasons = [name for name in report.corpora[0].dropped if any(each.dropped[name].pairs for each in report.corpora)]
    head = ["corpus", "pairs", *map(escape, reasons), "kept"]
    counts = [[each.pairs, *(each.dropped[name].pairs for name in reasons), each.kept] for each in report.corpora]
    names = [escape(each.name) for each in report.corpora]
    if len(names) > 1:
        names, counts = [*names, "all"], [*counts, [sum(column) for column in zip(*counts, strict=True)]]
    rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, counts, strict=True)]
    return _table(head, rows, caption=f"Training pairs{of}: read, dropped and why, kept")


def _sides(corpus: TrainingCorpus, of: str) -> str:
    sides = (corpus.report.source, corpus.report.target)
    rows = [
        ["vocabulary", *(f"{side.vocabulary:,}" for side in sides)],
        ["subwords", *(f"{side.tokens:,}" for side in sides)],
        ["words", *(f"{side.words:,}" for side in sides)],
        ["subwords per word", *(f"{side.tokens_per_word:.2f}" for side in sides)],
        ["unknown", *(f"{side.unknown:.3%}" for side in sides)],
        *([f"length, {name}", *(f"{side.lengths[name]:,}" for side in sides)] for name in sides[0].lengths),
    ]
    return _table(["", "source", "target"], rows, caption=f"Training sentences{of}, in subwords")


def _models(runs: Sequence[Run]) -> str:
    found = ""
    for place, run in enumerate(runs):
        svg = inline_svg(draw_model(run.parts), f"model{place}")
        label = "; ".join(", ".join([part.name, *part.details, part.counted or "not counted"]) for part in run.parts)
        svg = f'<div class="scrolled" tabindex="0" role="img" aria-label="{escape(label)}">{svg}</div>'
        title = run.facts.get("model", "") if len(runs) == 1 else f"{run.name}: {run.facts.get('model', '')}"
        found += _figure(svg, title, _shares(run), kind="model")
    return found


def _shares(run: Run) -> str:
    """Draws a bar of the parameters of each part."""
    counts = [(part.name, part.parameters) for part in run.parts if part.parameters]
    total = sum(count for _, count in counts)
    if not total:
        return ""
    bars = items = ""
    for place, (name, count) in enumerate(counts):
        look = f"flex-grow: {count}; background: var(--run{place})"
        bars += f'<span style="{look}" title="{escape(name)}: {count:,}"></span>'
        items += f"<li>{_colour(place)}{escape(name)} {count:,} ({count / total:.0%})</li>"
    return f'<div class="shares" aria-hidden="true">{bars}</div><ul class="shared">{items}</ul>'


# ---- translations


def _samples(runs: Sequence[Run]) -> list[tuple[int, Sample]]:
    """Writes the samples sentence by sentence and run by run, so that translations of one source are together, and the
    least confident ones are first."""
    samples = [[] if run.translated is None else run.translated.samples for run in runs]
    rows = sorted(zip_longest(*samples), key=_least_confidence)
    return [(place, sample) for row in rows for place, sample in enumerate(row) if sample is not None]


def _least_confidence(row: Sequence[Sample | None]) -> float:
    return min((each.confidence.right for each in row if each is not None and each.confidence is not None), default=1.0)


def _translations(runs: Sequence[Run]) -> str:
    if not _samples(runs):
        return ""
    translated = [run.translated for run in runs if run.translated is not None]
    count, total = max(len(each.samples) for each in translated), max(len(each.sources) for each in translated)
    gradient = "how steeply a word's score changes with the source (by gradients)"
    attending = {"the attention" if each.looks is not None else gradient for each in translated}
    matrix = ", or of a model without any ".join(sorted(attending, reverse=True))  # the attention first
    return (
        f'<p class="small">{count} of the {total:,} pairs of the validation set, evenly chosen; of calibrated runs, '
        "the least confident are first, and a wavy line is under doubtful words. Marked with a straight line are the "
        f"words of the reference that the translation has not, and the other way round. The matrix is {matrix}, in per "
        "cent: a row for each word of the translation, a column for each word of the source.</p>\n"
    ) + page_file("pairs.html")


def _pair(runs: Sequence[Run], place: int, sample: Sample) -> list[object]:
    name = f"{sample.number}, {runs[place].name}" if len(runs) > 1 else str(sample.number)
    texts = (
        ("Source", sample.source),
        ("Reference", *marked(sample.reference, sample.translation)),
        ("Translation", *marked(sample.translation, sample.reference)),
    )
    confidence = None if sample.confidence is None else sample.confidence.tree()
    return record([sample.alignment], heading=PageRecord(name, texts, confidence))


def marked(text: str, other: str) -> tuple[str, ...]:
    """Divides a text into parts, of which the second, the fourth and so on are the words that are not in a longest
    common subsequence with ``other``, as difflib finds it. All parts together are the text's words, with single spaces
    between them."""
    words = text.split()
    matches = SequenceMatcher(None, words, other.split(), autojunk=False).get_matching_blocks()
    shared = {place for start, _, size in matches for place in range(start, start + size)}
    parts = [] if 0 in shared else [""]
    for is_shared, run in groupby(range(len(words)), shared.__contains__):
        places = list(run)
        part = " ".join(words[place] for place in places)
        # spaces between parts belong to the unmarked ones
        parts.append(f"{' ' * (places[0] > 0)}{part}{' ' * (places[-1] < len(words) - 1)}" if is_shared else part)
    return tuple(parts)


def _by_length(runs: Sequence[Run]) -> str:
    series = {run.name: run.translated.lengths for run in runs if run.translated is not None}
    if not any(series.values()):
        return ""
    places = {run.name: place for place, run in enumerate(runs)}
    figure = draw_by_length(series, legend=False)
    figure.set_layout_engine("constrained", hspace=0.06)  # to find the width of the labels
    label = "BLEU by source length; the table has its values"
    svg = f'<div role="img" aria-label="{label}">{inline_svg(figure, "by-length")}</div>'
    key = "".join(f"<span>{_colour(places[name])}{escape(name)}</span>" for name in series)
    found = _figure(svg, "", f'<p class="key">{key}</p>' if len(runs) > 1 else "")
    for name, lengths in series.items():
        rows = []
        for each in lengths:
            bleu, low, high = (f"{value:.1f}" for value in (each.bleu.value, each.bleu.low, each.bleu.high))
            sentences = f"{each.sentences:,}{'*' * each.is_few}"
            rows.append([each.label, sentences, bleu, f"{low} to {high}", f"{each.chrf.value:.1f}"])
        caption = f"Scores by source length{_of(runs, name)}"
        found += _table(["source words", "sentences", "BLEU", "95 % interval", "chrF2"], rows, caption=caption)
    note = f'<p class="small">* fewer than {FEW} sentences: too few to rely on.</p>\n'
    return f'<div class="halves">{found}</div>\n{note}'


# ---- attention


def _attention(runs: Sequence[Run]) -> str:
    charts = _grid(runs, look_charts(runs))
    if not charts:
        return ""
    return charts + (
        '<p class="small">Of the model\'s own translations of the validation set, between subwords. Entropy: 0 bits '
        "where one source subword has all the attention. Coverage: what a source subword gets of all steps together; "
        f"below {LITTLE:g} it counts as left out, above {MUCH:g} as attended to twice.</p>\n"
    )


def _forming(runs: Sequence[Run]) -> str:
    """Writes a slider over the validations for each run, whose matrices the program fills in."""
    charts = _grid(runs, snapshot_charts(runs))
    if not charts:
        return ""
    found = (
        '<p class="small">Attention to the same pairs of the validation set at each validation: a row for each subword '
        "of the reference, a column for each subword of the source.</p>\n"
    )
    for place, run in enumerate(runs):
        if run.snapshots is not None:
            found += _slider(place, run.name if len(runs) > 1 else "", run.snapshots)
    return found + charts


def _slider(place: int, name: str, snapshots: Snapshots) -> str:
    last = len(snapshots.updates) - 1
    id_ = f"forming{place}"
    pairs = [
        [pair[0].source_tokens, pair[0].target_tokens, [quantized(each.weights_TS) for each in pair]]
        for pair in snapshots.pairs
    ]
    data = data_block('class="matrices"', {"updates": snapshots.updates, "pairs": pairs})
    heading = f"<h3>{escape(name)}</h3>" if name else ""
    return (
        f'<div class="forming card">{heading}<label for="{id_}">Validation at <output for="{id_}"></output></label>'
        f'<input id="{id_}" type="range" min="0" max="{last}" value="{last}" autocomplete="off">{data}</div>\n'
    )
