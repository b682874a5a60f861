//! Alerts at work: lists that go live are matched ([`matching`]), which writes down what is to be
//! sent before anything is.

pub mod matching;
