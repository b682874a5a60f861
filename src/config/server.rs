//! The section `[server]`: connections, their deadlines and how many there may be.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::server::cors::Origin;
use crate::server::settings::{
    AdmissionLimits, ConnectionLimits, Deadlines, DrainTimes, ServerSettings, TlsFiles,
};

/// Longer than anybody waits.
const SECONDS_MAX: f64 = 86_400.0;
/// More than a process has descriptors.
const COUNT_MAX: u32 = 1_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerFile {
    proxies: Option<Vec<IpAddr>>,
    cors_origins: Vec<String>,
    tls_certificate: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    handshake_seconds: Option<f64>,
    first_byte_seconds: Option<f64>,
    header_seconds: Option<f64>,
    body_seconds: Option<f64>,
    write_stall_seconds: Option<f64>,
    idle_seconds: Option<f64>,
    request_seconds: Option<f64>,
    export_seconds: Option<f64>,
    connection_seconds: Option<f64>,
    connections: Option<u32>,
    connections_per_address: Option<u32>,
    reads: Option<u32>,
    exports: Option<u32>,
    log_ins: Option<u32>,
    writes: Option<u32>,
    queue_seconds: Option<f64>,
    drain_delay_seconds: Option<f64>,
    drain_seconds: Option<f64>,
}

impl ServerFile {
    /// Puts the settings together. `proxies` is where they were before this section was.
    ///
    /// # Errors
    /// The setting by its name, and what is wrong with it.
    pub(super) fn settings(
        &self,
        drain_delay: Option<f64>,
        proxies: Option<Vec<IpAddr>>,
    ) -> anyhow::Result<ServerSettings> {
        anyhow::ensure!(
            self.proxies.is_none() || proxies.is_none(),
            "web.proxies is server.proxies now: take the first of the two away"
        );
        let default = ServerSettings::default();
        let given = self.proxies.clone().or(proxies);
        let given = given.map(|them| them.iter().map(IpAddr::to_canonical).collect());
        Ok(ServerSettings {
            deadlines: self.deadlines()?,
            connections: self.connections()?,
            admission: self.admission()?,
            drain: self.drain(drain_delay)?,
            proxies: given.unwrap_or(default.proxies),
            cors_origins: self.cors_origins()?,
            tls: self.tls()?,
        })
    }

    fn cors_origins(&self) -> anyhow::Result<Vec<Origin>> {
        let parse = |text: &String| text.parse::<Origin>();
        let origins: Result<_, _> = self.cors_origins.iter().map(parse).collect();
        origins.map_err(|err| anyhow::anyhow!("server.cors_origins: {err}"))
    }

    fn tls(&self) -> anyhow::Result<Option<TlsFiles>> {
        match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
            }
            (None, None) => Ok(None),
            (Some(_), None) => anyhow::bail!("server.tls_certificate has no server.tls_key"),
            (None, Some(_)) => anyhow::bail!("server.tls_key has no server.tls_certificate"),
        }
    }

    fn deadlines(&self) -> anyhow::Result<Deadlines> {
        let default = Deadlines::default();
        let time = |name, given, default| time(name, given, default, 0.001);
        Ok(Deadlines {
            handshake: time("handshake_seconds", self.handshake_seconds, default.handshake)?,
            first_byte: time("first_byte_seconds", self.first_byte_seconds, default.first_byte)?,
            header: time("header_seconds", self.header_seconds, default.header)?,
            body: time("body_seconds", self.body_seconds, default.body)?,
            write_stall: time(
                "write_stall_seconds",
                self.write_stall_seconds,
                default.write_stall,
            )?,
            idle: time("idle_seconds", self.idle_seconds, default.idle)?,
            request: time("request_seconds", self.request_seconds, default.request)?,
            export: time("export_seconds", self.export_seconds, default.export)?,
            connection_age: time(
                "connection_seconds",
                self.connection_seconds,
                default.connection_age,
            )?,
        })
    }

    fn connections(&self) -> anyhow::Result<ConnectionLimits> {
        let ConnectionLimits { total, per_address } = ConnectionLimits::default();
        Ok(ConnectionLimits {
            total: count("connections", self.connections, total)?,
            per_address: count(
                "connections_per_address",
                self.connections_per_address,
                per_address,
            )?,
        })
    }

    fn admission(&self) -> anyhow::Result<AdmissionLimits> {
        let default = AdmissionLimits::default();
        Ok(AdmissionLimits {
            reads: count("reads", self.reads, default.reads)?,
            exports: count("exports", self.exports, default.exports)?,
            log_ins: count("log_ins", self.log_ins, default.log_ins)?,
            writes: count("writes", self.writes, default.writes)?,
            queue_timeout: time("queue_seconds", self.queue_seconds, default.queue_timeout, 0.0)?,
        })
    }

    fn drain(&self, given: Option<f64>) -> anyhow::Result<DrainTimes> {
        let default = DrainTimes::default();
        let delay = given.or(self.drain_delay_seconds);
        Ok(DrainTimes {
            delay: time("drain_delay_seconds", delay, default.delay, 0.0)?,
            deadline: time("drain_seconds", self.drain_seconds, default.deadline, 0.0)?,
        })
    }
}

fn time(name: &str, given: Option<f64>, default: Duration, least: f64) -> anyhow::Result<Duration> {
    let Some(seconds) = given else { return Ok(default) };
    anyhow::ensure!(
        (least..=SECONDS_MAX).contains(&seconds),
        "server.{name} is {seconds}; it must be {least} to {SECONDS_MAX} seconds"
    );
    Ok(Duration::from_secs_f64(seconds))
}

fn count(name: &str, given: Option<u32>, default: u32) -> anyhow::Result<u32> {
    let count = given.unwrap_or(default);
    anyhow::ensure!(
        (1..=COUNT_MAX).contains(&count),
        "server.{name} is {count}; it must be 1 to {COUNT_MAX}"
    );
    Ok(count)
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Given};
    use crate::server::settings::ServerSettings;

    fn load(text: &str, given: Given) -> anyhow::Result<ServerSettings> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dropdex.toml");
        std::fs::write(&path, text).expect("writable");
        Ok(Config::load(Given { config: Some(path), ..given })?.server)
    }

    #[test]
    fn every_setting_has_a_default_and_can_be_given() {
        let of = |text| load(text, Given::default()).expect("loads");
        assert_eq!(of(""), ServerSettings::default());
        let given = of("[server]\nheader_seconds = 0.5\nidle_seconds = 7\nreads = 3\n\
                        connections_per_address = 9\nproxies = [\"::ffff:10.0.0.2\"]\n");
        assert_eq!(given.deadlines.header.as_millis(), 500);
        assert_eq!((given.deadlines.idle.as_secs(), given.admission.reads), (7, 3));
        assert_eq!(given.connections.per_address, 9);
        assert_eq!(given.proxies, ["10.0.0.2".parse::<std::net::IpAddr>().expect("one")]);
    }

    #[test]
    fn the_command_line_beats_the_file() {
        let given = Given { drain_delay: Some(0.0), ..Given::default() };
        let drain = load("[server]\ndrain_delay_seconds = 9", given).expect("loads").drain;
        assert_eq!((drain.delay.as_secs(), drain.deadline.as_secs()), (0, 25));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("[server]\nheader_seconds = 0", "header_seconds"),
            ("[server]\nidle_seconds = 100000", "idle_seconds"),
            ("[server]\nidle_seconds = -1", "idle_seconds"),
            ("[server]\nconnections = 0", "connections"),
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
}
