// Pages through the drops with the client that openapi-generator generated, then reads two errors.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	openapi "openapi"
)

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("DROPDEX_URL")}}
	client := openapi.NewAPIClient(configuration)
	key := context.WithValue(context.Background(), openapi.ContextAccessToken, os.Getenv("DROPDEX_KEY"))
	request := client.NamesAPI.ListDrops(key).Tld([]string{"com", "org"}).Limit(200)

	refused := func() map[string]any {
		_, response, err := request.Cursor("x").Execute()
		var refusal *openapi.GenericOpenAPIError
		if !errors.As(err, &refusal) {
			panic(err)
		}
		members, err := refusal.Model().(openapi.Error).ToMap()
		if err != nil {
			panic(err)
		}
		members["status"] = response.StatusCode
		return members
	}

	var names []string
	for page := request; ; {
		drops, _, err := page.Execute()
		if err != nil {
			panic(err)
		}
		for _, drop := range drops.Drops {
			names = append(names, drop.GetName())
		}
		cursor, ok := drops.GetNextCursorOk()
		if !ok || cursor == nil {
			break
		}
		page = request.Cursor(*cursor)
	}
	printed, err := json.Marshal(map[string]any{"names": names, "errors": []any{refused(), refused()}})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(printed))
}
