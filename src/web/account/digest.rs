//! The morning digest on `/account/notifications`: a mail with the best new names and those of saved
//! searches, without an alert rule.

use maud::{Markup, html};

use crate::Web;
use crate::accounts::{Channel, NewDigest, Profile, UserData};
use crate::field::{Field, FormError, Input};
use crate::form::Fields;
use crate::notice::Notice;
use crate::service::error::ApiError;
use crate::vocab::ids::RuleId;
use crate::vocab::limits::DIGEST_BEST;
use crate::vocab::zone::{Hour, Zone};

pub const SAVED: Notice =
    Notice::new("digest", "Saved. You get the digest on days with new names.");
pub const STOPPED: Notice = Notice::new("no-digest", "The morning digest is off.");
/// The hour that the form offers first.
const USUAL_HOUR: &str = "8";

/// Values of the form's fields.
pub struct DigestForm {
    hour: String,
    zone: String,
    best: bool,
    searches: bool,
}

impl DigestForm {
    /// The present settings or, without any, those that the form offers.
    pub fn of(owned: &UserData) -> DigestForm {
        match owned.digest() {
            Some(digest) => DigestForm {
                hour: digest.hour.get().to_string(),
                zone: digest.zone.as_str().to_owned(),
                best: digest.best,
                searches: digest.searches,
            },
            None => DigestForm {
                hour: USUAL_HOUR.to_owned(),
                zone: owned.watch_sender().alerts.zone.as_str().to_owned(),
                best: true,
                searches: true,
            },
        }
    }

    /// The form as sent.
    pub fn sent(fields: &Fields) -> DigestForm {
        DigestForm {
            hour: fields.text("hour").to_owned(),
            zone: fields.text("zone").trim().to_owned(),
            best: !fields.text("best").is_empty(),
            searches: !fields.text("searches").is_empty(),
        }
    }

    /// # Errors
    /// The first invalid field.
    pub fn parse(&self) -> Result<NewDigest, ApiError> {
        let hour: Result<Hour, _> = self.hour.parse();
        let zone: Result<Zone, _> = self.zone.parse();
        if !self.best && !self.searches {
            return Err(ApiError::parameter("best", "choose what the digest has, or turn it off"));
        }
        Ok(NewDigest {
            hour: hour.map_err(|err| ApiError::parameter("hour", err))?,
            zone: zone.map_err(|err| ApiError::parameter("zone", err))?,
            best: self.best,
            searches: self.searches,
        })
    }
}

/// Renders the panel with a form; `error` is that of the form.
pub fn panel(
    web: &Web,
    profile: &Profile,
    owned: &UserData,
    form: &DigestForm,
    error: Option<&FormError>,
) -> Markup {
    let is_on = owned.digest().is_some();
    let is_off = owned.switched_off(RuleId::DIGEST, &Channel::Email).is_some();
    let zone = Input { longest: Some(64), list: Some("zones"), is_required: true, ..Input::TEXT };
    let box_error = error.and_then(|error| error.about("best"));
    html! {
        section.panel {
            h2 { "Morning digest" @if is_on && !is_off { " " span.badge.good { "on" } } }
            p { "One mail a day with what is new since the last one, and none on a day without new names." }
            @if !web.app.reach.channels.email {
                p.hint { "E-mail is not set up on this server. Ask the administrator to set it up." }
            } @else if !profile.is_verified {
                p.hint { "Verify your e-mail address first." }
            } @else {
                @if is_off { p.hint { "You unsubscribed from the digest. Save it to get it again." } }
                form method="post" action="/account/digest" {
                    fieldset.field {
                        legend { "Send me" }
                        label { input type="checkbox" name="best" value="on" checked[form.best]; " The " (DIGEST_BEST) " best new names" }
                        label { input type="checkbox" name="searches" value="on" checked[form.searches]; " New names of each " a href="/searches" { "saved search" } }
                        @if let Some(error) = box_error { p.error { (error) } }
                    }
                    div.field {
                        label for="hour" { "Hour" }
                        select #hour name="hour" {
                            @for hour in Hour::all() {
                                option value=(hour.get()) selected[form.hour == hour.get().to_string()] { (hour) }
                            }
                        }
                    }
                    (Field::new("zone", "Time zone").error(error).help("For example Europe/Berlin.").input(&form.zone, zone))
                    datalist #zones { @for name in Zone::names() { option value=(name) {} } }
                    div.buttons {
                        @if is_on { button.quiet type="submit" name="off" value="yes" formnovalidate { "Turn off" } }
                        button type="submit" { @if is_on { "Save" } @else { "Turn on" } }
                    }
                }
            }
        }
    }
}
