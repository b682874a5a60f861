#![no_main]
dropdex_fuzz::fuzz!(journal_files);
