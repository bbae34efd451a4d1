//! A program with facts that come bit by bit: each evaluation goes on from what the last one has found.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::budget::Limits;
use crate::compile::step::RelationId;
use crate::error::{Error, Fault};
use crate::losses::{without, Known, Losses, Tuples};
use crate::machine::profile::{Profile, Record, Steps};
use crate::machine::Machine;
use crate::program::{Program, Stratum, StratumId};
use crate::relation::set::packed;
use crate::relation::{Database, Order, Relation};
use crate::values::made;

pub struct Store {
    pub program: Arc<Program>,
    pub database: Database,
    /// The facts of relations that have others as well, which are computed anew from these.
    given: Vec<Given>,
    /// Which relations have more than their facts: they have rules, or are closed.
    derived: Vec<bool>,
    /// The strata whose relations have all that follows from the facts of the last evaluation.
    done: Vec<bool>,
    /// How many tuples each relation had at the end of the last evaluation.
    seen: Vec<usize>,
    /// No fact has come since.
    settled: bool,
    /// The facts whose symbols are to be noted as they appear, in the order in which they came: their relation, and
    /// how many it has with them.
    added: Vec<(RelationId, usize)>,
    /// How many facts of each relation have been noted, or stand in the text.
    noted: Vec<usize>,
    /// How many symbols there were at the end of the last evaluation.
    symbols: usize,
    /// What was computed no longer follows: a symbol has got another ordinal.
    outdated: bool,
    /// The facts that were taken since, of relations that still have them in their rows.
    lost: Vec<Tuples>,
    /// Finds what no longer follows without them.
    losses: Option<Losses>,
    /// The relations that are to be computed anew, or from which facts were taken in a way that asks for it of what
    /// depends on them.
    taken: Vec<bool>,
    /// What the rules of this evaluation take, if someone asks.
    profile: Option<Profile>,
}

#[derive(Default)]
struct Given {
    words: Vec<i64>,
    count: usize,
}

/// How much memory there is for more facts.
pub struct Room {
    memory: usize,
    /// How much the facts took before.
    before: usize,
}

/// Facts between two looks at how much they take.
const PATIENCE: usize = 1 << 16;
/// Of fewer facts it is seen one by one whether they are distinct.
const MANY: usize = 1 << 16;

impl Room {
    /// An error where the facts take more than there may be. `read` says which part of those that come has been read,
    /// as how many of how many; None: nobody knows, or all of them.
    pub fn check(&self, taken: usize, read: Option<(usize, usize)>) -> Result<(), Error> {
        if taken <= self.memory {
            return Ok(());
        }
        let all = read.map(|(some, all)| {
            let more = taken.saturating_sub(self.before) as f64 * (all as f64 / some.max(1) as f64);
            self.before + more as usize
        });
        let [all, most] = [all.unwrap_or(taken), self.memory].map(|bytes| bytes.div_ceil(1 << 20));
        let about = if read.is_some() { "about" } else { "at least" };
        Err(Error::Input(format!(
            "the facts take {about} {all} MiB of memory, and the limit is {most}; raise the limit, or give fewer facts"
        )))
    }
}

/// What has become of a relation since the last evaluation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// It has what it had, and more: its delta.
    Grown,
    /// It was computed anew.
    Anew,
}

impl Store {
    pub fn new(program: Arc<Program>) -> Self {
        let given: Vec<_> = program.schemas.iter().map(|_| Given::default()).collect();
        let mut derived: Vec<_> = program.initial.relations.iter().map(Relation::is_eqrel).collect();
        for relation in program.strata.iter().flat_map(|stratum| &stratum.relations) {
            derived[relation.0] = true;
        }
        let (mut database, done) = (program.database(), vec![false; program.strata.len()]);
        let (seen, taken) = (vec![0; given.len()], vec![false; given.len()]);
        let stated = program.initial.relations.iter().zip(&derived);
        let noted = stated.map(|(facts, &derived)| if derived { 0 } else { facts.len() }).collect();
        program.appear_in_text(&mut database.values);
        let symbols = database.values.count();
        Store {
            program,
            database,
            given,
            derived,
            done,
            seen,
            settled: true,
            added: Vec::new(),
            noted,
            symbols,
            outdated: false,
            lost: vec![Tuples::default(); taken.len()],
            losses: None,
            taken,
            profile: None,
        }
    }

    /// Add a fact.
    pub fn give(&mut self, relation: RelationId, tuple: &[i64]) -> Result<(), Error> {
        self.settled = false;
        if !self.lost[relation.0].is_empty() {
            self.lost[relation.0].remove(tuple);
        }
        if self.derived[relation.0] {
            let given = &mut self.given[relation.0];
            given.words.extend_from_slice(tuple);
            given.count += 1;
        }
        let facts = &mut self.database.relations[relation.0];
        facts.give(tuple)?;
        let last = if self.derived[relation.0] { self.given[relation.0].count } else { facts.len() };
        match self.added.last_mut() {
            Some(added) if added.0 == relation => added.1 = last,
            _ => self.added.push((relation, last)),
        }
        Ok(())
    }

    /// Add facts, so many, each as `copy` writes it: all of them, or none if there is no `room`.
    pub fn give_all(
        &mut self,
        relation: RelationId,
        count: usize,
        room: &Room,
        copy: impl Fn(usize, &mut [i64]),
    ) -> Result<(), Error> {
        let mut tuple = vec![0; self.program.schema(relation).columns.len()];
        if self.give_distinct(relation, count, room, &mut tuple, &copy)? {
            return Ok(());
        }
        let (mut found, lost) = (Vec::new(), &self.lost[relation.0]);
        for fact in if lost.is_empty() { 0..0 } else { 0..count } {
            copy(fact, &mut tuple);
            found.extend(lost.get(&*tuple).cloned());
        }
        let (facts, given) = (&self.database.relations[relation.0], &self.given[relation.0]);
        let (tuples, waiting, words, number) = (facts.len(), facts.waiting(), given.words.len(), given.count);
        let (settled, added, last) = (self.settled, self.added.len(), self.added.last().copied());
        let mut give = || {
            if self.derived[relation.0] {
                let room = self.given[relation.0].words.try_reserve_exact(count * tuple.len());
                room.map_err(|_| Fault::OutOfMemory)?;
            }
            self.database.relations[relation.0].reserve(count)?;
            for fact in 0..count {
                if fact % PATIENCE == 0 {
                    room.check(self.taken(), None)?;
                }
                copy(fact, &mut tuple);
                self.give(relation, &tuple)?;
            }
            room.check(self.taken(), None)
        };
        let result = give();
        if result.is_err() {
            self.database.relations[relation.0].shorten(tuples, waiting);
            let given = &mut self.given[relation.0];
            given.words.truncate(words);
            given.words.shrink_to_fit();
            given.count = number;
            self.added.truncate(added);
            if let (Some(now), Some(last)) = (self.added.last_mut(), last) {
                *now = last;
            }
            self.lost[relation.0].extend(found);
            self.settled = settled;
        }
        result
    }

    /// As `give_all` where they are many, the first ones, and distinct, so that no set is needed before a rule asks for
    /// it; otherwise false.
    fn give_distinct(
        &mut self,
        relation: RelationId,
        count: usize,
        room: &Room,
        tuple: &mut [i64],
        copy: &impl Fn(usize, &mut [i64]),
    ) -> Result<bool, Error> {
        let facts = &self.database.relations[relation.0];
        if count < MANY
            || self.derived[relation.0]
            || !self.lost[relation.0].is_empty()
            || !facts.is_empty()
            || facts.is_eqrel()
        {
            return Ok(false);
        }
        let mut give = || -> Result<bool, Error> {
            self.database.relations[relation.0].reserve_rows(count)?;
            for fact in 0..count {
                if fact % PATIENCE == 0 {
                    room.check(self.taken(), None)?;
                }
                copy(fact, tuple);
                if packed(tuple).is_none() {
                    return Ok(false);
                }
                self.database.relations[relation.0].sink.push(tuple)?;
            }
            room.check(self.taken(), None)?;
            Ok(self.database.relations[relation.0].sink.is_distinct())
        };
        let given = give();
        if let Ok(true) = given {
            self.settled = false;
            self.added.push((relation, count));
        } else {
            self.database.relations[relation.0].shorten(0, 0);
        }
        given
    }

    /// The room for more facts, where all may take so many bytes.
    pub fn room(&self, memory: usize) -> Room {
        Room { memory, before: self.taken() }
    }

    /// How many bytes the facts take.
    pub fn taken(&self) -> usize {
        let Database { relations, values } = &self.database;
        let computed = self.done.contains(&true);
        let own = relations.iter().zip(&self.derived).filter(|&(_, derived)| !(computed && *derived));
        let given = self.given.iter().map(|given| given.words.capacity() * size_of::<i64>());
        own.map(|(relation, _)| relation.bytes()).sum::<usize>() + given.sum::<usize>() + values.bytes()
    }

    /// Take the plan that finds what no longer follows without facts.
    pub fn plan_losses(&mut self, json: &str) -> Result<(), Error> {
        self.losses = Some(Losses::new(json, &self.program, &mut self.database)?);
        Ok(())
    }

    /// Take facts away that were given. Those that are not there are ignored, and those in the program's text stay.
    pub fn take(&mut self, relation: RelationId, facts: &Tuples) -> Result<(), Error> {
        self.note_appearances();
        let stated: Tuples =
            self.program.initial.relations[relation.0].facts().into_iter().map(Vec::into).collect();
        let taken: Tuples = facts.difference(&stated).cloned().collect();
        let width = self.program.schema(relation).columns.len();
        let kept = &mut self.database.relations[relation.0];
        if self.derived[relation.0] {
            let Given { words, count } = &mut self.given[relation.0];
            let facts = (0..*count).map(|fact| &words[fact * width..][..width]);
            let (mut left, mut number) = (Vec::new(), 0);
            for fact in facts {
                if taken.contains(fact) {
                    self.lost[relation.0].insert(fact.into());
                } else {
                    left.extend_from_slice(fact);
                    number += 1;
                }
            }
            (*words, *count) = (left, number);
            self.noted[relation.0] = number;
            if kept.is_eqrel() || width == 0 {
                self.taken[relation.0] = true; // its facts are not in its rows
            } else {
                kept.forget(|tuple| taken.contains(tuple))?;
            }
        } else if width == 0 {
            if !taken.is_empty() {
                kept.clear();
                self.seen[relation.0] = 0;
            }
            self.taken[relation.0] = true;
            self.noted[relation.0] = kept.len();
        } else {
            kept.forget(|tuple| taken.contains(tuple))?;
            for tuple in taken {
                if kept.has_tuple(&tuple)? {
                    self.lost[relation.0].insert(tuple);
                }
            }
            self.noted[relation.0] = kept.len();
        }
        self.settled = false;
        self.outdated |= self.program.ordinals;
        Ok(())
    }

    /// Delete the facts that were taken; the next evaluation computes anew what depends on them.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.lost.iter().all(Tuples::is_empty) {
            return Ok(());
        }
        self.note_appearances();
        for relation in 0..self.lost.len() {
            let lost = std::mem::take(&mut self.lost[relation]);
            if lost.is_empty() {
                continue;
            }
            self.taken[relation] = true;
            if !self.derived[relation] {
                let order = without(&self.database.relations[relation], &lost);
                self.rearrange(relation, &order)?;
            }
        }
        Ok(())
    }

    /// Delete the facts that were taken, and what no longer follows.
    fn lose(&mut self, limits: &Limits) -> Result<(), Error> {
        if self.losses.is_none() || self.lost.iter().all(Tuples::is_empty) {
            return self.flush();
        }
        self.note_appearances();
        let Store { program, database, given, derived, done, lost, losses, taken, .. } = self;
        let facts = |relation: RelationId| -> Tuples {
            let Given { words, .. } = &given[relation.0];
            let given = words.chunks_exact(program.schema(relation).columns.len().max(1)).map(Box::from);
            program.initial.relations[relation.0].facts().into_iter().map(Vec::into).chain(given).collect()
        };
        let known = Known { derived, done, lost, facts: &facts };
        let orders = match losses {
            Some(losses) => losses.find(program, database, &known, taken, limits)?,
            None => Vec::new(),
        };
        for (relation, order) in orders.iter().enumerate().filter(|(_, order)| !order.labels.is_empty()) {
            self.rearrange(relation, order)?;
        }
        self.lost.iter_mut().for_each(Tuples::clear);
        Ok(())
    }

    fn rearrange(&mut self, relation: usize, order: &Order) -> Result<(), Error> {
        let rows = &mut self.database.relations[relation];
        self.seen[relation] = rows.rearrange(order, self.seen[relation])?;
        if !self.derived[relation] {
            self.noted[relation] = rows.len();
        }
        Ok(())
    }

    /// The ordinal of a text.
    pub fn ordinal(&mut self, text: &str) -> i64 {
        self.note_appearances();
        let values = &self.database.values;
        values.find(text).map_or_else(|| made(text), |symbol| values.ordinal(symbol))
    }

    /// Note in which order symbols appear: those of facts as these were added.
    fn note_appearances(&mut self) {
        let Store { program, database: Database { relations, values }, given, derived, noted, .. } = self;
        let before = values.appeared().len();
        for (relation, end) in self.added.drain(..) {
            let (schema, Given { words, .. }) = (program.schema(relation), &given[relation.0]);
            let (width, facts) = (schema.columns.len(), &relations[relation.0]);
            let first = std::mem::replace(&mut noted[relation.0], end);
            let mut fact = vec![0; width];
            for row in first..end {
                if derived[relation.0] {
                    fact.copy_from_slice(&words[row * width..][..width]);
                } else {
                    facts.copy_tuple(row, &mut fact);
                }
                schema.appear(&program.records, &fact, values);
            }
        }
        self.outdated |= values.appeared()[before..].iter().any(|&symbol| (symbol as usize) < self.symbols);
    }

    /// The facts of a relation: those that were given, and those of the program itself.
    pub fn facts(&self, relation: RelationId) -> Vec<Vec<i64>> {
        if !self.derived[relation.0] {
            return self.database.relations[relation.0].facts();
        }
        let Given { words, count } = &self.given[relation.0];
        let width = self.program.schema(relation).columns.len();
        let mut facts = self.program.initial.relations[relation.0].facts();
        facts.extend((0..*count).map(|fact| words[fact * width..][..width].to_vec()));
        facts
    }

    /// Compute the relations that `outputs` depend on, and bring those up to date that were computed before.
    /// After an error everything is computed anew the next time.
    pub fn evaluate(&mut self, outputs: &[RelationId], limits: &Limits) -> Result<(), Error> {
        self.have_room(limits)?;
        let mut wanted = self.done.clone();
        for StratumId(stratum) in self.program.strata_of(outputs) {
            wanted[stratum] = true;
        }
        if self.program.ordinals {
            self.note_appearances();
        }
        if std::mem::take(&mut self.outdated) {
            self.flush()?;
            self.begin_anew()?;
        } else if let Err(error) = self.lose(limits) {
            self.flush()?;
            self.begin_anew()?;
            // To compute all anew takes less memory: it has no tables of what may be lost.
            if !matches!(error, Error::Rule { fault: Fault::TooMuchMemory(_), .. }) {
                return Err(error);
            }
        }
        for relation in
            (0..self.given.len()).filter(|&relation| self.taken[relation] && self.derived[relation])
        {
            reset(&self.program, &mut self.database, &self.given, RelationId(relation))?;
            self.seen[relation] = 0;
        }
        let result = self.update(&wanted, limits);
        self.settled = result.is_ok();
        self.symbols = self.database.values.count();
        self.taken.fill(false);
        if result.is_err() {
            self.begin_anew()?;
        }
        result
    }

    /// An error where the facts alone take more than the memory that there may be, before any rule has run.
    fn have_room(&self, limits: &Limits) -> Result<(), Error> {
        if self.done.contains(&true) {
            return Ok(());
        }
        self.room(limits.memory).check(self.taken(), None)
    }

    /// Forget what was computed.
    fn begin_anew(&mut self) -> Result<(), Error> {
        self.done.fill(false);
        self.seen.fill(0);
        for relation in (0..self.given.len()).filter(|&relation| self.derived[relation]) {
            reset(&self.program, &mut self.database, &self.given, RelationId(relation))?;
        }
        Ok(())
    }

    /// The relations of which all is known that follows from the facts: an evaluation would not change them.
    pub fn complete(&self) -> impl Iterator<Item = RelationId> + '_ {
        let waits = |relation: &usize| {
            self.program.strata.iter().zip(&self.done).any(|(stratum, done)| {
                !(*done && self.settled) && stratum.relations.contains(&RelationId(*relation))
            })
        };
        (0..self.given.len()).filter(move |relation| !waits(relation)).map(RelationId)
    }

    /// Evaluate another program over relations of this one, without changing them, and `read` its
    /// outputs. `shared` has the names of these relations there and here.
    pub fn ask<T>(
        &mut self,
        json: &str,
        shared: &[(String, String)],
        limits: &Limits,
        read: impl FnOnce(&Program, &Database) -> T,
    ) -> Result<T, Error> {
        let ids = shared.iter().map(|(_, mine)| self.program.relation(mine));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let Database { relations, values } = &mut self.database;
        let program = Program::over(json, values, &mut |name, columns| {
            let id = shared.iter().zip(&ids).find(|((its, _), _)| its == name)?.1;
            Some(relations[id.0].index_on(columns))
        })?;
        let pairs = shared.iter().zip(&ids).map(|((its, _), &mine)| Ok((program.relation(its)?, mine)));
        let pairs = pairs.collect::<Result<Vec<_>, Error>>()?;
        if program.ordinals {
            self.note_appearances();
        }
        let mut database = program.database();
        let schemas = self.program.schemas.iter().map(|schema| schema.name.as_str());
        let given: FxHashMap<&str, &Given> =
            schemas.zip(&self.given).filter(|(name, _)| !shared.iter().any(|(its, _)| its == name)).collect();
        let mut swap = |database: &mut Database| {
            std::mem::swap(&mut self.database.values, &mut database.values);
            for &(its, mine) in &pairs {
                std::mem::swap(&mut self.database.relations[mine.0], &mut database.relations[its.0]);
            }
        };
        for (its, schema) in program.schemas.iter().enumerate() {
            let Some(Given { words, count }) = given.get(schema.name.as_str()) else { continue };
            for fact in 0..*count {
                database.relations[its]
                    .give(&words[fact * schema.columns.len()..][..schema.columns.len()])?;
            }
        }
        swap(&mut database);
        let strata = program.strata_of(&program.outputs());
        let result = program.evaluate(&mut database, &strata, limits);
        let read = result.map(|()| read(&program, &database));
        swap(&mut database);
        read
    }

    /// As `evaluate`; returns the time and tuples of each application of a rule.
    pub fn profile(&mut self, outputs: &[RelationId], limits: &Limits) -> Result<Vec<Record>, Error> {
        self.profile = Some(Profile::default());
        let result = self.evaluate(outputs, limits);
        let records = self.profile.take().map(|profile| profile.records).unwrap_or_default();
        result.map(|()| records)
    }

    /// As `evaluate`; returns what the steps of each rule take, by the number of the rule in the plan and of its order.
    pub fn analyze(&mut self, outputs: &[RelationId], limits: &Limits) -> Result<Steps, Error> {
        self.profile = Some(Profile::of_steps());
        let result = self.evaluate(outputs, limits);
        let steps = self.profile.take().and_then(|profile| profile.steps).unwrap_or_default();
        result.map(|()| steps)
    }

    fn update(&mut self, wanted: &[bool], limits: &Limits) -> Result<(), Error> {
        let program = self.program.clone();
        let mut changes = vec![Change::None; self.given.len()];
        let mut machine = program.machine(&mut self.database, limits)?;
        machine.profile = self.profile.take();
        for (relation, change) in changes.iter_mut().enumerate() {
            program.close(&mut machine, RelationId(relation))?;
            if machine.database.relations[relation].start_at(self.seen[relation])? {
                *change = Change::Grown;
            }
            if self.taken[relation] {
                *change = Change::Anew;
            }
        }
        for (number, stratum) in program.strata.iter().enumerate().filter(|(number, _)| wanted[*number]) {
            if let Some(profile) = &mut machine.profile {
                profile.begin_stratum(number);
            }
            let stale = stratum.relations.iter().any(|relation| self.taken[relation.0]);
            let change = if self.done[number] && !stale { needed(stratum, &changes) } else { Change::Anew };
            let Some(rules) = stratum.updates.as_deref().filter(|_| change == Change::Grown) else {
                if change != Change::None {
                    if self.done[number] {
                        for &relation in &stratum.relations {
                            reset(&program, machine.database, &self.given, relation)?;
                            program.close(&mut machine, relation)?;
                            machine.database.relations[relation.0].settle()?;
                        }
                    }
                    program.stratum(&mut machine, StratumId(number))?;
                    self.done[number] = true;
                    stratum.relations.iter().for_each(|relation| changes[relation.0] = Change::Anew);
                }
                continue;
            };
            let before = delta_starts(&machine, stratum);
            program.apply(&mut machine, rules)?;
            let mut grown = false;
            for relation in &stratum.relations {
                grown |= machine.database.relations[relation.0].advance()?;
            }
            if grown {
                program.repeat(&mut machine, stratum)?;
            }
            for (relation, &row) in stratum.relations.iter().zip(&before) {
                if machine.database.relations[relation.0].show_since(row)? {
                    changes[relation.0] = Change::Grown;
                }
            }
        }
        self.profile = machine.profile.take();
        for (relation, seen) in machine.database.relations.iter_mut().zip(&mut self.seen) {
            relation.settle()?;
            *seen = relation.len();
        }
        Ok(())
    }
}

/// What has to be done about a stratum that was complete before the changes.
fn needed(stratum: &Stratum, changes: &[Change]) -> Change {
    let grown = stratum.relations.iter().any(|relation| changes[relation.0] == Change::Grown);
    let mut needed = if grown { Change::Grown } else { Change::None };
    for rule in stratum.all_rules() {
        rule.reads(&mut |relation, grows| match changes[relation.0] {
            Change::None => {}
            Change::Grown if grows && needed != Change::Anew => needed = Change::Grown,
            Change::Grown if grows => {}
            Change::Grown | Change::Anew => needed = Change::Anew,
        });
    }
    needed
}

fn delta_starts(machine: &Machine, stratum: &Stratum) -> Vec<usize> {
    stratum.relations.iter().map(|relation| machine.database.relations[relation.0].delta_start()).collect()
}

/// Leave of a relation only its facts.
fn reset(
    program: &Program,
    database: &mut Database,
    given: &[Given],
    relation: RelationId,
) -> Result<(), Error> {
    let Given { words, count } = &given[relation.0];
    let width = program.schema(relation).columns.len();
    let fresh = &mut database.relations[relation.0];
    fresh.clear();
    for fact in program.initial.relations[relation.0].facts() {
        fresh.give(&fact)?;
    }
    for fact in 0..*count {
        fresh.give(&words[fact * width..][..width])?;
    }
    Ok(())
}
