//! The rule form, converted to the request types of the API, which validate it.

use crate::accounts::{Channel, Rule};
use crate::http::alerts::{
    ChannelRequest, ChatIdRequest, PreviewRequest, RuleFilterRequest, RulePatchRequest,
    RuleRequest, TldRequest,
};
use crate::http::body::{JsonInteger, Object, Patch};
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;
use crate::vocab::query::Substring;
use crate::web::form::Fields;

/// A rule form as sent. Values are not validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleForm {
    pub name: String,
    /// Separated by commas or white space.
    pub tlds: String,
    pub min_dqs: String,
    pub max_length: String,
    pub contains: String,
    pub stages: Vec<String>,
    pub channels: Channels,
    /// Turns channels back on that were switched off.
    pub switch_on: bool,
}

/// Channels of a form, without empty lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    pub email: bool,
    pub webhooks: Vec<String>,
    pub chats: Vec<String>,
}

/// Default channels of a new rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelDefaults {
    pub email: bool,
    /// Default chat of the account.
    pub chat: Option<String>,
}

impl Channels {
    fn is_empty(&self) -> bool {
        *self == Channels::default()
    }

    /// The channels with the ids of their fields, in the order of the API's list.
    fn requests(&self) -> Vec<(String, ChannelRequest)> {
        let channel =
            |kind: &str| ChannelRequest { r#type: Some(kind.to_owned()), url: None, chat_id: None };
        let email = self.email.then(|| ("email".to_owned(), channel("email")));
        let webhooks = self.webhooks.iter().enumerate().map(|(at, url)| {
            (webhook_field(at), ChannelRequest { url: Some(url.clone()), ..channel("webhook") })
        });
        let chats = self.chats.iter().enumerate().map(|(at, chat)| {
            let chat_id = Some(ChatIdRequest::Text(chat.clone()));
            (chat_field(at), ChannelRequest { chat_id, ..channel("telegram") })
        });
        email.into_iter().chain(webhooks).chain(chats).collect()
    }
}

/// Field id of a webhook.
pub fn webhook_field(at: usize) -> String {
    format!("webhook-{at}")
}

/// Field id of a chat.
pub fn chat_field(at: usize) -> String {
    format!("chat-{at}")
}

impl RuleForm {
    /// Reads a submitted form.
    pub fn from_fields(fields: &Fields) -> RuleForm {
        let text = |name| fields.text(name).trim().to_owned();
        let filled = |name| {
            let values = fields.all(name).map(str::trim).filter(|value| !value.is_empty());
            values.map(str::to_owned).collect()
        };
        RuleForm {
            name: text("name"),
            tlds: text("tlds"),
            min_dqs: text("min_dqs"),
            max_length: text("max_length"),
            contains: text("contains"),
            stages: filled("stage"),
            channels: Channels {
                email: !fields.text("email").is_empty(),
                webhooks: filled("webhook"),
                chats: filled("chat"),
            },
            switch_on: !fields.text("switch_on").is_empty(),
        }
    }

    /// A new form filled from a link. Without channels in the link, the defaults apply.
    pub fn from_link(fields: &Fields, usual: ChannelDefaults) -> RuleForm {
        let asked = RuleForm::from_fields(fields);
        let usual = || Channels {
            email: usual.email,
            webhooks: Vec::new(),
            chats: usual.chat.into_iter().collect(),
        };
        let channels = if asked.channels.is_empty() { usual() } else { asked.channels };
        RuleForm { channels, ..asked }
    }

    /// The form of an existing rule.
    pub fn for_rule(rule: &Rule) -> RuleForm {
        let number = |number: Option<u8>| number.map(|it| it.to_string()).unwrap_or_default();
        let filter = &rule.filter;
        let tlds: Vec<_> = filter.tlds.iter().map(|tld| to_unicode(tld)).collect();
        RuleForm {
            name: rule.name.to_string(),
            tlds: tlds.join(", "),
            min_dqs: number(filter.min_dqs.map(Dqs::points)),
            max_length: number(filter.max_length),
            contains: filter
                .contains
                .as_ref()
                .map(Substring::as_str)
                .unwrap_or_default()
                .to_owned(),
            stages: filter.stages.iter().map(|stage| stage.as_str().to_owned()).collect(),
            channels: Channels::for_rule(rule),
            switch_on: false,
        }
    }

    /// Request that creates the rule.
    pub fn request(&self) -> RuleRequest {
        RuleRequest {
            name: Some(self.name.clone()),
            filter: Some(self.filter_request()),
            channels: Some(self.channel_requests()),
        }
    }

    /// Request without channels, for the preview.
    pub fn draft(&self) -> PreviewRequest {
        PreviewRequest {
            name: Some(self.name.clone()),
            filter: Some(self.filter_request()),
            channels: None,
        }
    }

    /// Patch of an existing rule. Sending channels turns them back on, so they are sent only if they
    /// changed or `switch_on` is set.
    pub fn patch(&self, rule: &Rule) -> RulePatchRequest {
        let is_changed = self.channels != Channels::for_rule(rule) || self.switch_on;
        RulePatchRequest {
            name: Patch::Value(self.name.clone()),
            filter: Patch::Value(self.filter_request()),
            channels: if is_changed {
                Patch::Value(self.channel_requests())
            } else {
                Patch::Absent
            },
            active: Patch::Absent,
        }
    }

    /// Field id of a property of the API, such as `channels[1].url`.
    pub fn field_of(&self, property: &str) -> Option<String> {
        let simple = |field: &str| Some(field.to_owned());
        match property {
            "name" => simple("name"),
            "filter.minDqs" => simple("min_dqs"),
            "filter.maxLength" => simple("max_length"),
            "filter.contains" => simple("contains"),
            _ if property.starts_with("filter.tlds") => simple("tlds"),
            _ if property.starts_with("filter.stages") => simple("stages"),
            _ if property.starts_with("channels") => Some(self.channel_field(property)),
            _ => None,
        }
    }

    /// Field id of `channels[1]…`, or of the group for other properties.
    fn channel_field(&self, property: &str) -> String {
        let place = property.strip_prefix("channels[").and_then(|rest| rest.split_once(']'));
        let place = place.and_then(|(place, _)| place.parse::<usize>().ok());
        let field = place.and_then(|place| self.channels.requests().into_iter().nth(place));
        field.map_or_else(|| "channels".to_owned(), |(field, _)| field)
    }

    fn filter_request(&self) -> Object<RuleFilterRequest> {
        let separates = |char: char| char.is_whitespace() || ",;".contains(char);
        let tlds = self.tlds.split(separates).filter(|tld| !tld.is_empty());
        Object(RuleFilterRequest {
            tlds: Some(tlds.map(|tld| TldRequest(tld.to_owned())).collect()),
            min_dqs: integer(&self.min_dqs),
            max_length: integer(&self.max_length),
            contains: (!self.contains.is_empty()).then(|| self.contains.clone()),
            stages: Some(self.stages.clone()),
        })
    }

    fn channel_requests(&self) -> Vec<Object<ChannelRequest>> {
        self.channels.requests().into_iter().map(|(_, channel)| Object(channel)).collect()
    }
}

impl Channels {
    fn for_rule(rule: &Rule) -> Channels {
        let mut channels = Channels::default();
        for channel in &rule.channels {
            match channel {
                Channel::Email => channels.email = true,
                Channel::Webhook { url } => channels.webhooks.push(url.as_str().to_owned()),
                Channel::Telegram { chat_id } => channels.chats.push(chat_id.clone()),
            }
        }
        channels
    }
}

/// Parses an integer; an empty text is `None`. A text that is not a number becomes an out-of-range value,
/// so the API reports the allowed range.
fn integer(text: &str) -> Option<JsonInteger> {
    (!text.is_empty()).then(|| JsonInteger(text.parse().unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(query: &str) -> RuleForm {
        RuleForm::from_fields(&Fields::from_query(Some(query)))
    }

    #[test]
    fn empty_lines_are_ignored() {
        let form = form("webhook=&webhook=+https://a.example/+&chat=&email=on&stage=catchable");
        assert_eq!(form.channels.webhooks, ["https://a.example/"]);
        assert!(form.channels.email && form.channels.chats.is_empty());
        assert_eq!(form.request().channels.map(|channels| channels.len()), Some(2));
        assert_eq!(form.stages, ["catchable"]);
    }

    #[test]
    fn properties_of_the_api_map_to_fields() {
        let form = form("email=on&webhook=a&webhook=b&chat=c");
        for (member, field) in [
            ("name", "name"),
            ("filter.tlds[3]", "tlds"),
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
    }

    #[test]
    fn invalid_numbers_are_out_of_range() {
        assert_eq!(integer(""), None);
        assert_eq!(integer("60"), Some(JsonInteger(60)));
        assert_eq!(integer("sixty"), Some(JsonInteger(i64::MAX)));
    }

    #[test]
    fn a_link_without_channels_gets_the_defaults() {
        let fields = Fields::from_query(Some("tlds=com&min_dqs=70"));
        let usual = ChannelDefaults { email: true, chat: Some("42".to_owned()) };
        let form = RuleForm::from_link(&fields, usual);
        assert!(form.channels.email);
        assert_eq!((form.tlds.as_str(), form.channels.chats), ("com", vec!["42".to_owned()]));
    }
}
