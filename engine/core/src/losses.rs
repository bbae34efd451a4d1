//! Which tuples no longer follow after facts were removed: deletion and rederivation by rounds.
//!
//! Each tuple has a label, from the round that found it, and a proof from tuples with lower labels. So round by round
//! it is decided which of the tuples that may have lost their proof have another one from lower labels: among those of
//! earlier rounds all is decided, and within the round a tuple may get a higher label, as there is room between two
//! rounds. The others are lost, and what follows from them may be. In the end lost tuples that follow from what is left
//! come back, in rounds behind the others. Relations keep all of their rows meanwhile.
//!
//! That needs tables of all tuples. So first all that follows from lost tuples is taken for lost, and what has another
//! proof comes back (Gupta, Mumick and Subrahmanian, "Maintaining views incrementally", 1993): where few tuples are
//! looked at, this is faster. Where it finds too many, and those that have no other proof at all are too many, all is
//! computed anew.

mod labels;

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::budget::{Budget, Limits};
use crate::compile::step::{Expression, Pattern, RelationId, Rule, Step};
use crate::error::{Error, Fault};
use crate::losses::labels::Labels;
use crate::machine::body::{Body, Derived, Run, Scratch};
use crate::machine::cost::cost;
use crate::program::{Program, Stratum};
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
/// Where all that follows from lost tuples is taken for lost, derivations are so many times fewer than the tuples of a
/// recursive stratum.
const CHEAP: usize = 16;
/// So many of the tuples that may be lost tell how many follow from each.
const TRIED: usize = 1 << 10;
/// The label of a proof that does not count rounds is below.
const HIGH: u32 = 1 << 30;

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
        self.labels.bytes() + (self.lost.capacity() + self.moved.capacity()) * size_of::<u32>()
    }
}

/// How lost tuples are found without rounds.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// All that follows from lost ones is taken for lost, and some of it comes back.
    Deleting,
    /// Only those are that have no other proof, not even one from what follows from them: fewer than there are.
    Hoping,
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
        let most = count / SHARES[usize::from(!recursive)] + FEW;
        let cheap = most.max(count / CHEAP + FEW);
        let first = self.begins(losing, stratum, cheap)?;
        if first >= cheap {
            return Ok(false);
        }
        let rounds = stratum.relations.iter().map(|relation| self.relations[relation.0].rounds().len());
        let rounds = rounds.max().unwrap_or(0) as u32;
        self.ordered = orders.iter().map(Order::bytes).sum();
        if self.needs(stratum) > self.budget.limits.memory {
            return Ok(false);
        }
        self.scale = ((1 << 30) / (rounds + 2)).clamp(1, ROOM);
        let settled = stratum.relations.iter().all(|relation| {
            let relation = &self.relations[relation.0];
            relation.len() == relation.visible()
        });
        let labelling = !recursive || first < (most - FEW) / FIRST + FEW;
        if settled {
            let few = self.enlist(stratum, known, Labels::few).and_then(|()| {
                let hopes = (recursive && labelling).then_some(most);
                self.few(losing, known, rounds, (cheap, hopes), orders)
            });
            self.dismiss();
            if let Some(found) = few? {
                return Ok(found);
            }
        } else if !labelling {
            return Ok(false);
        }
        self.left = most;
        let scale = self.scale;
        let found = self.enlist(stratum, known, |relation| Labels::all(relation, scale)).and_then(|()| {
            self.suspect_all(losing)?;
            let found = self.rounds(losing, known, rounds)?;
            if found {
                self.finish(rounds, orders)?;
            }
            Ok(found)
        });
        self.dismiss();
        found
    }

    /// Begin with the relations of a stratum, and with the facts that they have lost.
    fn enlist(
        &mut self,
        stratum: &Stratum,
        known: &Known,
        labels: impl Fn(&mut Relation) -> Result<Labels, Fault>,
    ) -> Result<(), Error> {
        self.queue.clear();
        for &RelationId(relation) in &stratum.relations {
            self.member[relation] = Some(self.members.len());
            let own = &mut self.relations[relation];
            let mut labels = labels(own)?;
            for tuple in &known.lost[relation] {
                let Some(place) = labels.ask(own, tuple)? else { continue };
                let label = labels.of(place);
                if label < LOST {
                    put(&mut self.queue, labels.round(label), (self.members.len(), place as u32));
                    labels.put(place, label | QUEUED);
                }
            }
            let (lost, moved) = (Vec::new(), Vec::new());
            self.members.push(Member { relation, labels, facts: None, lost, moved });
        }
        Ok(())
    }

    fn dismiss(&mut self) {
        for member in std::mem::take(&mut self.members) {
            self.member[member.relation] = None;
        }
    }

    /// Find the lost tuples where few follow from them, in so many derivations. None where there are more, but it may be
    /// that few of them are lost; that is looked at where there is a second number.
    fn few(
        &mut self,
        losing: &[Arc<Rule>],
        known: &Known,
        rounds: u32,
        (most, hopes): (usize, Option<usize>),
        orders: &mut [Order],
    ) -> Result<Option<bool>, Error> {
        self.left = most;
        self.suspect_all(losing)?;
        let first: Vec<_> = self.queue.iter().flatten().copied().collect();
        if self.waves(Way::Deleting, losing, known, rounds)? {
            self.finish(rounds, orders)?;
            return Ok(Some(true));
        }
        let Some(most) = hopes else { return Ok(Some(false)) };
        for Member { labels, lost, moved, .. } in &mut self.members {
            labels.reset();
            lost.clear();
            moved.clear();
        }
        first.iter().for_each(|&(m, place)| self.members[m].labels.put(place as usize, QUEUED));
        (self.queue, self.left) = (vec![first], most);
        Ok(if self.waves(Way::Hoping, losing, known, rounds)? { None } else { Some(false) })
    }

    /// Queue what follows from the tuples that other relations have lost.
    fn suspect_all(&mut self, losing: &[Arc<Rule>]) -> Result<(), Error> {
        let lost = (0..self.member.len()).filter(|&relation| self.lost[relation]);
        lost.collect::<Vec<_>>().into_iter().try_for_each(|relation| self.suspect(losing, relation, 0))
    }

    /// About how many derivations have lost premises that are known; `most` if there are so many or more.
    fn begins(&mut self, losing: &[Arc<Rule>], stratum: &Stratum, most: usize) -> Result<usize, Error> {
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
        Ok(most - tally.left)
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
        for round in 0..=rounds {
            let floor = round * self.scale;
            let waiting = self.queue.get_mut(round as usize).map(std::mem::take).unwrap_or_default();
            let mut open = self.open(waiting, floor, known);
            for (m, rows) in open.iter_mut().enumerate() {
                let found = self.prove(m, rows, floor, floor + self.scale - 1)?;
                let Member { labels, moved, .. } = &mut self.members[m];
                moved.extend(found.iter().filter(|&&place| labels.of(place as usize) != floor));
            }
            self.delete(open, losing, floor + self.scale)?;
            if self.left == 0 {
                return Ok(false);
            }
        }
        self.bring_back(losing, (rounds + 1) * self.scale)?;
        Ok(self.left > 0)
    }

    /// Find the lost tuples in an order in which each follows from those before, however late that was found.
    fn waves(&mut self, way: Way, losing: &[Arc<Rule>], known: &Known, rounds: u32) -> Result<bool, Error> {
        let mut waves = 0;
        while let Some(mut waiting) = self.queue.pop().filter(|waiting| !waiting.is_empty()) {
            // It is tried on the first few how many follow from each.
            while !waiting.is_empty() && self.left > 0 {
                let now = waiting.split_off(waiting.len().saturating_sub(TRIED));
                let (tried, before) = (now.len(), self.queue.iter().map(Vec::len).sum::<usize>());
                let mut open = self.open(now, 0, known);
                if way == Way::Hoping {
                    for (m, places) in open.iter_mut().enumerate() {
                        self.prove(m, places, 0, HIGH)?;
                    }
                }
                self.delete(open, losing, 0)?;
                let next = self.queue.iter().map(Vec::len).sum::<usize>();
                // As many waves like the next one may come as there are rounds left.
                let next = next + waiting.len() * (next - before) / tried;
                let left = (rounds as usize).saturating_sub(waves);
                if waiting.len().saturating_add(next.saturating_mul(left)) > self.left {
                    return Ok(false);
                }
            }
            waves += 1;
        }
        if way == Way::Deleting {
            self.bring_back(losing, (rounds + 1) * self.scale)?;
        }
        Ok(self.left > 0)
    }

    /// Of tuples that wait those that may be lost, by member: facts stay.
    fn open(&mut self, waiting: Vec<(usize, u32)>, floor: u32, known: &Known) -> Vec<Vec<u32>> {
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); self.members.len()];
        for (m, place) in waiting {
            open[m].push(place);
        }
        for (m, places) in open.iter_mut().enumerate().filter(|(_, places)| !places.is_empty()) {
            let Member { relation, labels, facts, .. } = &mut self.members[m];
            let facts = facts.get_or_insert_with(|| (known.facts)(RelationId(*relation)));
            let relation = &self.relations[*relation];
            places.retain(|&place| {
                let place = place as usize;
                let stays = !facts.is_empty() && facts.contains(&*labels.tuple(relation, place));
                labels.put(place, if stays { floor } else { OPEN });
                !stays
            });
        }
        open
    }

    /// Take tuples for lost; those that follow from them, with labels from `least` on, may be.
    fn delete(&mut self, open: Vec<Vec<u32>>, losing: &[Arc<Rule>], least: u32) -> Result<(), Error> {
        for (m, places) in open.into_iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let member = &mut self.members[m];
            places.iter().for_each(|&place| member.labels.put(place as usize, LOST));
            let relation = member.relation;
            self.give(relation, m, &places)?;
            self.members[m].lost.extend(places);
            self.suspect(losing, relation, least)?;
        }
        Ok(())
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
            for (m, row) in self.queue.iter_mut().flat_map(std::mem::take) {
                asked[m].push(row);
            }
            label += 1;
        }
        Ok(())
    }

    /// Put tuples, given by their places, into the relation behind theirs.
    fn give(&mut self, relation: usize, m: usize, places: &[u32]) -> Result<(), Error> {
        let (relations, behind) = self.relations.split_at_mut(self.member.len());
        let labels = &self.members[m].labels;
        let tuples = places.iter().map(|&place| labels.tuple(&relations[relation], place as usize));
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
            let labels = &mut self.members[m].labels;
            let (relation, queue, left) = (&self.relations[head], &mut self.queue, &mut self.left);
            let mut suspects = Suspects { m, relation, labels, queue, least, bytes, left };
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
            let gone = self.members[m].labels.lost(&self.members[m].lost);
            let relation = self.members[m].relation;
            self.give(relation, m, &gone)?;
            self.relations[self.member.len() + relation].cover()?;
            self.lost[relation] = !gone.is_empty();
            let Member { labels: own, moved, .. } = &self.members[m];
            let rows = own.rows(&self.relations[relation], &[gone.as_slice(), moved].concat());
            let (gone, others) = rows.split_at(gone.len());
            let mut gone = gone.to_vec();
            gone.sort_unstable();
            let moved = moved.iter().map(|&place| own.of(place as usize)).zip(others.iter().copied());
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

/// Let a tuple wait for a round.
fn put(queue: &mut Vec<Vec<(usize, u32)>>, round: usize, waiting: (usize, u32)) {
    if queue.len() <= round {
        queue.resize_with(round + 1, Vec::new);
    }
    queue[round].push(waiting);
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
    labels: &'s mut Labels,
    queue: &'s mut Vec<Vec<(usize, u32)>>,
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
        let Some(place) = self.labels.ask(self.relation, tuple)? else { return Ok(true) };
        let label = self.labels.of(place);
        if label == LOST && self.least == LOST {
            self.labels.put(place, OPEN);
            put(self.queue, 0, (self.m, place as u32));
        } else if (self.least..LOST).contains(&label) {
            self.labels.put(place, label | QUEUED);
            put(self.queue, self.labels.round(label), (self.m, place as u32));
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
                let below = self.members[m].labels.label(&self.relations[*relation], premise)? & !QUEUED;
                let below = Some(below).filter(|&below| below < self.bound)?;
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
        let place = member.labels.find(&self.relations[member.relation], &tuple[..self.arity]);
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
