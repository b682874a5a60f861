//! Dated files that accounts downloaded today, so that the continuation of a download counts no second time.
//! A restart forgets them.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;

/// Downloads that were counted on a day: each has used an export of its account, which limits their number.
#[derive(Debug, Default)]
pub struct Downloads(Mutex<OfDay>);

#[derive(Debug, Default)]
struct OfDay {
    day: Option<Day>,
    files: HashSet<(AccountId, String)>,
}

impl Downloads {
    /// Whether an account downloaded the file on this day.
    pub fn has(&self, account: AccountId, file: &str, today: Day) -> bool {
        let of_day = self.0.lock().expect("no code panics holding this lock");
        of_day.day == Some(today) && of_day.files.contains(&(account, file.to_owned()))
    }

    /// Records the download of a file.
    pub fn add(&self, account: AccountId, file: &str, today: Day) {
        let mut of_day = self.0.lock().expect("no code panics holding this lock");
        if of_day.day != Some(today) {
            *of_day = OfDay { day: Some(today), files: HashSet::new() };
        }
        of_day.files.insert((account, file.to_owned()));
    }
}
