//! Lists of sites by rank: Common Crawl's domain ranks, and the top list of Chrome's users.

use super::lines::{BadText, Line};
use crate::vocab::name::{DomainName, host_of_address};

/// Header of Common Crawl's domain ranks. `harmonicc` is the harmonic centrality, `pr` the PageRank.
pub(super) const LINKS_HEADER: &str =
    "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts";
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

fn number(text: &str, column: &'static str) -> Result<u32, BadText> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_plain && *number > 0);
    number.ok_or(BadText::Number(column))
}
