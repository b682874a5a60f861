import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.NamesApi;
import org.openapitools.client.model.Drops;
import org.openapitools.client.model.SelectedDrop;

/** Pages through the drops with the client that openapi-generator generated, then reads two errors. */
public class Client {
    static final ObjectMapper JSON = ApiClient.createDefaultObjectMapper();

    static Drops page(NamesApi api, String cursor) throws ApiException {
        return api.listDrops(NamesApi.APIListDropsRequest.newBuilder()
            .tld(List.of("com", "org")).limit(200).cursor(cursor).build());
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> refused(NamesApi api) throws Exception {
        try {
            page(api, "x");
        } catch (ApiException refusal) {
            var error = JSON.readValue(refusal.getResponseBody(), org.openapitools.client.model.Error.class);
            Map<String, Object> members = JSON.convertValue(error, Map.class);
            members.put("status", refusal.getCode());
            return members;
        }
        throw new IllegalStateException("not refused");
    }

    public static void main(String[] args) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("DROPDEX_URL"));
        client.setRequestInterceptor(
            request -> request.header("Authorization", "Bearer " + System.getenv("DROPDEX_KEY")));
        var api = new NamesApi(client);
        var names = new ArrayList<String>();
        String cursor = null;
        do {
            var drops = page(api, cursor);
            drops.getDrops().stream().map(SelectedDrop::getName).forEach(names::add);
            cursor = drops.getNextCursor();
        } while (cursor != null);
        var errors = List.of(refused(api), refused(api));
        System.out.println(JSON.writeValueAsString(Map.of("names", names, "errors", errors)));
    }
}
