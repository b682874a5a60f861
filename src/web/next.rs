//! Validates the redirect target of a form, so that links cannot redirect to other sites.

/// Returns `next` if it is a path of this site, otherwise `/`. Browsers treat `//host` and `/\host`
/// as another host and strip white space first, so only printable ASCII is accepted.
pub fn local_path(next: Option<&str>) -> &str {
    let is_local = |path: &&str| {
        let rest = path.strip_prefix('/');
        rest.is_some_and(|rest| !rest.starts_with(['/', '\\']))
            && path.bytes().all(|byte| byte.is_ascii_graphic())
    };
    next.filter(is_local).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_accepted() {
        for path in ["/", "/watchlist?sort=dqs", "/domain/a.com#points", "/a//b"] {
            assert_eq!(local_path(Some(path)), path);
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            "watchlist",
            " /",
            "/a\r\nSet-Cookie: b=c",
            "/\u{e9}",
        ] {
            assert_eq!(local_path(Some(other)), "/", "{other:?}");
        }
        assert_eq!(local_path(None), "/");
    }
}
