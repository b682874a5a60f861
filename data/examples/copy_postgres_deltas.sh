set -eu
get() { curl -sSf -H "Authorization: Bearer $DROPDEX_KEY" "$DROPDEX_URL$1"; }
while
    seq=$(psql -qAt -c 'select seq from position')
    get "/api/v1/changes?limit=1000&since=$seq" >changes.json
    jq -r '.data[] | [.seq, .event, .domain, .dqs, .releaseDate] | @csv' changes.json >changes.csv
    psql -q --set ON_ERROR_STOP=1 <<SQL
begin;
create temp table events (seq bigint, event text, name text, dqs int, release_date date);
\copy events from 'changes.csv' with (format csv)
create temp table latest as select distinct on (name) * from events order by name, seq desc;
delete from drops using latest where drops.name = latest.name and event in ('renewed', 'registered-again');
insert into drops (name, tld, dqs, release_date)
    select name, substr(name, strpos(name, '.') + 1), dqs, release_date
    from latest where event not in ('renewed', 'registered-again')
    on conflict (name) do update set dqs = excluded.dqs, release_date = excluded.release_date;
update position set seq = $(jq .next changes.json);
commit;
SQL
    jq -e '.next < .newest' changes.json >/dev/null
do :; done
