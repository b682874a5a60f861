//! Lists of sites by rank: Common Crawl's domain ranks, and the top list of Chrome's users.

use chrono::{Months, NaiveDate};

use super::lines::{BadText, Line};
use crate::vocab::day::Day;
use crate::vocab::name::{DomainName, host_of_address};

/// Header of Common Crawl's domain ranks. `harmonicc` is the harmonic centrality, `pr` the PageRank.
pub(super) const LINKS_HEADER: &str =
    "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts";
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Header of the top list.
pub(super) const VISITS_HEADER: &str = "origin,rank";

/// Returns a parser of lines such as `7\t2.0E7\t9\t0.001\tcom.brightmesa\t12`, which are sorted by their first
/// number.
pub(super) fn links() -> impl FnMut(&str) -> Result<Line, BadText> {
    let mut last = 0;
    move |line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[link_rank, _, page_rank, _, reversed, hosts] = cells.as_slice() else {
            return Err(BadText::Columns { found: cells.len(), expected: 6 });
        };
        let link_rank = number(link_rank, "#harmonicc_pos")?;
        let numbers = [link_rank, number(page_rank, "#pr_pos")?, number(hosts, "#n_hosts")?];
        if link_rank <= std::mem::replace(&mut last, link_rank) {
            return Err(BadText::Order);
        }
        let labels: Vec<&str> = reversed.rsplit('.').collect();
        Line::of(DomainName::parse(&labels.join(".")), numbers)
    }
}

/// Parses a line such as `https://www.brightmesa.com,5000`. The name of a site is that which its host is or lies
/// below.
pub(super) fn visits(line: &str) -> Result<Line, BadText> {
    let (origin, rank) = line.rsplit_once(',').ok_or(BadText::Columns { found: 1, expected: 2 })?;
    let bucket = number(rank, "rank")?;
    if !bucket.is_multiple_of(1_000) {
        return Err(BadText::Bucket);
    }
    let host = origin.contains("//").then(|| host_of_address(origin)).flatten();
    Line::of(DomainName::of_host(host.ok_or(BadText::Origin)?), [bucket, 0, 0])
}

/// Returns the last day of the months of a release, which the name of its file states:
/// `cc-main-2025-26-nov-dec-jan-domain-ranks.txt.gz`.
pub(super) fn release_day(file: &str) -> Option<Day> {
    let parts: Vec<&str> = file.strip_prefix("cc-main-")?.split('-').collect();
    let (&year, rest) = parts.split_first()?;
    let month = |text: &&str| MONTHS.iter().position(|month| month == text);
    let last = rest.iter().filter_map(month).next_back()? as u32 + 1;
    let first: i32 = year.parse().ok().filter(|_| year.len() == 4)?;
    let year = match rest.first()?.parse::<i32>() {
        Ok(second) => first - first % 100 + second,
        Err(_) => first,
    };
    let date = NaiveDate::from_ymd_opt(year, last, 1)?.checked_add_months(Months::new(1))?;
    Day::from_date(date.pred_opt()?)
}

fn number(text: &str, column: &'static str) -> Result<u32, BadText> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_plain && *number > 0);
    number.ok_or(BadText::Number(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_of_the_last_day_of_its_months() {
        for (file, day) in [
            ("cc-main-2026-mar-apr-may-domain-ranks.txt.gz", "2026-05-31"),
            ("cc-main-2025-26-nov-dec-jan-domain-ranks.txt.gz", "2026-01-31"),
            ("cc-main-2026-feb-domain-ranks.txt.gz", "2026-02-28"),
        ] {
            assert_eq!(release_day(file), day.parse().ok(), "{file}");
        }
        for file in ["", "cc-main-", "cc-main-26-may", "cc-main-2026-maybe-domain", "ranks.txt.gz"]
        {
            assert_eq!(release_day(file), None, "{file}");
        }
    }
}
