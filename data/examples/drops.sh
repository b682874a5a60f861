export DROPDEX_URL="${DROPDEX_URL:-http://127.0.0.1:8080}" DROPDEX_KEY="${DROPDEX_KEY:-ddx_...}"
curl --fail --silent --compressed -H "Authorization: Bearer $DROPDEX_KEY" \
    "$DROPDEX_URL/api/v1/drops?tld=com,net&min_dqs=40&limit=5"
