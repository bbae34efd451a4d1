//! Moves of many variables at once. While all others keep their values, trees of variables get the exact
//! values of the least sum.

use super::{least, lower, Sum, Terms};

/// A slot of a row of some terms.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) term: usize,
    pub(super) row: usize,
    pub(super) slot: usize,
}

/// The slots of each variable.
pub(super) fn slots_of(terms: &[Terms], count: usize) -> Vec<Vec<Slot>> {
    let mut slots = vec![Vec::new(); count];
    for (number, term) in terms.iter().enumerate() {
        let width = term.variables.width;
        for (place, &variable) in term.variables.numbers.iter().enumerate() {
            slots[variable].push(Slot { term: number, row: place / width, slot: place % width });
        }
    }
    slots
}

/// The variables that move in a turn. They form trees: no two paths connect the same variables.
pub(super) struct Grown {
    free: Vec<bool>,
    /// Parents first.
    nodes: Vec<Node>,
}

/// A move of the variables of a turn.
struct Forest<'a> {
    sum: &'a Sum,
    chosen: Vec<usize>,
    /// Those that have not moved yet.
    free: Vec<bool>,
    /// The cost of each value of a moving variable with its subtree, variable by value.
    below: Vec<f64>,
    total: Vec<f64>,
    lines: Vec<f64>,
}

/// A variable that moves, and the row above it.
struct Node {
    variable: usize,
    above: Option<Slot>,
}

/// The values after a move from the `chosen` ones. The `turn` selects the variables that move.
pub(super) fn moved(sum: &Sum, chosen: &[usize], turn: u64) -> Vec<usize> {
    let grown = sum.grown(turn);
    let start = chosen.iter().zip(&sum.kept).map(|(&value, kept)| kept.instead[value]);
    let mut forest = Forest {
        sum,
        chosen: start.collect(),
        free: grown.free.clone(),
        below: vec![0.0; sum.size.len() * sum.alone.width],
        total: Vec::new(),
        lines: Vec::new(),
    };
    grown.nodes.iter().rev().for_each(|node| forest.gather(node));
    grown.nodes.iter().for_each(|node| forest.settle(node));
    forest.chosen
}

impl Grown {
    /// The variables that move in a turn.
    pub(super) fn new(sum: &Sum, turn: u64) -> Self {
        let free = grow(sum, turn);
        let nodes = nodes(sum, &free);
        Grown { free, nodes }
    }
}

/// Frees variables in the order of a turn, except those that would close a cycle.
fn grow(sum: &Sum, turn: u64) -> Vec<bool> {
    let count = sum.size.len();
    let mut free = vec![false; count];
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|&variable| mixed((turn << 32) ^ variable as u64));
    let mut tree: Vec<usize> = (0..count).collect();
    let starts: Vec<usize> = sum
        .terms
        .iter()
        .scan(0, |rows, term| {
            *rows += term.counts.len();
            Some(*rows - term.counts.len())
        })
        .collect();
    let rows = sum.terms.iter().map(|term| term.counts.len()).sum();
    let mut held: Vec<Option<usize>> = vec![None; rows]; // a free variable, by row
    let mut trees = Vec::new();
    for variable in order {
        trees.clear();
        let places = sum.slots[variable].iter().map(|slot| starts[slot.term] + slot.row);
        trees.extend(places.clone().filter_map(|row| held[row]).map(|other| root(&mut tree, other)));
        trees.sort_unstable();
        if trees.windows(2).any(|pair| pair[0] == pair[1]) {
            continue;
        }
        free[variable] = true;
        trees.iter().for_each(|&other| tree[other] = variable);
        places.for_each(|row| held[row] = Some(variable));
    }
    free
}

/// The free variables, parents first.
fn nodes(sum: &Sum, free: &[bool]) -> Vec<Node> {
    let mut found = Vec::new();
    let mut seen = vec![false; free.len()];
    let mut waiting = Vec::new();
    for first in 0..free.len() {
        if !free[first] || seen[first] {
            continue;
        }
        seen[first] = true;
        waiting.push(Node { variable: first, above: None });
        while let Some(node) = waiting.pop() {
            for slot in rows_below(sum, &node) {
                let term = &sum.terms[slot.term];
                for (place, &other) in term.variables.row(slot.row).iter().enumerate() {
                    if free[other] && !seen[other] {
                        seen[other] = true;
                        let above = Some(Slot { slot: place, ..slot });
                        waiting.push(Node { variable: other, above });
                    }
                }
            }
            found.push(node);
        }
    }
    found
}

impl Forest<'_> {
    /// Adds the cost of a row by each value in one of its slots, with the best values of its other free
    /// variables.
    fn hear(&mut self, at: Slot, costs: &mut [f64]) {
        let (term, kept) = (&self.sum.terms[at.term], &self.sum.kept);
        let (count, width) = (term.counts[at.row], self.sum.alone.width);
        self.total.clone_from(&term.base);
        for (slot, (table, variable, _)) in term.slots(at.row).enumerate() {
            if slot == at.slot {
                continue;
            }
            if !self.free[variable] {
                table.add(&mut self.total, table.costs.row(self.chosen[variable]));
                continue;
            }
            self.lines.resize(table.costs.width, 0.0);
            let below = &self.below[variable * width..];
            table.at_best(&kept[variable].values, |value| below[value] / count, &mut self.lines);
            table.add(&mut self.total, &self.lines);
        }
        let table = &term.tables[at.slot];
        self.lines.clear();
        self.lines.resize(table.costs.width, f64::INFINITY);
        for (total, &line) in self.total.iter().zip(&table.lines) {
            self.lines[line] = lower(self.lines[line], *total);
        }
        for &value in &kept[term.variables.row(at.row)[at.slot]].values {
            costs[value] += least(&self.lines, table.costs.row(value)) * count;
        }
    }

    /// Computes the cost of each value of a variable with its subtree.
    fn gather(&mut self, node: &Node) {
        let (variable, width) = (node.variable, self.sum.alone.width);
        let size = self.sum.size[variable];
        let mut costs: Vec<f64> = self.sum.alone.row(variable).iter().map(|cost| cost * size).collect();
        for slot in rows_below(self.sum, node) {
            self.hear(slot, &mut costs);
        }
        self.below[variable * width..][..width].copy_from_slice(&costs);
    }

    /// Gives a variable its best value, after its parents; of equal ones it keeps its own.
    fn settle(&mut self, node: &Node) {
        let (variable, width) = (node.variable, self.sum.alone.width);
        let mut costs = self.below[variable * width..][..width].to_vec();
        if let Some(slot) = node.above {
            self.hear(slot, &mut costs);
        }
        self.chosen[variable] = self.sum.kept[variable].best(&costs, self.chosen[variable]);
        self.free[variable] = false; // for its children and siblings
    }
}

/// The slots of a variable in rows that are not above it.
fn rows_below<'a>(sum: &'a Sum, node: &Node) -> impl Iterator<Item = Slot> + 'a {
    let above = node.above.map(|slot| (slot.term, slot.row));
    sum.slots[node.variable].iter().copied().filter(move |slot| Some((slot.term, slot.row)) != above)
}

/// The variable that represents a variable's tree.
fn root(tree: &mut [usize], mut variable: usize) -> usize {
    while tree[variable] != variable {
        tree[variable] = tree[tree[variable]];
        variable = tree[variable];
    }
    variable
}

/// A hash, pseudo-random for any input (splitmix64).
fn mixed(number: u64) -> u64 {
    let found = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let found = (found ^ (found >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let found = (found ^ (found >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    found ^ (found >> 31)
}
