//! The rule form, converted to the request types of the API, which validate it.

use crate::accounts::{Channel, Rule};
use crate::http::alerts::{
    ChannelRequest, ChatIdRequest, RuleFilterRequest, RulePatchRequest, RuleRequest, TldRequest,
};
use crate::http::body::{JsonInteger, Object, Patch};
use crate::vocab::dqs::Dqs;
use crate::vocab::name::to_unicode;
use crate::vocab::query::Substring;
use crate::web::form::Fields;

/// A rule form as sent, by the names of its fields. Values are trimmed, but not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleForm(Fields);

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

impl RuleForm {
    /// A submitted form.
    pub fn new(fields: Fields) -> RuleForm {
        RuleForm(fields.map(|_, value| value.trim().to_owned()))
    }

    /// A new form filled from a link. Without channels in the link, the defaults apply.
    pub fn from_link(fields: Fields, usual: ChannelDefaults) -> RuleForm {
        let mut form = RuleForm::new(fields);
        if form.channels().is_empty() {
            if usual.email {
                form.0.push("email", "on");
            }
            if let Some(chat) = usual.chat {
                form.0.push("chat", chat);
            }
        }
        form
    }

    /// The form of an existing rule.
    pub fn for_rule(rule: &Rule) -> RuleForm {
        let number = |number: Option<u8>| number.map(|it| it.to_string()).unwrap_or_default();
        let filter = &rule.filter;
        let tlds: Vec<_> = filter.tlds.iter().map(|tld| to_unicode(tld)).collect();
        let mut fields = Fields::default();
        fields.push("name", &*rule.name);
        fields.push("tlds", tlds.join(", "));
        fields.push("min_dqs", number(filter.min_dqs.map(Dqs::points)));
        fields.push("max_length", number(filter.max_length));
        fields.push("contains", filter.contains.as_ref().map_or("", Substring::as_str));
        filter.stages.iter().for_each(|stage| fields.push("stage", stage.as_str()));
        for channel in &rule.channels {
            match channel {
                Channel::Email => fields.push("email", "on"),
                Channel::Webhook { url } => fields.push("webhook", url.as_str()),
                Channel::Telegram { chat_id } => fields.push("chat", chat_id),
            }
        }
        RuleForm::new(fields)
    }

    /// First value of a field.
    pub fn text(&self, field: &str) -> &str {
        self.0.text(field)
    }

    /// Values of a field, without empty lines.
    pub fn filled(&self, field: &str) -> Vec<&str> {
        self.0.filled(field)
    }

    /// The channels with the ids of their fields, in the order of the API's list.
    fn channels(&self) -> Vec<(String, ChannelRequest)> {
        let channel =
            |kind: &str| ChannelRequest { r#type: Some(kind.to_owned()), url: None, chat_id: None };
        let email = self.is_on("email").then(|| ("email".to_owned(), channel("email")));
        let webhooks = self.filled("webhook").into_iter().enumerate().map(|(at, url)| {
            let url = Some(url.to_owned());
            (webhook_field(at), ChannelRequest { url, ..channel("webhook") })
        });
        let chats = self.filled("chat").into_iter().enumerate().map(|(at, chat)| {
            let chat_id = Some(ChatIdRequest::Text(chat.to_owned()));
            (chat_field(at), ChannelRequest { chat_id, ..channel("telegram") })
        });
        email.into_iter().chain(webhooks).chain(chats).collect()
    }

    /// True if a checkbox is set.
    pub fn is_on(&self, field: &str) -> bool {
        !self.text(field).is_empty()
    }

    /// Request that creates the rule.
    pub fn request(&self) -> RuleRequest {
        RuleRequest {
            name: Some(self.text("name").to_owned()),
            filter: Some(self.filter_request()),
            channels: Some(self.channel_requests()),
        }
    }

    /// Patch of an existing rule. Sending channels turns them back on, so they are sent only if they
    /// changed or `switch_on` is set.
    pub fn patch(&self, rule: &Rule) -> RulePatchRequest {
        let before = RuleForm::for_rule(rule);
        let is_changed = ["email", "webhook", "chat"]
            .iter()
            .any(|channels| self.filled(channels) != before.filled(channels));
        RulePatchRequest {
            name: Patch::Value(self.text("name").to_owned()),
            filter: Patch::Value(self.filter_request()),
            channels: match is_changed || self.is_on("switch_on") {
                true => Patch::Value(self.channel_requests()),
                false => Patch::Absent,
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
        let field = place.and_then(|place| self.channels().into_iter().nth(place));
        field.map_or_else(|| "channels".to_owned(), |(field, _)| field)
    }

    /// Conditions of the form.
    pub fn filter_request(&self) -> Object<RuleFilterRequest> {
        let separates = |char: char| char.is_whitespace() || ",;".contains(char);
        let tlds = self.text("tlds").split(separates).filter(|tld| !tld.is_empty());
        Object(RuleFilterRequest {
            tlds: Some(tlds.map(|tld| TldRequest(tld.to_owned())).collect()),
            min_dqs: integer(self.text("min_dqs")),
            max_length: integer(self.text("max_length")),
            contains: self.is_on("contains").then(|| self.text("contains").to_owned()),
            stages: Some(self.filled("stage").into_iter().map(str::to_owned).collect()),
        })
    }

    fn channel_requests(&self) -> Vec<Object<ChannelRequest>> {
        self.channels().into_iter().map(|(_, channel)| Object(channel)).collect()
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
        RuleForm::new(Fields::from_query(Some(query)))
    }

    #[test]
    fn empty_lines_are_ignored() {
        let form = form("webhook=&webhook=+https://a.example/+&chat=&email=on&stage=catchable");
        assert_eq!(form.filled("webhook"), ["https://a.example/"]);
        assert!(form.is_on("email") && form.filled("chat").is_empty());
        assert_eq!(form.request().channels.map(|channels| channels.len()), Some(2));
        assert_eq!(form.filled("stage"), ["catchable"]);
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
        let form = RuleForm::from_link(fields, usual);
        assert!(form.is_on("email"));
        assert_eq!((form.text("tlds"), form.filled("chat")), ("com", vec!["42"]));
    }
}
