//! Applies rules: prepares the indexes that a rule reads, and runs its body.

pub(crate) mod body;
pub(crate) mod cost;
pub(crate) mod fold;
pub(crate) mod functor;
pub(crate) mod pool;
pub mod profile;
pub(crate) mod range;
pub(crate) mod threads;

use std::sync::Arc;
use std::time::Instant;

use crate::budget::{Budget, Limits};
use crate::compile::step::{RelationId, Rule};
use crate::machine::body::{Body, Head, Run, Scratch};
use crate::machine::cost::{cheapest, estimates};
use crate::machine::pool::Pool;
use crate::machine::profile::Profile;
use crate::machine::threads::{pieces, Found};
use crate::relation::Database;

/// How many sources `Machine::busiest` names.
const BUSIEST: usize = 3;

/// What all rules of an evaluation share.
pub struct Machine<'a> {
    pub database: &'a mut Database,
    budget: Budget<'a>,
    /// How many tuples the rules of each source have derived.
    made: Vec<usize>,
    scratch: Scratch,
    /// Made when a rule is first worth it.
    pool: Option<Pool>,
    /// Buffers for it.
    spare: Vec<Found>,
    /// What each rule takes, if someone asks.
    pub profile: Option<Profile>,
}

impl<'a> Machine<'a> {
    /// For rules of so many `sources`.
    pub fn new(database: &'a mut Database, limits: &'a Limits<'a>, sources: usize) -> Self {
        let (budget, made, scratch) = (Budget::new(limits), vec![0; sources], Scratch::default());
        Machine { database, budget, made, scratch, pool: None, spare: Vec::new(), profile: None }
    }

    /// Whether a rule finds tuples wherever it needs some; of many it does not.
    #[inline]
    pub fn is_ready(&self, rule: &Rule) -> bool {
        let relations = &self.database.relations;
        rule.needs.iter().all(|&(relation, version)| relations[relation.0].count(version) > 0)
    }

    /// Derive all tuples of a prepared rule.
    pub fn apply(&mut self, rule: &Arc<Rule>) -> Run {
        let Database { relations, values } = &mut *self.database;
        let counts = self.profile.as_ref().is_some_and(|profile| profile.steps.is_some());
        let most = if rule.plain && !counts { self.budget.limits.threads } else { 1 };
        let (mut rule, mut parts) = (rule, 1);
        if most > 1 || !rule.orders.is_empty() {
            let (cheapest, cost) = cheapest(rule, relations);
            (rule, parts) = (cheapest, pieces(cheapest, relations, cost, most));
        }
        if parts > 1 {
            let pool = self.pool.get_or_insert_with(|| Pool::new(most));
            threads::prepare(pool, rule, relations, &mut self.budget, most)?;
        }
        for &(relation, version, index) in &rule.searches {
            relations[relation.0].prepare(version, index, relation == rule.head)?;
        }
        let (start, expected) =
            (Instant::now(), if counts { estimates(rule, relations) } else { Vec::new() });
        self.scratch.counts.resize(if counts { rule.steps.len() + 1 } else { 0 }, 0);
        let before = self.budget.derived;
        let mut sink = std::mem::take(&mut relations[rule.head.0].sink);
        let (budget, scratch) = (&mut self.budget, &mut self.scratch);
        let result = if parts > 1 {
            let pool = self.pool.get_or_insert_with(|| Pool::new(most));
            threads::run(pool, rule, relations, &mut sink, &mut self.spare, budget, (most, parts))
        } else {
            let mut head = Head { sink: &mut sink, rows: relations[rule.head.0].rows() };
            Body::new(rule, relations, values, budget, &mut head, scratch).run(&rule.steps).map(|_| ())
        };
        self.database.relations[rule.head.0].sink = sink;
        let new = self.budget.derived - before;
        self.made[rule.source] += new;
        if let (true, Some(profile)) = (counts, &mut self.profile) {
            profile.count(rule, start.elapsed(), new, &expected, &self.scratch.counts[1..]);
            self.scratch.counts.clear();
        }
        result
    }

    /// Say which round of a stratum begins: 0 where its rules run once, then from 1 on.
    pub fn begin_round(&mut self, round: i64) {
        self.scratch.round = round;
        if let Some(profile) = self.profile.as_mut().filter(|_| round > 0) {
            profile.begin_round();
        }
    }

    /// How many tuples rules have derived.
    pub fn derived(&self) -> usize {
        self.budget.derived
    }

    /// Close a relation over its facts.
    pub fn close(&mut self, relation: RelationId) -> Run {
        self.database.relations[relation.0].close(&mut self.budget)
    }

    /// The sources that have derived the most tuples, and how many.
    pub fn busiest(&self) -> Vec<(usize, usize)> {
        let mut made: Vec<_> = self.made.iter().copied().enumerate().filter(|pair| pair.1 > 0).collect();
        made.sort_by_key(|&(source, count)| (std::cmp::Reverse(count), source));
        made.truncate(BUSIEST);
        made.retain(|&(_, count)| count >= self.budget.derived / 100);
        made
    }

    /// Stop at once where the time is over or someone asks.
    pub fn start(&mut self) -> Run {
        self.budget.check(0)
    }
}
