//! Docs or blocks of names by gram, sorted in memory by counting.

/// Ascending numbers for each gram.
#[derive(Debug)]
pub struct ByGram {
    /// Start and end of the numbers of each gram.
    starts: Vec<u32>,
    ends: Vec<u32>,
    numbers: Vec<u32>,
}

impl ByGram {
    /// Has room for `counts` numbers of each gram.
    pub fn with_room(counts: &[u32]) -> ByGram {
        let mut starts = Vec::with_capacity(counts.len());
        let mut room = 0;
        for &count in counts {
            starts.push(room);
            room += count;
        }
        ByGram { ends: starts.clone(), starts, numbers: vec![0; room as usize] }
    }

    /// Adds a number to a gram, unless it equals the last one added. The numbers of a gram ascend.
    #[inline]
    pub fn add(&mut self, gram: usize, number: u32) {
        let end = self.ends[gram] as usize;
        if end == self.starts[gram] as usize || self.numbers[end - 1] != number {
            self.numbers[end] = number;
            self.ends[gram] += 1;
        }
    }

    /// Returns the numbers of a gram.
    pub fn numbers(&self, gram: usize) -> &[u32] {
        &self.numbers[self.starts[gram] as usize..self.ends[gram] as usize]
    }
}
