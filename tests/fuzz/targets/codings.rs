#![no_main]
dropdex_fuzz::fuzz!(codings);
