//! Elements of a page, found as people find them: a button by its text, a field by its label, a row by
//! the name in it. Lookups are repeated until the element exists.

use fantoccini::Locator;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;

use super::driver::Browser;

/// Keys without a letter.
pub const ENTER: &str = "\u{E007}";
pub const ESCAPE: &str = "\u{E00C}";
pub const TAB: &str = "\u{E004}";
pub const DOWN: &str = "\u{E015}";

/// An element that is looked up on each use, since it may appear, disappear and be replaced.
#[derive(Clone)]
pub struct Target<'a> {
    browser: &'a Browser,
    path: String,
}

impl Browser {
    /// Returns the whole page.
    pub fn page(&self) -> Target<'_> {
        Target { browser: self, path: "/html/body".to_owned() }
    }

    /// Returns the main part of the page, without its frame.
    pub fn main(&self) -> Target<'_> {
        self.page().at("//main")
    }

    /// See [`Target::button`].
    pub fn button(&self, name: &str) -> Target<'_> {
        self.page().button(name)
    }

    /// See [`Target::link`].
    pub fn link(&self, name: &str) -> Target<'_> {
        self.page().link(name)
    }

    /// See [`Target::field`].
    pub fn field(&self, label: &str) -> Target<'_> {
        self.page().field(label)
    }

    /// See [`Target::heading`].
    pub fn heading(&self, text: &str) -> Target<'_> {
        self.page().heading(text)
    }

    /// See [`Target::text`].
    pub fn text(&self, text: &str) -> Target<'_> {
        self.page().text(text)
    }

    /// Runs an action that opens another page or reloads the current one, and waits for the new page.
    #[track_caller]
    pub fn leave(&self, action: impl FnOnce()) {
        let old = self.run(self.client().find(Locator::XPath("/html"))).expect("there is a page");
        action();
        self.until("another page", || match self.run(old.tag_name()) {
            Ok(_) => Ok(None),
            Err(CmdError::Standard(_)) => Ok(Some(())),
            Err(err) => Err(err),
        });
        self.until_loaded();
    }

    /// Waits until the page has this path and query.
    #[track_caller]
    pub fn is_at(&self, place: &str) {
        self.until(
            &format!("the address is {place}"),
            || Ok((self.place() == place).then_some(())),
        );
    }

    /// Presses keys at the current focus.
    #[track_caller]
    pub fn press(&self, keys: &str) {
        let focused = self.run(self.client().active_element()).expect("something has the focus");
        // A file field takes keys as the path of a file; other elements take them as keys.
        let is_file = self.script("return document.activeElement.type === 'file'", &[]) == true;
        let sent = match is_file {
            false => self.run(focused.send_keys(keys)),
            true => {
                let strokes =
                    keys.chars().fold(KeyActions::new("keys".to_owned()), |keys, value| {
                        keys.then(KeyAction::Down { value }).then(KeyAction::Up { value })
                    });
                self.run(self.client().perform_actions(strokes))
            }
        };
        sent.unwrap_or_else(|err| panic!("{keys:?}: {err}"));
    }

    /// Returns the focused element and its name: `button Watch`.
    pub fn focused(&self) -> String {
        let text = self.script(
            "const it = document.activeElement;
             const label = it.getAttribute('aria-label') || it.labels?.[0]?.innerText || it.innerText || '';
             return it.tagName.toLowerCase() + ' ' + label.trim().split('\\n')[0];",
            &[],
        );
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Whether the focused element is visible: it is on the screen, and marked as focused.
    pub fn focus_is_seen(&self) -> bool {
        let seen = self.script(
            "const it = document.activeElement;
             const box = it.getBoundingClientRect();
             const inside = box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0
                 && box.top < innerHeight && box.left < innerWidth;
             const marked = (style) => style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
             // A chip's checkbox is invisible; the word beside it shows the focus.
             return inside && (marked(getComputedStyle(it))
                 || (it.nextElementSibling && marked(getComputedStyle(it.nextElementSibling))));",
            &[],
        );
        seen == true
    }
}

impl<'a> Target<'a> {
    /// Finds elements below this one by an XPath expression.
    pub fn at(&self, path: &str) -> Target<'a> {
        Target { browser: self.browser, path: format!("{}{path}", self.path) }
    }

    /// Finds a button, or the summary that opens and closes details, by name.
    pub fn button(&self, name: &str) -> Target<'a> {
        self.at(&format!("//*[self::button or self::summary or @role='button'][{}]", named(name)))
    }

    /// A link of this name.
    pub fn link(&self, name: &str) -> Target<'a> {
        self.at(&format!("//a[{}]", named(name)))
    }

    /// The form field with this label.
    pub fn field(&self, label: &str) -> Target<'a> {
        let text = quoted(label);
        self.at(&format!(
            "//*[self::input or self::textarea or self::select][@aria-label={text} \
             or @id=//label[normalize-space(.)={text} or starts-with(normalize-space(.), concat({text}, ' '))]/@for \
             or ancestor::label[normalize-space(.)={text} or starts-with(normalize-space(.), concat({text}, ' '))]]"
        ))
    }

    /// A heading that begins with this text.
    pub fn heading(&self, text: &str) -> Target<'a> {
        let text = quoted(text);
        self.at(&format!(
            "//*[self::h1 or self::h2 or self::h3][starts-with(normalize-space(.), {text})]"
        ))
    }

    /// The innermost elements that contain this text.
    pub fn text(&self, text: &str) -> Target<'a> {
        let text = quoted(text);
        self.at(&format!(
            "//*[contains(normalize-space(.), {text})][not(*[contains(normalize-space(.), {text})])]"
        ))
    }

    /// Finds the table row that contains this text.
    pub fn row(&self, text: &str) -> Target<'a> {
        let text = quoted(text);
        self.at(&format!("//tbody//tr[contains(normalize-space(.), {text})]"))
    }

    /// Waits until the element exists and is visible.
    #[track_caller]
    pub fn wait(&self) {
        self.browser.until(&format!("shown: {}", self.path), || Ok(self.shown()?.map(|_| ())));
    }

    /// Waits until no such element is visible.
    #[track_caller]
    pub fn wait_gone(&self) {
        self.browser.until(&format!("not shown: {}", self.path), || {
            Ok(self.shown()?.is_none().then_some(()))
        });
    }

    /// Whether the element is visible now.
    pub fn is_shown(&self) -> bool {
        self.shown().is_ok_and(|it| it.is_some())
    }

    /// Returns the number of matching elements, visible or not.
    pub fn count(&self) -> usize {
        let browser = self.browser;
        browser
            .run(browser.client().find_all(Locator::XPath(&self.path)))
            .map_or(0, |all| all.len())
    }

    /// Clicks the element.
    #[track_caller]
    pub fn click(&self) {
        // The bar of a phone covers elements that WebDriver regards as in view.
        self.middle();
        self.act("click", |it| self.browser.run(it.click()));
    }

    /// Scrolls the element into view and returns its middle on the screen.
    #[track_caller]
    pub fn middle(&self) -> [f64; 2] {
        let place = "arguments[0].scrollIntoView({block: 'nearest'});
            const box = arguments[0].getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]";
        self.browser.until(&format!("the place of {}", self.path), || {
            let Some(it) = self.shown()? else { return Ok(None) };
            let it = serde_json::to_value(&it).expect("an element is a reference in JSON");
            let place = self.browser.try_script(place, &[it])?;
            Ok(serde_json::from_value(place).ok())
        })
    }

    /// Clicks the element, which leads to another page.
    #[track_caller]
    pub fn follow(&self) {
        self.browser.leave(|| self.click());
    }

    /// Appends to the element's text by typing.
    #[track_caller]
    pub fn type_keys(&self, keys: &str) {
        self.act("type", |it| self.browser.run(it.send_keys(keys)));
    }

    /// Replaces the element's text.
    #[track_caller]
    pub fn fill(&self, text: &str) {
        self.act("fill", |it| {
            self.browser.run(async {
                it.clear().await?;
                it.send_keys(text).await
            })
        });
    }

    /// Selects an option of a list by its text.
    #[track_caller]
    pub fn choose(&self, label: &str) {
        self.at(&format!("//option[normalize-space(.)={}]", quoted(label))).click();
    }

    /// Returns a property, such as `value`; empty if absent.
    #[track_caller]
    pub fn property(&self, name: &str) -> String {
        self.browser.until(&format!("{name} of {}", self.path), || {
            let all = self.browser.run(self.browser.client().find(Locator::XPath(&self.path)))?;
            Ok(Some(self.browser.run(all.prop(name))?.unwrap_or_default()))
        })
    }

    #[track_caller]
    fn act(&self, what: &str, mut action: impl FnMut(&Element) -> Result<(), CmdError>) {
        self.browser.until(&format!("{what}: {}", self.path), || {
            let Some(it) = self.shown()? else { return Ok(None) };
            action(&it).map(Some)
        });
    }

    /// Returns the first matching element that is visible.
    fn shown(&self) -> Result<Option<Element>, CmdError> {
        self.browser.run(async {
            for it in self.browser.client().find_all(Locator::XPath(&self.path)).await? {
                if it.is_displayed().await? {
                    return Ok(Some(it));
                }
            }
            Ok(None)
        })
    }
}

/// Returns an XPath condition: the visible or accessible text of the element is `name`, or begins with
/// it.
fn named(name: &str) -> String {
    let name = quoted(name);
    format!(
        "normalize-space(.)={name} or @aria-label={name} \
         or starts-with(normalize-space(.), concat({name}, ' '))"
    )
}

/// Quotes a text as an XPath literal; XPath has no escapes.
fn quoted(text: &str) -> String {
    if !text.contains('"') {
        return format!("\"{text}\"");
    }
    let parts: Vec<String> = text.split('"').map(|part| format!("\"{part}\"")).collect();
    format!("concat({})", parts.join(", '\"', "))
}
