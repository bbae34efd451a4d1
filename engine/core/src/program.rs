//! A program: compiled rules in strata, and the database that they fill.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::budget::Limits;
use crate::compile::plan::{self, Plan};
use crate::compile::step::{Expression, RelationId, Rule};
use crate::compile::{operation_type, Compiler};
use crate::error::{Error, Fault};
use crate::machine::Machine;
use crate::relation::{Database, IndexId, Relation, Version};
use crate::values::nesting::Order;
use crate::values::{RecordType, Type, Values};

/// A relation without its tuples.
pub struct Schema {
    pub name: String,
    pub columns: Vec<Column>,
    pub output: bool,
    pub keyed: bool,
    sorted: bool,
    /// The relation that this one has candidates or superfluous tuples of.
    gives: Option<RelationId>,
    /// The number of tuples after which its stratum takes no more rounds.
    most: Option<usize>,
}

pub struct Column {
    pub name: String,
    pub kind: Type,
}

impl Schema {
    /// Note that the symbols in a fact have appeared.
    pub(crate) fn appear(&self, records: &[Vec<Type>], fact: &[i64], values: &mut Values) {
        self.columns.iter().zip(fact).for_each(|(column, &word)| values.appear(&column.kind, records, word));
    }
}

/// An index into the strata of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StratumId(pub usize);

pub(crate) struct Stratum {
    pub relations: Box<[RelationId]>,
    pub rules: Box<[Arc<Rule>]>,
    pub recursive: Box<[Arc<Rule>]>,
    /// The rules that add tuples from the deltas of the relations read; None if the stratum must be
    /// computed anew.
    pub updates: Option<Box<[Arc<Rule>]>>,
    /// The rules that run after each round, over the new tuples.
    after: Box<[Arc<Rule>]>,
    candidates: Box<[RelationId]>,
    superfluous: Box<[RelationId]>,
    /// The relations that note rounds, which the rules `after` fill.
    noting: Box<[RelationId]>,
}

impl Stratum {
    /// All rules, each once or more.
    pub fn all_rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter().chain(&self.recursive).chain(&self.after)
    }
}

pub struct Program {
    pub schemas: Vec<Schema>,
    /// The numbers of the relations by their names.
    names: FxHashMap<String, RelationId>,
    /// The types of the fields of each record type.
    pub records: Vec<Vec<Type>>,
    pub(crate) strata: Vec<Stratum>,
    shared: usize,
    /// Whether answers depend on the order in which symbols appear.
    pub(crate) ordinals: bool,
    /// The symbols in the program's text, in order.
    texts: Vec<String>,
    pub(crate) sources: Vec<plan::Source>,
    /// The database before any input: only the facts in the program's text.
    pub(crate) initial: Database,
}

impl Program {
    /// Read a plan from JSON.
    pub fn new(json: &str) -> Result<Self, Error> {
        let mut values = Values::default();
        let mut program = Self::over(json, &mut values, &mut |_, _| None)?;
        program.initial.values = values;
        Ok(program)
    }

    /// Read a plan from JSON whose constants are among `values`. `share` makes an index of a relation that is
    /// somewhere else; None where it is not.
    pub fn over(
        json: &str,
        values: &mut Values,
        share: &mut dyn FnMut(&str, &[usize]) -> Option<IndexId>,
    ) -> Result<Self, Error> {
        let plan: Plan = serde_json::from_str(json).map_err(|error| Error::Plan(error.to_string()))?;
        let names: Vec<&String> = plan.records.keys().collect();
        let kind = |column: &plan::Column| match column.kind.as_str() {
            "record" => {
                Ok(Type::Record(names.iter().position(|&name| *name == column.type_name).map(RecordType)))
            }
            name => operation_type(name),
        };
        let kinds = |columns: &[plan::Column]| columns.iter().map(kind).collect::<Result<Vec<_>, _>>();
        let records = plan.records.values().map(|columns| kinds(columns)).collect::<Result<_, _>>()?;
        let mut schemas = Vec::new();
        let mut relations = Vec::new();
        for relation in &plan.relations {
            let columns = relation.columns.iter();
            let columns = columns.map(|c| Ok(Column { name: c.name.clone(), kind: kind(c)? }));
            schemas.push(Schema {
                name: relation.name.clone(),
                columns: columns.collect::<Result<_, Error>>()?,
                output: relation.output,
                keyed: relation.keyed,
                sorted: relation.sorted,
                gives: relation.gives.map(RelationId),
                most: relation.most,
            });
            relations.push(Relation::new(relation.columns.len(), relation.eqrel).choosing(&relation.choices));
        }
        let mut compiler = Compiler {
            values: &mut *values,
            index_on: &mut |relation, columns| {
                let shared = share(&plan.relations[relation.0].name, columns);
                shared.unwrap_or_else(|| relations[relation.0].index_on(columns))
            },
            registers: 0,
            ordinals: false,
        };
        let mut strata = Vec::new();
        for stratum in &plan.strata {
            let mut compile = |rules: &Vec<usize>| -> Result<Box<[Arc<Rule>]>, Error> {
                rules.iter().map(|&rule| compiler.rule(&plan.rule(rule)?, rule, 0)).collect()
            };
            let after = compile(&stratum.after)?;
            let heads = after.iter().map(|rule| rule.head);
            strata.push(Stratum {
                noting: heads.filter(|head| stratum.relations.contains(&head.0)).collect(),
                relations: stratum.relations.iter().copied().map(RelationId).collect(),
                rules: compile(&stratum.rules)?,
                recursive: compile(&stratum.recursive)?,
                updates: stratum.updates.as_ref().map(&mut compile).transpose()?,
                after,
                candidates: stratum.candidates.iter().copied().map(RelationId).collect(),
                superfluous: stratum.superfluous.iter().copied().map(RelationId).collect(),
            });
        }
        let mut facts = Vec::new();
        for (relation, args) in &plan.facts {
            let args = args.iter().map(|arg| compiler.expression(arg)).collect::<Result<Vec<_>, _>>()?;
            facts.push((RelationId(*relation), args));
        }
        let plain = |column: &Column| !matches!(column.kind, Type::Symbol | Type::Record(_));
        let chooses = |(i, relation): (usize, &plan::Relation)| {
            !relation.choices.is_empty() && !schemas[i].columns.iter().all(plain)
        };
        // What a keyed program answers must not depend on the keys before.
        let ordinals =
            plan.key.is_none() && (compiler.ordinals || plan.relations.iter().enumerate().any(chooses));
        for (relation, args) in facts {
            let tuple = args.iter().map(|arg| constant(values, arg)).collect::<Result<Vec<_>, _>>()?;
            relations[relation.0].give(&tuple)?;
        }
        let initial = Database { relations, values: Values::default() };
        let names =
            schemas.iter().enumerate().map(|(i, schema)| (schema.name.clone(), RelationId(i))).collect();
        Ok(Program {
            schemas,
            names,
            records,
            strata,
            shared: plan.shared,
            ordinals,
            texts: plan.texts,
            sources: plan.sources,
            initial,
        })
    }

    /// A database without input.
    pub fn database(&self) -> Database {
        self.initial.clone()
    }

    pub fn relation(&self, name: &str) -> Result<RelationId, Error> {
        self.names.get(name).copied().ok_or_else(|| Error::UnknownRelation(name.to_string()))
    }

    pub fn schema(&self, relation: RelationId) -> &Schema {
        &self.schemas[relation.0]
    }

    /// The default outputs.
    pub fn outputs(&self) -> Vec<RelationId> {
        let all = self.schemas.iter().enumerate();
        all.filter(|(_, schema)| schema.output).map(|(i, _)| RelationId(i)).collect()
    }

    /// The strata that serve every key.
    pub fn shared_strata(&self) -> Vec<StratumId> {
        (0..self.shared).map(StratumId).collect()
    }

    /// The strata that these relations depend on, in order, apart from the shared ones.
    pub fn strata_of(&self, outputs: &[RelationId]) -> Vec<StratumId> {
        let mut wanted = vec![false; self.schemas.len()];
        for relation in outputs {
            wanted[relation.0] = true;
        }
        let mut needed = Vec::new();
        for (i, stratum) in self.strata.iter().enumerate().skip(self.shared).rev() {
            if stratum.relations.iter().any(|relation| wanted[relation.0]) {
                needed.push(StratumId(i));
                for rule in stratum.all_rules() {
                    rule.reads(&mut |relation, _| wanted[relation.0] = true);
                }
            }
        }
        needed.reverse();
        needed
    }

    /// Evaluate strata over the facts in a database.
    pub fn evaluate(
        &self,
        database: &mut Database,
        strata: &[StratumId],
        limits: &Limits,
    ) -> Result<(), Error> {
        let mut machine = self.machine(database, limits)?;
        for relation in (0..self.schemas.len()).map(RelationId) {
            if machine.database.relations[relation.0].is_eqrel() {
                self.close(&mut machine, relation)?;
            }
            machine.database.relations[relation.0].settle()?;
        }
        for &stratum in strata {
            if self.begins(&machine, stratum) {
                self.stratum(&mut machine, stratum)?;
            }
        }
        Ok(())
    }

    /// Note in which order symbols appear: in the program's text, then in the facts of a database, relation by
    /// relation.
    pub fn note_appearances(&self, database: &mut Database) {
        if self.ordinals {
            let Database { relations, values } = database;
            self.appear_in_text(values);
            let stated = self.initial.relations.iter().map(|relation| relation.facts().len());
            for ((relation, schema), stated) in relations.iter().zip(&self.schemas).zip(stated) {
                let facts = relation.facts();
                facts[stated..].iter().for_each(|fact| schema.appear(&self.records, fact, values));
            }
        }
    }

    pub(crate) fn appear_in_text(&self, values: &mut Values) {
        for text in &self.texts {
            let symbol = values.symbol(text);
            values.appear(&Type::Symbol, &[], symbol);
        }
    }

    /// Whether a stratum has anything to begin with; if not, it stays empty.
    fn begins(&self, machine: &Machine, stratum: StratumId) -> bool {
        let stratum = &self.strata[stratum.0];
        stratum.rules.iter().any(|rule| machine.is_ready(rule))
            || stratum.relations.iter().any(|relation| !machine.database.relations[relation.0].is_empty())
    }

    /// A machine for the rules of this program.
    pub(crate) fn machine<'a>(
        &self,
        database: &'a mut Database,
        limits: &'a Limits,
    ) -> Result<Machine<'a>, Error> {
        database.values.most = limits.memory;
        let mut machine = Machine::new(database, limits, self.sources.len());
        machine.start().map_err(|fault| self.error(fault, "evaluation".to_string(), &machine))?;
        Ok(machine)
    }

    /// Close a relation over its facts.
    pub(crate) fn close(&self, machine: &mut Machine, relation: RelationId) -> Result<(), Error> {
        let place = || format!("the facts of `{}`", self.schema(relation).name);
        machine.close(relation).map_err(|fault| self.error(fault, place(), machine))
    }

    /// Compute a stratum over the facts of its relations; all of their tuples are old ones in the end.
    pub(crate) fn stratum(&self, machine: &mut Machine, stratum: StratumId) -> Result<(), Error> {
        let stratum = &self.strata[stratum.0];
        machine.begin_round(0);
        self.apply(machine, &stratum.rules)?;
        self.choose(machine, stratum, &mut Order::default())?;
        // What begins with nothing stays empty.
        let begun =
            stratum.relations.iter().any(|relation| !machine.database.relations[relation.0].is_empty());
        if begun && (!stratum.recursive.is_empty() || !stratum.after.is_empty()) {
            for relation in &stratum.relations {
                machine.database.relations[relation.0].restart()?;
            }
            self.end_round(machine, stratum)?;
            self.repeat(machine, stratum)?;
        }
        for relation in &stratum.relations {
            machine.database.relations[relation.0].settle()?;
            if self.schema(*relation).sorted {
                let values = &machine.database.values;
                let by_text = |a, b| values.text(a).cmp(values.text(b));
                let tuples = self.sorted(machine.database, *relation, &mut Order::default(), by_text);
                machine.database.relations[relation.0].replace(&tuples)?;
            }
        }
        Ok(())
    }

    /// The tuples of a relation end to end, in the order of their values, symbols in the order that is given. Its records
    /// come into `order`.
    fn sorted(
        &self,
        database: &Database,
        relation: RelationId,
        order: &mut Order,
        symbols: impl Fn(i64, i64) -> Ordering,
    ) -> Vec<i64> {
        let columns = &self.schema(relation).columns;
        let Database { relations, values } = database;
        let tuples = relations[relation.0].tuples();
        let mut tuples: Vec<&[i64]> = tuples.iter().collect();
        let plain = |kind: &Type, x, y| values.compare_by(kind, &self.records, x, y, &symbols);
        for (place, column) in columns.iter().enumerate() {
            let words = tuples.iter().map(|tuple| tuple[place]);
            order.add(values, &self.records, &column.kind, words, plain);
        }
        tuples.sort_unstable_by(|a, b| {
            let words = columns.iter().zip(a.iter().zip(b.iter()));
            let mut orders = words.map(|(column, (&x, &y))| order.compare(&column.kind, x, y, plain));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        tuples.concat()
    }

    /// Take candidates one by one, in their order, symbols as they have appeared, into the relations that they are for.
    /// `order` has the records of earlier rounds.
    fn choose(&self, machine: &mut Machine, stratum: &Stratum, order: &mut Order) -> Result<(), Error> {
        for &candidates in &stratum.candidates {
            let Some(relation) = self.schema(candidates).gives else { continue };
            let width = self.schema(relation).columns.len();
            let values = &machine.database.values;
            let words = self.sorted(machine.database, candidates, order, |a, b| values.by_appearance(a, b));
            machine.database.relations[candidates.0].clear();
            let relation = &mut machine.database.relations[relation.0];
            for tuple in words.chunks_exact(width.max(1)) {
                relation.choose(tuple)?;
            }
        }
        Ok(())
    }

    /// Delete the tuples that new tuples have made superfluous, and note the tuples of the round.
    fn end_round(&self, machine: &mut Machine, stratum: &Stratum) -> Result<(), Error> {
        self.apply(machine, &stratum.after)?;
        for &superfluous in &stratum.superfluous {
            let Some(relation) = self.schema(superfluous).gives else { continue };
            let deleted: FxHashSet<Box<[i64]>> =
                machine.database.relations[superfluous.0].tuples().iter().map(Box::from).collect();
            machine.database.relations[superfluous.0].clear();
            if !deleted.is_empty() {
                machine.database.relations[relation.0].remove(&deleted)?;
            }
        }
        for relation in &stratum.noting {
            machine.database.relations[relation.0].settle()?;
        }
        Ok(())
    }

    /// Apply the recursive rules of a stratum, starting from the present deltas, until nothing is
    /// new.
    pub(crate) fn repeat(&self, machine: &mut Machine, stratum: &Stratum) -> Result<(), Error> {
        let mut order = Order::default();
        for round in 1.. {
            machine.begin_round(round);
            self.apply(machine, &stratum.recursive)?;
            self.choose(machine, stratum, &mut order)?;
            for relation in &stratum.relations {
                machine.database.relations[relation.0].advance()?;
            }
            self.end_round(machine, stratum)?;
            let relations = &machine.database.relations;
            let grown =
                stratum.relations.iter().any(|relation| relations[relation.0].count(Version::Delta) > 0);
            if !grown || stratum.relations.iter().any(|&relation| self.is_full(relation, relations)) {
                break;
            }
        }
        Ok(())
    }

    fn is_full(&self, relation: RelationId, relations: &[Relation]) -> bool {
        let most = self.schema(relation).most;
        most.is_some_and(|most| relations[relation.0].count(Version::All) >= most)
    }

    pub(crate) fn apply(&self, machine: &mut Machine, rules: &[Arc<Rule>]) -> Result<(), Error> {
        for rule in rules {
            let (start, before) = (machine.profile.is_some().then(Instant::now), machine.derived());
            if machine.is_ready(rule) {
                machine.apply(rule).map_err(|fault| self.error(fault, self.place(rule.source), machine))?;
            }
            let new = machine.derived() - before;
            if let (Some(start), Some(profile)) = (start, &mut machine.profile) {
                profile.note(rule.source, start.elapsed(), new);
            }
        }
        Ok(())
    }

    pub(crate) fn place(&self, source: usize) -> String {
        let source = &self.sources[source];
        format!("{}:{}", source.file, source.line)
    }

    fn error(&self, fault: Fault, place: String, machine: &Machine) -> Error {
        if fault == Fault::Interrupted {
            return Error::Interrupted;
        }
        let made = if fault.is_limit() { machine.busiest() } else { Vec::new() };
        let made = made.into_iter().map(|(source, count)| (self.place(source), count)).collect();
        Error::Rule { place, fault, made }
    }
}

/// The value of an expression without registers, as facts in the program text have.
fn constant(values: &mut Values, expression: &Expression) -> Result<i64, Error> {
    match expression {
        Expression::Word(word) => Ok(*word),
        Expression::Record(args) => {
            let fields = args.iter().map(|arg| constant(values, arg)).collect::<Result<Vec<_>, _>>()?;
            Ok(values.record(&fields))
        }
        _ => Err(Error::Plan("a fact that is not constant".to_string())),
    }
}
