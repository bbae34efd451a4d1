//! How many tuples a rule looks at, estimated from how many there are and how many share a key.

use std::sync::Arc;

use crate::compile::step::{Pattern, Rule, Step};
use crate::relation::{Relation, Version};

/// The rule, or the first of its join orders, that looks at the fewest tuples now, and their
/// number.
pub fn cheapest<'r>(rule: &'r Arc<Rule>, relations: &mut [Relation]) -> (&'r Arc<Rule>, f64) {
    let mut best = (rule, cost(rule, relations, 1.0));
    for order in &rule.orders {
        let cost = cost(order, relations, 1.0);
        if cost < best.1 {
            best = (order, cost);
        }
    }
    best
}

/// The number of tuples that the body looks at, plus those that it first puts into indexes, each of which counts as
/// `indexing`.
pub fn cost(rule: &Rule, relations: &mut [Relation], indexing: f64) -> f64 {
    let (mut cost, mut ways) = (0.0, 1.0);
    for step in &rule.steps {
        match step {
            Step::Scan(pattern, _) => {
                let found = expected(pattern, relations);
                cost += ways * (1.0 + found);
                ways *= found;
            }
            Step::Exists(pattern) => {
                cost += ways;
                ways *= expected(pattern, relations).min(1.0);
            }
            _ => cost += ways,
        }
    }
    for &(relation, version, index) in &rule.searches {
        cost += indexing * relations[relation.0].uncovered(version, index, relation == rule.head) as f64;
    }
    cost
}

/// The number of rows after each step.
pub fn estimates(rule: &Rule, relations: &mut [Relation]) -> Vec<f64> {
    let mut rows = 1.0;
    let after = rule.steps.iter().map(|step| {
        rows *= match step {
            Step::Scan(pattern, _) => expected(pattern, relations),
            Step::Exists(pattern) => expected(pattern, relations).min(1.0),
            _ => 1.0,
        };
        rows
    });
    after.collect()
}

/// How many tuples a search finds.
fn expected(pattern: &Pattern, relations: &mut [Relation]) -> f64 {
    let relation = &mut relations[pattern.relation.0];
    let count = relation.count(pattern.version) as f64;
    match pattern.index {
        Some(index) if count > 0.0 => count * relation.share(index) / relation.count(Version::All) as f64,
        _ => count,
    }
}
