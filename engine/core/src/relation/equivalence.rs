//! The classes of an equivalence relation, as a union-find structure.

use rustc_hash::FxHashMap;

/// Elements in classes. A class is known by its root, which lists the members.
#[derive(Clone, Default)]
pub struct Equivalence {
    parent: FxHashMap<i64, i64>,
    members: FxHashMap<i64, Vec<i64>>,
}

impl Equivalence {
    pub fn clear(&mut self) {
        self.parent.clear();
        self.members.clear();
    }

    /// The root of an element's class, a class of its own if the element is new.
    fn root(&mut self, element: i64) -> i64 {
        let mut root = *self.parent.entry(element).or_insert(element);
        if root == element {
            self.members.entry(element).or_insert_with(|| vec![element]);
            return root;
        }
        while self.parent[&root] != root {
            root = self.parent[&root];
        }
        self.parent.insert(element, root);
        root
    }

    /// Make two elements equal and call `pair` with every pair that this adds to the closed relation. Stops at
    /// the first error.
    pub fn unite<E>(
        &mut self,
        a: i64,
        b: i64,
        mut pair: impl FnMut(i64, i64) -> Result<(), E>,
    ) -> Result<(), E> {
        for element in [a, b] {
            if !self.parent.contains_key(&element) {
                pair(element, element)?;
            }
            self.root(element);
        }
        let (mut large, mut small) = (self.root(a), self.root(b));
        if large == small {
            return Ok(());
        }
        if self.members[&large].len() < self.members[&small].len() {
            std::mem::swap(&mut large, &mut small);
        }
        self.parent.insert(small, large);
        let joined = self.members.remove(&small).unwrap_or_default();
        let members = self.members.entry(large).or_default();
        for &x in members.iter() {
            for &y in &joined {
                pair(x, y)?;
                pair(y, x)?;
            }
        }
        members.extend(joined);
        Ok(())
    }
}
