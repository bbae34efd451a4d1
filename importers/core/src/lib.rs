//! Reads the ops of a module and their operands from MLIR bytecode.
//!
//! MLIR in the same process has just written the bytecode, in version 6 of the format. It refers to
//! attributes, properties and types by number: equal ones have equal numbers. Their contents are
//! not read. The ops, values and regions of a listing are numbered in the order of the module's
//! text: an op comes before those in its regions, and its results come before the values in them.

#[cfg(feature = "python")]
mod python;

use std::fmt;

use rustc_hash::FxHashMap;

const MAGIC: &[u8] = b"ML\xefR";
const VERSION: usize = 6;
const IR_SECTION: u8 = 4;

// What an op has, as bits of its mask.
const ATTRIBUTES: u8 = 1;
const RESULTS: u8 = 2;
const OPERANDS: u8 = 4;
const SUCCESSORS: u8 = 8;
const REGIONS: u8 = 16;
const USE_ORDERS: u8 = 32;
const PROPERTIES: u8 = 64;

/// Why a module cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    Version,
    Damaged,
    /// It has more ops or values than numbers of 32 bits tell apart.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Version => write!(f, "expected MLIR bytecode of version {VERSION}"),
            Error::Damaged => write!(f, "the bytecode is damaged"),
            Error::TooLarge => write!(f, "the module is too large"),
        }
    }
}

impl std::error::Error for Error {}

/// What stands for no op, and for a value that is used before it is there.
pub const NONE: i32 = -1;

/// The ops, values and regions of a module, see above.
#[derive(Debug, Default)]
pub struct Listing {
    /// By op: a number that those share whose names, attributes, properties and types are equal, and in whose
    /// regions blocks take and return equally many values.
    pub kinds: Vec<i32>,
    /// By op: the op around it.
    pub parents: Vec<i32>,
    /// By op: the region that it is in.
    pub regions: Vec<i32>,
    /// By op: the first one behind it and all that is inside of it.
    pub ends: Vec<i32>,
    /// By op: where its operands start; at the end, their number.
    pub operand_offsets: Vec<i32>,
    /// Values.
    pub operands: Vec<i32>,
    /// By op: its first result; the others follow.
    pub first_results: Vec<i32>,
    /// By op: the number of its results.
    pub results: Vec<i32>,
    /// By value: its type.
    pub types: Vec<i32>,
    /// By value: the op that it is a result of; none for arguments of blocks.
    pub definers: Vec<i32>,
    /// By region: the op that has it.
    pub owners: Vec<i32>,
    /// By region: the number of its blocks.
    pub blocks: Vec<i32>,
    /// By region: the first argument of its first block; the others follow.
    pub first_arguments: Vec<i32>,
    /// By region: the number of the arguments of its first block.
    pub arguments: Vec<i32>,
    /// The ops, those in the regions of an op before the op itself.
    pub inner_first: Vec<i32>,
}

/// Read the ops of a module. Fails if the data is not bytecode of this version, or ends too early.
pub fn read(data: &[u8]) -> Result<Listing, Error> {
    let mut bytes = Bytes { data, at: 0 };
    if bytes.take(MAGIC.len())? != MAGIC || bytes.number()? != VERSION {
        return Err(Error::Version);
    }
    while bytes.byte()? != 0 {} // the producer
    loop {
        let (kind, end) = bytes.section()?;
        if kind == IR_SECTION {
            break;
        }
        bytes.at = end;
    }
    let mut reader = Reader {
        bytes,
        listing: Listing::default(),
        scope: Vec::new(),
        outside: 0,
        kind: Vec::new(),
        kinds: FxHashMap::default(),
    };
    let mut next = 0;
    reader.ops(Place { parent: NONE, region: NONE }, &mut next)?;
    let mut listing = reader.listing;
    listing.operand_offsets.push(number(listing.operands.len())?);
    Ok(listing)
}

/// What is around an op.
#[derive(Clone, Copy)]
struct Place {
    parent: i32,
    region: i32,
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    listing: Listing,
    /// The values that there are at a place, by the number that the bytecode has for them there.
    scope: Vec<i32>,
    /// How many of them stand outside of the op around that uses nothing from outside; they have no numbers.
    outside: usize,
    /// What makes up the kinds of the ops that are being read, those around others first.
    kind: Vec<u32>,
    kinds: FxHashMap<Box<[u32]>, i32>,
}

impl Reader<'_> {
    /// Read the ops of a block, whose number comes first with a bit beside it. Returns how many operands the
    /// last one has. `next` is where in the scope the next value of their region goes.
    fn ops(&mut self, place: Place, next: &mut usize) -> Result<u32, Error> {
        let count = self.bytes.number()?;
        if count & 1 != 0 {
            self.arguments(place, next)?;
        }
        let mut returned = 0;
        for _ in 0..count >> 1 {
            returned = self.op(place, next)?;
        }
        Ok(returned)
    }

    /// Read an op. Returns how many operands it has.
    fn op(&mut self, place: Place, next: &mut usize) -> Result<u32, Error> {
        let (op, start) = (number(self.listing.kinds.len())?, self.kind.len());
        let name = self.bytes.word()?;
        let mask = self.bytes.byte()?;
        self.bytes.number()?; // its location
        self.kind.push(name);
        for has in [ATTRIBUTES, PROPERTIES] {
            let which = if mask & has == 0 { u32::MAX } else { self.bytes.word()? };
            self.kind.push(which);
        }
        self.listing.kinds.push(NONE);
        self.listing.ends.push(NONE);
        self.listing.parents.push(place.parent);
        self.listing.regions.push(place.region);
        let results = self.results(mask, op, next)?;
        let operands = self.operands(mask)?;
        if mask & SUCCESSORS != 0 {
            for _ in 0..self.bytes.number()? {
                self.bytes.number()?;
            }
        }
        if mask & USE_ORDERS != 0 {
            self.use_orders(results)?;
        }
        if mask & REGIONS != 0 {
            self.regions(op)?;
        }
        let kind = match self.kinds.get(&self.kind[start..]) {
            Some(kind) => *kind,
            None => {
                let kind = number(self.kinds.len())?;
                self.kinds.insert(self.kind[start..].into(), kind);
                kind
            }
        };
        self.kind.truncate(start);
        self.listing.kinds[op as usize] = kind;
        self.listing.ends[op as usize] = number(self.listing.kinds.len())?;
        self.listing.inner_first.push(op);
        Ok(operands)
    }

    fn results(&mut self, mask: u8, op: i32, next: &mut usize) -> Result<usize, Error> {
        let count = if mask & RESULTS == 0 { 0 } else { self.bytes.word()? };
        self.listing.first_results.push(number(self.listing.types.len())?);
        self.listing.results.push(number(count as usize)?);
        self.kind.push(count);
        for _ in 0..count {
            let type_ = self.bytes.word()?;
            self.kind.push(type_);
            self.value(type_, op, next)?;
        }
        Ok(count as usize)
    }

    fn operands(&mut self, mask: u8) -> Result<u32, Error> {
        let count = if mask & OPERANDS == 0 { 0 } else { self.bytes.word()? };
        self.listing.operand_offsets.push(number(self.listing.operands.len())?);
        self.kind.push(count);
        for _ in 0..count {
            let value = *self.scope.get(self.outside + self.bytes.number()?).unwrap_or(&NONE);
            self.listing.operands.push(value);
            let type_ = usize::try_from(value).map_or(NONE, |value| self.listing.types[value]);
            self.kind.push(type_ as u32);
        }
        Ok(count)
    }

    fn regions(&mut self, op: i32) -> Result<(), Error> {
        let count = self.bytes.number()?;
        let (isolated, outside) = (count & 1 != 0, self.outside);
        self.kind.push(number(count >> 1)? as u32);
        if isolated {
            self.bytes.section()?;
            self.outside = self.scope.len();
        }
        for _ in 0..count >> 1 {
            self.region(op)?;
        }
        self.outside = outside;
        Ok(())
    }

    fn region(&mut self, op: i32) -> Result<(), Error> {
        let (region, blocks) = (self.listing.owners.len(), self.bytes.number()?);
        self.listing.owners.push(op);
        self.listing.blocks.push(number(blocks)?);
        self.listing.first_arguments.push(number(self.listing.types.len())?);
        self.listing.arguments.push(0);
        if blocks == 0 {
            self.kind.extend([0, 0, 0]);
            return Ok(());
        }
        let mut next = self.scope.len();
        let values = self.bytes.number()?;
        self.bytes.check(values)?;
        self.scope.resize(next + values, NONE);
        let (start, place) = (next, Place { parent: op, region: number(region)? });
        let returned = self.ops(place, &mut next)?;
        let arguments = self.listing.arguments[region];
        self.kind.extend([number(blocks)? as u32, arguments as u32, returned]);
        for _ in 1..blocks {
            self.ops(place, &mut next)?;
        }
        self.listing.arguments[region] = arguments; // those of the first block
        self.scope.truncate(start);
        Ok(())
    }

    /// Read the arguments of a block.
    fn arguments(&mut self, place: Place, next: &mut usize) -> Result<(), Error> {
        let count = self.bytes.number()?;
        for _ in 0..count {
            let type_ = self.bytes.word()?;
            if type_ & 1 != 0 {
                self.bytes.number()?; // its location
            }
            self.value(type_ >> 1, NONE, next)?;
        }
        if let Ok(region) = usize::try_from(place.region) {
            self.listing.arguments[region] = number(count)?;
        }
        match self.bytes.byte()? {
            0 => Ok(()),
            _ => self.use_orders(count),
        }
    }

    /// A new value, the next of its region.
    fn value(&mut self, type_: u32, definer: i32, next: &mut usize) -> Result<(), Error> {
        let value = number(self.listing.types.len())?;
        *self.scope.get_mut(*next).ok_or_else(damaged)? = value;
        *next += 1;
        self.listing.types.push(number(type_ as usize)?);
        self.listing.definers.push(definer);
        Ok(())
    }

    /// Skip the orders of the uses of values. Without them, uses are in the order of the ops.
    fn use_orders(&mut self, values: usize) -> Result<(), Error> {
        let lists = if values == 1 { 1 } else { self.bytes.number()? };
        for _ in 0..lists {
            if values != 1 {
                self.bytes.number()?; // which value
            }
            for _ in 0..self.bytes.number()? >> 1 {
                self.bytes.number()?;
            }
        }
        Ok(())
    }
}

/// Bytes, and how many of them are read.
struct Bytes<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count).ok_or_else(damaged)?;
        let taken = self.data.get(self.at..end).ok_or_else(damaged)?;
        self.at = end;
        Ok(taken)
    }

    /// Fails where fewer bytes are left than so many things need.
    fn check(&self, things: usize) -> Result<(), Error> {
        if things <= self.data.len() - self.at {
            Ok(())
        } else {
            Err(damaged())
        }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    /// A number: the zeros at the end of its first byte count the bytes that follow it.
    fn number(&mut self) -> Result<usize, Error> {
        let first = self.byte()?;
        let more = first.trailing_zeros() as usize;
        let mut little = [0; 8];
        if more == 8 {
            little.copy_from_slice(self.take(8)?);
            return usize::try_from(u64::from_le_bytes(little)).map_err(|_| damaged());
        }
        little[0] = first;
        little[1..=more].copy_from_slice(self.take(more)?);
        usize::try_from(u64::from_le_bytes(little) >> (more + 1)).map_err(|_| damaged())
    }

    fn word(&mut self) -> Result<u32, Error> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    /// The kind of the section that starts here, and where it ends.
    fn section(&mut self) -> Result<(u8, usize), Error> {
        let kind = self.byte()?;
        let length = self.number()?;
        if kind & 0x80 != 0 {
            let alignment = self.number()?;
            self.at = self.at.checked_next_multiple_of(alignment).ok_or_else(damaged)?;
        }
        let end = self.at.checked_add(length).ok_or_else(damaged)?;
        Ok((kind & 0x7f, end))
    }
}

fn number(count: usize) -> Result<i32, Error> {
    i32::try_from(count).map_err(|_| Error::TooLarge)
}

fn damaged() -> Error {
    Error::Damaged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number below 128, as bytecode has it.
    fn short(number: u8) -> u8 {
        number << 1 | 1
    }

    /// A module whose only op has a block with these ops, which make so many values.
    fn module(values: u8, ops: &[u8]) -> Vec<u8> {
        let around = [1 << 1, 1].map(short).into_iter().chain([REGIONS]);
        let block = [0, 1 << 1, 1, values].map(short); // location, regions, blocks, values
        let section: Vec<u8> = around.chain(block).chain(ops.iter().copied()).collect();
        let head = [&[short(VERSION as u8)], &b"test\0"[..], &[IR_SECTION, short(section.len() as u8)]];
        [MAGIC, &head.concat(), &section].concat()
    }

    /// An op with two results, and one that uses both, the second first.
    fn ops() -> Vec<u8> {
        let first = [short(3), RESULTS, short(0), short(2), short(7), short(8)];
        let second = [short(4), OPERANDS, short(0), short(2), short(1), short(0)];
        [&[short(2 << 1)], &first[..], &second[..]].concat()
    }

    #[test]
    fn ops_and_values_are_numbered_in_the_order_of_the_text() {
        let found = read(&module(2, &ops())).unwrap();
        assert_eq!((found.parents, found.ends), (vec![NONE, 0, 0], vec![3, 2, 3]));
        assert_eq!(found.inner_first, [1, 2, 0]);
        assert_eq!((found.first_results, found.results), (vec![0, 0, 2], vec![0, 2, 0]));
        assert_eq!((found.types, found.definers), (vec![7, 8], vec![1, 1]));
        assert_eq!((found.operand_offsets, found.operands), (vec![0, 0, 0, 2], vec![1, 0]));
    }

    #[test]
    fn equal_ops_share_a_kind() {
        let op = |name| [short(name), 0, short(0)];
        let found = read(&module(0, &[&[short(3 << 1)], &op(3)[..], &op(4), &op(3)].concat())).unwrap();
        assert_eq!(found.kinds[1], found.kinds[3]);
        assert_ne!(found.kinds[1], found.kinds[2]);
    }

    #[test]
    fn what_is_no_bytecode_or_ends_early_is_an_error() {
        let whole = module(2, &ops());
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end} bytes");
        }
        let mut newer = whole;
        newer[MAGIC.len()] = short(7);
        assert_eq!(read(&newer).unwrap_err(), Error::Version);
    }
}
