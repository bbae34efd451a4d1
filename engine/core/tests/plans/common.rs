//! Plans and databases for tests.

use std::sync::Arc;

use datalog::budget::Limits;
use datalog::error::Error;
use datalog::program::Program;
use datalog::relation::Database;
use serde_json::{json, Value};

pub fn relation(name: &str, columns: &[&str]) -> Value {
    let columns: Vec<Value> =
        columns.iter().map(|kind| json!({"name": kind, "type": kind, "type_name": kind})).collect();
    json!({"name": name, "columns": columns, "output": true})
}

pub fn rule(head: usize, args: Value, steps: Value) -> Value {
    json!({"head": head, "args": args, "steps": steps, "registers": 8, "source": 0})
}

/// A program with one source line, `rules.dl:7`.
pub fn program(relations: &[Value], rules: &[Value], strata: Value) -> Arc<Program> {
    let sources = json!([{"file": "rules.dl", "line": 7}]);
    let plan = json!({"relations": relations, "rules": rules, "strata": strata, "sources": sources});
    Arc::new(Program::new(&plan.to_string()).unwrap())
}

pub const LIMITS: Limits =
    Limits { tuples: 1_000_000, memory: usize::MAX, time: None, threads: 1, interrupted: &|| false };

/// The database after evaluating a program for some facts.
pub fn evaluate(program: &Program, facts: &[(&str, &[i64])], limits: &Limits) -> Result<Database, Error> {
    let mut database = program.database();
    for (name, tuple) in facts {
        let relation = program.relation(name)?;
        database.relations[relation.0].give(tuple)?;
    }
    let strata = program.strata_of(&program.outputs());
    program.evaluate(&mut database, &strata, limits)?;
    Ok(database)
}

/// The sorted tuples of a relation.
pub fn tuples(program: &Program, database: &Database, name: &str) -> Vec<Vec<i64>> {
    let relation = program.relation(name).unwrap();
    let mut tuples: Vec<Vec<i64>> =
        database.relations[relation.0].tuples().iter().map(<[i64]>::to_vec).collect();
    tuples.sort();
    tuples
}
