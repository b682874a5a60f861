//! The known sources, with URLs, times and terms as stated by their publishers
//! (`data/docs/sources.md`).

use crate::facts::published::PublishedList;
use crate::feeds::Format;
use crate::schedule::Schedule;
use crate::vocab::tables::Table;

/// Class of a source, which determines how it is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A public list or table, which needs no account and is part of `--all-free`.
    Free,
    /// The source is off until its terms are accepted. This is for lists of marketplaces without a
    /// documented API, and for zones that other lists cover.
    Terms,
    /// Needs an account with the publisher.
    Account,
    /// A source defined by the operator.
    Own,
}

/// Terms of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// One sentence.
    pub text: String,
    /// SPDX identifier or name of a licence, if there is one.
    pub licence: Option<String>,
    /// Whether the terms allow only internal use.
    pub internal: bool,
}

/// Packing of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Any,
    Gzip,
    Zip,
}

/// Content of the files of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Names, which enter the corpus.
    Names,
    Table(Table),
    /// Facts about names.
    Facts(PublishedList),
}

/// How a list is obtained from its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The URL returns the list.
    Direct,
    /// The URL returns JSON with a signed link to the list, on the same host or on the given one.
    Link(&'static str),
    /// The URL returns JSON with the identifier of Tranco's daily list.
    Tranco,
    /// The URL returns JSON with the identifiers of Common Crawl's web graphs, newest first.
    WebGraph,
    /// The URL returns pages of JSON; `nextPage` tells whether another page exists.
    Pages,
    /// The URL gives a name server and a zone to transfer (AXFR): `axfr://zone.internet.ee/ee`.
    Transfer,
    /// After log-in, the URL returns a list of links to zone files ([`crate::czds`]).
    Czds,
}

/// A known source.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    pub about: &'static str,
    pub class: Class,
    /// URLs, which may contain placeholders for the day ([`crate::settings::Address`]).
    pub urls: &'static [&'static str],
    /// First and last day of dated URLs, relative to today.
    pub days: (i32, i32),
    /// Whether lists are cumulative, so that only the newest is fetched.
    pub newest_only: bool,
    pub flow: Flow,
    pub content: Content,
    pub format: Format,
    pub packing: Packing,
    pub schedule: Schedule,
    /// Whether the publisher wants a HEAD request before each download.
    pub head_first: bool,
    /// Whether the list's SHA-256 is published at its URL plus `.sha256`.
    pub checksum: bool,
    /// Whether 404 means that the list is not published yet.
    pub may_be_early: bool,
    /// Minimum hours between two downloads of a list.
    pub hours_between: u32,
    /// Maximum MiB of a download.
    pub max_mib: u32,
    pub terms: &'static str,
    pub internal: bool,
}

const PLAIN: Preset = Preset {
    name: "",
    about: "",
    class: Class::Free,
    urls: &[],
    days: (0, 0),
    newest_only: false,
    flow: Flow::Direct,
    content: Content::Names,
    format: Format::Names,
    packing: Packing::Any,
    schedule: Schedule::daily(6, 0),
    head_first: false,
    checksum: false,
    may_be_early: false,
    hours_between: 0,
    max_mib: 256,
    terms: NO_TERMS,
    internal: false,
};

const NO_TERMS: &str = "Public list of the registry; no licence was found beside it.";
const NO_CONTRACT: &str = "The market documents no interface for programs; read its terms of use \
                           before you switch it on.";

/// A table of suffixes, downloaded at most once a day, as the maintainers of the Public Suffix List
/// request.
const TABLE: Preset = Preset { hours_between: 23, max_mib: 16, ..PLAIN };

/// A list of newly registered names.
const REGISTERED: Preset = Preset {
    class: Class::Terms,
    format: Format::Registered,
    schedule: Schedule::daily(5, 0),
    ..PLAIN
};

/// A list of popular names.
const RANKED: Preset = Preset {
    class: Class::Terms,
    format: Format::Ranked,
    schedule: Schedule::daily(4, 50),
    ..PLAIN
};

/// A list of facts, which is published once a month or a day, and downloaded when it has changed.
const FACTS: Preset = Preset { class: Class::Terms, schedule: Schedule::hours(7 * 24), ..PLAIN };

/// A zone whose registry permits transfers to anyone.
const TRANSFER: Preset =
    Preset { flow: Flow::Transfer, format: Format::Zone, max_mib: TRANSFER_MIB_MAX, ..PLAIN };
/// Maximum size of a transfer in MiB. A signed zone is several times as large as its delegations,
/// and only the delegations are kept.
pub const TRANSFER_MIB_MAX: u32 = 4 << 10;

/// A zone of Switch, transferred with the key that is published on its page.
const SWITCH: Preset = Preset {
    class: Class::Account,
    schedule: Schedule::hours(6),
    hours_between: 24,
    terms: "Switch allows purposes in the public interest only: against cybercrime, for research and the like; \
            one transfer in 24 hours.",
    internal: true,
    ..TRANSFER
};

/// All presets; those without an account come first.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "uk-nominet",
        about: "Nominet: .uk names and their release times, 65 days ahead",
        urls: &["https://droplists.nominet.uk/current/uk.csv.gz"],
        format: Format::Delimited,
        packing: Packing::Gzip,
        schedule: Schedule::daily(3, 40),
        head_first: true,
        checksum: true,
        terms: "Nominet: open and available to the public to enable the re-sale of names.",
        ..PLAIN
    },
    Preset {
        name: "se-bardate",
        about: "Internetstiftelsen: .se names and their release days",
        urls: &["https://data.internetstiftelsen.se/bardate_domains.json"],
        format: Format::Json,
        schedule: Schedule::daily(4, 30),
        ..PLAIN
    },
    Preset {
        name: "nu-bardate",
        about: "Internetstiftelsen: .nu names and their release days",
        urls: &["https://data.internetstiftelsen.se/bardate_domains_nu.json"],
        format: Format::Json,
        schedule: Schedule::daily(4, 30),
        ..PLAIN
    },
    Preset {
        name: "pl-deleted",
        about: "NASK: .pl names deleted today",
        urls: &["https://www.dns.pl/deleted_domains.txt"],
        format: Format::Stamped,
        schedule: Schedule::daily(7, 40),
        ..PLAIN
    },
    Preset {
        name: "mx-deleted",
        about: "Registry .MX: .mx names deleted today",
        urls: &["https://www.registry.mx/report/domain_deleted_list.csv"],
        format: Format::Stamped,
        schedule: Schedule::daily(9, 40),
        ..PLAIN
    },
    Preset {
        name: "cl-deleted",
        about: "NIC Chile: .cl names deleted in the last day",
        urls: &["https://www.nic.cl/registry/Eliminados.do?t=1d&f=txt"],
        format: Format::Released,
        schedule: Schedule::daily(5, 30),
        ..PLAIN
    },
    Preset {
        name: "it-droptime",
        about: "Registro .it: .it names released today and in the next two days",
        urls: &[
            "https://www.nic.it/droptime/files/{date}09.txt",
            "https://www.nic.it/droptime/files/{date}16.txt",
        ],
        days: (0, 2),
        schedule: Schedule::hours(6),
        may_be_early: true,
        ..PLAIN
    },
    Preset {
        name: "au-expired",
        about: "Identity Digital: .au names that expired, with their purge times",
        urls: &["https://identitydigital.au/domain-drop-lists/expired"],
        format: Format::Delimited,
        schedule: Schedule::daily(1, 15),
        ..PLAIN
    },
    Preset {
        name: "au-deleted",
        about: "Identity Digital: .au names that were deleted, with their purge times",
        urls: &["https://identitydigital.au/domain-drop-lists/deleted"],
        format: Format::Delimited,
        schedule: Schedule::daily(1, 20),
        ..PLAIN
    },
    Preset {
        name: "sk-list",
        about: "SK-NIC: all .sk names; those that leave the list were deleted",
        urls: &["https://sk-nic.sk/subory/domains.txt"],
        format: Format::Registry,
        schedule: Schedule::daily(6, 30),
        ..PLAIN
    },
    Preset {
        name: "ee-axfr",
        about: "Internet.ee: the zone .ee, about 200,000 names",
        urls: &["axfr://zone.internet.ee/ee"],
        schedule: Schedule::daily(3, 10),
        terms: "CC BY 4.0, Estonian Internet Foundation; contact it before you share the data.",
        ..TRANSFER
    },
    Preset {
        name: "tranco",
        about: "Tranco: the million most popular names, as ranks",
        class: Class::Free,
        urls: &["https://tranco-list.eu/api/lists/date/latest"],
        flow: Flow::Tranco,
        terms: "Made for research from several lists with terms of their own; cite the list by its ID, and \
                the paper (https://tranco-list.eu).",
        ..RANKED
    },
    Preset {
        name: "psl",
        about: "The Public Suffix List: where the registrable part of a name starts",
        urls: &["https://publicsuffix.org/list/public_suffix_list.dat"],
        content: Content::Table(Table::Suffixes),
        schedule: Schedule::daily(5, 10),
        terms: "Mozilla Public License 2.0; to be fetched from this address only, at most once a day.",
        ..TABLE
    },
    Preset {
        name: "iana-tlds",
        about: "IANA: the TLDs of the root zone",
        urls: &["https://data.iana.org/TLD/tlds-alpha-by-domain.txt"],
        content: Content::Table(Table::Delegated),
        schedule: Schedule::daily(8, 20),
        terms: "Public list of IANA; no licence was found beside it.",
        ..TABLE
    },
    Preset {
        name: "icann-gtlds",
        about: "ICANN: the contracts of gTLDs, which say which are for one brand only",
        urls: &["https://www.icann.org/resources/registries/gtlds/v2/gtlds.json"],
        content: Content::Table(Table::Gtlds),
        schedule: Schedule::daily(8, 30),
        terms: "Public table of ICANN; no licence was found beside it.",
        ..TABLE
    },
    Preset {
        name: "se-axfr",
        about: "Internetstiftelsen: the zone .se; se-bardate has better dates",
        class: Class::Terms,
        urls: &["axfr://zonedata.iis.se/se"],
        schedule: Schedule::daily(2, 30),
        terms: "CC BY 4.0, The Swedish Internet Foundation.",
        ..TRANSFER
    },
    Preset {
        name: "nu-axfr",
        about: "Internetstiftelsen: the zone .nu; nu-bardate has better dates",
        class: Class::Terms,
        urls: &["axfr://zonedata.iis.se/nu"],
        schedule: Schedule::daily(2, 40),
        terms: "CC BY 4.0, The Swedish Internet Foundation.",
        ..TRANSFER
    },
    Preset {
        name: "ch-axfr",
        about: "Switch: the zone .ch, with the key of its page on open data",
        urls: &["axfr://zonedata.switch.ch/ch"],
        ..SWITCH
    },
    Preset {
        name: "li-axfr",
        about: "Switch: the zone .li, with the key of its page on open data",
        urls: &["axfr://zonedata.switch.ch/li"],
        ..SWITCH
    },
    Preset {
        name: "fr-monthly",
        about: "AFNIC: every .fr name since 2014 with its registration and deletion, 10 million",
        class: Class::Terms,
        urls: &[
            "https://www.afnic.fr/wp-media/ftp/documentsOpenData/{month}_OPENDATA_A-NomsDeDomaineEnPointFr.zip",
        ],
        // This month's list, or the list of one of the two previous months.
        days: (-62, 0),
        newest_only: true,
        format: Format::History,
        packing: Packing::Zip,
        schedule: Schedule::daily(9, 15),
        may_be_early: true,
        max_mib: 512,
        terms: "AFNIC: open licence with attribution. The list is big: 700 MB unpacked, once a month.",
        ..PLAIN
    },
    Preset {
        name: "dropcatch",
        about: "DropCatch: names in pending delete, about 130,000 a day",
        class: Class::Terms,
        urls: &[
            "https://client.dropcatch.com/GetFileUrl?FileType=csv&RequestType=Dropping&BackorderDay=AllDays",
        ],
        flow: Flow::Link("dropcatch-downloads.s3.amazonaws.com"),
        format: Format::Delimited,
        packing: Packing::Zip,
        schedule: Schedule::daily(12, 0),
        terms: NO_CONTRACT,
        ..PLAIN
    },
    Preset {
        name: "godaddy",
        about: "GoDaddy: expiring auctions, about 590,000",
        class: Class::Terms,
        urls: &["https://inventory.auctions.godaddy.com/all_expiring_auctions.json.zip"],
        format: Format::Json,
        packing: Packing::Zip,
        schedule: Schedule::daily(15, 0),
        terms: "For internal use only; the terms of the API forbid to share the data.",
        internal: true,
        ..PLAIN
    },
    Preset {
        name: "namecheap",
        about: "Namecheap Market: auctions, about 1.2 million",
        class: Class::Terms,
        urls: &[
            "https://nc-aftermarket-www-production.s3.amazonaws.com/reports/Namecheap_Market_Sales.csv",
        ],
        format: Format::Delimited,
        schedule: Schedule::daily(10, 0),
        max_mib: 1024,
        terms: NO_CONTRACT,
        ..PLAIN
    },
    Preset {
        name: "sedo",
        about: "Sedo: auctions of expiring names",
        class: Class::Terms,
        urls: &["https://sedo.com/fileadmin/documents/resources/expiring_domain_auctions.csv"],
        format: Format::Delimited,
        schedule: Schedule::daily(8, 0),
        terms: NO_CONTRACT,
        ..PLAIN
    },
    Preset {
        name: "dynadot",
        about: "Dynadot: names in pending delete that it takes backorders for",
        class: Class::Terms,
        urls: &["https://www.dynadot.com/market/backorder/backorders.csv"],
        format: Format::Dynadot,
        schedule: Schedule::daily(11, 0),
        terms: NO_CONTRACT,
        ..PLAIN
    },
    Preset {
        name: "parkio",
        about: "Park.io: .io names in pending delete",
        class: Class::Terms,
        urls: &["https://park.io/domains/index/io.json?limit=1000"],
        flow: Flow::Pages,
        format: Format::Json,
        schedule: Schedule::daily(9, 0),
        terms: NO_CONTRACT,
        ..PLAIN
    },
    Preset {
        name: "majestic",
        about: "Majestic Million: the names that most networks link to, as ranks",
        urls: &["https://downloads.majestic.com/majestic_million.csv"],
        terms: "CC BY 3.0, Majestic: name it as the source where you show ranks.",
        ..RANKED
    },
    Preset {
        name: "umbrella",
        about: "Cisco Umbrella: the most popular hosts in DNS, as ranks of their names",
        urls: &[
            "https://s3-us-west-1.amazonaws.com/umbrella-static/top-1m.csv.zip#umbrella-top-1m.csv.zip",
        ],
        packing: Packing::Zip,
        terms: "Free of charge; no licence was found beside the list.",
        ..RANKED
    },
    Preset {
        name: "whoisds-nrd",
        about: "WhoisDS: names registered on a day, about 70,000",
        urls: &[
            "https://www.whoisds.com//whois-database/newly-registered-domains/{zip64}/nrd#nrd-{date}.zip",
        ],
        days: (-3, -1),
        packing: Packing::Zip,
        may_be_early: true,
        terms: "Free of charge; no terms were found beside the list.",
        ..REGISTERED
    },
    Preset {
        name: "cenk-nrd",
        about: "The lists of WhoisDS for the last ten days in one; whoisds-nrd has exact days",
        urls: &["https://raw.githubusercontent.com/cenk/nrd/master/nrd-last-10-days.txt"],
        schedule: Schedule::daily(8, 30),
        terms: "Redistributes the lists of WhoisDS; the code is under the MIT licence.",
        ..REGISTERED
    },
    Preset {
        name: "cc-ranks",
        about: "Common Crawl: ranks of 10 million names by the links between them, as facts",
        urls: &["https://index.commoncrawl.org/graphinfo.json"],
        flow: Flow::WebGraph,
        content: Content::Facts(PublishedList::Links),
        packing: Packing::Gzip,
        max_mib: 4 << 10,
        terms: "Common Crawl's terms of use (https://commoncrawl.org/terms-of-use); name it as the source where you \
                show ranks. The file is big: about 2.5 GB, once a month.",
        ..FACTS
    },
    Preset {
        name: "crux",
        about: "Chrome UX Report: the million sites that Chrome's users visit most, in buckets, as facts",
        urls: &[
            "https://raw.githubusercontent.com/zakird/crux-top-lists/main/data/global/current.csv.gz",
        ],
        content: Content::Facts(PublishedList::Visits),
        packing: Packing::Gzip,
        terms: "Published by Google under a Creative Commons licence with attribution, and kept by researchers; share \
                derived lists alike.",
        ..FACTS
    },
    Preset {
        name: "ut1",
        about: "Université Toulouse Capitole: names by category, such as adult and gambling, as facts",
        urls: &["https://dsi.ut-capitole.fr/blacklists/download/blacklists.tar.gz"],
        content: Content::Facts(PublishedList::Ut1),
        packing: Packing::Gzip,
        terms: "CC BY-SA, Université Toulouse Capitole: name it as the source, share derived lists alike.",
        ..FACTS
    },
    Preset {
        name: "hagezi",
        about: "HaGeZi: names by category, such as threats and gambling, as facts",
        urls: &[
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/domains/tif.txt",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/domains/fake.txt",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/domains/anti.piracy.txt",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/domains/nsfw.txt",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/domains/gambling.txt",
        ],
        content: Content::Facts(PublishedList::Hagezi),
        terms: "GPL 3.0, HaGeZi: name it as the source, share derived lists alike.",
        ..FACTS
    },
    Preset {
        name: "czds",
        about: "ICANN: zone files of the TLDs that your account is approved for",
        class: Class::Account,
        urls: &["https://czds-api.icann.org/czds/downloads/links"],
        flow: Flow::Czds,
        format: Format::Zone,
        packing: Packing::Gzip,
        // A daily run could start a minute before the 24 hours are over.
        schedule: Schedule::hours(3),
        head_first: true,
        hours_between: 24,
        max_mib: 25 << 10,
        terms: "Terms of the registries (ICANN's Registry Agreement, Specification 4): any lawful purpose, \
                one download of a zone a day; no disclosure of the data, no mass mail, no mass queries \
                to registries.",
        internal: true,
        ..PLAIN
    },
];

/// Login URL of `czds`.
pub const CZDS_LOGIN_URL: &str = "https://account-api.icann.org/api/authenticate";

/// Returns the preset with this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use crate::facts::published::House;

    use super::*;

    #[test]
    fn every_house_is_a_source_of_names() {
        for house in House::NAMES {
            let preset = find(house).expect(house);
            assert_eq!((preset.content, preset.class), (Content::Names, Class::Terms), "{house}");
        }
    }
}
