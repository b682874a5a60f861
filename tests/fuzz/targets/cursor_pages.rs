#![no_main]
dropdex_fuzz::fuzz!(cursor_pages);
