//! Positions of many short texts in their concatenation. The start of a text is the start of its
//! block of 16 texts plus the lengths of the texts before it in the block. This takes 1.25 bytes
//! per text instead of 4 for an offset.

use std::ops::Range;

/// Texts in a block.
const BLOCK: usize = 16;

/// Positions of concatenated texts of up to 255 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Start of each block.
    starts: Vec<u32>,
    lens: Vec<u8>,
    /// End of the last text.
    end: u32,
}

impl Spans {
    /// Allocates room for `count` texts.
    pub fn with_capacity(count: usize) -> Spans {
        let starts = Vec::with_capacity(count.div_ceil(BLOCK));
        Spans { starts, lens: Vec::with_capacity(count), end: 0 }
    }

    /// Places texts of these lengths one after the other; `None` if they exceed 4 GiB.
    pub fn from_lens(lens: Vec<u8>) -> Option<Spans> {
        let (mut starts, mut end) = (Vec::with_capacity(lens.len().div_ceil(BLOCK)), 0u32);
        for block in lens.chunks(BLOCK) {
            starts.push(end);
            end = end.checked_add(block.iter().map(|&len| u32::from(len)).sum())?;
        }
        Some(Spans { starts, lens, end })
    }

    /// Appends a text. Returns `None`, and appends nothing, if all texts would exceed 4 GiB, or if
    /// this one exceeds 255 bytes.
    pub fn push(&mut self, len: usize) -> Option<()> {
        let len = u8::try_from(len).ok()?;
        let end = self.end.checked_add(len.into())?;
        if self.lens.len().is_multiple_of(BLOCK) {
            self.starts.push(self.end);
        }
        self.lens.push(len);
        self.end = end;
        Some(())
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.lens.len()
    }

    /// Returns the length of all texts together.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Returns the lengths, from which [`Spans::from_lens`] builds an equal value.
    pub fn lens(&self) -> &[u8] {
        &self.lens
    }

    /// As [`Spans::lens`].
    pub fn into_lens(self) -> Vec<u8> {
        self.lens
    }

    /// Returns the start of a text.
    #[inline]
    pub fn start(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let before: u32 = self.lens[block * BLOCK..at].iter().map(|&len| u32::from(len)).sum();
        (self.starts[block] + before) as usize
    }

    /// Returns the place of a text.
    #[inline]
    pub fn range(&self, at: usize) -> Range<usize> {
        let start = self.start(at);
        start..start + usize::from(self.lens[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_contiguous() {
        let mut rng = fastrand::Rng::with_seed(3);
        for count in [0, 1, 15, 16, 17, 400] {
            let lens: Vec<u8> = (0..count).map(|_| rng.u8(..)).collect();
            let spans = Spans::from_lens(lens.clone()).expect("few");
            let mut pushed = Spans::with_capacity(count);
            let mut end = 0;
            for (at, &len) in lens.iter().enumerate() {
                let range = end..end + usize::from(len);
                assert_eq!(spans.range(at), range);
                assert_eq!(pushed.push(len.into()), Some(()));
                end = range.end;
            }
            assert_eq!((spans.len(), spans.end()), (count, end));
            assert_eq!(pushed, spans);
        }
    }

    #[test]
    fn texts_that_do_not_fit_change_nothing() {
        let mut spans = Spans { end: u32::MAX - 9, ..Spans::default() };
        assert_eq!(spans.push(10), None);
        assert_eq!(spans.push(256), None);
        assert_eq!(spans.len(), 0);
        assert_eq!(spans.push(9), Some(()));
        assert_eq!(spans.range(0), u32::MAX as usize - 9..u32::MAX as usize);
    }
}
