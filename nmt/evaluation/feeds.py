"""Inputs of the decoder for which the perplexity of references is reported."""

from __future__ import annotations

from nmt.models.feed import Feed, FreeRunning, TeacherForcing
from nmt.models.scheduled_sampling import ScheduledSampling

FEEDS: dict[str, Feed] = {
    "teacher_forcing": TeacherForcing(),
    "free_running": FreeRunning(),
    "scheduled_sampling": ScheduledSampling(0.5, unit="token", guess="argmax"),
}
"""The feeds that are reported, by their names in JSON. The last one tosses a fair coin for each word."""
