openapi-python-client generate --url "$DROPDEX_URL/api/openapi.json" --meta none --output-path drops_client
python drops.py
