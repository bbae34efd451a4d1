//! Which tuples no longer follow after facts were removed: deletion and rederivation by rounds.
//!
//! Each tuple has a label, from the round that found it, and a proof from tuples with lower labels. So round by round
//! it is decided which of the tuples that may have lost their proof have another one from lower labels: among those of
//! earlier rounds all is decided, and within the round a tuple may get a higher label, as there is room between two
//! rounds. The others are lost, and what follows from them may be. In the end lost tuples that follow from what is left
//! come back, in rounds behind the others. Relations keep all of their rows meanwhile.

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::budget::{Budget, Limits};
use crate::compile::step::{Expression, Pattern, RelationId, Rule, Step};
use crate::error::{Error, Fault};
use crate::machine::body::{Body, Derived, Run, Scratch};
use crate::machine::cost::cost;
use crate::program::{Program, Stratum};
use crate::relation::places::Places;
use crate::relation::{Database, Order, Relation};
use crate::values::Values;

/// The label of a lost tuple.
const LOST: u32 = QUEUED - 1;
/// Set in the label of a tuple that waits for its round.
const QUEUED: u32 = 1 << 31;
/// The label of a tuple while a proof is sought.
const OPEN: u32 = ABSENT - 1;
/// The label of a place without a tuple.
const ABSENT: u32 = u32::MAX - 1;
/// The most labels of a round.
const ROOM: u32 = 1 << 12;
/// To look at one derivation for so many tuples of a recursive stratum, or of another, takes about a tenth of the time in
/// which they are computed. Where it takes more to find the lost tuples, they are computed anew.
const SHARES: [usize; 2] = [64, 2];
/// The first derivations, from lost premises, are so much fewer in a recursive stratum.
const FIRST: usize = 16;
/// A rule that looks at more tuples is first tried on a sample: of the relations with more than so many tuples one in
/// `SAMPLE`.
const MANY: usize = 1 << 16;
const SAMPLE: usize = 64;
/// To put a tuple into an index takes as long as to look at so many.
const INDEXING: f64 = 4.0;
/// So many derivations are always looked at.
const FEW: usize = 1 << 12;

/// A set of tuples.
pub type Tuples = FxHashSet<Box<[i64]>>;

/// The rules that find lost tuples: see `Assembly.find_losses`.
pub struct Losses {
    program: Program,
    /// The ways to find proofs of a relation's tuples, for each of its rules.
    proofs: Vec<Vec<Box<[Proofs]>>>,
}

/// A rule, in one order of its joins, that finds proofs of given tuples: it derives the tuple and the premises.
struct Proofs {
    rule: Rule,
    premises: Box<[(RelationId, Range<usize>)]>,
}

impl Losses {
    /// `json` is a plan over the relations of a program, and as many behind them.
    pub fn new(json: &str, main: &Program, database: &mut Database) -> Result<Self, Error> {
        let Database { relations, values } = database;
        let program = Program::over(json, values, &mut |name, columns| {
            let relation = main.relation(name).ok()?;
            Some(relations[relation.0].index_on(columns))
        })?;
        let same = main.schemas.iter().zip(&program.schemas).all(|(a, b)| a.name == b.name);
        if !same
            || program.schemas.len() != main.schemas.len() * 2
            || program.strata.len() != main.strata.len()
        {
            return Err(Error::Plan("losses of another program".into()));
        }
        let columns = |pattern: &Pattern| match pattern.index {
            Some(index) => relations[pattern.relation.0].indexed(index).to_vec(),
            None => Vec::new(),
        };
        let mut proofs: Vec<_> = main.schemas.iter().map(|_| Vec::new()).collect();
        for stratum in &program.strata {
            for rule in &stratum.rules {
                let ways = std::iter::once(rule).chain(&rule.orders);
                let ways = ways.map(|way| Proofs::new(way, main.schemas.len(), &stratum.relations, &columns));
                proofs[rule.head.0 - main.schemas.len()].push(ways.collect());
            }
        }
        Ok(Losses { program, proofs })
    }

    /// What becomes of the rows of each relation. `lost` has the facts that were removed, `facts` has those that a
    /// derived relation still has. The relations that have to be computed anew are marked.
    pub fn find(
        &self,
        main: &Program,
        database: &mut Database,
        known: &Known,
        anew: &mut [bool],
        limits: &Limits,
    ) -> Result<Vec<Order>, Error> {
        let count = main.schemas.len();
        let Database { relations, values } = database;
        relations.extend_from_slice(&self.program.initial.relations[count..]);
        let mut search = Search {
            losses: self,
            relations,
            values,
            budget: Budget::new(limits),
            scratch: Scratch::default(),
            lost: vec![false; count],
            member: vec![None; count],
            members: Vec::new(),
            queue: Vec::new(),
            scale: 1,
            left: 0,
            ordered: 0,
        };
        let orders = search.orders(main, known, anew);
        database.relations.truncate(count);
        orders
    }
}

/// What a store knows.
pub struct Known<'s> {
    /// Which relations have more than their facts.
    pub derived: &'s [bool],
    /// The strata that are computed.
    pub done: &'s [bool],
    /// The facts that were removed.
    pub lost: &'s [Tuples],
    /// The facts of a derived relation.
    pub facts: &'s dyn Fn(RelationId) -> Tuples,
}

impl Proofs {
    /// `own` has the relations of the stratum: `Prover` looks whether a premise among them is there.
    fn new(rule: &Rule, count: usize, own: &[RelationId], indexed: &impl Fn(&Pattern) -> Vec<usize>) -> Self {
        let (mut args, mut premises, mut steps) = (rule.args.to_vec(), Vec::new(), Vec::new());
        let mut given = 0;
        for step in &rule.steps {
            steps.push(step.clone());
            let (pattern, loads) = match step {
                Step::Scan(pattern, loads) => (pattern, &**loads),
                Step::Exists(pattern) => (pattern, &[][..]),
                _ => continue,
            };
            if pattern.relation.0 >= count {
                given = steps.len();
                continue;
            }
            let bound = indexed(pattern).into_iter().zip(pattern.values.iter().cloned());
            let free = loads.iter().map(|&(column, register)| (column, Expression::Register(register)));
            let mut columns: Vec<_> = bound.chain(free).collect();
            columns.sort_by_key(|&(column, _)| column);
            premises.push((pattern.relation, args.len()..args.len() + columns.len()));
            args.extend(columns.into_iter().map(|(_, value)| value));
            if matches!(step, Step::Exists(_)) && own.contains(&pattern.relation) {
                steps.pop();
            }
        }
        let cut = steps.len() - given; // one proof of each given tuple is enough
        let (args, steps, orders) = (args.into(), steps.into(), Box::default());
        let rule = Rule { args, steps, emit: None, cut, orders, ..rule.clone() };
        Proofs { rule, premises: premises.into() }
    }
}

/// A relation of the stratum.
struct Member {
    relation: usize,
    places: Places,
    labels: Labels,
    /// Read when they are first asked for.
    facts: Option<Tuples>,
    /// Places of tuples that are lost, or were before they came back.
    lost: Vec<u32>,
    /// Places of tuples that have got other labels.
    moved: Vec<u32>,
}

impl Member {
    fn bytes(&self) -> usize {
        let words = self.labels.rows.len() + self.labels.changed.len() + self.lost.len() + self.moved.len();
        self.places.bytes() + words * size_of::<u32>()
    }
}

/// The labels of tuples, by place.
struct Labels {
    /// The row of each place; `NONE` without a tuple.
    rows: Vec<u32>,
    /// The label behind the one that has taken the place of the round's; 0: none has. Most stay so, untouched.
    changed: Vec<u32>,
    /// The first row of each round but the first.
    rounds: Vec<usize>,
    /// The labels of a round.
    scale: u32,
}

const NONE: u32 = u32::MAX;

impl Labels {
    fn new(relation: &Relation, places: &Places, scale: u32) -> Self {
        let mut rows = vec![NONE; places.count()];
        (0..).zip(relation.by_row(places)).for_each(|(row, place)| rows[place] = row);
        Labels { rows, changed: vec![0; places.count()], rounds: relation.rounds().to_vec(), scale }
    }

    #[inline]
    fn of(&self, place: usize) -> u32 {
        match (self.changed[place], self.rows[place]) {
            (0, NONE) => ABSENT,
            (0, row) => self.rounds.partition_point(|&first| first <= row as usize) as u32 * self.scale,
            (behind, _) => behind - 1,
        }
    }

    #[inline]
    fn put(&mut self, place: usize, label: u32) {
        self.changed[place] = label + 1;
    }
}

struct Search<'a, 'l> {
    losses: &'a Losses,
    /// The relations of the program, then those for lost and for given tuples.
    relations: &'a mut Vec<Relation>,
    values: &'a mut Values,
    budget: Budget<'l>,
    scratch: Scratch,
    /// Which relations have lost tuples; these are in the relation behind.
    lost: Vec<bool>,
    /// Which member of the stratum a relation is.
    member: Vec<Option<usize>>,
    members: Vec<Member>,
    /// The tuples that may be lost, by their rounds: members and places.
    queue: Vec<Vec<(usize, u32)>>,
    /// The labels of a round.
    scale: u32,
    /// How many derivations may still be looked at.
    left: usize,
    /// How many bytes the orders take that are known.
    ordered: usize,
}

impl Search<'_, '_> {
    fn orders(&mut self, main: &Program, known: &Known, anew: &mut [bool]) -> Result<Vec<Order>, Error> {
        let mut orders: Vec<Order> = main.schemas.iter().map(|_| Order::default()).collect();
        for (relation, order) in orders.iter_mut().enumerate() {
            let lost = &known.lost[relation];
            if !known.derived[relation] && !lost.is_empty() {
                *order = without(&self.relations[relation], lost);
                self.lose(relation, lost.iter())?;
            }
        }
        for (number, stratum) in main.strata.iter().enumerate() {
            let own = |relation: RelationId| stratum.relations.contains(&relation);
            let mut changed = stratum.relations.iter().any(|relation| !known.lost[relation.0].is_empty());
            let mut again = stratum.relations.iter().any(|relation| anew[relation.0]);
            if !known.done[number] {
                stratum.relations.iter().for_each(|relation| anew[relation.0] |= changed);
                continue;
            }
            for rule in stratum.all_rules() {
                rule.reads(&mut |relation, grows| {
                    if !own(relation) {
                        changed |= self.lost[relation.0];
                        again |= anew[relation.0] || self.lost[relation.0] && !grows;
                    }
                });
            }
            let rules = &self.losses.program.strata[number];
            if !again && changed {
                again = match &rules.updates {
                    Some(losing) => {
                        let recursive = !stratum.recursive.is_empty();
                        !self.stratum(rules, losing, recursive, known, &mut orders)?
                    }
                    None => true,
                };
            }
            if again {
                stratum.relations.iter().for_each(|relation| anew[relation.0] = true);
            }
        }
        Ok(orders)
    }

    /// Note the lost tuples of a relation.
    fn lose(&mut self, relation: usize, lost: impl Iterator<Item = impl AsRef<[i64]>>) -> Result<(), Error> {
        let behind = self.member.len() + relation;
        self.relations[behind].fill(lost)?;
        self.relations[behind].cover()?;
        self.lost[relation] = !self.relations[behind].is_empty();
        Ok(())
    }

    /// Find the lost tuples of a stratum; false where there are too many.
    fn stratum(
        &mut self,
        stratum: &Stratum,
        losing: &[Arc<Rule>],
        recursive: bool,
        known: &Known,
        orders: &mut [Order],
    ) -> Result<bool, Error> {
        let count: usize =
            stratum.relations.iter().map(|relation| self.relations[relation.0].visible()).sum();
        self.left = count / SHARES[usize::from(!recursive)] + FEW;
        if !self.begins(losing, stratum, recursive)? {
            return Ok(false);
        }
        let rounds = stratum.relations.iter().map(|relation| self.relations[relation.0].rounds().len());
        let rounds = rounds.max().unwrap_or(0) as u32;
        self.ordered = orders.iter().map(Order::bytes).sum();
        if self.needs(stratum) > self.budget.limits.memory {
            return Ok(false);
        }
        self.scale = ((1 << 30) / (rounds + 2)).clamp(1, ROOM);
        self.queue = vec![Vec::new(); rounds as usize + 1];
        self.members.clear();
        for &RelationId(relation) in &stratum.relations {
            self.member[relation] = Some(self.members.len());
            let places = self.relations[relation].places()?;
            let own = &self.relations[relation];
            let mut labels = Labels::new(own, &places, self.scale);
            for place in known.lost[relation].iter().filter_map(|tuple| own.place(&places, tuple)) {
                let label = labels.of(place);
                if label < LOST {
                    self.queue[(label / self.scale) as usize].push((self.members.len(), place as u32));
                    labels.put(place, label | QUEUED);
                }
            }
            let (lost, moved) = (Vec::new(), Vec::new());
            self.members.push(Member { relation, places, labels, facts: None, lost, moved });
        }
        let found = self.rounds(losing, known, rounds);
        if let Ok(true) = found {
            self.finish(rounds, orders)?;
        }
        for member in std::mem::take(&mut self.members) {
            self.member[member.relation] = None;
        }
        found
    }

    /// Whether few derivations have lost premises, so that it may pay to look at them.
    fn begins(&mut self, losing: &[Arc<Rule>], stratum: &Stratum, recursive: bool) -> Result<bool, Error> {
        let most = (self.left - FEW) / if recursive { FIRST } else { 1 } + FEW;
        let mut tally = Tally { left: most, each: 1 };
        let mut samples = FxHashMap::default();
        let lost = (0..self.member.len()).filter(|&relation| self.lost[relation]);
        for relation in lost.collect::<Vec<_>>() {
            for rule in self.starting(losing, relation) {
                if stratum.relations.contains(&RelationId(rule.head.0 - self.member.len())) {
                    let large = self.large(rule);
                    tally.each = SAMPLE.pow(large.len() as u32);
                    let distinct: FxHashSet<usize> = large.into_iter().collect();
                    for &relation in &distinct {
                        if let Entry::Vacant(sample) = samples.entry(relation) {
                            sample.insert(self.relations[relation].sample(SAMPLE)?);
                        }
                    }
                    let mut swap = |search: &mut Self| {
                        for relation in &distinct {
                            let sample = samples.get_mut(relation).into_iter();
                            sample
                                .for_each(|sample| std::mem::swap(sample, &mut search.relations[*relation]));
                        }
                    };
                    swap(self);
                    let applied = self.apply(rule, &mut tally);
                    swap(self);
                    applied?;
                }
            }
        }
        Ok(tally.left > 0)
    }

    /// The relations of which a rule reads samples, once for each time that it reads them.
    fn large(&mut self, rule: &Arc<Rule>) -> Vec<usize> {
        let rule = cheapest(rule, self.relations);
        if cost(rule, self.relations, INDEXING) < MANY as f64 {
            return Vec::new();
        }
        let (mut large, mut others) = (Vec::new(), false);
        for step in &rule.steps {
            match step {
                Step::Scan(Pattern { relation, .. }, _) | Step::Exists(Pattern { relation, .. }) => {
                    let behind = relation.0 >= self.member.len();
                    if !behind && self.relations[relation.0].visible() > MANY {
                        large.push(relation.0);
                    }
                }
                Step::Absent(_) | Step::Aggregate(..) => others = true,
                _ => {}
            }
        }
        if others || large.len() > 2 {
            large.clear(); // a sample would not tell
        }
        large
    }

    fn rounds(&mut self, losing: &[Arc<Rule>], known: &Known, rounds: u32) -> Result<bool, Error> {
        for relation in 0..self.member.len() {
            if self.lost[relation] {
                self.suspect(losing, relation, 0)?;
            }
        }
        for round in 0..=rounds {
            let mut open: Vec<Vec<u32>> = vec![Vec::new(); self.members.len()];
            for (m, row) in std::mem::take(&mut self.queue[round as usize]) {
                open[m].push(row);
            }
            let floor = round * self.scale;
            for (m, rows) in open.iter_mut().enumerate().filter(|(_, rows)| !rows.is_empty()) {
                let member = &mut self.members[m];
                let relation = &self.relations[member.relation];
                let facts = member.facts.get_or_insert_with(|| (known.facts)(RelationId(member.relation)));
                let labels = &mut member.labels;
                rows.retain(|&place| {
                    let place = place as usize;
                    let stays =
                        !facts.is_empty() && facts.contains(&*relation.tuple(labels.rows[place] as usize));
                    labels.put(place, if stays { floor } else { OPEN });
                    !stays
                });
            }
            for (m, rows) in open.iter_mut().enumerate() {
                let found = self.prove(m, rows, floor, floor + self.scale - 1)?;
                let Member { labels, moved, .. } = &mut self.members[m];
                moved.extend(found.iter().filter(|&&place| labels.of(place as usize) != floor));
            }
            for (m, rows) in open.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
                let member = &mut self.members[m];
                rows.iter().for_each(|&place| member.labels.put(place as usize, LOST));
                let relation = member.relation;
                self.give(relation, m, &rows)?;
                self.members[m].lost.extend(rows);
                self.suspect(losing, relation, floor + self.scale)?;
            }
            if self.left == 0 {
                return Ok(false);
            }
        }
        self.bring_back(losing, (rounds + 1) * self.scale)?;
        Ok(self.left > 0)
    }

    /// Let lost tuples that follow from what is left come back, with labels from `label` on.
    fn bring_back(&mut self, losing: &[Arc<Rule>], mut label: u32) -> Result<(), Error> {
        let mut asked: Vec<Vec<u32>> = self.members.iter().map(|member| member.lost.clone()).collect();
        while self.left > 0 && asked.iter().any(|rows| !rows.is_empty()) {
            let mut back = Vec::new();
            for (m, rows) in asked.iter_mut().enumerate() {
                let labels = &mut self.members[m].labels;
                rows.iter().for_each(|&place| labels.put(place as usize, OPEN));
            }
            for (m, rows) in asked.iter_mut().enumerate() {
                back.push(self.prove(m, rows, label, label)?);
            }
            for (m, rows) in asked.iter_mut().enumerate() {
                let member = &mut self.members[m];
                rows.drain(..).for_each(|place| member.labels.put(place as usize, LOST));
                member.moved.extend(&back[m]);
            }
            for (m, rows) in back.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
                let relation = self.members[m].relation;
                self.give(relation, m, &rows)?;
                self.suspect(losing, relation, LOST)?;
            }
            for (m, row) in std::mem::take(&mut self.queue[0]) {
                asked[m].push(row);
            }
            label += 1;
        }
        Ok(())
    }

    /// Put tuples, given by their places, into the relation behind theirs.
    fn give(&mut self, relation: usize, m: usize, places: &[u32]) -> Result<(), Error> {
        let (relations, behind) = self.relations.split_at_mut(self.member.len());
        let rows = &self.members[m].labels.rows;
        let tuples = places.iter().map(|&place| relations[relation].tuple(rows[place as usize] as usize));
        Ok(behind[relation].fill(tuples)?)
    }

    /// About how many bytes all takes with the tables for a stratum, or afterwards, while relations are rearranged one
    /// by one.
    fn needs(&self, stratum: &Stratum) -> usize {
        let tuples = stratum.relations.iter().map(|relation| self.relations[relation.0].visible());
        let tables = tuples.sum::<usize>() * 4 * size_of::<u32>(); // half of the places may be free
        let copy = self.relations.iter().map(Relation::rearranging).max().unwrap_or(0);
        let relations = self.relations.iter().map(Relation::bytes).sum::<usize>();
        relations + self.values.bytes() + self.ordered + tables.max(copy)
    }

    /// What the tables take, besides relations.
    fn bytes(&self) -> usize {
        self.ordered + self.members.iter().map(Member::bytes).sum::<usize>()
    }

    /// The rules that start from the tuples behind a relation.
    fn starting<'r>(
        &self,
        losing: &'r [Arc<Rule>],
        relation: usize,
    ) -> impl Iterator<Item = &'r Arc<Rule>> + 'r {
        let behind = RelationId(self.member.len() + relation);
        let starts = move |step: &Step| match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) => pattern.relation == behind,
            _ => false,
        };
        losing.iter().filter(move |rule| rule.steps.iter().any(starts))
    }

    /// Give what a rule derives to `derived`.
    fn apply(&mut self, rule: &Arc<Rule>, derived: &mut impl Derived) -> Result<(), Error> {
        let rule = cheapest(rule, self.relations);
        prepare(rule, self.relations).map_err(|fault| self.error(rule, fault))?;
        let (budget, scratch) = (&mut self.budget, &mut self.scratch);
        let result = Body::new(rule, self.relations, self.values, budget, derived, scratch).run(&rule.steps);
        result.map(|_| ()).map_err(|fault| self.error(rule, fault))
    }

    /// Queue the tuples, with labels from `least` on, that follow from those behind a relation; where it is `LOST`,
    /// those that are lost.
    fn suspect(&mut self, losing: &[Arc<Rule>], relation: usize, least: u32) -> Result<(), Error> {
        for rule in self.starting(losing, relation) {
            let head = rule.head.0 - self.member.len();
            let Some(m) = self.member[head] else { continue };
            let rule = cheapest(rule, self.relations);
            prepare(rule, self.relations).map_err(|fault| self.error(rule, fault))?;
            let bytes = self.bytes();
            let Member { places, labels, .. } = &mut self.members[m];
            let (relation, queue, left) = (&self.relations[head], &mut self.queue, &mut self.left);
            let mut suspects = Suspects { m, relation, places, labels, queue, least, bytes, left };
            let (budget, scratch) = (&mut self.budget, &mut self.scratch);
            let result =
                Body::new(rule, self.relations, self.values, budget, &mut suspects, scratch).run(&rule.steps);
            result.map_err(|fault| self.error(rule, fault))?;
        }
        Ok(())
    }

    /// Find proofs of tuples, given by their places, from tuples with labels below `bound`; their labels become `floor` or
    /// more. Returns the places of those that have one, and leaves the others.
    fn prove(&mut self, m: usize, rows: &mut Vec<u32>, floor: u32, bound: u32) -> Result<Vec<u32>, Error> {
        let (losses, mut proven) = (self.losses, Vec::new());
        let relation = self.members[m].relation;
        for ways in &losses.proofs[relation] {
            if rows.is_empty() {
                break;
            }
            self.give(relation, m, rows)?;
            let costs = ways.iter().map(|way| cost(&way.rule, self.relations, INDEXING));
            let cheapest = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
            let Proofs { rule, premises } = &ways[cheapest];
            prepare(rule, self.relations).map_err(|fault| self.error(rule, fault))?;
            let arity = self.relations[relation].arity();
            let (relations, member, lost) = (&*self.relations, &self.member, &self.lost);
            let members = &mut self.members;
            let (left, ordered) = (&mut self.left, self.ordered);
            let mut prover =
                Prover { m, arity, relations, member, members, lost, ordered, premises, floor, bound, left };
            let mut body =
                Body::new(rule, relations, self.values, &mut self.budget, &mut prover, &mut self.scratch);
            let result = body.run(&rule.steps);
            result.map_err(|fault| self.error(rule, fault))?;
            let labels = &self.members[m].labels;
            rows.retain(|&place| {
                let open = labels.of(place as usize) == OPEN;
                if !open {
                    proven.push(place);
                }
                open
            });
        }
        Ok(proven)
    }

    /// Say what becomes of the rows of the stratum's relations.
    fn finish(&mut self, rounds: u32, orders: &mut [Order]) -> Result<(), Error> {
        if self.members.iter().all(|member| member.lost.is_empty() && member.moved.is_empty()) {
            return Ok(());
        }
        let scale = self.scale;
        let moved = self
            .members
            .iter()
            .flat_map(|Member { moved, labels, .. }| moved.iter().map(|&place| labels.of(place as usize)));
        let mut labels: Vec<u32> = (0..=rounds).map(|round| round * scale).chain(moved).collect();
        labels.sort_unstable();
        labels.dedup();
        for m in 0..self.members.len() {
            let mut gone = std::mem::take(&mut self.members[m].lost);
            gone.retain(|&place| self.members[m].labels.of(place as usize) == LOST);
            let relation = self.members[m].relation;
            self.give(relation, m, &gone)?;
            self.relations[self.member.len() + relation].cover()?;
            self.lost[relation] = !gone.is_empty();
            let Member { labels: own, moved, .. } = &self.members[m];
            gone.iter_mut().for_each(|place| *place = own.rows[*place as usize]);
            gone.sort_unstable();
            let moved = moved.iter().map(|&place| (own.of(place as usize), own.rows[place as usize]));
            let mut moved: Vec<(u32, u32)> = moved.collect();
            moved.sort_unstable();
            orders[relation] = Order { gone, moved, labels: labels.clone(), scale };
        }
        Ok(())
    }

    fn error(&self, rule: &Rule, fault: Fault) -> Error {
        match fault {
            Fault::Interrupted => Error::Interrupted,
            _ => Error::Rule { place: self.losses.program.place(rule.source), fault, made: Vec::new() },
        }
    }
}

/// The order of the rows of a relation without some of its tuples.
pub fn without(relation: &Relation, lost: &Tuples) -> Order {
    let mut tuple = Vec::new();
    let gone = (0..relation.visible()).filter(|&row| {
        tuple.clear();
        tuple.extend((0..relation.arity()).map(|column| relation.word(row, column)));
        lost.contains(&*tuple)
    });
    let gone = gone.map(|row| row as u32).collect();
    Order { gone, moved: Vec::new(), labels: (0..=relation.rounds().len() as u32).collect(), scale: 1 }
}

/// The first of the orders of a rule that look at the fewest tuples now.
fn cheapest<'r>(rule: &'r Arc<Rule>, relations: &mut [Relation]) -> &'r Arc<Rule> {
    let mut orders = std::iter::once(rule).chain(&rule.orders);
    let costs = orders.by_ref().map(|order| (order, cost(order, relations, INDEXING)));
    costs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(rule, |(order, _)| order)
}

/// Bring the indexes up to date that a rule searches.
fn prepare(rule: &Rule, relations: &mut [Relation]) -> Run {
    rule.searches
        .iter()
        .try_for_each(|&(relation, version, index)| relations[relation.0].prepare(version, index, false))
}

/// Counts derivations.
struct Tally {
    left: usize,
    /// For how many each one counts.
    each: usize,
}

impl Derived for Tally {
    fn insert(&mut self, _: &[i64], _: &mut Budget) -> Run<bool> {
        self.left = self.left.saturating_sub(self.each);
        Ok(true)
    }

    fn extend(&mut self, _: &mut [i64], _: usize, words: &[u32], _: &mut Budget) -> Run {
        self.left = self.left.saturating_sub(self.each.saturating_mul(words.len()));
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Takes tuples that may be lost.
struct Suspects<'s> {
    m: usize,
    relation: &'s Relation,
    places: &'s Places,
    labels: &'s mut Labels,
    queue: &'s mut [Vec<(usize, u32)>],
    least: u32,
    /// What the tables of the search take.
    bytes: usize,
    /// How many derivations may still be looked at.
    left: &'s mut usize,
}

impl Derived for Suspects<'_> {
    fn insert(&mut self, tuple: &[i64], _: &mut Budget) -> Run<bool> {
        *self.left = self.left.saturating_sub(1);
        if *self.left == 0 {
            return Ok(true); // it is given up
        }
        let Some(place) = self.relation.place(self.places, tuple) else { return Ok(true) };
        let label = self.labels.of(place);
        if label == LOST && self.least == LOST {
            self.labels.put(place, OPEN);
            self.queue[0].push((self.m, place as u32));
        } else if (self.least..LOST).contains(&label) {
            self.labels.put(place, label | QUEUED);
            self.queue[(label / self.labels.scale) as usize].push((self.m, place as u32));
        }
        Ok(true)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Takes tuples with the premises from which they follow.
struct Prover<'s> {
    m: usize,
    arity: usize,
    relations: &'s [Relation],
    member: &'s [Option<usize>],
    members: &'s mut [Member],
    lost: &'s [bool],
    ordered: usize,
    premises: &'s [(RelationId, Range<usize>)],
    floor: u32,
    bound: u32,
    /// How many derivations may still be looked at.
    left: &'s mut usize,
}

impl Prover<'_> {
    /// The label that premises give; None where one does not count.
    fn label(&self, tuple: &[i64]) -> Option<u32> {
        let mut label = self.floor;
        for (RelationId(relation), columns) in self.premises {
            let premise = &tuple[columns.clone()];
            if let Some(m) = self.member[*relation] {
                let member = &self.members[m];
                let place = self.relations[*relation].place(&member.places, premise)?;
                let below = Some(member.labels.of(place) & !QUEUED).filter(|&below| below < self.bound)?;
                label = label.max(below + 1);
            } else if self.lost[*relation] && self.relations[self.member.len() + relation].contains(premise) {
                return None;
            }
        }
        Some(label)
    }
}

impl Derived for Prover<'_> {
    fn insert(&mut self, tuple: &[i64], _: &mut Budget) -> Run<bool> {
        *self.left = self.left.saturating_sub(1);
        let member = &self.members[self.m];
        let place = self.relations[member.relation].place(&member.places, &tuple[..self.arity]);
        let Some(place) = place.filter(|_| *self.left > 0) else { return Ok(*self.left == 0) };
        if member.labels.of(place) != OPEN {
            return Ok(true); // it has a proof
        }
        let Some(label) = self.label(tuple) else { return Ok(false) };
        self.members[self.m].labels.put(place, label);
        Ok(true)
    }

    fn bytes(&self) -> usize {
        self.ordered + self.members.iter().map(Member::bytes).sum::<usize>()
    }
}
