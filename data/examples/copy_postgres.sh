set -eu
get() { curl -sSf -H "Authorization: Bearer $DROPDEX_KEY" "$DROPDEX_URL$1"; }
file=$(get '/api/export/files?limit=1000' | jq 'first(.files[] | select(.kind == "pipeline" and .format == "csv"))')
get "$(printf %s "$file" | jq -r .url)" >pipeline.csv.gz
printf '%s  pipeline.csv.gz\n' "$(printf %s "$file" | jq -r .sha256)" | sha256sum --check --quiet

psql -q --set ON_ERROR_STOP=1 <<SQL
begin;
drop table if exists drops, position;
create table drops (
    name text primary key, tld text, length int, dqs int, explanation text, stage text, drop_date date,
    release_date date, release_at timestamptz, release_certainty text, release_window_minutes int,
    days_to_release int, words text, language text, kind text, other_tlds int, drop_count int,
    listed_at timestamptz, popularity_rank bigint, suffix_rank real, typo_of text, expected_taken int
);
\copy drops from program 'gunzip -c pipeline.csv.gz' with (format csv, header)
create table position as select $(printf %s "$file" | jq .lastSeq)::bigint as seq;
commit;
SQL
