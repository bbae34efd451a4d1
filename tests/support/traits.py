"""The traits of ops by the rules that ship."""

from __future__ import annotations

from shardlog.rulebook.book import RuleBook

TRAITS = RuleBook().traits
