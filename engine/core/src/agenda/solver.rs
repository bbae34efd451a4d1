//! A keyed program with its shared relations: solves one key after another in the same memory.

use std::sync::Arc;

use crate::budget::Limits;
use crate::compile::step::RelationId;
use crate::error::Error;
use crate::program::{Program, StratumId};
use crate::relation::{Database, Tuples};

pub struct Solver {
    pub program: Arc<Program>,
    pub database: Database,
    /// The relations that were asked for last, and the strata that they depend on.
    asked: (Vec<RelationId>, Vec<StratumId>),
}

impl Solver {
    /// Evaluate the shared strata over `database`, which holds the facts of shared relations.
    pub fn new(program: Arc<Program>, mut database: Database, limits: &Limits) -> Result<Self, Error> {
        program.evaluate(&mut database, &program.shared_strata(), limits)?;
        Ok(Solver { program, database, asked: Default::default() })
    }

    /// Forget the last key.
    pub fn clear(&mut self) {
        for (relation, schema) in self.database.relations.iter_mut().zip(&self.program.schemas) {
            if schema.keyed {
                relation.clear();
            }
        }
    }

    /// Add a fact.
    pub fn give(&mut self, relation: RelationId, tuple: &[i64]) -> Result<(), Error> {
        Ok(self.database.relations[relation.0].give(tuple)?)
    }

    /// Evaluate what these relations depend on, as `evaluate`. One question after the other asks for the same.
    pub fn answer(&mut self, outputs: &[RelationId], limits: &Limits) -> Result<(), Error> {
        if self.asked.0 != outputs {
            self.asked = (outputs.to_vec(), self.program.strata_of(outputs));
        }
        self.program.evaluate(&mut self.database, &self.asked.1, limits)
    }

    /// Evaluate strata over the facts that were given since `clear`.
    pub fn evaluate(&mut self, strata: &[StratumId], limits: &Limits) -> Result<(), Error> {
        self.program.evaluate(&mut self.database, strata, limits)
    }

    pub fn tuples(&self, relation: RelationId) -> Tuples<'_> {
        self.database.relations[relation.0].tuples()
    }
}
