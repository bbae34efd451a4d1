//! Evaluates the plans that the front end in Python makes of Datalog programs, and runs the agenda.
//!
//! `Program` reads a plan. A `Database` holds the tuples of its relations; a `Machine` runs rules over it,
//! stratum by stratum. A `Solver` does so for one key after another, and an `Agenda` asks it for the turns
//! that it has not seen yet. `losses` finds what no longer follows, `trace` proofs, and `lines` reads and writes facts.
//!
//! What a module is made of is in the folder of its name: `compile` has the plan and the steps it becomes,
//! `relation` rows, sets and indexes, `machine` the running of a rule's body, `agenda` the graph and the solver.

// The bindings alone read facts and proofs, so without them this is not dead code.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

pub mod agenda;
pub mod budget;
mod compile;
pub mod error;
mod lines;
pub(crate) mod losses;
pub mod machine;
pub mod program;
pub mod relation;
pub mod store;
pub mod trace;
pub mod values;

#[cfg(feature = "python")]
mod python;
