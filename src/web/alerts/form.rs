//! The rule form, converted to the request types of the API, which validate it. The filter of the form
//! has the same fields and values as the drops page, so that a link from there can fill it in.

use std::sync::Arc;

use crate::accounts::{Channel, NewRule, Rule, RulePatch, SavedSearch, UserData, WatchAlerts};
use crate::drops::state::DropsParams;
use crate::drops::words;
use crate::form::Fields;
use crate::outbound::chat;
use crate::outbound::chat::service::About;
use crate::query::conditions::Condition;
use crate::query::stored::Conditions;
use crate::service::channels::{self, SentChannel};
use crate::service::error::ApiError;
use crate::service::watch_alerts::SentAlerts;
use crate::vocab::chat::Part;
use crate::vocab::day::Day;
use crate::vocab::ids::SearchId;
use crate::vocab::name::to_unicode;
use crate::vocab::secret::Secret;
use crate::vocab::url::HostRules;
use crate::vocab::zone::Hour;

/// A rule form as sent, by the names of its fields. Values are trimmed, but not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleForm {
    fields: Fields,
    /// Why the text of the query bar was not understood.
    problem: Option<String>,
}

/// Filters with their own fields. The others are chips.
pub const OWN_FIELDS: [&str; 5] = ["tld", "min_dqs", "max_len", "q", "stage"];

/// Default channels of a new rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelDefaults {
    pub email: bool,
    /// Default chat of the account.
    pub chat: Option<String>,
}

/// Field id of a webhook.
pub fn webhook_field(at: usize) -> String {
    format!("webhook-{at}")
}

/// Field id of a chat.
pub fn chat_field(at: usize) -> String {
    format!("chat-{at}")
}

/// Field name of a part of a chat service: `slack-url`.
pub fn chat_part(about: &About, part: Part) -> String {
    format!("{}-{}", about.name, part.as_str())
}

/// Fields of a channel in a form.
enum ChannelFields {
    /// A single field.
    Id(String),
    /// The fields of a chat service, with their row.
    Chat(&'static About, usize),
}

impl ChannelFields {
    /// Returns the ID of the field for a member of the channel.
    fn id(self, member: &str) -> String {
        match self {
            ChannelFields::Id(id) => id,
            ChannelFields::Chat(about, at) => {
                let mut parts = about.parts.iter().map(|asked| asked.part);
                let part = parts.clone().find(|part| part.as_str() == member).or(parts.next());
                format!("{}-{at}", chat_part(about, part.unwrap_or(Part::Url)))
            }
        }
    }
}

impl RuleForm {
    /// Parses a submitted form. The content of the query bar becomes part of the filter.
    pub fn new(fields: Fields) -> RuleForm {
        let fields = fields.map(|name, value| match name {
            "tld" | "not_tld" => value.split(separates).collect::<Vec<_>>().join(","),
            _ => value.trim().to_owned(),
        });
        let mut form = RuleForm { fields, problem: None };
        match words::add(&form.state(), form.text("add")) {
            Ok(state) if form.is_on("add") => form.set_filter(&state),
            Ok(_) => {}
            Err(why) => form.problem = Some(why),
        }
        form
    }

    /// Creates a form filled from a link, which may name a saved search. Without channels in the link,
    /// the defaults apply.
    pub fn from_link(fields: Fields, usual: ChannelDefaults, owned: &UserData) -> RuleForm {
        let mut form = RuleForm::new(fields);
        let search = SearchId::parse(form.text("search")).and_then(|id| owned.search(id));
        if let Some(search) = search {
            form.set_filter(&DropsParams::from_pairs(search.conditions.pairs()).conditions());
            if !form.is_on("name") {
                form.fields.push("name", &*search.name);
            }
        }
        if form.channels().is_empty() {
            if usual.email {
                form.fields.push("email", "on");
            }
            if let Some(chat) = usual.chat {
                form.fields.push("chat", chat);
            }
        }
        form
    }

    /// Creates the form of an existing rule.
    pub fn for_rule(rule: &Rule) -> RuleForm {
        let mut form = RuleForm { fields: Fields::default(), problem: None };
        form.fields.push("name", &*rule.name);
        form.set_filter(&DropsParams::from_pairs(rule.filter.pairs()));
        if let Some(search) = rule.search {
            form.fields.push("search", search.to_string());
        }
        form.push_channels(&rule.channels);
        form
    }

    /// Creates the form of the watchlist's settings.
    pub fn for_watchlist(alerts: &WatchAlerts, channels: &[Channel]) -> RuleForm {
        let mut form = RuleForm { fields: Fields::default(), problem: None };
        alerts.kinds.iter().for_each(|kind| form.fields.push("kind", kind.as_str()));
        form.fields.push("zone", alerts.zone.as_str());
        let hour = |hour: Hour| hour.get().to_string();
        if let Some(digest) = alerts.digest {
            form.fields.push("digest", hour(digest));
        }
        if let Some(quiet) = alerts.quiet {
            form.fields.push("quiet_from", hour(quiet.from()));
            form.fields.push("quiet_to", hour(quiet.to()));
        }
        form.push_channels(channels);
        form
    }

    fn push_channels(&mut self, channels: &[Channel]) {
        for channel in channels {
            match channel {
                Channel::Email => self.fields.push("email", "on"),
                Channel::Webhook { url } => self.fields.push("webhook", url.as_str()),
                Channel::Telegram { chat_id } => self.fields.push("chat", chat_id),
                Channel::Chat(chat) => {
                    let Some(service) = chat::service(&chat.service) else { continue };
                    for asked in service.about().parts {
                        let shown = chat.hook.shown(asked.part).unwrap_or_default();
                        self.fields.push(&chat_part(service.about(), asked.part), shown);
                    }
                }
            }
        }
    }

    /// Returns the settings of the watchlist.
    ///
    /// # Errors
    /// A value is not an hour.
    pub fn watch_alerts(&self) -> Result<SentAlerts, ApiError> {
        let hour = |field, member: &'static str| {
            let text = Some(self.text(field)).filter(|text| !text.is_empty());
            let hour = text.map(str::parse::<Hour>).transpose();
            hour.map_err(|err| ApiError::parameter(member, err))
        };
        let from = hour("quiet_from", "quietHours.from")?;
        let to = hour("quiet_to", "quietHours.to")?;
        let has_quiet = from.is_some() || to.is_some();
        Ok(SentAlerts {
            kinds: Some(self.filled("kind").into_iter().map(str::to_owned).collect()),
            digest: hour("digest", "digestHour")?,
            quiet: has_quiet.then_some((from, to)),
            zone: Some(self.text("zone").to_owned()),
            channels: Some(self.sent_channels()),
        })
    }

    /// Whether the chosen channels differ from the previous ones.
    pub fn has_other_channels(&self, before: &RuleForm) -> bool {
        ["email", "webhook", "chat"]
            .iter()
            .any(|channels| self.filled(channels) != before.filled(channels))
            || chat::SERVICES
                .iter()
                .any(|service| self.chats(service.about()) != before.chats(service.about()))
    }

    /// Returns the filter as a state of the drops page.
    pub fn state(&self) -> DropsParams {
        DropsParams::of(&self.fields).conditions()
    }

    /// Replaces the filter.
    fn set_filter(&mut self, state: &DropsParams) {
        let kept = |name: &str| name != "add" && !DropsParams::has(name);
        self.fields.retain(kept);
        for (name, value) in state.parameters() {
            match name {
                "stage" => value.split(',').for_each(|stage| self.fields.push(name, stage)),
                _ => self.fields.push(name, value),
            }
        }
    }

    /// Returns the displayed value of a field of [`OWN_FIELDS`].
    pub fn shown(&self, field: &str) -> String {
        match field {
            "tld" => {
                let tlds = self.text(field).split(',').filter(|tld| !tld.is_empty());
                let tlds = tlds.map(|tld| to_unicode(tld.trim_start_matches('.')));
                tlds.collect::<Vec<_>>().join(", ")
            }
            _ => self.text(field).to_owned(),
        }
    }

    /// Checks that the text of the query bar was understood.
    ///
    /// # Errors
    /// 400 if it was not.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.problem {
            None => Ok(()),
            Some(why) => Err(ApiError::parameter("filter.add", why)),
        }
    }

    /// First value of a field.
    pub fn text(&self, field: &str) -> &str {
        self.fields.text(field)
    }

    /// Values of a field, without empty lines.
    pub fn filled(&self, field: &str) -> Vec<&str> {
        self.fields.filled(field)
    }

    /// Returns the rows of a chat service, each with the values of its parts. Omits empty rows.
    pub fn chats(&self, about: &About) -> Vec<Vec<&str>> {
        let parts = about.parts.iter().map(|asked| chat_part(about, asked.part));
        let columns: Vec<Vec<&str>> = parts.map(|name| self.fields.all(&name).collect()).collect();
        let lines = columns.iter().map(Vec::len).max().unwrap_or_default();
        let line = |at: usize| -> Vec<&str> {
            columns.iter().map(|column| column.get(at).copied().unwrap_or_default()).collect()
        };
        (0..lines).map(line).filter(|line| line.iter().any(|value| !value.is_empty())).collect()
    }

    /// Returns the channels with their fields, in the order of the API's list.
    fn channels(&self) -> Vec<(ChannelFields, SentChannel)> {
        let channel =
            |kind: &str| SentChannel { kind: Some(kind.to_owned()), ..SentChannel::default() };
        let secret = |text: &str| Some(Secret::new(text.to_owned()));
        let mut channels = Vec::new();
        if self.is_on("email") {
            channels.push((ChannelFields::Id("email".to_owned()), channel("email")));
        }
        for (at, url) in self.filled("webhook").into_iter().enumerate() {
            let sent = SentChannel { url: secret(url), ..channel("webhook") };
            channels.push((ChannelFields::Id(webhook_field(at)), sent));
        }
        for (at, chat) in self.filled("chat").into_iter().enumerate() {
            let sent = SentChannel { chat_id: Some(chat.to_owned()), ..channel("telegram") };
            channels.push((ChannelFields::Id(chat_field(at)), sent));
        }
        for about in chat::SERVICES.iter().map(|service| service.about()) {
            for (at, values) in self.chats(about).into_iter().enumerate() {
                let mut sent = channel(about.name);
                for (asked, value) in about.parts.iter().zip(values) {
                    let member = match asked.part {
                        Part::Url => &mut sent.url,
                        Part::Token => &mut sent.token,
                        Part::User => &mut sent.user,
                    };
                    *member = secret(value).filter(|_| !value.is_empty());
                }
                channels.push((ChannelFields::Chat(about, at), sent));
            }
        }
        channels
    }

    /// True if a checkbox is set.
    pub fn is_on(&self, field: &str) -> bool {
        !self.text(field).is_empty()
    }

    /// Returns the new rule. The rule refers to the saved search that filled the form, unless the
    /// filter was changed.
    ///
    /// # Errors
    /// The first invalid condition or channel.
    pub fn new_rule(
        &self,
        owned: &UserData,
        hosts: &HostRules,
        today: Day,
    ) -> Result<NewRule, ApiError> {
        let search = SearchId::parse(self.text("search")).and_then(|id| owned.search(id));
        let is_same = |search: &&Arc<SavedSearch>| {
            DropsParams::from_pairs(search.conditions.pairs()).conditions() == self.state()
        };
        let search = search.filter(is_same);
        let conditions = match search {
            Some(search) => search.conditions.unordered(),
            None => self.conditions(today)?,
        };
        Ok(NewRule {
            name: self.text("name").to_owned(),
            filter: conditions,
            channels: channels::parse(self.sent_channels(), hosts, &[])?,
            search: search.map(|search| search.id),
        })
    }

    /// Returns the change of an existing rule. Setting channels re-enables them, so channels are set
    /// only if they changed or `switch_on` is set.
    ///
    /// # Errors
    /// The first invalid channel or condition.
    pub fn patch(
        &self,
        rule: &Rule,
        before: &[Channel],
        hosts: &HostRules,
        today: Day,
    ) -> Result<RulePatch, ApiError> {
        let is_changed = self.has_other_channels(&RuleForm::for_rule(rule));
        let sets_channels = is_changed || self.is_on("switch_on");
        let channels = sets_channels.then(|| channels::parse(self.sent_channels(), hosts, before));
        Ok(RulePatch {
            channels: channels.transpose()?,
            filter: Some(self.conditions(today)?),
            name: Some(self.text("name").to_owned()),
            active: None,
        })
    }

    /// Whether the filter has a regular expression.
    pub fn compiles(&self) -> bool {
        !self.state().get("regex").is_empty()
    }

    /// Field id of a property of the API, such as `channels[1].url`.
    pub fn field_of(&self, property: &str) -> Option<String> {
        match property.split(['.', '[']).next() {
            Some("name") => return Some("name".to_owned()),
            Some("kinds") => return Some("kinds".to_owned()),
            Some("digestHour") => return Some("digest".to_owned()),
            Some("quietHours") => {
                let end = if property.ends_with("from") { "quiet_from" } else { "quiet_to" };
                return Some(end.to_owned());
            }
            Some("timeZone") => return Some("zone".to_owned()),
            _ => {}
        }
        if property.starts_with("channels") {
            return Some(self.channel_field(property));
        }
        let member = property.strip_prefix("filter.")?.split('[').next()?;
        let condition = Condition::of_member(member);
        Some(match condition.map(|condition| condition.parameter) {
            Some("stage") => "stages".to_owned(),
            Some("contains") if self.is_on("q") => "q".to_owned(),
            Some(parameter) if OWN_FIELDS.contains(&parameter) => parameter.to_owned(),
            _ => "add".to_owned(),
        })
    }

    /// Field id of `channels[1]…`, or of the group for other properties.
    fn channel_field(&self, property: &str) -> String {
        let place = property.strip_prefix("channels[").and_then(|rest| rest.split_once(']'));
        let place = place.and_then(|(place, _)| place.parse::<usize>().ok());
        let fields = place.and_then(|place| self.channels().into_iter().nth(place));
        let member = property.rsplit('.').next().unwrap_or_default();
        fields.map_or_else(|| "channels".to_owned(), |(fields, _)| fields.id(member))
    }

    /// Returns the conditions of the form.
    ///
    /// # Errors
    /// The first invalid one.
    pub fn conditions(&self, today: Day) -> Result<Conditions, ApiError> {
        Ok(Conditions::of_form(self.state().parameters(), today)?)
    }

    fn sent_channels(&self) -> Vec<SentChannel> {
        self.channels().into_iter().map(|(_, channel)| channel).collect()
    }
}

/// Whether a character separates TLDs.
fn separates(char: char) -> bool {
    char.is_whitespace() || ",;".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(query: &str) -> RuleForm {
        RuleForm::new(Fields::from_query(Some(query)))
    }

    #[test]
    fn empty_lines_are_ignored() {
        let form = form("webhook=&webhook=+https://a.example/+&chat=&email=on&stage=catchable");
        assert_eq!(form.filled("webhook"), ["https://a.example/"]);
        assert!(form.is_on("email") && form.filled("chat").is_empty());
        assert_eq!(form.sent_channels().len(), 2);
        assert_eq!(form.filled("stage"), ["catchable"]);
    }

    #[test]
    fn properties_of_the_api_map_to_fields() {
        let form = form("email=on&webhook=a&webhook=b&chat=c");
        for (member, field) in [
            ("name", "name"),
            ("filter.tlds[3]", "tld"),
            ("filter.starts[0]", "add"),
            ("filter.stages[1]", "stages"),
            ("filter.minDqs", "min_dqs"),
            ("channels", "channels"),
            ("channels[0]", "email"),
            ("channels[2].url", "webhook-1"),
            ("channels[3].chatId", "chat-0"),
            ("channels[4]", "channels"),
        ] {
            assert_eq!(form.field_of(member).as_deref(), Some(field), "{member}");
        }
        assert_eq!(form.field_of("other"), None);
        let form =
            self::form("slack-url=a&ntfy-url=&ntfy-url=b&ntfy-token=&ntfy-token=&pushover-user=c");
        for (member, field) in [
            ("channels[0].url", "slack-url-0"),
            ("channels[1]", "ntfy-url-0"),
            ("channels[1].token", "ntfy-token-0"),
            ("channels[2].url", "pushover-token-0"),
            ("channels[2].user", "pushover-user-0"),
        ] {
            assert_eq!(form.field_of(member).as_deref(), Some(field), "{member}");
        }
    }

    #[test]
    fn the_query_bar_adds_to_the_filter() {
        let form = form("tld=com&starts=get&add=.net+len:4-8+-digits");
        assert_eq!(form.shown("tld"), "com, net");
        let state = form.state();
        let set = ["starts", "min_len", "max_len", "digits"].map(|name| state.get(name));
        assert_eq!(set, ["get", "4", "8", "none"]);
        assert!(form.check().is_ok() && !form.is_on("add"));
        let unknown = RuleForm::new(Fields::from_query(Some("add=colour:red")));
        assert!(unknown.check().is_err() && unknown.text("add") == "colour:red");
    }

    #[test]
    fn a_link_without_channels_gets_the_defaults() {
        let fields = Fields::from_query(Some("tld=com&min_dqs=70"));
        let usual = ChannelDefaults { email: true, chat: Some("42".to_owned()) };
        let form = RuleForm::from_link(fields, usual, &UserData::default());
        assert!(form.is_on("email"));
        assert_eq!((form.text("tld"), form.filled("chat")), ("com", vec!["42"]));
    }
}
