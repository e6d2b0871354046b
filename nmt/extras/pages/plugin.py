"""Pages and pictures: reports, alignments, states of a model, scores."""

from __future__ import annotations

from nmt.plugins import AlignmentFormat, Command, Plugin

_FORMATS = "nmt.extras.pages.formats"

PLUGIN = Plugin(
    commands={
        "report": Command("nmt.extras.pages.report.command:report", "Look", 20),
        "states": Command("nmt.extras.pages.states.command:states", "Look", 30),
    },
    options={
        "align": ["nmt.extras.pages.options:AlignReports"],
        "links": ["nmt.extras.pages.options:LinkReports"],
        "evaluate": ["nmt.extras.pages.options:EvaluatePlot"],
    },
    formats={
        "heatmap": AlignmentFormat(
            "nmt.extras.pages.heatmap:open_heatmap", "a picture in text", is_soft=False, on_terminal=True
        ),
        "png": AlignmentFormat(f"{_FORMATS}:open_png", "a picture", "folder"),
        "svg": AlignmentFormat(f"{_FORMATS}:open_svg", "a picture", "folder"),
        "html": AlignmentFormat(
            "nmt.extras.pages.viewer:open_page", "a page to look through all pairs", "file", has_views=True
        ),
    },
    parts={"plot_alignment": "nmt.extras.pages.draw:plot_alignment"},
)
