#![no_main]
dropdex_fuzz::fuzz!(feed_zone);
