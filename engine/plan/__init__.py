"""From checked clauses to the plan that evaluators run."""
