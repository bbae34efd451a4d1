//! Evaluates the plans that shardlog's front end makes of Datalog programs, and runs the agenda.
//!
//! `Program` reads a plan. A `Database` holds the tuples of its relations; a `Machine` runs rules over it,
//! stratum by stratum. A `Solver` does so for one key after another, and an `Agenda` asks it for the turns
//! that it has not seen yet. Apart from all this, `bytecode` reads which ops a module of MLIR has.

pub mod agenda;
mod body;
pub mod budget;
pub mod bytecode;
mod compile;
mod cost;
mod equivalence;
pub mod error;
pub mod facts;
mod fold;
mod functor;
pub mod graph;
mod index;
pub mod machine;
mod plan;
pub mod profile;
pub mod program;
pub mod relation;
mod rows;
mod set;
mod sink;
pub mod solver;
pub mod step;
pub mod store;
mod threads;
pub mod values;

#[cfg(feature = "python")]
mod python;
