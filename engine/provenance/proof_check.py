"""Checks of proofs against the text of the rules, independent of the planner and the evaluators.

Each step must follow from its premises by its rule as written. Relations that a rule negates or aggregates
are computed again, rule by rule until nothing is new, by the same matcher.
"""

from __future__ import annotations

from collections.abc import Collection

from ..evaluate.functors import evaluate
from ..evaluate.ordinals import Ordinals
from ..evaluate.program import Facts
from ..plan.plan import QueryPlan
from .matching import Extents, Row, Rules, Searchable
from .proof import Proof, checked, rules_of


class ProofError(Exception):
    """A step of a proof that does not follow."""


def check_proof(proof: Proof, plan: QueryPlan, facts: Facts) -> int:
    """The number of steps of a proof over ``facts``. Raises ProofError where one does not follow."""
    return Checker(plan, facts).check(proof)


class Checker:
    """Checks proofs over one set of facts.

    Without ``rules`` these are read from their texts, as in ``Rules``. Negated and aggregated relations are
    computed again, unless ``holds`` has them: for programs that choose, number or delete tuples.
    """

    def __init__(
        self, plan: QueryPlan, facts: Facts, rules: Rules | None = None, holds: Searchable | None = None
    ) -> None:
        self._plan = plan
        self._known: dict[str, dict[Row, None]] = {r.name: {} for r in plan.relations}
        for index, arguments in plan.facts:
            self._known[plan.relations[index].name][tuple(evaluate(a, []) for a in arguments)] = None
        ordinals = Ordinals(plan)
        for index, rows in checked(plan, facts):
            ordinals.note(plan.relations[index], rows)
            self._known[plan.relations[index].name].update(dict.fromkeys(rows))
        self._rules = rules or rules_of(plan, ordinals)
        self._given = {name: set(rows) for name, rows in self._known.items()}
        self._computed = False
        self._held: Searchable = holds or Extents(self._holds)
        self._growing = Extents(self._known.__getitem__)

    def check(self, proof: Proof) -> int:
        """The number of steps. Raises ProofError where one does not follow."""
        steps = 0
        for step in proof.steps():
            if not self._follows(step):
                where = f" by {step.source.file}:{step.source.line}" if step.source else ""
                raise ProofError(f"{step.relation}{step.row} does not follow{where}")
            steps += 1
        return steps

    def _follows(self, step: Proof) -> bool:
        if step.source is None:
            return step.row in self._given[step.relation] or self._equivalent(step)
        if step.source not in self._plan.sources:
            return False
        premises = [(p.relation, p.row) for p in step.premises]
        explanations = self._rules.explains(step.source, step.relation, step.row, premises, self._held)
        return next(explanations, None) is not None

    def _equivalent(self, step: Proof) -> bool:
        """Whether the premises lead from one member of an equivalence to the other."""
        if not self._plan.relations[self._plan.index(step.relation)].eqrel or not step.premises:
            return False
        start, end = step.row
        reached = {start}
        for premise in step.premises:
            if premise.relation == step.relation and reached.intersection(premise.row):
                reached.update(premise.row)
        return end in reached and start in set().union(*(p.row for p in step.premises))

    def _holds(self, relation: str) -> Collection[Row]:
        if not self._computed:
            self._computed = True  # first, because rules read the results of earlier ones
            self._compute()
        return self._known[relation]

    def _compute(self) -> None:
        """The relations, with negated and aggregated ones before their users."""
        plan = self._plan
        clauses = [clause for source in plan.sources for clause in self._rules.clauses(source)]
        for stratum in plan.strata:
            names = {plan.relations[i].name for i in stratum.relations}
            mine = [clause for clause in clauses if clause.head.name in names]
            grows = True
            while grows:
                grows = False
                for clause in mine:
                    rows_so_far = self._known[clause.head.name]
                    before = len(rows_so_far)
                    rows = list(self._rules.conclusions(clause, self._growing))
                    rows_so_far.update(dict.fromkeys(rows))
                    if plan.relations[plan.index(clause.head.name)].eqrel:
                        _close(rows_so_far)
                    grows = grows or (len(rows_so_far) > before and bool(stratum.recursive))


def _close(pairs: dict[Row, None]) -> None:
    """Make a set of pairs an equivalence."""
    classes: dict[object, set[object]] = {}
    for a, b in pairs:
        joined = classes.get(a, {a}) | classes.get(b, {b})
        classes.update(dict.fromkeys(joined, joined))
    for members in list(classes.values()):
        pairs.update(dict.fromkeys((a, b) for a in members for b in members))
