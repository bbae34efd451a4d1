//! A program's graph as the agenda sees it: items with slots, places, cells, and who is next to whom.

use crate::error::Error;

/// Lists of numbers, one list a row, end to end: `offsets[i]..offsets[i + 1]` is row i.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    offsets: &'a [i32],
    numbers: &'a [i32],
}

impl<'a> Lists<'a> {
    /// `rows` lists of numbers below `bound`.
    fn new(name: &str, rows: usize, bound: usize, [offsets, numbers]: [&'a [i32]; 2]) -> Result<Self, Error> {
        let ascending = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = (offsets.first(), offsets.last());
        if offsets.len() != rows + 1 || !ascending || ends != (Some(&0), Some(&(numbers.len() as i32))) {
            let count = numbers.len();
            return Err(Error::Input(format!(
                "{name}_offsets must be {} ascending numbers from 0 to {count}",
                rows + 1
            )));
        }
        check(name, numbers, bound)?;
        Ok(Lists { offsets, numbers })
    }

    pub fn row(&self, row: usize) -> &'a [i32] {
        &self.numbers[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// An error unless all numbers are at least 0 and below a bound.
pub fn check(name: &str, numbers: &[i32], bound: usize) -> Result<(), Error> {
    match numbers.iter().find(|&&number| usize::try_from(number).map_or(true, |number| number >= bound)) {
        Some(number) => Err(Error::Input(format!("{name} holds {number}, but there are {bound}"))),
        None => Ok(()),
    }
}

pub struct Graph<'a> {
    /// The class of each item.
    pub classes: &'a [i32],
    /// Item -> places of its slots.
    pub slots: Lists<'a>,
    place_cell: &'a [i32],
    /// Cell -> its places.
    pub cells: Lists<'a>,
    /// Place -> items to push when it changes.
    pub neighbours: Lists<'a>,
    pub retirement: Retirement<'a>,
    /// Cell -> the cells that get something when it gets its first content.
    pub companions: Lists<'a>,
}

/// Items that retire, and what happens then; `engine/agenda/retirement.py` has the account.
pub struct Retirement<'a> {
    /// Item -> how many of its values are used, and items it is inside of; -1: it never retires.
    pub keepers: &'a [i32],
    /// Item -> the items that retire just before it does.
    pub inside: Lists<'a>,
    /// Item -> the values that it uses.
    pub uses: Lists<'a>,
    /// Value -> the item that makes it; -1: none.
    pub makers: &'a [i32],
    /// Value -> the items that use it.
    pub users: Lists<'a>,
    /// Item -> how many of its values it waits to be the only user of.
    pub waits: &'a [i32],
    /// Item -> its class when it waits no longer.
    pub later: &'a [i32],
}

/// The arrays of a `Retirement`, in the same order.
pub struct RetirementArrays<'a> {
    pub keepers: &'a [i32],
    pub inside: [&'a [i32]; 2],
    pub uses: [&'a [i32]; 2],
    pub makers: &'a [i32],
    pub users: [&'a [i32]; 2],
    pub waits: &'a [i32],
    pub later: &'a [i32],
}

impl<'a> Retirement<'a> {
    /// Of so many items. Every number is checked.
    pub fn new(items: usize, given: RetirementArrays<'a>) -> Result<Self, Error> {
        let RetirementArrays { keepers, inside, uses, makers, users, waits, later } = given;
        let values = makers.len();
        for (name, numbers) in [("keepers", keepers), ("waits", waits), ("later", later)] {
            if numbers.len() != items {
                return Err(Error::Input(format!("{name} has {} numbers for {items} items", numbers.len())));
            }
        }
        if let Some(number) = makers.iter().find(|&&maker| maker >= items as i32) {
            return Err(Error::Input(format!("makers holds {number}, but there are {items}")));
        }
        let inside = Lists::new("inside", items, items, inside)?;
        let uses = Lists::new("use", items, values, uses)?;
        let users = Lists::new("user", values, items, users)?;
        Ok(Retirement { keepers, inside, uses, makers, users, waits, later })
    }
}

impl<'a> Graph<'a> {
    /// A graph with as many items as `classes` has, and `cells` cells. Every number is checked.
    pub fn new(
        classes: &'a [i32],
        slots: [&'a [i32]; 2],
        place_cell: &'a [i32],
        cell_count: usize,
        (cells, companions): ([&'a [i32]; 2], [&'a [i32]; 2]),
        neighbours: [&'a [i32]; 2],
        retirement: Retirement<'a>,
    ) -> Result<Self, Error> {
        let (items, places) = (classes.len(), place_cell.len());
        check("place_cell", place_cell, cell_count)?;
        Ok(Graph {
            classes,
            slots: Lists::new("slot", items, places, slots)?,
            place_cell,
            cells: Lists::new("cell", cell_count, places, cells)?,
            neighbours: Lists::new("neighbour", places, items, neighbours)?,
            retirement,
            companions: Lists::new("companion", cell_count, cell_count, companions)?,
        })
    }

    pub fn cell(&self, place: i32) -> usize {
        self.place_cell[place as usize] as usize
    }
}
