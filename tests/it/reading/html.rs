//! A minimal HTML parser for checks of pages. The parser is strict: every opened element must be
//! closed, in order, as in pages from `maud`.

/// An element: its name, attributes, the text within it, and its parent.
#[derive(Clone, Debug, Default)]
pub struct Element {
    pub name: String,
    attributes: Vec<(String, String)>,
    pub text: String,
    parent: Option<usize>,
}

impl Element {
    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the element has this class.
    pub fn has_class(&self, class: &str) -> bool {
        self.get("class").is_some_and(|all| all.split(' ').any(|known| known == class))
    }
}

/// A page, or a part of one.
pub struct Page {
    elements: Vec<Element>,
}

const VOID: [&str; 6] = ["meta", "link", "input", "br", "hr", "col"];

impl Page {
    /// Parses `html`.
    #[track_caller]
    pub fn read(html: &str) -> Page {
        let mut page = Page { elements: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            page.tell(&open, &unescaped(&rest[..start]));
            let end = start + end_of_tag(&rest[start..]);
            let tag = &rest[start + 1..end - 1];
            rest = &rest[end..];
            if let Some(name) = tag.strip_prefix('/') {
                let closed = open.pop().map(|at| page.elements[at].name.as_str());
                assert_eq!(closed, Some(name), "</{name}> closes what is open");
            } else if !tag.starts_with('!') {
                let closes = tag.ends_with('/');
                let element = element(tag.trim_end_matches('/'), open.last().copied());
                let void = VOID.contains(&element.name.as_str());
                page.elements.push(element);
                if !closes && !void {
                    open.push(page.elements.len() - 1);
                }
            }
        }
        let left: Vec<_> = open.iter().map(|&at| &page.elements[at].name).collect();
        assert!(left.is_empty(), "{left:?} are not closed");
        page
    }

    fn tell(&mut self, open: &[usize], text: &str) {
        open.iter().for_each(|&at| self.elements[at].text.push_str(text));
    }

    /// Every element for which `wanted` returns true, in order.
    pub fn all(&self, wanted: impl Fn(&Element) -> bool) -> Vec<&Element> {
        self.elements.iter().filter(|element| wanted(element)).collect()
    }

    /// The element with this id.
    #[track_caller]
    pub fn id(&self, id: &str) -> &Element {
        self.maybe_id(id).unwrap_or_else(|| panic!("no element with the id {id}"))
    }

    /// As [`Page::id`]; `None` if it does not exist.
    pub fn maybe_id(&self, id: &str) -> Option<&Element> {
        self.elements.iter().find(|element| element.get("id") == Some(id))
    }

    /// Returns the elements within `outer` for which `wanted` returns true.
    pub fn within(&self, outer: &Element, wanted: impl Fn(&Element) -> bool) -> Vec<&Element> {
        let is_within = |element: &Element| {
            let mut parent = element.parent;
            while let Some(at) = parent {
                if std::ptr::eq(&raw const self.elements[at], outer) {
                    return true;
                }
                parent = self.elements[at].parent;
            }
            false
        };
        self.elements.iter().filter(|element| wanted(element) && is_within(element)).collect()
    }

    /// Returns the addresses of links with this text.
    pub fn links(&self, text: &str) -> Vec<&str> {
        let is_link = |element: &Element| element.name == "a" && element.text.trim() == text;
        self.all(is_link).into_iter().filter_map(|link| link.get("href")).collect()
    }
}

/// Returns the length in bytes of the tag that `text` starts with; a `>` within quotes does not end it.
fn end_of_tag(text: &str) -> usize {
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return at + 1,
            _ => {}
        }
    }
    panic!("a tag has no end: {}", text.chars().take(80).collect::<String>());
}

fn element(tag: &str, parent: Option<usize>) -> Element {
    let name_end = tag.find(char::is_whitespace).unwrap_or(tag.len());
    let mut element = Element { name: tag[..name_end].to_owned(), parent, ..Element::default() };
    let mut rest = tag[name_end..].trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let end = quoted.find('"').expect("quotes are closed");
            value = unescaped(&quoted[..end]);
            rest = &quoted[end + 1..];
        }
        element.attributes.push((name, value));
        rest = rest.trim_start();
    }
    element
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
