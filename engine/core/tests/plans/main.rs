//! Small plans, evaluated.

mod agenda;
mod common;
mod evaluate;
