//! Gauges of the served index and of the users' data, for `/metrics`. The gauges are set on each
//! scrape, so an installation without a scraper does no work for them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use metrics::{counter, gauge};

use crate::accounts::Store;
use crate::backup;
use crate::changes::ChangeLog;
use crate::index::generation::live::LiveIndex;
use crate::vocab::clock::Clock;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

/// Sources of the gauges.
pub struct Gauges {
    pub live: Arc<LiveIndex>,
    pub changes: ChangeLog,
    pub store: Store,
    pub clock: Clock,
    /// Why the server does not serve the newest generation.
    pub index_problem: Arc<Mutex<Option<String>>>,
    pub data: PathBuf,
    pub index: PathBuf,
}

impl Gauges {
    /// Sets every gauge. Must run on the blocking pool, because it visits every watched name and
    /// account.
    pub fn sample(&self) {
        self.index();
        self.accounts();
        self.queues();
        self.cluster();
        self.disks();
    }

    fn disks(&self) {
        for (name, folder) in [("data", &self.data), ("index", &self.index)] {
            let Ok(disk) = rustix::fs::statvfs(folder) else { continue };
            let bytes = |blocks: u64| blocks as f64 * disk.f_frsize as f64;
            gauge!("dropdex_disk_free_bytes", "folder" => name).set(bytes(disk.f_bavail));
            gauge!("dropdex_disk_bytes", "folder" => name).set(bytes(disk.f_blocks));
        }
        let at = backup::last_time(&self.data).map_or(0, |at| at.timestamp());
        gauge!("dropdex_backup_timestamp_seconds").set(at as f64);
    }

    fn index(&self) {
        let index = self.live.current();
        let manifest = index.manifest();
        gauge!("dropdex_index_generation").set(manifest.generation.0 as f64);
        gauge!("dropdex_index_names").set(f64::from(manifest.names));
        gauge!("dropdex_index_drops").set(f64::from(manifest.drops));
        gauge!("dropdex_index_lists").set(manifest.batches as f64);
        gauge!("dropdex_index_built_timestamp_seconds").set(manifest.created.timestamp() as f64);
        if let Some(observed) = manifest.newest_observed_at {
            let age = (self.clock.now() - observed).num_seconds().max(0);
            gauge!("dropdex_index_age_seconds").set(age as f64);
        }
        let is_old = self.index_problem.lock().expect("no code panics holding this lock").is_some();
        gauge!("dropdex_index_fallback").set(f64::from(u8::from(is_old)));
    }

    fn cluster(&self) {
        let log = self.store.shared_log().unwrap_or_default();
        let flag = |is_set: bool| f64::from(u8::from(is_set));
        gauge!("dropdex_cluster_record").set(self.store.log_position() as f64);
        gauge!("dropdex_cluster_leader").set(flag(self.store.leads()));
        gauge!("dropdex_cluster_cut_off").set(flag(log.cut_off.is_some()));
        gauge!("dropdex_cluster_halted").set(flag(log.halted.is_some()));
        gauge!("dropdex_cluster_behind").set(flag(self.live.is_behind()));
        let is_complete = self.store.shared_log().is_none_or(|log| log.is_complete(Instant::now()));
        gauge!("dropdex_cluster_caught_up").set(flag(is_complete));
        let age = self.store.data_age().unwrap_or_default();
        gauge!("dropdex_cluster_data_age_seconds").set(age.as_secs_f64());
        gauge!("dropdex_clock_trusted").set(flag(self.clock.is_trusted()));
    }

    fn accounts(&self) {
        let (plans, disabled) = self.store.accounts_by_plan();
        for (plan, count) in Plan::ALL.into_iter().zip(plans) {
            gauge!("dropdex_accounts", "plan" => plan.as_str()).set(count as f64);
        }
        gauge!("dropdex_accounts", "plan" => "disabled").set(disabled as f64);
        let counts = self.store.counts();
        gauge!("dropdex_claims").set(counts.claims as f64);
        gauge!("dropdex_watches").set(counts.watches as f64);
        gauge!("dropdex_rules").set(counts.rules as f64);
        gauge!("dropdex_account_data_bytes").set(self.store.data_bytes() as f64);
        gauge!("dropdex_account_data_limit_bytes")
            .set(self.store.data_bytes_max().unwrap_or(u64::MAX) as f64);
        counter!("dropdex_journal_records_total").absolute(self.store.journal_records());
        gauge!("dropdex_journal_log_bytes").set(self.store.log_bytes_since_snapshot() as f64);
        let writable = self.store.write_problem().is_none();
        gauge!("dropdex_journal_writable").set(f64::from(u8::from(writable)));
    }

    fn queues(&self) {
        let queues = self.store.queues();
        gauge!("dropdex_deliveries_waiting").set(queues.deliveries as f64);
        let now = UnixMs::from_instant(self.clock.now());
        let late_ms = queues.first_due.map_or(0, |due| now.get().saturating_sub(due.get()));
        gauge!("dropdex_deliveries_late_seconds").set(late_ms as f64 / 1000.0);
        gauge!("dropdex_names_unverified").set(queues.unseen as f64);
        let matched = self.store.watermark().map_or(0, |watermark| watermark.batch);
        gauge!("dropdex_change_log_newest").set(self.changes.newest() as f64);
        gauge!("dropdex_change_log_bytes").set(self.changes.bytes() as f64);
        gauge!("dropdex_alerts_matched_list").set(matched as f64);
        let matched = self.store.changes_matched().unwrap_or_default();
        gauge!("dropdex_watch_alerts_matched_change").set(matched as f64);
    }
}
