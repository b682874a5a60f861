//! The section `[server]`.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::config::number::{Bounded, Milliseconds, Seconds};
use crate::server::cors::AllowedOrigin;
use crate::server::settings::{
    AdmissionLimits, Budgets, ConnectionLimits, Deadlines, DrainTimes, ServerSettings, TlsFiles,
    TlsSource,
};

/// A deadline. Zero would close every connection.
type Deadline = Option<Seconds<1>>;
/// A maximum number of connections or requests, below the limit of file descriptors.
type Count = Option<Bounded<1, 1_000_000>>;

/// A byte budget. It must have room for the largest request or response.
type Mebibytes = Option<Bounded<4, 1_000_000>>;

/// The section in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerFile {
    proxies: Option<Vec<IpAddr>>,
    cors_origins: Vec<AllowedOrigin>,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    handshake_seconds: Deadline,
    first_byte_seconds: Deadline,
    header_seconds: Deadline,
    body_seconds: Deadline,
    write_stall_seconds: Deadline,
    idle_seconds: Deadline,
    request_seconds: Deadline,
    export_seconds: Deadline,
    connection_seconds: Deadline,
    max_connections: Count,
    max_connections_per_address: Count,
    max_reads: Count,
    max_exports: Count,
    max_streams: Count,
    max_log_ins: Count,
    max_writes: Count,
    max_visitors: Count,
    visitor_requests_per_minute: Count,
    max_request_body_mib: Mebibytes,
    max_unsent_mib: Mebibytes,
    queue_timeout_ms: Option<Milliseconds>,
    drain_delay_seconds: Option<Seconds<0>>,
    drain_seconds: Option<Seconds<0>>,
}

impl ServerFile {
    /// Merges the section with the flag `--drain-delay`.
    ///
    /// # Errors
    /// Only one of the two TLS files is set.
    pub(super) fn settings(
        self,
        drain_delay: Option<Seconds<0>>,
    ) -> anyhow::Result<ServerSettings> {
        let default = ServerSettings::default();
        let DrainTimes { delay, deadline } = default.drain;
        let proxies = self.proxies.as_ref();
        let proxies = proxies.map(|given| given.iter().map(IpAddr::to_canonical).collect());
        Ok(ServerSettings {
            deadlines: self.deadlines(default.deadlines),
            connections: self.connections(default.connections),
            admission: self.admission(default.admission),
            budgets: self.budgets(),
            visitor_requests_per_minute: self
                .visitor_requests_per_minute
                .map_or(default.visitor_requests_per_minute, Bounded::get),
            drain: DrainTimes {
                delay: Seconds::or(drain_delay.or(self.drain_delay_seconds), delay),
                deadline: Seconds::or(self.drain_seconds, deadline),
            },
            proxies: proxies.unwrap_or(default.proxies),
            cors_origins: self.cors_origins,
            tls: match (self.tls_certificate, self.tls_key) {
                (Some(certificate), Some(key)) => {
                    Some(TlsSource::Files(TlsFiles { certificate, key }))
                }
                (None, None) => None,
                (Some(_), None) => anyhow::bail!("server.tls_certificate needs server.tls_key"),
                (None, Some(_)) => anyhow::bail!("server.tls_key needs server.tls_certificate"),
            },
        })
    }

    fn deadlines(&self, default: Deadlines) -> Deadlines {
        Deadlines {
            handshake: Seconds::or(self.handshake_seconds, default.handshake),
            first_byte: Seconds::or(self.first_byte_seconds, default.first_byte),
            header: Seconds::or(self.header_seconds, default.header),
            body: Seconds::or(self.body_seconds, default.body),
            write_stall: Seconds::or(self.write_stall_seconds, default.write_stall),
            idle: Seconds::or(self.idle_seconds, default.idle),
            request: Seconds::or(self.request_seconds, default.request),
            export: Seconds::or(self.export_seconds, default.export),
            connection_age: Seconds::or(self.connection_seconds, default.connection_age),
        }
    }

    fn connections(&self, default: ConnectionLimits) -> ConnectionLimits {
        let per_address = self.max_connections_per_address;
        ConnectionLimits {
            total: self.max_connections.map_or(default.total, Bounded::get),
            per_address: per_address.map_or(default.per_address, Bounded::get),
        }
    }

    fn budgets(&self) -> Budgets {
        let default = Budgets::default();
        let bytes = |given: Mebibytes, default| given.map_or(default, |it| it.get::<u64>() << 20);
        Budgets {
            request_bytes: bytes(self.max_request_body_mib, default.request_bytes),
            response_bytes: bytes(self.max_unsent_mib, default.response_bytes),
        }
    }

    fn admission(&self, default: AdmissionLimits) -> AdmissionLimits {
        AdmissionLimits {
            reads: self.max_reads.map_or(default.reads, Bounded::get),
            exports: self.max_exports.map_or(default.exports, Bounded::get),
            streams: self.max_streams.map_or(default.streams, Bounded::get),
            log_ins: self.max_log_ins.map_or(default.log_ins, Bounded::get),
            writes: self.max_writes.map_or(default.writes, Bounded::get),
            visitors: self.max_visitors.map_or(default.visitors, Bounded::get),
            queue_timeout: self.queue_timeout_ms.map_or(default.queue_timeout, |time| time.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Given};
    use crate::server::settings::ServerSettings;

    fn load(text: &str, given: Given) -> anyhow::Result<ServerSettings> {
        Ok(Config::load_text(text, given)?.server)
    }

    #[test]
    fn settings_have_defaults_and_can_be_set() {
        let loaded = |text| load(text, Given::default()).expect("loads");
        assert_eq!(loaded(""), ServerSettings::default());
        let given = loaded(
            "[server]\nheader_seconds = 0.5\nidle_seconds = 7\nmax_reads = 3\n\
                        max_connections_per_address = 9\nproxies = [\"::ffff:10.0.0.2\"]\n",
        );
        assert_eq!(given.deadlines.header.as_millis(), 500);
        assert_eq!((given.deadlines.idle.as_secs(), given.admission.reads), (7, 3));
        assert_eq!(given.connections.per_address, 9);
        assert_eq!(given.proxies, ["10.0.0.2".parse::<std::net::IpAddr>().expect("one")]);
    }

    #[test]
    fn the_command_line_takes_precedence() {
        let given = Given { drain_delay: Some(0.0), ..Given::default() };
        let drain = load("[server]\ndrain_delay_seconds = 9", given).expect("loads").drain;
        assert_eq!((drain.delay.as_secs(), drain.deadline.as_secs()), (0, 25));
    }

    #[test]
    fn errors_name_the_setting() {
        for (text, word) in [
            ("[server]\nheader_seconds = 0", "header_seconds"),
            ("[server]\nidle_seconds = 100000", "idle_seconds"),
            ("[server]\nidle_seconds = -1", "idle_seconds"),
            ("[server]\nmax_connections = 0", "max_connections"),
            ("[server]\nconnections = 0", "max_connections"),
            ("[server]\nmax_reads = 2\nreads = 1", "server.max_reads"),
            ("[server]\nheaders = 5", "headers"),
            ("[server]\ncors_origins = [\"*\"]", "cors_origins"),
            ("[server]\ntls_key = \"key.pem\"", "tls_certificate"),
            ("[server]\ntls_certificate = \"cert.pem\"", "tls_key"),
            ("[server]\nproxies = []\n[web]\nproxies = []", "server.proxies"),
        ] {
            let refused = load(text, Given::default()).expect_err(text);
            assert!(format!("{refused:#}").contains(word), "{text}: {refused:#}");
        }
    }

    #[test]
    fn old_names_are_accepted_and_reported() {
        let text = "[server]\nreads = 3\nconnections = 7\nqueue_seconds = 0.25\n\
                    [web]\nproxies = [\"10.0.0.2\"]\n[webhooks]\ndeny_names = [\"corp.example\"]\n";
        let config = Config::load_text(text, Given::default()).expect("loads");
        assert_eq!((config.server.admission.reads, config.server.connections.total), (3, 7));
        assert_eq!(config.server.admission.queue_timeout.as_millis(), 250);
        assert_eq!(config.server.proxies.len(), 1);
        assert_eq!(config.outbound.webhooks.deny_names.len(), 1);
        let names: Vec<_> = config.renamed.iter().map(|it| (it.old, it.new)).collect();
        assert_eq!(
            names,
            [
                ("web.proxies", "server.proxies"),
                ("webhooks.deny_names", "webhooks.deny_hosts"),
                ("server.connections", "server.max_connections"),
                ("server.reads", "server.max_reads"),
                ("server.queue_seconds", "server.queue_timeout_ms"),
            ]
        );
    }
}
