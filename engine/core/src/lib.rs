//! Evaluates the plans that shardlog's front end makes of Datalog programs, and runs the agenda.

#[cfg(feature = "python")]
mod python;
