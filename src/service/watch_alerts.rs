//! Alerts about watched names: settings of the watchlist, and exceptions for single names.

use crate::accounts::{
    Caller, Channel, EntryAlerts, NewWatchAlerts, Quiet, WatchAlerts, WebhookSecret,
};
use crate::app::{App, Now};
use crate::channels::{self, SentChannel, channel_types};
use crate::error::{ApiError, required};
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::time::UnixMs;
use crate::vocab::zone::{Hour, Zone};

/// Settings of the watchlist as sent.
#[derive(Debug)]
pub struct SentAlerts {
    pub kinds: Option<Vec<String>>,
    pub digest: Option<Hour>,
    /// Quiet hours: the first hour in which nothing is sent, and the hour at which they end.
    pub quiet: Option<(Option<Hour>, Option<Hour>)>,
    pub zone: Option<String>,
    pub channels: Option<Vec<SentChannel>>,
}

impl SentAlerts {
    fn parse(&mut self) -> Result<WatchAlerts, ApiError> {
        let zone = self.zone.take().map(|zone| zone.parse::<Zone>()).transpose();
        let zone = zone.map_err(|err| ApiError::parameter("timeZone", err))?;
        Ok(WatchAlerts {
            kinds: parse_kinds(required(self.kinds.take(), "kinds")?, "kinds")?,
            digest: self.digest,
            quiet: self.quiet.map(parse_quiet).transpose()?,
            zone: zone.unwrap_or(Zone::UTC),
        })
    }
}

fn parse_quiet((from, to): (Option<Hour>, Option<Hour>)) -> Result<Quiet, ApiError> {
    Quiet::new(required(from, "quietHours.from")?, required(to, "quietHours.to")?)
        .ok_or_else(|| ApiError::parameter("quietHours.to", "must be another hour than `from`"))
}

/// Saves the settings and, if requested, re-enables disabled channels. Returns the secrets of new
/// webhooks.
///
/// # Errors
/// A setting or a channel is refused, or the write fails.
pub async fn save(
    app: &App,
    caller: &Caller,
    mut sent: SentAlerts,
    switch_on: bool,
    now: Now,
) -> Result<Vec<WebhookSecret>, ApiError> {
    let owned = app.store.user_data(caller);
    let before = owned.watch_sender().rule.channels.as_slice();
    let alerts = sent.parse()?;
    let channels =
        channels::parse(required(sent.channels, "channels")?, app.reach.guard.rules(), before)?;
    channels::check(app, &channels).await?;
    let new = NewWatchAlerts { alerts, channels, switch_on };
    let at = UnixMs::from_instant(now.0);
    Ok(app.store.set_watch_alerts(caller, new, at).await?)
}

/// Parses the settings of one name: kinds of changes, and types of channels to use. `owned` are the
/// channels of the account.
///
/// # Errors
/// A kind is unknown, or no channel has one of the types.
pub fn entry(
    kinds: Vec<String>,
    named: Vec<String>,
    owned: &[Channel],
) -> Result<EntryAlerts, ApiError> {
    let kinds = parse_kinds(kinds, "alerts.kinds")?;
    let mut channels = Vec::new();
    let named = at_most(channel_types().count(), named, "alerts.channels")?;
    for (at, channel) in named.iter().enumerate() {
        let known = channel_types().find(|known| *known == *channel).ok_or_else(|| {
            let types: Vec<_> = channel_types().collect();
            let what = format!("must be one of {}", types.join(", "));
            ApiError::parameter(format!("alerts.channels[{at}]"), what)
        })?;
        if !owned.iter().any(|it| it.type_name() == known) {
            let what = "none of your channels is of this type";
            return Err(ApiError::parameter(format!("alerts.channels[{at}]"), what));
        }
        if !channels.iter().any(|it| it == known) {
            channels.push(known.into());
        }
    }
    Ok(EntryAlerts { kinds, channels })
}

fn parse_kinds(kinds: Vec<String>, member: &str) -> Result<ChangeKinds, ApiError> {
    let kind = |(at, kind): (usize, String)| {
        kind.parse::<ChangeKind>()
            .map_err(|err| ApiError::parameter(format!("{member}[{at}]"), err))
    };
    at_most(ChangeKind::ALL.len(), kinds, member)?.into_iter().enumerate().map(kind).collect()
}

fn at_most<T>(most: usize, items: Vec<T>, member: &str) -> Result<Vec<T>, ApiError> {
    let too_many =
        || ApiError::parameter(member.to_owned(), format!("must have at most {most} items"));
    if items.len() <= most { Ok(items) } else { Err(too_many()) }
}
