/// A random number generator (splitmix64): the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `end`, which must not be 0.
    pub fn up_to(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number from `first` to `last`, both included.
    pub fn within(&mut self, first: usize, last: usize) -> usize {
        first + self.up_to(last - first + 1)
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// One of the items, which must not be empty.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.up_to(items.len())]
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.up_to(last + 1));
        }
    }
}
