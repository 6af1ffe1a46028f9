"""Measuring runs: folders of runs in, dataclasses and tables out. Nothing is drawn or printed here.

`placecell.analyse`, `placecell.diagnose` and `placecell.transplant` are the functions to begin
with."""

from placecell.study.diagnosis import Diagnoses, RunDiagnosis, diagnose
from placecell.study.findings import Findings, analyse
from placecell.study.intervals import interval_table, mean_interval
from placecell.study.kernel_table import kernel_table
from placecell.study.kernels import LazyRich, Sizes, lazy_rich
from placecell.study.known import known_measures
from placecell.study.new_rows import Tuning, extend, table_of_means, unused_entries
from placecell.study.people import PeopleComparison, beside_people
from placecell.study.places import place_table
from placecell.study.records import RunSummary, Summary
from placecell.study.summary import summarise
from placecell.study.transplant import (
    Arm,
    Transplant,
    TransplantPlan,
    compare_transplants,
    plan_transplant,
)

__all__ = [
    "Arm",
    "Diagnoses",
    "Findings",
    "LazyRich",
    "PeopleComparison",
    "RunDiagnosis",
    "RunSummary",
    "Sizes",
    "Summary",
    "Transplant",
    "TransplantPlan",
    "Tuning",
    "analyse",
    "beside_people",
    "compare_transplants",
    "diagnose",
    "extend",
    "interval_table",
    "kernel_table",
    "known_measures",
    "lazy_rich",
    "mean_interval",
    "place_table",
    "plan_transplant",
    "summarise",
    "table_of_means",
    "unused_entries",
]
