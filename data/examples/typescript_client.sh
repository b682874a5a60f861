npx openapi-typescript "$DROPDEX_URL/api/openapi.json" --output dropdex.d.ts
npx tsc --module nodenext --target es2022 --strict --types node drops.mts
node drops.mjs
